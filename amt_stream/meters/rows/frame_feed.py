"""Frames of several models on their way to what counts them."""

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np

from amt_stream.core.clock import SAME_TIME_S
from amt_stream.core.saved_state import Resumable, SavedState, state_under, under
from amt_stream.core.since_reset import UNDO_S, SinceReset
from amt_stream.meters.frames import COUNTING, DEVICE, IMPULSE_COUNTING, LEFT_OUT, Event, Frames
from amt_stream.meters.rows.counted import Counted
from amt_stream.meters.rows.frame_queue import FrameQueue
from amt_stream.meters.rows.steps import RowSteps
from amt_stream.meters.rows.track import is_off

if TYPE_CHECKING:
    from amt_stream.meters.rows.intervals import Intervals

COMMANDED_S = 2.0
"""The longest delay in seconds of commands to an engine."""

COUNTED, INTERVALS = "counted", "intervals"


class FrameFeed(Resumable):
    """Joins frames to blocks, and gives them to what counts them, and to intervals.

    counted: what counts since the last reset, and as if there had been none
    steps: of the rows, which learn where frames are missing
    intervals: which continue through a reset
    """

    kept = ("_queues",)

    def __init__(self, counted: Counted, steps: RowSteps, intervals: "Intervals | None") -> None:
        self.counted, self.intervals = SinceReset(counted), intervals
        self._steps = steps
        self._queues = {name: FrameQueue() for name in counted.readings}

    def state_dict(self) -> SavedState:
        state = super().state_dict()
        for name, part in self._parts:
            state |= under(name, part.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        for name, part in self._parts:
            part.load_state_dict(state_under(state, name))
        # The rows of a display have no intervals, and continue from the same state.
        parts = (COUNTED, INTERVALS)
        super().load_state_dict({k: v for k, v in state.items() if k.split("/")[0] not in parts})

    @property
    def _parts(self) -> list[tuple[str, Resumable]]:
        """The parts whose state is saved under a name."""
        intervals = [] if self.intervals is None else [(INTERVALS, self.intervals)]
        return [(COUNTED, self.counted.now), *intervals]

    def continue_with(self, before: Self, begun_s: float | None) -> None:
        """Continue the same models with other columns or limits; `begun_s` as of `Counted`."""
        super().take_over(before)
        self.intervals = before.intervals
        mine, theirs = self.counted, before.counted
        if theirs.unreset is not None:
            mine.reset(theirs.reset_s, deepcopy(mine.now))
        for one, was in zip(mine.states, theirs.states, strict=True):
            one.continue_with(was, begun_s)

    def put(self, frames: Frames) -> None:
        """Take frames of one model, which wait to be joined with the next ones."""
        for gap in frames.gaps:
            self._steps.miss(*gap)
        for block in self._queues[frames.model].put(frames):
            self._take(block)
        if frames.begin_s > self.counted.reset_s + UNDO_S + COMMANDED_S:
            self.counted.forget()

    def catch_up(self) -> None:
        """Let the readings take all frames so far."""
        for queue in self._queues.values():
            for block in queue.rest():
                self._take(block)

    @property
    def reached_s(self) -> float:
        """Time of the last frame of the model with the largest delay."""
        return min(queue.reached_s for queue in self._queues.values())

    @property
    def has_begun(self) -> bool:
        """Whether any model has given a frame."""
        return any(queue.reached_s >= 0 for queue in self._queues.values())

    def event(self, event: Event) -> None:
        """Handle a gap, or a change of counting, which applies from the next frame on."""
        if event.kind == "gap":
            self._steps.miss(event.sample, event.sample + event.samples)
            for one in self.counted.states:
                if not one.paused:
                    one.missing[event.cause or DEVICE] += event.samples
            return
        if event.kind in IMPULSE_COUNTING:
            self.catch_up()
            self._leave_out(event)
            return
        if event.kind not in COUNTING:
            return
        self.catch_up()
        if event.kind == "readings_reset":
            new = deepcopy(self.counted.now)
            new.reset(event.time_s)
            self.counted.reset(event.time_s, new)
        elif event.kind == "reset_undone":
            self.counted.undo()
        else:
            paused = event.kind == "paused"
            for one in self.counted.states:
                one.pause(paused, event.time_s)
            if self.intervals is not None:
                self.intervals.pause(paused)

    def _leave_out(self, event: Event) -> None:
        """Leave out the impulse at the time of the event, or count it again."""
        several = [one.readings for one in self.counted.states]
        several += [] if self.intervals is None else [self.intervals.readings]
        for readings in several:
            for one in readings.values():
                one.leave_out(event.time_s, event.kind == LEFT_OUT)

    def _take(self, frames: Frames) -> None:
        """Let the readings take a block of frames."""
        if frames.after_end:
            self._take_end(frames)
        elif is_off(frames).all() and self.intervals is None:
            self._miss(frames)
            for one in self.counted.states:
                one.tracks[frames.model].pass_by(frames)
        else:
            self._count(self.counted.now.readings[frames.model].refined(frames))

    def _take_end(self, frames: Frames) -> None:
        """Take frames after the end of the sound, which have no rows."""
        frames = self.counted.now.readings[frames.model].refined(frames)
        # Of a slower rate than the model's, a frame up to the end comes with the model's next one.
        there = int(np.searchsorted(frames.time_s, frames.ended_s + SAME_TIME_S))
        if there:
            self._count(replace(frames.between(0, there), ended_s=math.inf))
            frames = frames.between(there, len(frames))
        shorter_than_a_frame = math.isinf(self._queues[frames.model].reached_s)
        for one in self.counted.states:
            track = one.tracks[frames.model]
            track.tail(frames)
            if shorter_than_a_frame:
                track.begin(frames)
        if self.intervals is not None:
            self.intervals.tail(frames)

    def _count(self, frames: Frames) -> None:
        self._miss(frames)
        for one in self.counted.states:
            one.tracks[frames.model].take(frames)
        if self.intervals is not None:
            self.intervals.take(frames)

    def _miss(self, frames: Frames) -> None:
        """Make no rows where frames are missing before these."""
        if frames.skipped or frames.missed:
            last_s = self.counted.now.tracks[frames.model].frames.last_s
            self._steps.miss_frames(last_s, frames.begin_s)
