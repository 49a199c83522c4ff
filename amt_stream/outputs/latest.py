"""The readings of the moment, for whoever looks."""

import threading
from typing import Any

from amt_stream.frames import Event, Frames
from amt_stream.rows import AnyRows, Stood
from amt_stream.rows.readings import Summary

SUMMARY_S = 0.5


class LatestReadings:
    """A sink that keeps the newest row of several models, and what they tell of the whole sound.

    `row` has the columns of `table` by name; `totals` the headlines of each model's summary, every
    half second. Both are replaced, never changed: take them once to read them [any-thread]. What
    accumulates can be paused and reset; no filter is touched by that.
    """

    def __init__(self, table: AnyRows) -> None:
        self.row: dict[str, Any] | None = None
        self.totals: Summary = {}
        self.models, self.limits = tuple(table.readings), table.limits
        self._table = table
        self._summed_s = -SUMMARY_S
        self._lock = threading.Lock()

    def __call__(self, frames: Frames) -> None:
        with self._lock:
            rows = self._table(frames)
            if not len(rows):
                return
            (self.row,) = rows.where(slice(-1, None))
            if self.row["time_s"] >= self._summed_s + SUMMARY_S:
                self._sum_up(self.row["time_s"])

    def event(self, event: Event) -> None:
        """Be told of a gap, or of what to count."""
        with self._lock:
            self._table.event(event)

    def reset(self) -> None:
        """Forget maxima, percentiles and what else accumulated."""
        with self._lock:
            self._table.reset()
            self._sum_up(self._summed_s)

    @property
    def paused(self) -> bool:
        """Whether nothing accumulates."""
        return self._table.paused

    @paused.setter
    def paused(self, value: bool) -> None:
        with self._lock:
            self._table.paused = value

    def stood(self) -> list[Stood]:
        """How each limit was kept."""
        with self._lock:
            return self._table.stood()

    def of(self, model: str) -> dict[str, Any]:
        """The newest readings of one model by name, those of the moment and the headlines.

        Forecasts are of limits, which tell them.
        """
        readings, row = self._table.readings[model], self.row or {}
        shown = [column.name for column in readings.columns if column.statistic != "forecast"]
        now = {name: row.get(name) for name in shown}
        return now | {name: self.totals.get(name) for name in readings.headlines}

    def sum_up(self) -> None:
        """Bring `totals` up to the newest frames."""
        with self._lock:
            self._sum_up(self._summed_s)

    def _sum_up(self, time_s: float) -> None:
        self._summed_s = time_s
        self._table.catch_up()
        found: Summary = {}
        for readings in self._table.readings.values():
            summary = readings.summary()
            found |= {name: summary[name] for name in readings.headlines}
        self.totals = found
