"""What is read of a sound, as rows and summaries give it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import SAME_TIME_S
from amt_stream.dsp.streaming import Stage, map_fields
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows import JoinedRows, Rows
from amt_stream.meters.rows.readings import choose, readings_of
from amt_stream.offline.selftest.ways import Recorded

STEP_MS = 10


@dataclass(frozen=True)
class Heard:
    """What is read of a sound.

    model: the model that heard it
    time_s: times of its frames up to the end, from 0 s on
    values: its output at these, without a batch axis
    rows: a row every 10 ms
    summary: statistics of the whole sound
    """

    model: Any
    time_s: NDArray[np.float64]
    values: Any
    rows: Rows
    summary: Mapping[str, float | None]

    def read(self, name: str) -> float:
        """A statistic, or another column at the end; NaN without a reading."""
        value = self.summary[name] if name in self.summary else self.rows[name][-1]
        return math.nan if value is None else float(value)

    def row(self, time_s: float) -> int:
        return round(1000 * time_s / STEP_MS)

    def frame(self, time_s: float) -> int:
        """The index of the last frame up to this time."""
        return int(np.searchsorted(self.time_s, time_s + SAME_TIME_S, side="right")) - 1


def heard(
    name: str, model: Stage, sound: Recorded, frames: Iterable[Frames], columns: Sequence[str]
) -> Heard:
    """Read the frames that a model of the catalog gives of a whole sound.

    columns: those to read besides the usual ones

    Raises ValueError if frames are missing, or if statistics leave some out.
    """
    readings = readings_of([name], sound.channels, models={name: model})
    choose(readings, None, columns)
    rows = JoinedRows(readings, STEP_MS, sound.fs, duration_s=sound.duration_s)
    parts, times, outputs = [], [], []
    for some in frames:
        if some.skipped or some.missed:
            raise ValueError(f"frames before {some.begin_s:g} s are missing")
        if not readings[name].counted(some).all():
            raise ValueError(f"statistics leave out frames from {some.begin_s:g} s on")
        if not some.after_end:
            times.append(some.time_s)
            outputs.append(some.values)
        parts.append(rows(some))
    parts.append(rows.rest(sound.duration_s))
    first, *others = outputs
    values = map_fields(_joined, first, model.out_time_dim, *others)
    table = Rows.concatenated(parts, rows.names)
    return Heard(model, np.concatenate(times), values, table, rows.summary())


def _joined(first: Any, dim: int, *others: Any) -> Any:
    return np.concatenate([first, *others], axis=dim, dtype=np.float64)
