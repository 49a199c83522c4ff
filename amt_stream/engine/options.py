"""What an engine is told besides its source, its models and its sinks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import torch

from amt_stream.core.json_types import JsonMap
from amt_stream.engine.microphones import Microphone
from amt_stream.engine.pace import refuse_no_rungs
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.correction import Correction
from amt_stream.meters.specification import EngineSettings, RunIn, changed


class EngineKeywords(TypedDict, total=False):
    """The fields of `EngineOptions`, as arguments of `Engine`."""

    microphones: int | Sequence[Microphone | Sequence[int]] | None
    calibration: Calibration | Sequence[Calibration] | None
    correction: Correction | Sequence[Correction | None] | None
    channels: Sequence[int] | None
    device: str | torch.device
    block_ms: float
    run_in: RunIn
    history_s: float
    ring_s: float
    sink_slack_s: float
    ladder: Sequence[str]
    first_sample: int
    restore: JsonMap | None


@dataclass(frozen=True, kw_only=True)
class EngineOptions(EngineSettings):
    """How an engine runs its models, and on which channels.

    microphones: several, each heard by itself through the same model in one step: how many there
        are, which share the channels of the source evenly, or the channels of each, as
        [(1, 2), (3, 4)], or a `Microphone` that says more. Each has its own calibration, gain,
        faults, gaps and frames; these, its events and its rows of readings carry its name
    calibration: one, or one for each ear; by default the source's own, else UNCALIBRATED
    correction: of the microphone, or of that of each ear, in place of what calibrations have: its
        response is taken off the sound before any model hears it, whatever unit that takes
    channels: one or two channel numbers of the source (1, 2, ...), one for both ears. A model that
        takes fractions of full scale and not pascal hears these too, or all channels of the source
    device: "cpu", or "cuda", or one of several as "cuda:1": models are moved there, and stay;
        sound, marks and numbers are on the CPU. Where there is none, an event, "compute", and the
        note of `health` say so, and the models run on the CPU
    block_ms: 1 to 1000, brought to a whole number of the model's blocks, one at least
    run_in: "engine", a thread of its own, or "callback", the thread of the source
    history_s: seconds of frames that `histories` keep
    ring_s: seconds of sound that may wait for the models
    sink_slack_s: seconds of frames that may wait for a sink
    ladder: what may be done without while a live source brings sound faster than it is worked off,
        the first of them first: "accuracy", cheaper forms of models; "blocks", longer ones;
        "models", all but the first, the dearest first. It is told by events, "overload" and
        "recovered", by the note of `health`, and by Fault.OVERLOAD on all frames
    first_sample: the count of the first sample, from which all times are reckoned: a whole number
        of the models' blocks
    restore: the state of a `Snapshot` of an engine with equal models, blocks and calibration, to go
        on where that was taken: a source that is `seekable` is heard from that sample on; of a live
        one the time between, by the clock, is one gap

    Raises ValueError for what cannot be meant.
    """

    microphones: int | Sequence[Microphone | Sequence[int]] | None = None
    calibration: Calibration | Sequence[Calibration] | None = None
    correction: Correction | Sequence[Correction | None] | None = None
    channels: Sequence[int] | None = None
    device: str | torch.device = "cpu"
    block_ms: float = changed(EngineSettings, "block_ms", default=10.0)
    ring_s: float = 1.0
    sink_slack_s: float = 2.0
    first_sample: int = 0
    restore: JsonMap | None = None

    def __post_init__(self) -> None:
        if self.run_in not in ("engine", "callback"):
            raise ValueError(f"run_in is {self.run_in!r}: give 'engine' or 'callback'")
        for name in ("history_s", "ring_s", "sink_slack_s"):
            seconds = getattr(self, name)
            if not 0.0 < seconds < math.inf:
                raise ValueError(f"{name} is {seconds}: give seconds, more than 0")
        refuse_no_rungs(self.ladder)
        if self.microphones is not None and self.channels is not None:
            raise ValueError("microphones and channels are given: give the channels of each")
