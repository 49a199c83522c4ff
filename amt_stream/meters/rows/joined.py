"""Rows of several models of the same sound, which have different frame times."""

import math
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable, SavedState, Unfitting, state_under, under
from amt_stream.meters.accumulators.covered import CoveredTime
from amt_stream.meters.annoyance import annoyance_from, annoyances
from amt_stream.meters.frames import SAME_TIME_S, UNDO_S, Event, Fault, Frames, in_one, undone_with
from amt_stream.meters.limits import STATES, UNKNOWN, Limit, LimitError
from amt_stream.meters.missing import CAUSES, DEVICE, OUTPUT, STALLED
from amt_stream.meters.rows.block import (
    AFTER,
    BEFORE,
    MICROPHONE,
    Rows,
    in_seven_digits,
    in_utc,
    names_of,
)
from amt_stream.meters.rows.column import AT_LEAST, EQUIVALENT, Column
from amt_stream.meters.rows.limit_monitor import LimitMonitor, Stood
from amt_stream.meters.rows.limited import until_of
from amt_stream.meters.rows.readings import Readings, Summary, models_of

if TYPE_CHECKING:
    from amt_stream.meters.rows.intervals import Intervals

HELD_S = 0.1
"""Most frames in seconds that wait for the readings, whose calls are expensive."""

COMMANDED_S = 2.0
"""The longest delay in seconds of commands to an engine."""

INTERVALS = "intervals"

TOGETHER_MS = 100.0
"""Rows without a deadline are made together for this much sound."""

FOR_EVER = 2**62
"""Number of steps."""

WHOSE = Column(MICROPHONE, "", "which row of several that are heard, each by itself")

TIME, MARKS, CLIP_S, CLIP, HEAD = range(5)
"""Columns of the frames of a track before their values."""

ANY_FAULT = np.uint8(sum(Fault))
UNHEARD = np.uint8(Fault.GAP | Fault.NON_FINITE | Fault.STALL)
"""Faults of sound that no model measured."""

NOTED_S = 0.05
"""Times that differ by less are the same for a reader."""

ON = np.zeros(1, np.bool_)
UNCALIBRATED = np.uint8(128)
"""The mark for uncalibrated frames, besides the bits of `Fault`."""


class JoinedRows(Resumable):
    """A row every `step_ms`: of each column the latest value whose time is not after the row's.

    Values not known yet are NaN. A row is complete once all models have reached its time. Its marks
    are those of all frames since the row before. A model with cells, such as a spectrum, has a row
    for each of them and runs alone.

    readings: readings by model, as in `Frames.model`
    fs: sampling rate of the input in hertz
    from_s, to_s: part of the sound for rows and statistics
    microphone: name of the microphone, if there are several, for a column of all rows
    intervals: intervals with separate readings, which these rows feed
    duration_s: duration of the sound, if known. The last row then waits for the end, so that its
        statistics cover the whole sound, including output of the models after it
    wait_s: how long a complete row may wait to be made together with others, which is cheaper; None
        for TOGETHER_MS of rows, including its step
    limits: limits of these columns; each adds a column `Limit.state` with its state as text
    asked: names of columns that an output was asked for; None for all

    Raises LimitError for a limit of an unknown column, and ValueError if cells and columns would be
    in the same rows, for a step that is not whole milliseconds, and for an empty part of the sound.
    """

    kept = ("_next", "start_ms", "_tracks", "readings", "_gaps", "_missing", "_monitors")
    growing = ("_gaps",)

    def __init__(
        self,
        readings: Mapping[str, Readings],
        step_ms: int,
        fs: float,
        *,
        from_s: float = 0.0,
        to_s: float = math.inf,
        duration_s: float | None = None,
        wait_s: float | None = 0.0,
        microphone: str = "",
        limits: Sequence[Limit] = (),
        intervals: "Intervals | None" = None,
        asked: Collection[str] | None = (),
    ) -> None:
        if len(readings) > 1 and any(one.keys for one in readings.values()):
            raise ValueError(
                f"{', '.join(readings)}: a model that gives a row for each cell runs alone"
            )
        kinds = int, np.integer
        if isinstance(step_ms, bool) or not isinstance(step_ms, kinds) or step_ms < 1:
            raise ValueError(f"step_ms is {step_ms!r}: give whole milliseconds, 1 or more")
        for name, time_s in (("from_s", from_s), ("to_s", to_s)):
            if not isinstance(time_s, (*kinds, float, np.floating)) or not time_s >= 0:
                raise ValueError(f"{name} is {time_s!r}: give seconds of sound, 0 or more")
        if not from_s < to_s:
            raise ValueError(f"from {from_s:g} s to {to_s:g} s there is no sound")
        from amt_stream.meters.accumulators import loops  # compiles; who only imports rows need not

        loops.compile_loops()  # no live row waits for it, or later ones would find no room
        self.readings, self.step_ms, self.fs = dict(readings), step_ms, fs
        self.from_s, self.to_s = float(from_s), float(to_s)
        self.microphone, self._cells = microphone, next(iter(readings.values())).cells
        self.keys = (*([WHOSE] if microphone else []), *next(iter(readings.values())).keys)
        self.start_utc: np.datetime64 | None = None
        self.intervals = intervals
        for one in readings.values():
            one.cover(from_s, to_s)
        if intervals is not None:
            intervals.cover(from_s, to_s)
        self._tracks = {name: _ModelTrack(one, intervals) for name, one in readings.items()}
        self.limits = tuple(limits)
        self._monitors = [_ColumnMonitor(limit, self.readings, step_ms / 1000) for limit in limits]
        self._names = [c.name for one in readings.values() for c in one.columns]
        self._asked = self._names if asked is None else asked
        self._joint = [c for one in readings.values() for c in one.columns if c.needs]
        # The first step that waits for the end of the sound, if that is known.
        known = duration_s is not None and to_s >= duration_s
        end_s = math.inf if duration_s is None else duration_s + SAME_TIME_S
        self._last = self._first_step(end_s) - 1 if known else FOR_EVER
        # Whether models gave output after the end when the last row was already made.
        self._unjudged = False
        self._next = 0
        if wait_s is None:
            wait_s = max(0.0, (TOGETHER_MS - step_ms) / 1000)
        self._wait_s = wait_s
        self._gaps = np.zeros((0, 2), np.int64)
        # Missing samples of the counted time, by cause.
        self._missing = dict.fromkeys(CAUSES, 0)
        # State without the resets, as long as the last one can be undone.
        self._unreset: JoinedRows | None = None
        self._reset_s = -math.inf
        self._ranged = False
        self._none = Rows.concatenated([], self.names)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns: keys of cells first, then the readings."""
        return (*self.keys, *(c for one in self.readings.values() for c in one.columns))

    @property
    def gives_cells(self) -> bool:
        """Whether there is a row for each cell of a model at each time."""
        return len(self._cells[0]) > 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns of a row."""
        readings = (column.name for column in self.columns)
        return (*BEFORE, *readings, *(limit.state for limit in self.limits), *AFTER)

    @property
    def start_ms(self) -> int | None:
        """`start_utc` in milliseconds since 1970."""
        return None if self.start_utc is None else int(self.start_utc.astype(np.int64))

    @start_ms.setter
    def start_ms(self, given: int | None) -> None:
        self.start_utc = None if given is None else np.datetime64(given, "ms")

    @property
    def form(self) -> str:
        """What rows there are, in words."""
        return f"{' '.join(self.names)} every {self.step_ms} ms at {self.fs:g} Hz"

    def state_dict(self) -> SavedState:
        self.catch_up()
        state = {"rows": self.form, **super().state_dict()}
        if self.intervals is not None:
            state |= under(INTERVALS, self.intervals.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        saved = dict(state)
        form = saved.pop("rows", None)
        if form != self.form:
            raise Unfitting(f"the state is of the rows {form!r}, and these are {self.form!r}")
        of_intervals = state_under(saved, INTERVALS)
        super().load_state_dict(
            {k: v for k, v in saved.items() if not k.startswith(f"{INTERVALS}/")}
        )
        # The rows of a display have none, and continue from the same state.
        if self.intervals is not None:
            self.intervals.load_state_dict(of_intervals)

    @property
    def needed(self) -> frozenset[str]:
        """Models that limits and intervals need, and columns that an output was asked for."""
        found = models_of(self.readings, [*self._asked, *(one.column for one in self.limits)])
        return found if self.intervals is None else found | self.intervals.needed

    def remember(self) -> None:
        """Remember what columns need that are chosen while this runs, such as LAeq,15min."""
        for one in self.readings.values():
            one.remember()

    @property
    def last_sample(self) -> int:
        """The sample of the last row so far; -1 before the first."""
        return (self._next - 1) * (self.step_ms * round(self.fs)) // 1000 if self._next else -1

    def take_over(self, before: Self) -> None:
        """Continue rows of the same models and sound that had other columns or limits.

        Limits that were there continue; others begin with the next row, whose value includes as
        much of the sound before as is known.
        """
        before.catch_up()
        unreset = before._unreset and deepcopy(self)
        if before._ranged:
            self.give_ranges()
        for name, track in self._tracks.items():
            track.take_over(before._tracks[name])
            self.readings[name].take_over(before.readings[name])
        for name in ("_next", "start_utc", "_gaps", "_missing", "_unjudged", "_reset_s"):
            setattr(self, name, getattr(before, name))
        self.intervals = before.intervals
        for track in self._tracks.values():
            track.intervals = self.intervals
        for monitor in self._monitors:
            same = [one for one in before._monitors if one.limit == monitor.limit]
            if same:
                monitor.take_over(same[0])
            else:
                self._begin_late(monitor, before)
        if unreset is not None and before._unreset is not None:
            unreset.take_over(before._unreset)
            self._unreset = unreset

    def _begin_late(self, monitor: "_ColumnMonitor", before: Self) -> None:
        """Let a monitor begin in the middle of the rows."""
        monitor.pause(before.paused)
        if self._next:
            readings = before.readings[[*self._tracks][monitor.place]]
            begun_s = (self._next - 1) * self.step_ms / 1000
            monitor.begin_late(begun_s, *readings.earlier(monitor.column))

    def give_ranges(self) -> None:
        """Give `Rows.range_of` too, for displays."""
        self._ranged = not self.gives_cells
        for track in self._tracks.values() if self._ranged else ():
            track.give_ranges()

    def begin(self, time_s: float) -> None:
        """Give rows from that time on, of a sound that was not followed from its start."""
        first = math.ceil((time_s - SAME_TIME_S) * 1000 / self.step_ms)
        self._next = max(self._next, first)

    def __call__(self, frames: Frames) -> Rows:
        """Take frames of one model, and return the rows that they complete.

        Raises ValueError for frames of another microphone.
        """
        if frames.microphone != self.microphone:
            raise ValueError(
                f"these are rows of {self.microphone!r}, and the frames of {frames.microphone!r}: "
                "make JoinedRows(microphone=...) for each, and RowsOfEach of them"
            )
        if self.start_utc is None and math.isfinite(frames.end_utc):
            self.start_utc = in_utc(np.array([frames.utc[0] - frames.time_s[0]]))[0]
        for gap in frames.gaps:
            self._miss(*gap)
        self._tracks[frames.model].hear(frames)
        self._unjudged |= frames.after_end and self._last == FOR_EVER
        if self._unreset is not None:
            self._unreset(frames)
            if frames.begin_s > self._reset_s + UNDO_S + COMMANDED_S:
                self._unreset = None
        reached_s = self.reached_s
        if reached_s < self._next * self.step_ms / 1000 + self._wait_s - SAME_TIME_S:
            return self._none
        return self._until(reached_s, self._last)

    def catch_up(self) -> None:
        """Let the readings take all frames so far, as they do when a row is due."""
        for track in self._tracks.values():
            track.catch_up()

    def event(self, event: Event) -> None:
        """Handle a gap, which may be at the end without later frames, or a change of counting.

        "paused", "continued", "readings_reset" and "reset_undone" apply from the next frame on.
        Undoing restores the state without the reset, and without one before it that could still be
        undone then (`undone_with`).
        """
        if event.kind == "gap":
            self._miss(event.sample, event.sample + event.samples)
            if not self.paused:
                self._missing[event.cause or DEVICE] += event.samples
            if self._unreset is not None:
                self._unreset.event(event)
        elif event.kind in ("paused", "continued"):
            self._pause(event.kind == "paused", event.time_s)
        elif event.kind == "readings_reset":
            self.catch_up()
            if self._unreset is None or not undone_with(self._reset_s, event.time_s):
                self._unreset = None
                # Intervals continue through a reset.
                self._unreset = deepcopy(self, {id(self.intervals): None})
            self._reset_s = event.time_s
            self._reset(event.time_s)
        elif event.kind == "reset_undone" and self._unreset is not None:
            self.catch_up()
            self._unreset.catch_up()
            intervals = self.intervals
            self.__dict__.update(self._unreset.__dict__)
            self.intervals = intervals
            for track in self._tracks.values():
                track.intervals = intervals

    def _miss(self, start: int, stop: int) -> None:
        """Make no rows in a gap, even if it is too short for a frame to be missing."""
        if not (self._gaps == (start, stop)).all(axis=1).any():
            self._gaps = np.append(self._gaps, [[start, stop]], axis=0)

    @property
    def reached_s(self) -> float:
        """Time of the last frame of the model with the largest delay."""
        return min(track.reached_s for track in self._tracks.values())

    @property
    def covered(self) -> bool:
        """Whether all frames that count have come, so that the rest of the sound is not needed.

        Never for rows up to the end of the sound, as output of the models after it counts too.
        """
        return self._last == FOR_EVER and self.reached_s >= self.to_s

    def rest(self, end_s: float) -> Rows:
        """The rows until `end_s` that are not given yet, whether or not more frames may come.

        None where no frame has come at all.
        """
        found = self._until(end_s, FOR_EVER)
        if self._unjudged and end_s <= self.to_s:
            summary = self.summary()
            for monitor in self._monitors:
                monitor.end(end_s, summary, list(self._tracks.values()))
            self._unjudged = False
        return found

    def _until(self, end_s: float, stop: int) -> Rows:
        """The remaining rows until `end_s`, before the step `stop`."""
        stop = min(stop, self._first_step(min(end_s, self.to_s) + SAME_TIME_S))
        if stop <= self._next or not any(t.reached_s >= 0 for t in self._tracks.values()):
            return self._none
        self.catch_up()
        steps = self._there(self._next, stop)
        self._next = stop
        if not len(steps):
            return self._none
        time_s = steps * self.step_ms / 1000
        tracks = list(self._tracks.values())
        found = [track.until(time_s + SAME_TIME_S) for track in tracks]
        values, marks, settling, clipped_of, ranges = zip(*found, strict=True)
        utc = in_utc(time_s + tracks[0].epoch_s)
        # The last sample not after the row's time, in integers.
        sample = steps * (self.step_ms * round(self.fs)) // 1000
        table, unsettled, clipped = beside(values), beside(settling), beside(clipped_of)
        if steps[-1] == self._last:  # its statistics cover what came after its time, too
            clipped[-1] |= np.concatenate([track.clipped_statistics for track in tracks])
        for column in self._joint:
            place, needs = self._names.index(column.name), [*map(self._names.index, column.needs)]
            given = dict(zip(column.needs, table.T[needs], strict=True))
            table[:, place] = annoyance_from(column.name, given)
            for one in (unsettled, clipped):
                one[:, place] = one[:, needs].any(1)
        if steps[-1] == self._last:
            table[-1] = self._of_whole(table[-1])
        rows = self._table(time_s, utc, sample, table, marks, unsettled, clipped)
        if self._ranged:
            least, greatest = (in_seven_digits(beside(one)) for one in zip(*ranges, strict=True))
            of_names = zip(self._names, least.T, greatest.T, strict=True)
            rows.range_of = {name: np.stack(both) for name, *both in of_names}
            for column in self._joint:
                rows.range_of[column.name] = np.stack([rows[column.name]] * 2)
        return rows if time_s[0] >= self.from_s else rows.within(self.from_s, math.inf)

    def intervals_ended(self, end_s: float | None = None) -> Rows:
        """The intervals that have ended since the last call, or no rows without intervals.

        end_s: end of the sound, if it has ended
        """
        if self.intervals is None:
            return self._none
        self.catch_up()
        if end_s is not None:
            self.intervals.finish(end_s)
        return self.intervals.ended()

    def _of_whole(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of the last row, with statistics of the whole sound."""
        summary = self.summary()
        at = 0
        for name, one in self.readings.items():
            # A model that is off has no value, even of what it measured before.
            counts = one.counts and not self._tracks[name].is_off
            for column in one.columns * len(one.cells):
                if counts and not column.window_s and column.statistic != "instantaneous":
                    whole = summary.get(column.name, values[at])
                    values[at] = math.nan if whole is None else whole
                at += 1
        return values

    def _first_step(self, time_s: float) -> int:
        """The first step after a time."""
        if math.isinf(time_s):
            return 0 if time_s < 0 else FOR_EVER
        return max(0, math.floor(time_s * 1000 / self.step_ms) + 1)

    def _there(self, start: int, stop: int) -> NDArray[np.int64]:
        """The steps from `start` to `stop` with sound and frames of all models."""
        tracks = self._tracks.values()
        if not len(self._gaps) and not any(len(track.holes) for track in tracks):
            return np.arange(start, stop)
        holes = [hole for track in tracks for hole in track.holes.tolist()]
        for first, end in self._gaps.tolist():
            # Unknown until there are frames.
            before_s = end / self.fs if self.reached_s > end / self.fs - SAME_TIME_S else math.inf
            holes.append([first / self.fs - 2 * SAME_TIME_S, before_s])
        parts = []
        for after_s, before_s in sorted(holes):
            begin = self._first_step(after_s + SAME_TIME_S)
            if begin > start:
                parts.append(np.arange(start, min(begin, stop)))
            start = max(start, self._first_step(before_s - SAME_TIME_S))
            if start >= stop:
                break
        parts.append(np.arange(start, stop))
        # Gaps that end before the next row are over.
        next_s = stop * self.step_ms / 1000 - SAME_TIME_S
        for track in tracks:
            track.holes = track.holes[track.holes[:, 1] > next_s]
        self._gaps = self._gaps[self._gaps[:, 1] > next_s * self.fs]
        return np.concatenate(parts)

    def _table(
        self,
        time_s: NDArray[np.float64],
        utc: NDArray[np.datetime64],
        sample: NDArray[np.int64],
        values: NDArray[np.float64],
        marks_of: Sequence[NDArray[np.uint8]],
        settling: NDArray[np.bool_],
        clipped: NDArray[np.bool_],
    ) -> Rows:
        """A row for each time, or for each cell at each time."""
        cells = self._cells
        marks = marks_of[0] if len(marks_of) == 1 else np.bitwise_or.reduce(marks_of)
        names = self._names
        of_names = names_of(settling, names)
        marked = marks & ANY_FAULT, of_names != "", of_names, names_of(clipped, names)
        given: list[Any] = [time_s, utc, sample, *marked, marks < UNCALIBRATED]
        if len(cells) > 1:
            given = [np.repeat(column, len(cells)) for column in given]
        found: dict[str, np.ndarray] = dict(zip(BEFORE, given[: len(BEFORE)], strict=True))
        if self.microphone:
            found[MICROPHONE] = np.full(len(given[0]), self.microphone, object)
        keys = self.keys[len(self.keys) - len(cells[0]) :]
        for key, of_cells in zip(keys, zip(*cells, strict=True), strict=True):
            found[key.name] = np.tile(np.array(of_cells), len(marks))
        table = in_seven_digits(values).reshape(len(given[0]), len(names))
        after = {}
        for monitor in self._monitors:
            # Rows before `from_s` are not returned and do not count.
            judged = slice(int(np.searchsorted(time_s, self.from_s)), None)
            place = names.index(monitor.limit.column)
            until_s = table[:, names.index(monitor.until)] if monitor.until else None
            of_limit = table[:, place], clipped[:, place], until_s
            after[monitor.limit.state] = monitor.states(time_s, *of_limit, marks_of, judged)
        after |= dict(zip(AFTER, given[len(BEFORE) :], strict=True))
        return Rows.around(found, names, table, after)

    def counted_s(self) -> dict[str, Summary]:
        """Of each model with statistics, in seconds: measured, excluded, off and clipped."""
        self.catch_up()
        found = {name: one.counted_s() for name, one in self.readings.items()}
        for name, one in found.items():
            if one:
                one["off_s"] = off_s = self._tracks[name].off_s
                one["excluded_s"] = max(0.0, (one["excluded_s"] or 0.0) - off_s)
            if self.readings[name].counts:
                one["clipped_s"] = self.clipped_s(name)
        return found

    def measured_of(self) -> dict[str, Summary]:
        """Seconds that statistics cover, by model and name, where they are not its `measured_s`."""
        self.catch_up()
        found = {name: track.measured_of() for name, track in self._tracks.items()}
        return {name: seconds for name, seconds in found.items() if seconds}

    @property
    def missing_s(self) -> dict[str, float]:
        """Seconds of the counted time without sound, by cause."""
        found = {cause: n / self.fs for cause, n in self._missing.items()}
        # A frame is marked for as long as its model remembers: the shortest memory is closest.
        tracks = self._tracks.values()
        found[STALLED] = min(track.stalled_s for track in tracks)
        return found | {OUTPUT: max(track.missed_s for track in tracks)}

    def summary(self) -> Summary:
        """The statistics of all counted sound, by name."""
        self.catch_up()
        summary: Summary = {}
        for one in self.readings.values():
            summary |= one.summary()
        return summary | annoyances(summary)

    def clipped_s(self, model: str) -> float:
        """Seconds of counted sound of a model that are clipped."""
        return self._tracks[model].clipped_s

    def stood(self) -> list[Stood]:
        """How each limit was kept."""
        return [replace(monitor.stood, microphone=self.microphone) for monitor in self._monitors]

    def _reset(self, time_s: float) -> None:
        """Restart the statistics, also of rows up to `time_s`; filters are unchanged."""
        self.catch_up()
        for one in self.readings.values():
            one.reset()
        for track in self._tracks.values():
            track.reset()
        self._missing = dict.fromkeys(CAUSES, 0)
        for monitor in self._monitors:
            monitor.reset(time_s)

    @property
    def paused(self) -> bool:
        """Whether nothing is counted."""
        return any(one.paused for one in self.readings.values())

    def _pause(self, value: bool, time_s: float) -> None:
        """Pause or continue; rows before `time_s` that come later are not affected."""
        self.catch_up()
        for one in self.readings.values():
            one.paused = value
        for monitor in self._monitors:
            monitor.pause(value, time_s)
        if self.intervals is not None:
            self.intervals.pause(value)
        if self._unreset is not None:
            self._unreset._pause(value, time_s)


def beside(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The columns (row, column) of all models."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


class _ColumnMonitor(LimitMonitor):
    """A monitor of one of the columns of these readings.

    place: of its model among them
    """

    def __init__(self, limit: Limit, readings: Mapping[str, Readings], step_s: float) -> None:
        found = [
            (place, column)
            for place, one in enumerate(readings.values())
            for column in one.columns
            if column.name == limit.column and not one.keys
        ]
        if not found:
            raise LimitError(f"{limit.words}: there is no such column in these rows")
        until, there = until_of(limit), {c.name for one in readings.values() for c in one.columns}
        if until and until not in there:
            raise LimitError(f"{limit.words}: its ahead_s needs {until}, which these rows lack")
        self.place, self.column = found[0]
        self.until = until
        """The name of the forecast by which it warns, or ""."""
        column, adds_up = self.column, self.column.statistic.startswith(EQUIVALENT)
        rises = column.if_clipped == AT_LEAST
        super().__init__(limit, step_s, column.window_s, adds_up, column.counted, rises)
        self._clipped_at_end = column.counted and list(readings.values())[self.place].in_pascal

    def states(
        self,
        time_s: NDArray[np.float64],
        values: NDArray[np.float64],
        clipped: NDArray[np.bool_],
        until_s: NDArray[np.float64] | None,
        marks: Sequence[NDArray[np.uint8]],
        judged: slice,
    ) -> NDArray[np.object_]:
        """The state at each row; only rows of which `counts` is true count."""
        known = marks[self.place] < UNCALIBRATED
        own_or_lost = np.bitwise_or.reduce(marks) & ~np.uint8(Fault.OFF) | marks[self.place]
        heard = (own_or_lost & UNHEARD) == 0  # another model may be off
        of_rows = [time_s, values, known, clipped, heard]
        of_rows += [] if until_s is None else [until_s]
        rows = zip(*(one[judged].tolist() for one in of_rows), strict=True)
        found = np.full(len(time_s), STATES[UNKNOWN], object)
        found[judged] = self.update(rows)
        return found

    def end(self, end_s: float, summary: Summary, tracks: "Sequence[_ModelTrack]") -> None:
        """Update with the value of the whole sound, if it covers more than the last row."""
        value, track = summary.get(self.limit.column), tracks[self.place]
        if value is not None and not self._window_s and not track.is_off:
            (read,) = in_seven_digits(np.array([value])).tolist()
            clipped = self._clipped_at_end and track.has_clipped
            self.update_end(end_s, read, track.calibrated, clipped)


class _ModelTrack(Resumable):
    """The output of one model from the frame of the last row on."""

    growing = ("_rows", "holes")
    kept = (
        *growing,
        *("reached_s", "epoch_s", "_hole_s", "_clip_s"),
        *("clipped_s", "_clip", "off_s", "stalled_s", "missed_s", "_covered"),
    )

    def __init__(self, readings: Readings, intervals: "Intervals | None" = None) -> None:
        self.intervals = intervals
        self._held: list[Frames] = []
        # Time of the last frame.
        self.reached_s = -math.inf
        self.epoch_s = math.nan
        self._readings = readings
        self.is_off = False
        """Whether the model was switched off at the last frame."""
        self._statistics = {
            one.name: one.counts_after_s
            for one in (*readings.offered, *readings.columns)
            if one.counted and one.counts_after_s is not None
        }
        after_s = set(self._statistics.values())
        self._covered = CoveredTime(after_s if len(after_s) > 1 else ())
        self.reset()
        # Of each frame its time, its marks, the time of the last clipped one up to it, whether one
        # was counted, its values and its settling columns, in one array, which is faster than six.
        # The first row has the values of the last row, at the beginning none.
        self._width, self._count = readings.width, len(readings.columns)
        self._rows = np.zeros((1, HEAD + self._width + self._count))
        self._rows[0, HEAD : HEAD + self._width] = math.nan
        self._rows[0, [TIME, CLIP_S]] = -math.inf
        self._clip_s = -math.inf
        self._ranges: NDArray[np.float64] | None = None
        self._faulty = False
        self._hole_s = -math.inf
        settle_s = [column.settle_s for column in readings.columns]
        self._settle_s = np.array([math.nan if s is None else s for s in settle_s])
        self._window_s = np.array([column.window_s for column in readings.columns])
        # Time after a fault, and after a gap, until no column remembers it.
        self._calm_s = max((s for s in settle_s if s is not None), default=0.0)
        self._whole_s = self._window_s.max(initial=0.0)
        self._own_times = None not in settle_s
        # How long after clipped sound a value includes it. Sound in units of full scale is what it
        # is, however it came about.
        remembers = self._settle_s  # a rolling window is within it
        statistic = np.array([one.counted for one in readings.columns], np.bool_)
        self._reach_s = np.where(statistic, math.inf, remembers)
        self._clipping_matters = readings.in_pascal
        # Times without rows: missing frames and gaps.
        self.holes = np.zeros((0, 2))

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        super().load_state_dict(state)
        self.refuse_state(len(self._rows) > 0, "_rows")
        self._faulty = True
        if self._ranges is not None:
            self.give_ranges()

    def take_over(self, before: Self) -> None:
        """Continue a track of the same model with other columns; it has caught up."""
        rows, ranges, width = before._rows, before._ranges, before._width
        super().take_over(before)
        was = {c.name: k for k, c in enumerate(before._readings.columns)}
        pairs = [(k, was.get(c.name)) for k, c in enumerate(self._readings.columns)]
        places = np.array([(k, at) for k, at in pairs if at is not None], np.int64).reshape(-1, 2).T
        self._rows = np.zeros((len(rows), HEAD + self._width + self._count))
        self._rows[:, :HEAD], self._rows[:, HEAD : HEAD + self._width] = rows[:, :HEAD], math.nan
        for now, then in ((HEAD, HEAD), (HEAD + self._width, HEAD + width)):
            self._rows[:, now + places[0]] = rows[:, then + places[1]]
        self._faulty, self.is_off = before._faulty, before.is_off
        if ranges is not None:
            self._ranges = np.stack([self._rows[:, HEAD : HEAD + self._width]] * 2)
            self._ranges[:, :, places[0]] = ranges[:, :, places[1]]

    def give_ranges(self) -> None:
        """Remember the least and the greatest in each frame, besides its values."""
        self._ranges = np.stack([self._rows[:, HEAD : HEAD + self._width]] * 2)

    def reset(self) -> None:
        """Forget what was counted, and what was left out."""
        # Seconds in which the model was switched off, in which it is unknown whether sound is late
        # or lost, and of frames that came too fast for this output.
        self.off_s = self.stalled_s = self.missed_s = 0.0
        # Counted sound that is clipped, in seconds, and whether there was any.
        self.clipped_s, self._clip = 0.0, False
        self._covered.reset()

    def hear(self, frames: Frames) -> None:
        """Take frames; consecutive ones are joined."""
        if frames.after_end:
            self.catch_up()
            self._end(frames)
            return
        if self._held and not frames.goes_on(self._held[-1]):
            self.catch_up()
        self._held.append(frames)
        self.reached_s = frames.end_s
        if frames.later is None or self.reached_s - self._held[0].begin_s > HELD_S:
            self.catch_up()

    def catch_up(self) -> None:
        """Let the readings take the waiting frames."""
        held, self._held = self._held, []
        if not held:
            return
        frames = in_one(held)
        if is_off(frames).all() and self.intervals is None:
            self._pass_by(frames)
        else:
            self._count_frames(self._readings.refined(frames))

    def _count_frames(self, frames: Frames) -> None:
        self._readings.judge(frames)
        if not self._readings.paused:
            self._covered.add(partial(self._readings.counted, frames), frames.period_s)
        self._add(frames)
        if self.intervals is not None:
            self.intervals.take(frames)

    @property
    def calibrated(self) -> bool:
        """Whether the last frame is calibrated."""
        return not int(self._rows[-1, MARKS]) & int(UNCALIBRATED)

    def measured_of(self) -> Summary:
        """Seconds that a statistic covers, where they are not those of the model."""
        usual_s = self._readings.counted_s().get("measured_s")
        found = {
            name: self._covered.of(after_s)
            for name, after_s in self._statistics.items()
            if after_s in self._covered.after_s
        } | self._readings.measured_of()
        return {
            name: s
            for name, s in found.items()
            if usual_s is not None and s is not None and abs(s - usual_s) > NOTED_S
        }

    def _end(self, frames: Frames) -> None:
        """Take frames after the end of the sound, which have no rows."""
        frames = self._readings.refined(frames)
        # Of a slower rate than the model's, a frame up to the end comes with the model's next one.
        there = int(np.searchsorted(frames.time_s, frames.ended_s + SAME_TIME_S))
        if there:
            self._count_frames(replace(frames.between(0, there), ended_s=math.inf))
            frames = frames.between(there, len(frames))
        self._readings.tail(frames)
        self._count_clipped_tail(frames)
        if self.intervals is not None:
            self.intervals.tail(frames)
        if math.isinf(self.reached_s):  # the sound is shorter than a frame
            self._rows[0, MARKS] = np.uint8(0) if frames.calibrated else UNCALIBRATED
            self.epoch_s = frames.end_utc - frames.end_s
        self.reached_s = max(self.reached_s, frames.ended_s)

    def _add(self, frames: Frames) -> None:
        self._skip_to(frames)
        taken, off = self._readings.take(frames), is_off(frames)
        if off.any():
            taken[off] = math.nan
        self._append(frames, taken)

    def _pass_by(self, frames: Frames) -> None:
        """Take frames of a model that is off, without its readings."""
        self._skip_to(frames)
        self._readings.skip(len(frames))
        self._append(frames, np.full((len(frames), self._width), math.nan))

    def _skip_to(self, frames: Frames) -> None:
        """Skip what is missing before frames."""
        lost, before_s = frames.skipped + frames.missed, float(self._rows[-1, TIME])
        if lost:
            self._hole_s = frames.begin_s
            self.holes = np.append(self.holes, [[before_s, self._hole_s]], axis=0)
            self._readings.skip(lost)
        if frames.calm_s > -math.inf and not frames.missed:
            return
        period_s = (frames.begin_s - before_s) / (lost + 1)
        if len(frames) > 1:
            period_s = (frames.end_s - frames.begin_s) / (len(frames) - 1)
        if math.isfinite(period_s) and not self._readings.paused:
            self.missed_s += period_s * frames.missed
            self.off_s += period_s * np.count_nonzero(is_off(frames))
            self.stalled_s += period_s * np.count_nonzero(frames.fault & Fault.STALL)

    def _append(self, frames: Frames, taken: NDArray[np.float64]) -> None:
        """Append the values and the marks of frames."""
        known = np.uint8(0) if frames.calibrated else UNCALIBRATED
        if math.isinf(self._rows[-1, TIME]):
            self._rows[0, MARKS] = known
        rows = np.empty((len(frames), self._rows.shape[1]))
        rows[:, HEAD : HEAD + self._width] = taken.reshape(len(frames), -1)
        if self._ranges is not None:
            ranges = self._readings.ranges(frames, taken)
            self._ranges = np.concatenate([self._ranges, ranges], axis=1)
        rows[:, TIME] = frames.time_s
        rows[:, HEAD + self._width :] = self._settling_of(frames)
        if frames.calm_s > -math.inf:
            rows[:, MARKS] = known
            rows[:, CLIP_S], rows[:, CLIP] = self._clip_s, self._clip
        else:
            rows[:, MARKS] = frames.fault | known
            self._faulty = True
            self._find_clipped(frames, rows)
        self.is_off = bool(is_off(frames)[-1])
        self._rows = np.concatenate([self._rows, rows])
        self.epoch_s = frames.end_utc - frames.end_s

    def _find_clipped(self, frames: Frames, rows: NDArray[np.float64]) -> None:
        """Set the last clipped time of each frame, and whether a clipped one was counted."""
        times = np.where(frames.fault & Fault.CLIP, frames.time_s, -math.inf)
        rows[:, CLIP_S] = np.maximum.accumulate(np.append(self._clip_s, times))[1:]
        counted = self._readings.clipped(frames)
        rows[:, CLIP] = np.logical_or.accumulate(np.append(self._clip, counted))[1:]
        self.clipped_s += int(np.count_nonzero(counted)) * frames.period_s
        self._clip_s, self._clip = float(rows[-1, CLIP_S]), bool(rows[-1, CLIP])

    def _clipped_in(
        self, time_s: NDArray[np.float64], found: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Which columns include clipped sound (row, column), in rows at `time_s`."""
        never = not self._clipping_matters or math.isinf(found[:, CLIP_S].max())
        if never:
            return np.zeros((len(found), self._count), np.bool_)
        since_s = (time_s - found[:, CLIP_S])[:, None]
        statistic = np.isinf(self._reach_s)
        clipped: NDArray[np.bool_] = since_s <= np.where(statistic, -math.inf, self._reach_s)
        return clipped | (statistic & (found[:, CLIP] > 0)[:, None])

    def _count_clipped_tail(self, frames: Frames) -> None:
        """Count the clipped sound of frames after the end, the first of which has some sound."""
        counted = self._readings.clipped(frames)
        if counted.any():
            self._clip = True
            self.clipped_s += float(counted[0]) * frames.part * frames.period_s

    @property
    def has_clipped(self) -> bool:
        """Whether clipped sound was counted."""
        return self._clip

    @property
    def clipped_statistics(self) -> NDArray[np.bool_]:
        """Which columns (column,) are statistics of clipped sound."""
        clips = self._clip and self._clipping_matters
        return np.isinf(self._reach_s) & clips

    def until(
        self, time_s: NDArray[np.float64]
    ) -> tuple[
        NDArray[np.float64],
        NDArray[np.uint8],
        NDArray[np.bool_],
        NDArray[np.bool_],
        Sequence[NDArray[np.float64]],
    ]:
        """Take values, marks, settling and clipped columns of rows at `time_s`.

        And ranges if asked for.
        """
        places = self._rows[:, TIME].searchsorted(time_s, side="right") - 1
        last, found = int(places[-1]), self._rows[places]
        marks = found[:, MARKS].astype(np.uint8)
        rest = self._rows[last:]
        if self._faulty:
            faults = self._rows[: last + 1, MARKS].astype(np.uint8) & ANY_FAULT
            for at in faults.nonzero()[0]:
                marks[np.searchsorted(places, at)] |= faults[at]
            rest = rest.copy()
            # Used by now.
            rest[0, MARKS] = int(rest[0, MARKS]) & ~int(ANY_FAULT)
            self._faulty = bool((rest[:, MARKS].astype(np.uint8) & ANY_FAULT).any())
        self._rows = rest
        ranges: Sequence[NDArray[np.float64]] = ()
        if self._ranges is not None:
            ranges = _extremes(self._ranges, places)
            self._ranges = self._ranges[:, last:]
        values, settling = found[:, HEAD : HEAD + self._width], found[:, HEAD + self._width :] > 0
        return values, marks, settling, self._clipped_in(time_s, found), ranges

    def _settling_of(self, frames: Frames) -> NDArray[np.bool_] | bool:
        """Which columns remember silence or a fault, or have an incomplete window.

        Either for each frame (frame, column), or for all at once.
        """
        if frames.end_s < frames.start_s:
            return True
        begin_s, settled = frames.begin_s, frames.settled or self._own_times
        whole = begin_s >= max(frames.start_s, self._hole_s + self._whole_s)
        if whole and settled and frames.calm_s >= self._calm_s:
            return False
        found = frames.since_s[:, None] < self._settle_s
        found |= frames.settling[:, None] & np.isnan(self._settle_s)
        found |= frames.time_s[:, None] < self._hole_s + self._window_s
        starting: NDArray[np.bool_] = frames.time_s < frames.start_s
        return found | starting[:, None]


def is_off(frames: Frames) -> NDArray[np.bool_]:
    """At which of the frames the model was switched off; a single False if at none."""
    if frames.calm_s > -math.inf:
        return ON
    return (frames.fault & Fault.OFF) > 0


def _extremes(
    ranges: NDArray[np.float64], places: NDArray[np.int64]
) -> Sequence[NDArray[np.float64]]:
    """The least and the greatest (row, column) of all frames since the row before.

    ranges: of each frame (2, frame, column), the first one being that of the last row
    places: frames of the rows; a row without a frame of its own repeats the last one
    """
    known = np.where(np.isfinite(ranges[:, : places[-1] + 1]), ranges[:, : places[-1] + 1], np.nan)
    begin = np.minimum(np.concatenate([[0], places[:-1]]) + 1, places)
    return [
        pick(pick.reduceat(one, begin), one[places])
        for pick, one in zip((np.fmin, np.fmax), known, strict=True)
    ]
