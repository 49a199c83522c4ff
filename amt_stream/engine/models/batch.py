"""The rows of a model, which are all at the same sample."""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.engine.microphone.gaps import LONGEST_FILLED_GAP_S
from amt_stream.engine.models.last_moments import LastMoments
from amt_stream.engine.models.listener import Listener
from amt_stream.engine.models.position import Position
from amt_stream.engine.models.ready_model import ReadyModel
from amt_stream.meters.frames import Fault, Frames, mapped

GOING_ON_S = 0.05
"""For how long a steady sound goes on at least: alike for models with other frames, some of which
look ahead."""


class Batch(Resumable):
    """Runs the model of a position on one row for each listener, and emits the frames of each.

    name: of the model, for its frames
    before_block: called before each block; returns whether several blocks may be run as one
    emit: takes frames
    epoch: gives the UTC of the first sample after so many seconds of sound
    off: whether the model does not run, and gives NaN
    """

    kept: ClassVar[tuple[str, ...]] = ("_unmeasured", "_moments")

    def __init__(
        self,
        name: str,
        position: Position,
        listeners: Sequence[Listener],
        before_block: Callable[[], bool],
        emit: Callable[[Frames], None],
        epoch: Callable[[float], float],
    ) -> None:
        self.off = False
        self._name, self._position, self._listeners = name, position, listeners
        self._before_block, self._emit_frames, self._epoch = before_block, emit, epoch
        ready = position.ready
        self._moments = LastMoments(*ready.shape, ready.clock.fs)
        self.enter(ready)

    def enter(self, ready: ReadyModel) -> None:
        """Run another model from the next sample on."""
        self._position.run(ready)
        ready.make_input(ready.block)
        self._moments.change(ready.shape[1])
        self._unmeasured = 0
        for listener, into in zip(self._listeners, ready.input, strict=True):
            listener.input.enter(ready, into)

    def silence(self, row: int | None = None) -> None:
        """Set the state of silence, in one row or all."""
        self._position.ready.be_silent(row)
        for listener in self.of(row):
            listener.input.be_silent()

    def of(self, row: int | None) -> Sequence[Listener]:
        """The listener of a row, or all."""
        return self._listeners if row is None else (self._listeners[row],)

    def mark(self, fault: int, samples: int) -> None:
        """Mark the next samples in all rows."""
        at = self._position.sample
        for listener in self._listeners:
            listener.marks.add(fault, at, at + samples)

    def take(self, sound: NDArray[np.float32], together: bool) -> None:
        """Take sound (time, channel).

        together: whether to run all whole blocks of it as one
        """
        at = 0
        while at < len(sound):
            n = self._room(len(sound) - at, together)
            for listener in self._listeners:
                listener.hear(sound[at : at + n], self.off)
            self._push(n)
            at += n

    def _room(self, samples: int, together: bool = False) -> int:
        """How many of `samples` fit into this block, or into the whole blocks that begin here."""
        position = self._position
        if position.held:
            return min(samples, position.wanted)
        may_join = self._before_block()
        ready = position.ready
        wanted = ready.block
        if together and may_join and not self.off:
            wanted *= max(1, samples // wanted)
        if wanted != ready.input.shape[-1]:
            ready.make_input(wanted)
            for listener, into in zip(self._listeners, ready.input, strict=True):
                listener.input.write_to(into)
        return min(samples, wanted)

    def cross_gap(self, lost: int, flags: int) -> None:
        """Fill a gap with zeros; skip a long one, after which the model restarts.

        In an overload a gap is skipped too, because zeros would cost as much as sound.
        """
        position, ready = self._position, self._position.ready
        fault, end = flags | Fault.GAP, position.sample + lost
        for listener in self._listeners:
            listener.miss(fault, position.sample, end)
        long = lost > LONGEST_FILLED_GAP_S * ready.clock.fs
        if long or flags & Fault.OVERLOAD:
            # First flush the sound still in the model.
            self._miss(min(lost, max(0, math.ceil(ready.clock.latency))))
            self._miss(min(end - position.sample, position.wanted % position.ready.block))
            self._lose(position.skip_blocks(end))
        if long:
            self.silence()
        self._miss(end - position.sample)

    def _miss(self, count: int) -> None:
        # The position first, so that a reader never sees more samples lost than passed.
        self._fill(count)
        self._lose(count)

    def _lose(self, count: int) -> None:
        for listener in self._listeners:
            listener.gaps.lost += count

    def _fill(self, count: int, sound: NDArray[np.float32] | None = None) -> None:
        """Run the model on samples that are missing, or that continue the steady rows.

        sound: (row, ear, time) of these
        """
        done = 0
        while done < count:
            n = self._room(count - done)
            for row, listener in enumerate(self._listeners):
                listener.input.fill(n)
                if sound is not None and self._moments.steady(row):
                    self._position.ready.input[row, :, :n] = sound[row, :, done : done + n]
            self._push(n)
            done += n

    def end(self) -> None:
        """The sound has ended: push zeros until the model has given all frames, if any.

        That includes the frame at the very end and those of the following `tail_s`. A sound that
        was steady is cut off there, and the model's response to that step is not part of it: then
        only frames that include its last samples follow, filled as if the sound continued.
        """
        position, ready = self._position, self._position.ready
        position.end = end = position.sample
        ready.end_after(position.held)
        steady = [self._moments.steady(row) for row in range(len(self._listeners))]
        stop = max(position.tail_stop(end, one) for one in steady)
        if ready.model.frames_stand_for_end and not self.off:
            going_on = round(GOING_ON_S * ready.clock.fs)
            count = max(going_on, math.ceil(ready.clock.position(stop - 1)) - end)
            self._fill(count, self._moments.going_on(count) if any(steady) else None)
        while position.index < stop:
            self._fill(position.wanted)

    def _push(self, n: int) -> None:
        """Run the model on the next samples, which its input has."""
        position, ready = self._position, self._position.ready
        if self.off:
            self.mark(Fault.OFF | Fault.OVERLOAD, n)
            position.sample += n
            if not position.held:
                self._emit(ready.nothing())
            return
        if position.end is None:
            self._moments.hear(ready.input[..., :n], position.sample)
            self._unmeasured += n
        position.sample += n
        for row, listener in enumerate(self._listeners):
            # After a long gap the row starts its next block from silence.
            if listener.gaps.starts_anew and not position.held:
                listener.gaps.starts_anew = False
                self.silence(row)
        if (y := ready.run(n)) is not None:
            if self._unmeasured:  # in a flush the last level stays
                for listener in self._listeners:
                    listener.input.take_level(self._unmeasured, position.index)
            self._unmeasured = 0
            self._emit(y, max(1, n // ready.block))

    def _emit(self, y: object, blocks: int = 1) -> None:
        """Pass on the model's output for this number of blocks."""
        position, rows = self._position, range(len(self._listeners))
        start, end = position.index, position.end
        position.index += blocks * position.ready.frames
        first, stop = max(position.first, start), position.index
        if end is None:
            self._hand_on(y, start, first, [stop] * len(rows))
            return
        after = position.ready.clock.first_after(end)
        self._hand_on(y, start, first, [min(stop, after)] * len(rows))
        stops = [min(stop, position.tail_stop(end, self._moments.steady(row))) for row in rows]
        self._hand_on(y, start, max(first, after), stops, end)

    def _hand_on(
        self, y: object, start: int, first: int, stops: Sequence[int], ended: int | None = None
    ) -> None:
        """Emit frames of an output that starts at frame `start`: from `first` to each row's stop.

        ended: for frames after the end: where the sound ended
        """
        position, ready = self._position, self._position.ready
        for row, (listener, stop) in enumerate(zip(self._listeners, stops, strict=True)):
            for low, high in listener.pieces(first, stop):
                whole = low == start and high == position.index
                part = None if whole else slice(low - start, high - start)
                values = as_arrays(y, ready.model.out_time_dim, part, row)
                if not self.off:
                    listener.count_broken(values, high - low)
                epoch = self._epoch(position.sample / ready.clock.fs)
                cut = ended is not None and self._moments.steady(row)
                given = low, high, values, epoch, self._name, ended, cut
                self._emit_frames(listener.make_frames(*given))


def as_arrays(y: Any, time_dim: Any, rows: slice | None, listener: int = 0) -> Any:
    """All or some frames of one listener from a block's output, as new numpy arrays."""

    def cut(v: np.ndarray, dim: int) -> np.ndarray:
        array = v[listener]
        some = array if rows is None else array[(..., rows, *[slice(None)] * (-1 - dim))]
        return np.array(some)

    return mapped(cut, y, time_dim)
