"""Rows of several models that hear the same sound, each at its own times."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.frames import Frames
from amt_stream.rows.block import AFTER, BEFORE, Rows, in_seven_digits, in_utc
from amt_stream.rows.column import Column
from amt_stream.rows.readings import Readings, Summary

# Two models may reckon the same time in floats that differ in the last digit.
SAME_TIME_S = 1e-6


class JoinedRows:
    """A row every `step_ms`: of each column the latest value whose time is not after the row's.

    What has no value yet is NaN. A row is given once all models have reached its time, so it waits
    for the one that lags most. Its marks are those of all frames since the row before. A model that
    gives cells, as a spectrum does, gives a row for each of them, and runs alone.

    readings: by the names that the models have, as `Frames.model` tells them
    fs: sampling rate of the input in hertz
    from_s, to_s: rows and statistics are of this part of the sound. Without `from_s`, statistics
        leave out what settles from silence (`Readings.rise_s`)
    duration_s: of the sound, where it is known: one that ends before a model has risen is counted
        from its beginning

    Raises ValueError where cells and columns are to stand in the same rows, and for a `to_s` that
    is not after `from_s`.
    """

    def __init__(
        self,
        readings: Mapping[str, Readings],
        step_ms: int,
        fs: float,
        *,
        from_s: float | None = None,
        to_s: float = math.inf,
        duration_s: float | None = None,
    ) -> None:
        if len(readings) > 1 and any(one.keys for one in readings.values()):
            raise ValueError(
                f"{', '.join(readings)}: a model that gives a row for each cell runs alone"
            )
        if not (from_s or 0.0) < to_s:
            raise ValueError(f"from {from_s or 0.0:g} s to {to_s:g} s there is no sound")
        self.readings, self.step_ms, self.fs = dict(readings), step_ms, fs
        self.from_s, self.to_s = from_s or 0.0, to_s
        self.keys = next(iter(readings.values())).keys
        self.start_utc: np.datetime64 | None = None
        for one in readings.values():
            short = min(to_s, math.inf if duration_s is None else duration_s) <= one.rise_s
            one.cover(0.0 if from_s is None and short else from_s, to_s)
        self._tracks = {name: _Track(one) for name, one in readings.items()}
        self._next = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        """The readings, in their order; first what says which cell a row is of."""
        return (*self.keys, *(c for one in self.readings.values() for c in one.columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns of a row."""
        return (*BEFORE, *(column.name for column in self.columns), *AFTER)

    def begin(self, time_s: float) -> None:
        """Give rows from that time on, of a sound that was not followed from its start."""
        first = math.ceil((time_s - SAME_TIME_S) * 1000 / self.step_ms)
        self._next = max(self._next, first)

    def __call__(self, frames: Frames) -> Rows:
        """Take frames of one model; gives the rows that they complete."""
        if self.start_utc is None:
            start = in_utc(frames.utc[:1] - frames.time_s[:1])[0]
            self.start_utc = None if np.isnat(start) else start
        self._tracks[frames.model].add(frames)
        return self.rest(self.reached_s)

    @property
    def reached_s(self) -> float:
        """Time of the last frame of the model that lags most."""
        return min(track.reached_s for track in self._tracks.values())

    def rest(self, end_s: float) -> Rows:
        """The rows until `end_s` that are not given yet, whether or not more frames may come."""
        end_s = min(end_s, self.to_s) + SAME_TIME_S
        stop = math.floor(end_s * 1000 / self.step_ms) + 1 if end_s >= 0 else 0
        steps = np.arange(self._next, stop)
        if not len(steps):
            return Rows.concatenated([], self.names)
        self._next = stop
        time_s = steps * self.step_ms / 1000
        blocks, after = [], None
        for track in self._tracks.values():
            values, marks = track.until(time_s + SAME_TIME_S)
            blocks.append(values)
            after = marks if after is None else after.with_those_of(marks)
        assert after is not None
        utc = in_utc(time_s + next(iter(self._tracks.values())).epoch_s)
        # The sample whose time is not after the row's, in whole numbers.
        sample = (steps * self.step_ms * round(self.fs)) // 1000
        table = self._table(time_s, utc, sample.astype(np.int64), blocks, after)
        return table.within(self.from_s - SAME_TIME_S, math.inf)

    def _table(
        self,
        time_s: NDArray[np.float64],
        utc: NDArray[np.datetime64],
        sample: NDArray[np.int64],
        blocks: Sequence[NDArray[np.float64]],
        after: "_Marks",
    ) -> Rows:
        """A row for each time, or for each cell at each time."""
        cells = next(iter(self.readings.values())).cells
        found: dict[str, NDArray[Any]] = dict(zip(BEFORE, (time_s, utc, sample), strict=True))
        found = {name: np.repeat(column, len(cells)) for name, column in found.items()}
        for key, of_cells in zip(self.keys, zip(*cells, strict=True), strict=True):
            found[key.name] = np.tile(np.array(of_cells), len(time_s))
        names = [column.name for column in self.columns[len(self.keys) :]]
        values = in_seven_digits(np.concatenate(blocks, axis=1)).reshape(-1, len(names))
        found |= dict(zip(names, values.T, strict=True))
        for name, column in zip(AFTER, after, strict=True):
            found[name] = np.repeat(column, len(cells))
        return Rows(found)

    def summary(self) -> Summary:
        """What the models tell of all that was counted, by name."""
        told: Summary = {}
        for one in self.readings.values():
            told |= one.summary()
        return told

    def reset(self) -> None:
        """Forget what was counted; no filter is touched."""
        for one in self.readings.values():
            one.reset()

    @property
    def paused(self) -> bool:
        """Whether nothing is counted."""
        return any(one.paused for one in self.readings.values())

    @paused.setter
    def paused(self, value: bool) -> None:
        for one in self.readings.values():
            one.paused = value


class _Marks(NamedTuple):
    """Fault, settling and whether the level is known, of each row (row,)."""

    fault: NDArray[np.uint8]
    settling: NDArray[np.bool_]
    calibrated: NDArray[np.bool_]

    def with_those_of(self, other: "_Marks") -> "_Marks":
        return _Marks(
            self.fault | other.fault,
            self.settling | other.settling,
            self.calibrated & other.calibrated,
        )


class _Track:
    """What one model has given, from the frame of the last row on."""

    def __init__(self, readings: Readings) -> None:
        self.reached_s = -math.inf
        self.epoch_s = math.nan
        self._readings = readings
        # First stands what the last row had: at the beginning, nothing.
        self._time_s = np.array([-math.inf])
        self._values = np.full((1, readings.width), math.nan)
        self._fault, self._settling = np.zeros(1, np.uint8), np.zeros(1, np.bool_)
        self._calibrated = np.ones(1, np.bool_)

    def add(self, frames: Frames) -> None:
        if math.isinf(self.reached_s):
            self._calibrated[0] = frames.calibrated
        values = self._readings.take(frames).reshape(len(frames), -1)
        self._values = np.concatenate([self._values, values])
        self._time_s = np.concatenate([self._time_s, frames.time_s])
        self._fault = np.concatenate([self._fault, frames.fault])
        self._settling = np.concatenate([self._settling, frames.settling])
        self.reached_s = float(frames.time_s[-1])
        self.epoch_s = float(frames.utc[-1] - frames.time_s[-1])
        calibrated = np.full(len(frames), frames.calibrated)
        self._calibrated = np.concatenate([self._calibrated, calibrated])

    def until(self, time_s: NDArray[np.float64]) -> tuple[NDArray[np.float64], _Marks]:
        """Values and marks for rows at `time_s`; what they pass is forgotten."""
        places = np.searchsorted(self._time_s, time_s, side="right") - 1
        values = self._values[places]
        settling, calibrated = self._settling[places], self._calibrated[places]
        fault = np.zeros(len(places), np.uint8)
        for at in np.flatnonzero(self._fault[: places[-1] + 1]):
            fault[np.searchsorted(places, at)] |= self._fault[at]
        last = int(places[-1])
        self._time_s, self._values = self._time_s[last:], self._values[last:]
        self._fault, self._settling = self._fault[last:].copy(), self._settling[last:]
        self._calibrated = self._calibrated[last:]
        self._fault[0] = 0
        return values, _Marks(fault, settling, calibrated)
