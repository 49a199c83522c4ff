"""Frames of a whole sound, by one process or several."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from amt_stream.core.importing import has_torch
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Frames
from amt_stream.meters.presets import Preset
from amt_stream.offline.analysis import CheckedFile, analyze
from amt_stream.offline.jobs import refuse_jobs

if TYPE_CHECKING:
    from amt_stream.dsp.streaming import Stage


def analyze_in_jobs(
    recording: CheckedFile,
    models: "Mapping[str, Stage]",
    calibration: Sequence[Calibration],
    began_utc_s: float,
    preset: Preset,
    jobs: int,
    takes: Mapping[Any, Any] | None = None,
    to_s: float = math.inf,
) -> Iterator[Frames]:
    """`analyze` with `tail`, in several processes if the sound is long enough.

    models: made by `preset.models`, with `takes`
    to_s: end of the part of the sound that is needed
    """
    refuse_jobs(jobs)
    if jobs < 2 or not has_torch():  # compiled models are fast, and have no parts to be joined
        yield from analyze(recording, models, calibration, began_utc_s, tail=True)
        return
    from amt_stream.offline.split import analyze_split

    yield from analyze_split(recording, models, calibration, began_utc_s, preset, jobs, takes, to_s)
