"""The latest readings, for displays."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from amt_stream.core.json_types import JsonDict
from amt_stream.core.since_reset import SinceReset
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.annoyance import annoyances
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import COUNTING, LIMITS, Event, Frames, Snapshot
from amt_stream.meters.limits import Limit, Stood
from amt_stream.meters.rows import AnyRows, JoinedRows, Rows, maxima_of, summary
from amt_stream.meters.rows.block import ALL
from amt_stream.meters.rows.readings import Summary

SUMMARY_S = 0.5
UNTAKEN = 6000
"""Largest number of rows that wait for a display: ten minutes at the usual step."""
EVENTS = 1000


@thread_checked
class LatestReadings:
    """A sink that holds the newest row of several models, and their main statistics.

    `row` has the columns of `rows` by name; `totals` has the headlines of each model's summary: of
    the moment of `row` where they are columns too, others every half second, and at once where a
    value of `row` exceeds its maximum. `counted_s` has the measured, excluded, off and clipped time
    of each model, and `measured_of` those of statistics that cover another time than their model
    says. All are replaced and never changed, so that any thread may read them.
    Pausing and resetting affect statistics and not filters.
    """

    only_reads = True
    hears_tail = True

    def __init__(self, rows: AnyRows) -> None:
        self.row: JsonDict | None = None
        self._came_at = math.inf
        self.totals: Summary = {}
        self.counted_s: dict[str, Summary] = {}
        self.measured_of: dict[str, Summary] = {}
        self._measured_s = SinceReset(0.0)
        self._use(rows)
        self._next: JoinedRows | None = None
        self._summed_s = -SUMMARY_S
        self._lock = threading.Lock()

    def _use(self, rows: AnyRows) -> None:
        self.models, self.rows = tuple(rows.readings), rows
        self._maxima: dict[str, str] = {}
        for one in rows.readings.values():
            present = [column for column in one.columns if column.statistic == "instantaneous"]
            shown = [column for column in one.offered if column.name in one.headlines]
            self._maxima |= maxima_of(present, shown)

    def change_limits(self, rows: JoinedRows) -> None:
        """Prepare rows with other limits, which continue the present ones at the next event
        "limits" [any-thread].
        """
        self._next = rows

    @property
    def measured_s(self) -> float:
        """Seconds counted since the start or the last reset, without pauses and gaps."""
        return self._measured_s.now

    @property
    def needed(self) -> Collection[str]:
        """Models that limits, triggers of events and chosen columns need [any-thread]."""
        return self.rows.needed

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Limits of the rows [any-thread]."""
        return self.rows.limits

    def __call__(self, frames: Frames) -> None:
        with self._lock:
            self._take(self.rows(frames))

    def ended(self, end_s: float | None) -> None:
        """Take the last rows of a sound that has ended, or was stopped [sink-thread]."""
        with self._lock:
            self._take(self.rows.rest(end_s))
            if end_s is not None:
                self._sum_up(self._summed_s)

    def _take(self, rows: Rows) -> None:
        if not len(rows):
            return
        if not self.rows.paused:
            added_s = len(rows) * self.rows.step_ms / 1000
            self._measured_s.change(lambda measured_s: measured_s + added_s)
        self._keep(rows)
        (row,) = rows.where(slice(-1, None))
        time_s = float(rows["time_s"][-1])
        exceeded = not self.rows.paused and _exceeds(row, self.totals, self._maxima)
        if exceeded or time_s >= self._summed_s + SUMMARY_S:
            self._sum_up(time_s)
        # Statistics of one moment agree with each other.
        now: JsonDict = {name: v for name in self.totals if (v := row.get(name)) is not None}
        self.totals = {**self.totals, **now}
        self.row = row  # after the maxima, which nobody may see below it
        self._came_at = time.monotonic()

    @property
    def late_s(self) -> float:
        """Seconds by which the next row is late, as while models are too slow."""
        return max(0.0, time.monotonic() - self._came_at - self.rows.step_ms / 1000)

    def event(self, event: Event) -> None:
        """Handle a gap, a pause or a reset."""
        with self._lock:
            self.rows.event(event)
            if event.kind == "readings_reset":
                self._measured_s.reset(event.time_s, 0.0)
            elif event.kind == "reset_undone":
                self._measured_s.undo()
            elif event.kind == LIMITS and self._next is not None:
                rows, self._next = self._next, None
                assert isinstance(self.rows, JoinedRows)
                rows.take_over(self.rows)
                self._use(rows)

    def _keep(self, rows: Rows) -> None:
        """Take new rows [sink-thread]."""

    @property
    def paused(self) -> bool:
        """Whether statistics are paused."""
        return self.rows.paused

    def ask(self, model: str, question: Callable[[Any], Any]) -> Any:
        """What a function finds in the readings of a model, between two frames [any-thread]."""
        with self._lock:
            return question(self.rows.readings[model])

    def stood(self) -> list[Stood]:
        """The result of each limit."""
        with self._lock:
            return self.rows.stood()

    def summary(
        self,
        models: Sequence[Mapping[str, object]],
        calibration: Sequence[Calibration],
        source: Mapping[str, object],
    ) -> JsonDict:
        """The summary of the sound so far; arguments are those of `rows.header`."""
        with self._lock:
            return summary(self.rows, models, calibration, source)

    @property
    def values(self) -> JsonDict:
        """`row` and `totals` as one row, whose `clipped_columns` names readings of both."""
        row, counted_s = self.row or {}, self.counted_s
        clipped = [
            name
            for model, one in self.rows.readings.items()
            if one.in_pascal and counted_s.get(model, {}).get("clipped_s")
            for name in one.headlines
        ]
        named = row.get("clipped_columns", "")
        if clipped and named != ALL:
            row = row | {"clipped_columns": " ".join([*named.split(), *clipped])}
        return row | self.totals

    def of(self, model: str) -> JsonDict:
        """The newest readings of one model by name: instantaneous ones and headlines.

        Forecasts are left out, as they are shown with limits.
        """
        readings, row = self.rows.readings[model], self.row or {}
        shown = [column.name for column in readings.columns if column.statistic != "forecast"]
        now = {name: row.get(name) for name in shown}
        return now | {name: self.totals.get(name) for name in readings.headlines}

    def sum_up(self) -> None:
        """Update `totals` to the newest frames."""
        with self._lock:
            self._sum_up(self._summed_s)

    def _sum_up(self, time_s: float) -> None:
        self._summed_s = time_s
        counted = self.rows.counted
        self.counted_s, self.measured_of = counted.counted_s(), counted.measured_of()
        found, every = Summary(), Summary()
        for readings in self.rows.readings.values():
            summary = readings.summary()
            found |= {name: summary[name] for name in readings.headlines}
            every |= summary
        joint = annoyances(every)
        self.totals = found | {name: joint[name] for name in self.rows.names if name in joint}


def _exceeds(row: JsonDict, totals: Summary, maxima: Mapping[str, str]) -> bool:
    """Whether a value of the row is above its maximum in `totals`."""
    both = [(row.get(now), totals.get(maximum)) for now, maximum in maxima.items()]
    return any(now is not None and most is not None and now > most for now, most in both)


@thread_checked
class FollowedReadings(LatestReadings):
    """`LatestReadings` for a display with a history: it also has all rows, and a snapshot.

    `standing` is the newest snapshot: an engine that restores it continues with this sink, which
    has the events of both.
    """

    def __init__(self, rows: AnyRows) -> None:
        super().__init__(rows)
        rows.give_ranges()
        self.standing: Snapshot | None = None
        self._new: deque[Rows] = deque()
        self._waiting = 0
        self.events: tuple[Event, ...] = ()
        """Events, oldest first: the last 1000 about counting, and the last 1000 others."""

    def event(self, event: Event) -> None:
        super().event(event)
        kept = [*self.events, event]
        counting = event.kind in COUNTING
        alike = [k for k, one in enumerate(kept) if (one.kind in COUNTING) == counting]
        if len(alike) > EVENTS:
            del kept[alike[0]]
        # Replaced and never changed: displays read it without a lock.
        self.events = tuple(kept)

    def snapshot(self, snapshot: Snapshot) -> None:
        """[sink-thread]"""
        self.standing = snapshot

    def take(self) -> list[Rows]:
        """Take the rows since the last call, oldest first [any-thread]."""
        with self._lock:
            taken, self._new, self._waiting = [*self._new], deque(), 0
        return taken

    def _keep(self, rows: Rows) -> None:
        self._new.append(rows)
        self._waiting += len(rows)
        while self._waiting > UNTAKEN:
            self._waiting -= len(self._new.popleft())
