"""The readings of the moment, for whoever looks."""

import math
import threading
from collections import deque
from collections.abc import Mapping, Sequence

from amt_stream.core.json_types import JsonDict
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import COUNTING, Event, Frames, Snapshot, undone_with
from amt_stream.meters.rows import AnyRows, Rows, Stood, summary
from amt_stream.meters.rows.readings import Summary

SUMMARY_S = 0.5
UNTAKEN = 6000
"""Rows, ten minutes of the usual ones, that wait for a screen which does not look."""
EVENTS = 1000


@thread_checked
class LatestReadings:
    """A sink that keeps the newest row of several models, and what they tell of the whole sound.

    `row` has the columns of `rows` by name; `totals` the headlines of each model's summary, every
    half second. Both are replaced, never changed: take them once to read them [any-thread]. What
    accumulates can be paused and reset; no filter is touched by that.
    """

    only_reads = True
    hears_tail = True

    def __init__(self, rows: AnyRows) -> None:
        self.row: JsonDict | None = None
        self.totals: Summary = {}
        self.measured_s = 0.0
        """How long was counted since the start or the last reset, without pauses and gaps."""
        # How long was counted before the resets that can be undone, and when the last of them was.
        self._before_s, self._reset_s = 0.0, -math.inf
        self.models, self.limits = tuple(rows.readings), rows.limits
        self.rows = rows
        self._summed_s = -SUMMARY_S
        self._lock = threading.Lock()

    def __call__(self, frames: Frames) -> None:
        with self._lock:
            self._take(self.rows(frames))

    def ended(self, end_s: float | None) -> None:
        """Take the last rows of a sound that has ended by itself [sink-thread]."""
        if end_s is None:
            return
        with self._lock:
            self._take(self.rows.rest(end_s))
            self._sum_up(self._summed_s)

    def _take(self, rows: Rows) -> None:
        if not len(rows):
            return
        if not self.rows.paused:
            self.measured_s += len(rows) * self.rows.step_ms / 1000
        self._keep(rows)
        (self.row,) = rows.where(slice(-1, None))
        time_s = float(rows["time_s"][-1])
        if time_s >= self._summed_s + SUMMARY_S:
            self._sum_up(time_s)

    def event(self, event: Event) -> None:
        """Be told of a gap, or of what to count."""
        with self._lock:
            self.rows.event(event)
            if event.kind == "readings_reset":
                if not undone_with(self._reset_s, event.time_s):
                    self._before_s = 0.0
                self._before_s += self.measured_s
                self.measured_s, self._reset_s = 0.0, event.time_s
            elif event.kind == "reset_undone":
                self.measured_s += self._before_s
                self._before_s, self._reset_s = 0.0, -math.inf

    def _keep(self, rows: Rows) -> None:
        """These rows are new [sink-thread]."""

    def reset(self) -> None:
        """Forget maxima, percentiles and what else accumulated."""
        with self._lock:
            self.rows.reset()
            self.measured_s = 0.0
            self._sum_up(self._summed_s)

    @property
    def paused(self) -> bool:
        """Whether nothing accumulates."""
        return self.rows.paused

    @paused.setter
    def paused(self, value: bool) -> None:
        with self._lock:
            self.rows.paused = value

    def stood(self) -> list[Stood]:
        """How each limit was kept."""
        with self._lock:
            return self.rows.stood()

    def summary(
        self,
        models: Sequence[Mapping[str, object]],
        calibration: Sequence[Calibration],
        source: Mapping[str, object],
    ) -> JsonDict:
        """What is told of the whole sound until now; arguments as of `rows.header`."""
        with self._lock:
            return summary(self.rows, models, calibration, source)

    def of(self, model: str) -> JsonDict:
        """The newest readings of one model by name, those of the moment and the headlines.

        Forecasts are of limits, which tell them.
        """
        readings, row = self.rows.readings[model], self.row or {}
        shown = [column.name for column in readings.columns if column.statistic != "forecast"]
        now = {name: row.get(name) for name in shown}
        return now | {name: self.totals.get(name) for name in readings.headlines}

    def sum_up(self) -> None:
        """Bring `totals` up to the newest frames."""
        with self._lock:
            self._sum_up(self._summed_s)

    def _sum_up(self, time_s: float) -> None:
        self._summed_s = time_s
        self.rows.catch_up()
        found: Summary = {}
        for readings in self.rows.readings.values():
            summary = readings.summary()
            found |= {name: summary[name] for name in readings.headlines}
        self.totals = found


@thread_checked
class FollowedReadings(LatestReadings):
    """The same for a screen that draws a history: each row once, and where the measurement stands.

    `standing` is the newest snapshot: an engine that restores it goes on with this sink, which
    keeps the events of both.
    """

    def __init__(self, rows: AnyRows) -> None:
        super().__init__(rows)
        self.standing: Snapshot | None = None
        self._new: deque[Rows] = deque()
        self._waiting = 0
        self.events: tuple[Event, ...] = ()
        """What happened, the oldest first: the last 1000 that tell what counts, and of the rest."""

    def event(self, event: Event) -> None:
        super().event(event)
        kept = [*self.events, event]
        counting = event.kind in COUNTING
        alike = [k for k, one in enumerate(kept) if (one.kind in COUNTING) == counting]
        if len(alike) > EVENTS:
            del kept[alike[0]]
        # Replaced, never changed: whoever draws takes it without a lock.
        self.events = tuple(kept)

    def snapshot(self, snapshot: Snapshot) -> None:
        """[sink-thread]"""
        self.standing = snapshot

    def take(self) -> list[Rows]:
        """The rows since this was last called, the oldest first [any-thread]."""
        with self._lock:
            taken, self._new, self._waiting = [*self._new], deque(), 0
        return taken

    def _keep(self, rows: Rows) -> None:
        self._new.append(rows)
        self._waiting += len(rows)
        while self._waiting > UNTAKEN:
            self._waiting -= len(self._new.popleft())
