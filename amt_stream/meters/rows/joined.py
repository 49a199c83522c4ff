"""Rows of several models of the same sound, which have different frame times."""

import math
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np

from amt_stream.core.saved_state import Resumable, SavedState, Unfitting, state_under, under
from amt_stream.meters.frames import SAME_TIME_S, Event, Frames
from amt_stream.meters.limits import Limit
from amt_stream.meters.missing import DEVICE
from amt_stream.meters.rows.block import Rows, in_utc
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.counted import Counted
from amt_stream.meters.rows.form import Instants, RowForm
from amt_stream.meters.rows.frame_queue import FrameQueue
from amt_stream.meters.rows.limit_monitor import Stood
from amt_stream.meters.rows.readings import Readings, Summary, models_of
from amt_stream.meters.rows.steps import FOR_EVER, RowSteps
from amt_stream.meters.rows.track import is_off
from amt_stream.meters.since_reset import UNDO_S, SinceReset

if TYPE_CHECKING:
    from amt_stream.meters.rows.intervals import Intervals

COMMANDED_S = 2.0
"""The longest delay in seconds of commands to an engine."""

COUNTED, INTERVALS = "counted", "intervals"


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

    kept = ("start_ms", "_steps", "_queues")

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
            one.cover(from_s, to_s)
        if intervals is not None:
            intervals.cover(from_s, to_s)
        self.intervals = intervals
        self.start_ms: int | None = None
        """When the first sample was, in milliseconds since 1970."""
        self._form = RowForm(readings, limits, microphone, float(from_s))
        self._steps = RowSteps(step_ms, fs, float(to_s), duration_s, wait_s)
        self._queues = {name: FrameQueue() for name in readings}
        self._counted = SinceReset(Counted(readings, limits, step_ms / 1000))
        self._asked = self._form.readings if asked is None else asked
        # Whether models gave output after the end when the last row was already made.
        self._unjudged = False

    @property
    def readings(self) -> dict[str, Readings]:
        """The readings by model."""
        return self._counted.now.readings

    @property
    def step_ms(self) -> int:
        """Milliseconds from row to row."""
        return self._steps.step_ms

    @property
    def fs(self) -> float:
        """Sampling rate of the input in hertz."""
        return self._steps.fs

    @property
    def from_s(self) -> float:
        """Begin of the part of the sound that has rows."""
        return self._form.from_s

    @property
    def to_s(self) -> float:
        """End of the part of the sound that has rows."""
        return self._steps.to_s

    @property
    def microphone(self) -> str:
        """Name of the microphone, if there are several."""
        return self._form.microphone

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits of these rows."""
        return self._form.limits

    @property
    def keys(self) -> tuple[Column, ...]:
        """The columns of microphone and cells."""
        return self._form.keys

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns: keys of cells first, then the readings."""
        return self._form.columns

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns of a row."""
        return self._form.names

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
        """What rows there are, in words."""
        return f"{' '.join(self.names)} every {self.step_ms} ms at {self.fs:g} Hz"

    def state_dict(self) -> SavedState:
        self.catch_up()
        state = {"rows": self.form, **super().state_dict()}
        return state | {
            k: v for n, one in self._parts for k, v in under(n, one.state_dict()).items()
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        saved = dict(state)
        form = saved.pop("rows", None)
        if form != self.form:
            raise Unfitting(f"the state is of the rows {form!r}, and these are {self.form!r}")
        for name, part in self._parts:
            part.load_state_dict(state_under(saved, name))
        # The rows of a display have no intervals, and continue from the same state.
        own = {k: v for k, v in saved.items() if k.split("/")[0] not in (COUNTED, INTERVALS)}
        super().load_state_dict(own)

    @property
    def _parts(self) -> list[tuple[str, Resumable]]:
        """The parts whose state is saved beside that of these rows, by name."""
        intervals = [] if self.intervals is None else [(INTERVALS, self.intervals)]
        return [(COUNTED, self._counted.now), *intervals]

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
        super().take_over(before)
        self.intervals, self._unjudged = before.intervals, before._unjudged
        if before._form.ranged:
            self.give_ranges()
        mine, theirs = self._counted, before._counted
        if theirs.unreset is not None:
            mine.reset(theirs.reset_s, deepcopy(mine.now))
        begun_s = (self._steps.next - 1) * self.step_ms / 1000 if self._steps.next else None
        for one, was in zip(mine.states, theirs.states, strict=True):
            one.continue_with(was, begun_s)

    def give_ranges(self) -> None:
        """Give `Rows.range_of` too, for displays."""
        self._form.ranged = not self.gives_cells
        for track in self._counted.now.tracks.values() if self._form.ranged else ():
            track.frames.give_ranges()

    def begin(self, time_s: float) -> None:
        """Give rows from that time on, of a sound that was not followed from its start."""
        self._steps.begin(time_s)

    def __call__(self, frames: Frames) -> Rows:
        """Take frames of one model, and return the rows that they complete.

        Raises ValueError for frames of another microphone.
        """
        if frames.microphone != self.microphone:
            raise ValueError(
                f"these are rows of {self.microphone!r}, and the frames of {frames.microphone!r}: "
                "make JoinedRows(microphone=...) for each, and RowsOfEach of them"
            )
        if self.start_ms is None and math.isfinite(frames.end_utc):
            start_utc = in_utc(np.array([frames.utc[0] - frames.time_s[0]]))
            self.start_ms = int(start_utc[0].astype(np.int64))
        for gap in frames.gaps:
            self._steps.miss(*gap)
        for block in self._queues[frames.model].put(frames):
            self._take(block)
        self._unjudged |= frames.after_end and self._steps.last == FOR_EVER
        if frames.begin_s > self._counted.reset_s + UNDO_S + COMMANDED_S:
            self._counted.forget()
        reached_s = self.reached_s
        return (
            self._until(reached_s, self._steps.last)
            if self._steps.is_due(reached_s)
            else self._form.none
        )

    def catch_up(self) -> None:
        """Let the readings take all frames so far, as they do when a row is due."""
        for queue in self._queues.values():
            for block in queue.rest():
                self._take(block)

    def _take(self, frames: Frames) -> None:
        """Let the readings take a block of frames."""
        if frames.after_end:
            self._take_end(frames)
        elif is_off(frames).all() and self.intervals is None:
            self._miss(frames)
            for one in self._counted.states:
                one.tracks[frames.model].pass_by(frames)
        else:
            self._count(self.readings[frames.model].refined(frames))

    def _take_end(self, frames: Frames) -> None:
        """Take frames after the end of the sound, which have no rows."""
        frames = self.readings[frames.model].refined(frames)
        # Of a slower rate than the model's, a frame up to the end comes with the model's next one.
        there = int(np.searchsorted(frames.time_s, frames.ended_s + SAME_TIME_S))
        if there:
            self._count(replace(frames.between(0, there), ended_s=math.inf))
            frames = frames.between(there, len(frames))
        shorter_than_a_frame = math.isinf(self._queues[frames.model].reached_s)
        for one in self._counted.states:
            track = one.tracks[frames.model]
            track.tail(frames)
            if shorter_than_a_frame:
                track.begin(frames)
        if self.intervals is not None:
            self.intervals.tail(frames)

    def _count(self, frames: Frames) -> None:
        self._miss(frames)
        for one in self._counted.states:
            one.tracks[frames.model].take(frames)
        if self.intervals is not None:
            self.intervals.take(frames)

    def _miss(self, frames: Frames) -> None:
        """Make no rows where frames are missing before these."""
        if frames.skipped or frames.missed:
            last_s = self._counted.now.tracks[frames.model].frames.last_s
            self._steps.miss_frames(last_s, frames.begin_s)

    def event(self, event: Event) -> None:
        """Handle a gap, which may be at the end without later frames, or a change of counting.

        "paused", "continued", "readings_reset" and "reset_undone" apply from the next frame on.
        Undoing restores the state without the reset, and without those that `SinceReset` undoes
        with it. Intervals continue through a reset.
        """
        if event.kind == "gap":
            self._steps.miss(event.sample, event.sample + event.samples)
            for one in self._counted.states:
                if not one.paused:
                    one.missing[event.cause or DEVICE] += event.samples
        elif event.kind in ("paused", "continued"):
            self._pause(event.kind == "paused", event.time_s)
        elif event.kind == "readings_reset":
            self.catch_up()
            self._counted.reset(event.time_s, self._counted.now.restarted(event.time_s))
        elif event.kind == "reset_undone":
            self.catch_up()
            self._counted.undo()

    def _pause(self, paused: bool, time_s: float) -> None:
        """Pause or continue; rows before `time_s` that come later are not affected."""
        self.catch_up()
        for one in self._counted.states:
            one.pause(paused, time_s)
        if self.intervals is not None:
            self.intervals.pause(paused)

    @property
    def reached_s(self) -> float:
        """Time of the last frame of the model with the largest delay."""
        return min(queue.reached_s for queue in self._queues.values())

    @property
    def covered(self) -> bool:
        """Whether all frames that count have come, so that the rest of the sound is not needed.

        Never for rows up to the end of the sound, as output of the models after it counts too.
        """
        return self._steps.last == FOR_EVER and self.reached_s >= self.to_s

    def rest(self, end_s: float) -> Rows:
        """The rows until `end_s` that are not given yet, whether or not more frames may come.

        None where no frame has come at all.
        """
        found = self._until(end_s, FOR_EVER)
        if self._unjudged and end_s <= self.to_s:
            self.catch_up()
            self._counted.now.end(end_s)
            self._unjudged = False
        return found

    def _until(self, end_s: float, stop: int) -> Rows:
        """The remaining rows until `end_s`, before the step `stop`."""
        stop = min(stop, self._steps.after(min(end_s, self.to_s) + SAME_TIME_S))
        begun = any(queue.reached_s >= 0 for queue in self._queues.values())
        if stop <= self._steps.next or not begun:
            return self._form.none
        self.catch_up()
        steps = self._steps.advance(stop, self.reached_s)
        if not len(steps):
            return self._form.none
        whole = bool(steps[-1] == self._steps.last)
        at = Instants(steps * self.step_ms / 1000, self._steps.samples_of(steps), whole)
        # Limits also judge the rows without the resets that can be undone.
        rows, *_ = [self._form.rows(one, at) for one in self._counted.states]
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
        return self._counted.now

    def counted_s(self) -> dict[str, Summary]:
        """Of each model with statistics, in seconds: measured, excluded, off and clipped."""
        return self.counted.counted_s()

    def measured_of(self) -> dict[str, Summary]:
        """Seconds that statistics cover, by model and name, where they are not its `measured_s`."""
        return self.counted.measured_of()

    @property
    def missing_s(self) -> dict[str, float]:
        """Seconds of the counted time without sound, by cause."""
        return self.counted.missing_s(self.fs)

    def summary(self) -> Summary:
        """The statistics of all counted sound, by name."""
        return self.counted.summary()

    def clipped_s(self, model: str) -> float:
        """Seconds of counted sound of a model that are clipped."""
        return self.counted.tracks[model].clipping.seconds

    def stood(self) -> list[Stood]:
        """How each limit was kept."""
        return self._counted.now.stood(self.microphone)

    @property
    def paused(self) -> bool:
        """Whether nothing is counted."""
        return self._counted.now.paused


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
