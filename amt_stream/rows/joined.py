"""Rows of several models that hear the same sound, each at its own times."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from amt_stream.frames import Frames
from amt_stream.rows.readings import Readings
from amt_stream.rows.row import Row, marks, seven_digits

# Two models may reckon the same time in floats that differ in the last digit.
SAME_TIME_S = 1e-6


class JoinedRows:
    """A row every `step_ms`: of each column the latest value whose time is not after the row's.

    What has no value yet is None. A row is given once all models have reached its time, so it waits
    for the one that lags most. Its marks are those of all frames since the row before.

    readings: by the names that the engine's models have
    """

    def __init__(self, readings: Mapping[str, Readings], step_ms: int) -> None:
        self.columns = ("time_s", *(c for one in readings.values() for c in one.columns))
        self._tracks = {name: _Track(one) for name, one in readings.items()}
        self._step_ms = step_ms
        self._next = 0

    def __call__(self, frames: Frames) -> list[Row]:
        """Take frames of one model; gives the rows that they complete."""
        self._tracks[frames.model].add(frames)
        return self.rest(self.reached_s)

    @property
    def reached_s(self) -> float:
        """Time of the last frame of the model that lags most."""
        return min(track.reached_s for track in self._tracks.values())

    def rest(self, end_s: float) -> list[Row]:
        """The rows until `end_s` that are not given yet, whether or not more frames may come."""
        if end_s < 0:
            return []
        stop = math.floor((end_s + SAME_TIME_S) * 1000 / self._step_ms) + 1
        time_s = np.arange(self._next, stop) * self._step_ms / 1000
        if not len(time_s):
            return []
        self._next = stop
        columns: list[Sequence[float | None]] = []
        fault, settling = np.zeros(len(time_s), np.uint8), np.zeros(len(time_s), np.bool_)
        calibrated = True
        for track in self._tracks.values():
            values, faults, unsettled = track.until(time_s + SAME_TIME_S)
            columns += [[seven_digits(v) for v in column] for column in values.T.tolist()]
            fault |= faults
            settling |= unsettled
            calibrated &= track.calibrated
        marked = zip(fault.tolist(), settling.tolist(), strict=True)
        rows = zip(time_s.tolist(), *columns, strict=True)
        return [(*row, *marks(*mark, calibrated)) for row, mark in zip(rows, marked, strict=True)]


class _Track:
    """What one model has given, from the frame of the last row on."""

    def __init__(self, readings: Readings) -> None:
        self.reached_s = -math.inf
        self.calibrated = True
        self._readings = readings
        # First stands what the last row had: at the beginning, nothing.
        self._time_s = np.array([-math.inf])
        self._values = np.full((1, len(readings.columns)), math.nan)
        self._fault, self._settling = np.zeros(1, np.uint8), np.zeros(1, np.bool_)

    def add(self, frames: Frames) -> None:
        self._values = np.concatenate([self._values, self._readings.take(frames)])
        self._time_s = np.concatenate([self._time_s, frames.time_s])
        self._fault = np.concatenate([self._fault, frames.fault])
        self._settling = np.concatenate([self._settling, frames.settling])
        self.reached_s = float(frames.time_s[-1])
        self.calibrated = frames.calibrated

    def until(
        self, time_s: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.uint8], NDArray[np.bool_]]:
        """Values, fault and settling for rows at `time_s`; what they pass is forgotten."""
        places = np.searchsorted(self._time_s, time_s, side="right") - 1
        values, settling = self._values[places], self._settling[places]
        fault = np.zeros(len(places), np.uint8)
        for at in np.flatnonzero(self._fault[: places[-1] + 1]):
            fault[np.searchsorted(places, at)] |= self._fault[at]
        last = int(places[-1])
        self._time_s, self._values = self._time_s[last:], self._values[last:]
        self._fault, self._settling = self._fault[last:].copy(), self._settling[last:]
        self._fault[0] = 0
        return values, fault, settling
