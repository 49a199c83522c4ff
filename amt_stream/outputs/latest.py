"""The readings of the moment, for whoever looks."""

import threading
from collections.abc import Mapping
from typing import Any

from amt_stream.frames import Frames
from amt_stream.rows.joined import JoinedRows
from amt_stream.rows.readings import Readings, Summary

SUMMARY_S = 0.5


class LatestReadings:
    """A sink that keeps the newest row of several models, and what they tell of the whole sound.

    `row` has the columns of `JoinedRows` by name, every 100 ms; `totals` the headlines of each
    model's summary, every half second. Both are replaced, never changed: take them once to read
    them [any-thread]. What accumulates can be paused and reset; no filter is touched by that.
    """

    def __init__(self, readings: Mapping[str, Readings], end_s: float, step_ms: int = 100) -> None:
        self.row: dict[str, Any] | None = None
        self.totals: Summary = {}
        self.models = tuple(readings)
        self._readings = readings
        self._rows = JoinedRows(readings, step_ms)
        self._end_s = end_s
        self._summed_s = -SUMMARY_S
        self._lock = threading.Lock()

    def __call__(self, frames: Frames) -> None:
        with self._lock:
            rows = [row for row in self._rows(frames) if row[0] <= self._end_s]
            if not rows:
                return
            self.row = dict(zip(self._rows.columns, rows[-1], strict=False))
            if rows[-1][0] >= self._summed_s + SUMMARY_S:
                self._sum_up(rows[-1][0])

    def reset(self) -> None:
        """Forget maxima, percentiles and what else accumulated."""
        with self._lock:
            for readings in self._readings.values():
                readings.reset()
            self._sum_up(self._summed_s)

    @property
    def paused(self) -> bool:
        """Whether nothing accumulates."""
        return any(readings.paused for readings in self._readings.values())

    @paused.setter
    def paused(self, value: bool) -> None:
        with self._lock:
            for readings in self._readings.values():
                readings.paused = value

    def of(self, model: str) -> dict[str, Any]:
        """The newest readings of one model by name, those of the moment and the headlines."""
        readings, row = self._readings[model], self.row or {}
        now = {name: row.get(name) for name in readings.columns}
        return now | {name: self.totals.get(name) for name in readings.headlines}

    def sum_up(self) -> None:
        """Bring `totals` up to the newest frames."""
        with self._lock:
            self._sum_up(self._summed_s)

    def _sum_up(self, time_s: float) -> None:
        self._summed_s = time_s
        found: Summary = {}
        for readings in self._readings.values():
            summary = readings.summary()
            found |= {name: summary[name] for name in readings.headlines}
        self.totals = found
