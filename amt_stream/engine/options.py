"""Settings of an engine besides its source, models and sinks."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from amt_stream.core.json_types import JsonMap
from amt_stream.dsp.channel_layout import Layout
from amt_stream.engine.microphone.microphones import Microphone
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.correction import Correction
from amt_stream.meters.setting import changed
from amt_stream.meters.specification import RUNGS, EngineSettings, RunIn

if TYPE_CHECKING:
    import torch


class EngineKeywords(TypedDict, total=False):
    """The fields of `EngineOptions`, as arguments of `Engine`."""

    microphones: int | Sequence[Microphone | Sequence[int]] | None
    calibration: Calibration | Sequence[Calibration] | None
    correction: Correction | Sequence[Correction | None] | None
    channels: Sequence[int] | None
    layout: Layout | str | None
    device: "str | torch.device"
    block_ms: float
    run_in: RunIn
    history_s: float
    ring_s: float
    sink_slack_s: float
    ladder: Sequence[str]
    needed: Collection[str]
    first_sample: int
    restore: JsonMap | None


@dataclass(frozen=True, kw_only=True)
class EngineOptions(EngineSettings):
    """How an engine runs its models, and on which channels.

    microphones: several, each measured separately by the same model in one step: their number, to
        share the source's channels evenly, or the channels of each, as [(1, 2), (3, 4)], or a
        `Microphone` with more settings. Each has its own calibration, gain, faults, gaps and
        frames; these, its events and its rows of readings carry its name
    calibration: one, or one for each ear; by default the source's own, else UNCALIBRATED
    correction: frequency response correction of the microphone or of each ear's, overriding that of
        the calibrations; applied before any model, whatever unit it takes
    channels: channel numbers of the source (1, 2, ...): one for both ears, or two for left and
        right; by default all. Of more than two, models of ears hear L and R of a known layout
    layout: positions of the source's channels, or of the chosen ones, if it does not say them: a
        `Layout`, a name such as "5.1", or text such as "L C R Ls Rs LFE"
    device: "cpu", or "cuda", or one of several as "cuda:1": models are moved there and stay; audio
        and results are on the CPU. If it does not exist, the models run on the CPU; an event,
        "compute", and the note of `health` say so
    block_ms: 1 to 1000, rounded to a whole number of the model's blocks, at least one
    run_in: "engine", its own thread, or "callback", the thread of the source
    history_s: seconds of frames that `histories` keep
    ring_s: seconds of audio that may wait for the models
    sink_slack_s: seconds of frames that may wait for a sink
    ladder: degradations allowed while processing is slower than a live source, in this order:
        "accuracy", cheaper forms of models; "blocks", longer ones; "models", fewer of them, the
        most expensive first: never one that is `needed`, nor the last one that runs. Events
        ("overload", "recovered"), the note of `health` and Fault.OVERLOAD on all frames report them
    needed: names of models that are never switched off, besides those that sinks need at present
        (`NeedsModels`): those behind limits, triggers of events, and columns chosen for an output
    first_sample: number of the first sample, from which all times count: a multiple of the models'
        block sizes
    restore: the state of a `Snapshot` of an engine with equal models, blocks and calibration, to
        resume there: a `seekable` source starts from that sample; for a live one the time in
        between, by the clock, is one gap

    Raises ValueError for invalid settings.
    """

    microphones: int | Sequence[Microphone | Sequence[int]] | None = None
    calibration: Calibration | Sequence[Calibration] | None = None
    correction: Correction | Sequence[Correction | None] | None = None
    channels: Sequence[int] | None = None
    layout: Layout | str | None = None
    device: "str | torch.device" = "cpu"
    block_ms: float = changed(EngineSettings, "block_ms", default=10.0)
    ring_s: float = 1.0
    sink_slack_s: float = 2.0
    needed: Collection[str] = ()
    first_sample: int = 0
    restore: JsonMap | None = None

    def __post_init__(self) -> None:
        if self.run_in not in ("engine", "callback"):
            raise ValueError(f"run_in is {self.run_in!r}: give 'engine' or 'callback'")
        for name in ("history_s", "ring_s", "sink_slack_s"):
            seconds = getattr(self, name)
            if not 0.0 < seconds < math.inf:
                raise ValueError(f"{name} is {seconds}: give seconds, more than 0")
        rungs = self.ladder
        if isinstance(rungs, str) or len(set(rungs)) < len(rungs) or not set(rungs) <= set(RUNGS):
            raise ValueError(f"ladder is {rungs!r}: give some of {RUNGS}, or () for none")
        if self.microphones is not None and self.channels is not None:
            raise ValueError("microphones and channels are given: give the channels of each")
