"""Rows of several models of the same sound, which have different frame times."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from amt_stream.core.clock import SAME_TIME_S
from amt_stream.core.saved_state import Resumable, SavedState, Unfitting
from amt_stream.meters.frames import Event, Frames
from amt_stream.meters.limits import Limit, Stood
from amt_stream.meters.rows.block import Rows, in_utc
from amt_stream.meters.rows.counted import Counted
from amt_stream.meters.rows.form import Instants, RowForm
from amt_stream.meters.rows.frame_feed import FrameFeed
from amt_stream.meters.rows.readings import Readings, Summary, models_of
from amt_stream.meters.rows.steps import FOR_EVER, RowSteps

if TYPE_CHECKING:
    from amt_stream.meters.rows.intervals import Intervals


class FormedRows(Resumable, ABC):
    """Rows whose state fits only rows of the same form."""

    @property
    @abstractmethod
    def form(self) -> str:
        """What rows there are, in words."""

    def state_dict(self) -> SavedState:
        return {"rows": self.form, **super().state_dict()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        saved = dict(state)
        form = saved.pop("rows", None)
        if form != self.form:
            raise Unfitting(f"the state is of the rows {form!r}, and these are {self.form!r}")
        super().load_state_dict(saved)


# Its many methods are the one door to rows for engines, logs and displays, and pass on to parts.
class JoinedRows(FormedRows):
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

    kept = ("start_ms", "_steps", "_feed")

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
        _refuse(readings, step_ms, from_s, to_s)
        from amt_stream.meters.accumulators import loops  # compiles; who only imports rows need not

        loops.compile_loops()  # no live row waits for it, or later ones would find no room
        for one in readings.values():
            one.compile()
            one.cover(from_s, to_s)
        if intervals is not None:
            intervals.cover(from_s, to_s)
        self.start_ms: int | None = None
        """When the first sample was, in milliseconds since 1970."""
        self.step_ms, self.fs = step_ms, fs
        self.from_s, self.to_s = float(from_s), float(to_s)
        self._form = RowForm(readings, limits, microphone, self.from_s)
        self._steps = RowSteps(step_ms, fs, self.to_s, duration_s, wait_s)
        self._feed = FrameFeed(Counted(readings, limits, step_ms / 1000), self._steps, intervals)
        self.limits, self.columns = self._form.limits, self._form.columns
        self.names = self._form.names
        self._asked = self._form.readings if asked is None else asked
        # Whether models gave output after the end when the last row was already made.
        self._unjudged = False

    @property
    def readings(self) -> dict[str, Readings]:
        """The readings by model."""
        return self._feed.counted.now.readings

    @property
    def intervals(self) -> "Intervals | None":
        """The intervals that these rows feed."""
        return self._feed.intervals

    @property
    def gives_cells(self) -> bool:
        """Whether there is a row for each cell of a model at each time."""
        return len(self._form.cells[0]) > 0

    @property
    def start_utc(self) -> np.datetime64 | None:
        """UTC of the first sample, if known."""
        return None if self.start_ms is None else np.datetime64(self.start_ms, "ms")

    @property
    def form(self) -> str:
        return f"{' '.join(self.names)} every {self.step_ms} ms at {self.fs:g} Hz"

    def state_dict(self) -> SavedState:
        self.catch_up()
        return super().state_dict()

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
        return self._steps.last_sample

    def take_over(self, before: Self) -> None:
        """Continue rows of the same models and sound that had other columns or limits.

        Limits that were there continue; others begin with the next row, whose value includes as
        much of the sound before as is known.
        """
        before.catch_up()
        if before._form.ranged:
            self.give_ranges()
        self._steps.take_over(before._steps)
        self.start_ms, self._unjudged = before.start_ms, before._unjudged
        begun_s = (self._steps.next - 1) * self.step_ms / 1000 if self._steps.next else None
        self._feed.continue_with(before._feed, begun_s)

    def give_ranges(self) -> None:
        """Give `Rows.range_of` too, for displays."""
        self._form.ranged = not self.gives_cells
        for track in self._feed.counted.now.tracks.values() if self._form.ranged else ():
            track.frames.give_ranges()

    def begin(self, time_s: float) -> None:
        """Give rows from that time on, of a sound that was not followed from its start."""
        self._steps.begin(time_s)

    def __call__(self, frames: Frames) -> Rows:
        """Take frames of one model, and return the rows that they complete.

        Raises ValueError for frames of another microphone.
        """
        microphone = self._form.microphone
        if frames.microphone != microphone:
            raise ValueError(
                f"these are rows of {microphone!r}, and the frames of {frames.microphone!r}: "
                "make JoinedRows(microphone=...) for each, and RowsOfEach of them"
            )
        if self.start_ms is None and math.isfinite(frames.end_utc):
            start_utc = in_utc(np.array([frames.utc[0] - frames.time_s[0]]))
            self.start_ms = int(start_utc[0].astype(np.int64))
        self._feed.put(frames)
        self._unjudged |= frames.after_end and self._steps.last == FOR_EVER
        reached_s = self.reached_s
        if not self._steps.is_due(reached_s):
            return self._form.none
        return self._until(reached_s, self._steps.last)

    def catch_up(self) -> None:
        """Let the readings take all frames so far, as they do when a row is due."""
        self._feed.catch_up()

    def event(self, event: Event) -> None:
        """Handle a gap, which may be at the end without later frames, or a change of counting.

        "paused", "continued", "readings_reset" and "reset_undone" apply from the next frame on.
        Undoing restores the state without the reset, and without those that `SinceReset` undoes
        with it. Intervals continue through a reset. An impulse that is left out is so in the
        present interval too.
        """
        self._feed.event(event)

    @property
    def reached_s(self) -> float:
        """Time of the last frame of the model with the largest delay."""
        return self._feed.reached_s

    @property
    def covered(self) -> bool:
        """Whether all frames that count have come, so that the rest of the sound is not needed.

        Never for rows up to the end of the sound, as output of the models after it counts too.
        """
        return self._steps.last == FOR_EVER and self.reached_s >= self.to_s

    def rest(self, end_s: float | None) -> Rows:
        """The rows until `end_s` that are not given yet, whether or not more frames may come.

        None where no frame has come at all. Limits count what was lost at the end.

        end_s: end of the sound; None if it was stopped, which gives no more rows
        """
        found = self._form.none if end_s is None else self._until(end_s, FOR_EVER)
        heard_s = -math.inf if end_s is None else end_s
        for monitor in self.counted.monitors:
            monitor.miss_until(min(max(heard_s, self._steps.missed_until_s), self.to_s))
        if self._unjudged and end_s is not None and end_s <= self.to_s:
            self.counted.end(end_s)
            self._unjudged = False
        return found

    def _until(self, end_s: float, stop: int) -> Rows:
        """The remaining rows until `end_s`, before the step `stop`."""
        stop = min(stop, self._steps.after(min(end_s, self.to_s) + SAME_TIME_S))
        if stop <= self._steps.next or not self._feed.has_begun:
            return self._form.none
        self.catch_up()
        steps = self._steps.advance(stop, self.reached_s)
        if not len(steps):
            return self._form.none
        whole = bool(steps[-1] == self._steps.last)
        at = Instants(steps * self.step_ms / 1000, self._steps.samples_of(steps), whole)
        # Limits also judge the rows without the resets that can be undone.
        rows, *_ = [self._form.rows(one, at) for one in self._feed.counted.states]
        return rows

    def intervals_ended(self, end_s: float | None = None) -> Rows:
        """The intervals that have ended since the last call, or no rows without intervals.

        end_s: end of the sound, if it has ended
        """
        if self.intervals is None:
            return self._form.none
        self.catch_up()
        if end_s is not None:
            self.intervals.finish(end_s)
        return self.intervals.ended()

    @property
    def counted(self) -> Counted:
        """What was counted so far, with all frames that came."""
        self.catch_up()
        return self._feed.counted.now

    def summary(self) -> Summary:
        """The statistics of all counted sound, by name."""
        return self.counted.summary()

    def stood(self) -> list[Stood]:
        """How each limit was kept."""
        return self._feed.counted.now.stood(self._form.microphone)

    @property
    def paused(self) -> bool:
        """Whether nothing is counted."""
        return self._feed.counted.now.paused


def _refuse(readings: Mapping[str, Readings], step_ms: int, from_s: float, to_s: float) -> None:
    """Raise ValueError for arguments that make no rows."""
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
