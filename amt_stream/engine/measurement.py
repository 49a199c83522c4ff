"""Samples in, frames out: one model on one stream of sample positions."""

import math
import queue
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable, SavedState, Unfitting
from amt_stream.dsp.functional.input_gate import make_ready
from amt_stream.engine.gaps import LONGEST_FILLED_GAP_S
from amt_stream.engine.last_moments import LastMoments
from amt_stream.engine.listener import Listener
from amt_stream.engine.microphone_input import CLIP_LEVEL
from amt_stream.engine.ready_model import ReadyModel
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Fault, Frames

OF_LATE = 0.01
"""Weight of the newest block in what a model costs: the last hundred count."""

LATE_PEAK = 6
"""Samples by which a peak between samples is told late."""

LATEST = 2**60
"""No sample is counted so far: a million years of sound."""


@thread_checked
class Measurement(Resumable):
    """Feeds a model with what arrives and emits `Frames`; its sample count is the only clock.

    It runs on a row for each of the `listeners`, all at the same sample; what is known of each is
    theirs, frames too. Everything here belongs to one thread, the one that calls `take`.
    """

    kept: ClassVar[tuple[str, ...]] = ("block", "position", "_origin", "_index", "_first", "_heard")
    kept += ("memory", "listeners", "_moments")

    def __init__(
        self,
        ready: ReadyModel,
        listeners: Sequence[Listener],
        emit: Callable[[Frames], None],
        epoch: Callable[[float], float],
        model_changed: Callable[[ReadyModel], None],
        name: str = "",
        begin: int = 0,
    ) -> None:
        if begin < 0 or begin % ready.model.block_size:
            raise ValueError(
                f"first_sample is {begin}: give a multiple of {ready.model.block_size} samples, "
                f"the block of {type(ready.model).__name__}"
            )
        make_ready()
        self.name, self.listeners = name, tuple(listeners)
        self.position = self._begin = begin
        self._moments = LastMoments(*ready.shape, ready.clock.fs)
        self.off = False
        self.late = False
        self.several = False
        """Whether it takes whole blocks together, where as many are there."""
        self.cost_s = 0.0
        """Seconds that it took of late, to be compared with those of others on the same sound."""
        self.commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._emit_frames, self._epoch, self._model_changed = emit, epoch, model_changed
        self._end: int | None = None
        self._next_model: ReadyModel | None = None
        self._set_model(ready)
        self._first = ready.clock.first_from(begin)
        for listener in self.listeners:
            listener.begin(begin, max(self._first, self._index) - 1)

    @property
    def _form(self) -> dict[str, str]:
        """What it measures with, in words."""
        return {
            "model": self.ready.fingerprint,
            "blocks": f"{self.ready.usual_block} samples of {self.ready.heard} channels",
            "calibration": " | ".join(listener.input.form for listener in self.listeners),
        }

    @property
    def block(self) -> int:
        """Samples of a block, which may be longer than the usual ones for a while."""
        return self.ready.block

    @block.setter
    def block(self, samples: int) -> None:
        usual = self.ready
        if samples != usual.block:
            longer = usual.lasting(min(samples, usual.clock.fs))
            self._set_model(longer)
            self.refuse_state(samples == longer.block, "block")
            self.exchange(longer, usual)

    @property
    def memory(self) -> dict[str, np.ndarray]:
        """The model's state, and what waits for its next block, by name."""
        door = self.ready.door
        waiting = {"held": door.held, "count": door.count}
        return {
            name: v.cpu().numpy().copy() for name, v in (waiting | self.ready.stream.state).items()
        }

    @memory.setter
    def memory(self, given: Mapping[str, np.ndarray]) -> None:
        door = self.ready.door
        waiting = {"held": door.held, "count": door.count}
        with torch.no_grad():
            for name, buffer in (waiting | self.ready.stream.state).items():
                buffer.copy_(torch.from_numpy(given[name]))

    def state_dict(self) -> SavedState:
        """The state, to be taken up by one with an equal model and calibration [model-thread]."""
        return {**self._form, **super().state_dict()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on where `state` was saved [before start]."""
        saved = dict(state)
        for name, mine in self._form.items():
            was = saved.pop(name, None)
            if was != mine:
                raise Unfitting(f"the {name} was {was}, and is {mine}: go on with the same")
        super().load_state_dict(saved)
        self.refuse_state(LATEST > self.position >= self._origin >= 0, "position")
        fits = int(self.ready.door.count) == (self.position - self._origin) % self.ready.block
        self.refuse_state(fits, "position")

    @property
    def samples(self) -> int:
        """Input samples so far, lost ones included [any-thread]."""
        return self.position if self._end is None else self._end

    @property
    def frames(self) -> int:
        """Given so far, of the row that has most [any-thread]."""
        return max(listener.frames for listener in self.listeners)

    @property
    def lost(self) -> int:
        """Samples that were missing, in the row that lacks most [any-thread]."""
        return max(listener.gaps.lost for listener in self.listeners)

    @property
    def silent(self) -> bool:
        """Only exact zeros for more than a second, in all rows [any-thread]."""
        return all(listener.input.silent for listener in self.listeners)

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """Of the first row [any-thread]."""
        return self.listeners[0].input.calibration

    def _set_model(self, ready: ReadyModel) -> None:
        self.ready = ready
        self._origin = self.position
        self._index = int(self.position * ready.clock.ratio)
        self._make_input(ready.block)
        self._moments.change(ready.shape[1])
        self._heard = 0
        for listener, into in zip(self.listeners, self._input, strict=True):
            listener.enter(ready, into)

    def _make_input(self, samples: int) -> None:
        self._input = np.zeros((*self.ready.shape, samples), np.float32)
        self._tensor = torch.from_numpy(self._input)

    def reset(self, row: int | None = None) -> None:
        """The model back to silence, in one row or all; the clock goes on [model-thread]."""
        self._silence(row)
        self._begin_anew(row)

    def _silence(self, row: int | None) -> None:
        """The state of silence, in one row or all."""
        mask = None
        if row is not None and len(self.listeners) > 1:
            mask = torch.zeros(len(self.listeners), dtype=torch.bool)
            mask[row] = True
        self.ready.stream.reset(mask)
        for listener in self._of(row):
            listener.input.be_silent()

    def recalibrate(
        self,
        calibration: Calibration | Sequence[Calibration] | None,
        gain_db: float | None = None,
        row: int | None = None,
        keep_corrections: bool = False,
    ) -> None:
        """One for both ears, or one each, and a gain, from here on, in one row or all.

        A step in level, so readings settle anew [model-thread].
        """
        for listener in self._of(row):
            listener.input.recalibrate(calibration, gain_db, keep_corrections)
        self._begin_anew(row)

    def _of(self, row: int | None) -> tuple[Listener, ...]:
        return self.listeners if row is None else (self.listeners[row],)

    def _begin_anew(self, row: int | None = None) -> None:
        for listener in self._of(row):
            listener.begin_anew(self.position)

    def swap(self, ready: ReadyModel) -> None:
        """Go on with another model from the next place where its blocks fit [model-thread].

        It hears as many channels, in the same unit.
        """
        self._next_model = ready

    def exchange(self, before: ReadyModel, after: ReadyModel) -> None:
        """From the next block on `after` in the place of `before`, where that runs [any-thread].

        It has the same states, and goes on from them: nothing has to settle.
        """
        self.commands.put(partial(self._exchange, before, after))

    def _exchange(self, before: ReadyModel, after: ReadyModel) -> None:
        if self.ready is before:
            after.take_over(before)
            self._set_model(after)

    def switch_off(self) -> None:
        """Give NaN, marked as off, and run no model [model-thread]."""
        self.off = True
        self._silence(None)

    def switch_on(self) -> None:
        """Run the model again, from silence [model-thread]."""
        self.off = False

    @property
    def wanted(self) -> int:
        """Samples that are still missing in the block under way."""
        return self.ready.block - (self.position - self._origin) % self.ready.block

    def take(self, chunk: NDArray[np.float32], lost: int = 0, flags: int = 0) -> None:
        """Process samples `(time, channel)`, before which `lost` are missing [model-thread]."""
        if lost:
            self._cross_gap(lost, flags)
        elif flags:
            self._mark(flags, 1)
        if self.late:
            self._mark(Fault.OVERLOAD, len(chunk))
        # What is wrong with a sample is marked in its own block.
        together = self.several and len(chunk) > self.ready.block
        together = together and bool(np.abs(chunk).max() < CLIP_LEVEL)
        at = 0
        while at < len(chunk):
            n = self._room(len(chunk) - at, together)
            self._let_in(chunk[at : at + n])
            self._push(n)
            at += n

    def took(self, seconds: float) -> None:
        """The newest sound took so long; what is off keeps what it cost before [model-thread]."""
        if not self.off:
            self.cost_s += OF_LATE * (seconds - self.cost_s)

    def flush(self) -> None:
        """Push zeros until the model has said all of the sound, if any came [model-thread].

        That is the frame at the very end, and those of its `tail_s` after that. Sound that was
        going on is cut off there, and what a model says of that step is not of the sound: no more
        frames come of it than take in its last samples, and these are filled as if it went on.
        """
        self.close_holes()
        if self.position == self._begin:
            return
        self._end = end = self.position
        stop = max(self._tail_stop(row, end) for row in range(len(self.listeners)))
        if self.ready.model.frames_stand_for_end and not self.off:
            self._go_on(math.ceil(self.ready.clock.position(stop - 1)) - end)
        while self._index < stop:
            self._fill(self.wanted)

    def _go_on(self, samples: int) -> None:
        """Push what comes after the end: more of a steady sound, zeros after any other."""
        steady = [row for row in range(len(self.listeners)) if self._moments.steady(row)]
        more = self._moments.going_on(samples) if steady else None
        while samples > 0:
            n = self._room(samples)
            for listener in self.listeners:
                listener.input.fill(n)
            if more is not None:
                begin = more.shape[-1] - samples
                self._input[steady, :, :n] = more[steady, :, begin : begin + n]
            self._push(n)
            samples -= n

    def _tail_stop(self, row: int, end: int) -> int:
        """Index of the first frame that nobody wants of a row whose sound ended there."""
        clock, model = self.ready.clock, self.ready.model
        after_s = 0.0 if self._moments.steady(row) else model.tail_s
        stop = clock.first_after(end + round(after_s * clock.fs))
        # The frame that the end lies in takes in sound, and tells of peaks a little later.
        told = clock.first_from(end + LATE_PEAK) + 1 if model.frames_stand_for_end else 0
        return max(stop, told)

    def close_holes(self) -> None:
        """What is missing in a row just now has ended with the sound [model-thread]."""
        for listener in self.listeners:
            listener.close_hole()

    def _mark(self, fault: int, samples: int) -> None:
        """Mark the next samples in all rows."""
        for listener in self.listeners:
            listener.marks.add(fault, self.position, self.position + samples)

    def _room(self, samples: int, together: bool = False) -> int:
        """How many of `samples` fit into this block, or into the whole ones that begin here.

        Commands are carried out at its start.
        """
        wanted = self.wanted
        if wanted == self.ready.block:
            self.obey()
            # After the end there is nothing for another model to hear.
            if self._next_model is not None and self._end is None:
                self._change_model(self._next_model)
            wanted = self.ready.block
            if together and not self.off and self._next_model is None:
                wanted *= max(1, samples // wanted)
            if wanted != self._input.shape[-1]:
                self._make_input(wanted)
                for listener, into in zip(self.listeners, self._input, strict=True):
                    listener.input.write_to(into)
        return min(samples, wanted)

    def obey(self) -> None:
        """Carry out what was commanded [model-thread]."""
        while not self.commands.empty():
            self.commands.get()()

    def _change_model(self, ready: ReadyModel) -> None:
        if self.position % ready.model.block_size:
            return
        self._next_model = None
        reached = self.ready.clock.position(max(self._index, self._first) - 1)
        self._set_model(ready)
        # Rows that the old model has already given must not come again.
        self._first = max(ready.clock.first_from(self._begin), ready.clock.first_after(reached))
        for listener in self.listeners:
            listener.change(max(self._first, self._index) - 1)
        self._begin_anew()
        self._model_changed(ready)

    def _cross_gap(self, lost: int, flags: int) -> None:
        """Zeros for what is missing; a long gap is jumped, and the model starts anew after it.

        In an overload a gap is jumped too, or its zeros would cost what the sound would have.
        """
        fault, end = flags | Fault.GAP, self.position + lost
        for listener in self.listeners:
            listener.miss(fault, self.position, end)
        long = lost > LONGEST_FILLED_GAP_S * self.ready.clock.fs
        if long or flags & Fault.OVERLOAD:
            # What the model still holds of the sound before it.
            self._miss(min(lost, max(0, math.ceil(self.ready.clock.latency))))
            self._miss(min(end - self.position, self.wanted % self.ready.block))
            skipped = (end - self.position) // self.ready.block * self.ready.block
            self.position += skipped
            self._lose(skipped)
            self._index += int(skipped * self.ready.clock.ratio)
        if long:
            self._silence(None)
        self._miss(end - self.position)

    def _miss(self, count: int) -> None:
        # The position first: whoever reads both meanwhile must not find more lost than there was.
        self._fill(count)
        self._lose(count)

    def _lose(self, count: int) -> None:
        for listener in self.listeners:
            listener.gaps.lost += count

    def _fill(self, count: int) -> None:
        while count > 0:
            n = self._room(count)
            for listener in self.listeners:
                listener.input.fill(n)
            self._push(n)
            count -= n

    def _let_in(self, block: NDArray[np.float32]) -> None:
        """The engine's door, of each row by itself."""
        for listener in self.listeners:
            if not self.off:
                listener.let_in(block, self.position)
            elif np.isnan(part := block[:, listener.input.columns]).any():
                listener.inspect(part, self.position)
            else:
                listener.close_hole()

    def _push(self, n: int) -> None:
        if self.off:
            self._pass_by(n)
            return
        if self._end is None:
            self._moments.hear(self._input[..., :n], self.position)
            self._heard += n
        self.position += n
        for row, listener in enumerate(self.listeners):
            # What lacked much of its sound begins its next block in silence.
            if listener.gaps.starts_anew and self.wanted == self.ready.block:
                listener.gaps.starts_anew = False
                self._silence(row)
        if (y := self._run(n)) is not None:
            self._take_level()
            self._emit(y, max(1, n // self.ready.block))

    def _run(self, n: int) -> Any:
        """What the model gives of the next samples, once a block is whole."""
        if n == self._input.shape[-1]:
            return self.ready.stream(self._tensor)
        return self.ready.door.push(self._tensor[..., :n])  # it copies what it keeps

    def _pass_by(self, n: int) -> None:
        """As `_push`, without the model."""
        self._mark(Fault.OFF | Fault.OVERLOAD, n)
        self.position += n
        if self.wanted == self.ready.block:
            self._emit(self.ready.nothing())

    def _take_level(self) -> None:
        """Level of the input in this block; in a flush there is none and the last one stays."""
        if self._heard:
            for listener in self.listeners:
                listener.input.take_level(self._heard, self._index)
        self._heard = 0

    def _emit(self, y: object, blocks: int = 1) -> None:
        """Hand on what the model gives of so many blocks."""
        clock = self.ready.clock
        start = self._index
        self._index += blocks * self.ready.frames
        first, stop, end = max(self._first, start), self._index, self._end
        if end is None:
            self._hand_on(y, start, first, [stop] * len(self.listeners))
            return
        after = clock.first_after(end)
        self._hand_on(y, start, first, [min(stop, after)] * len(self.listeners))
        stops = [min(stop, self._tail_stop(row, end)) for row in range(len(self.listeners))]
        self._hand_on(y, start, max(first, after), stops, end)

    def _hand_on(
        self, y: object, start: int, first: int, stops: Sequence[int], ended: int | None = None
    ) -> None:
        """Frames of an output whose first is `start`: from `first` to where each row stops.

        ended: where the sound did, of frames after that
        """
        clock, dims = self.ready.clock, self.ready.model.out_time_dim
        for row, (listener, stop) in enumerate(zip(self.listeners, stops, strict=True)):
            for low, high in listener.pieces(first, stop, self._end):
                whole = low == start and high == self._index
                part = None if whole else slice(low - start, high - start)
                epoch = self._epoch(self.position / clock.fs)
                given = as_arrays(y, dims, part, row), low, high, self.position, epoch
                cut = ended is not None and self._moments.steady(row)
                self._emit_frames(listener.made(*given, self.name, self.off, ended, cut))


def as_arrays(y: Any, time_dim: Any, rows: slice | None, listener: int = 0) -> Any:
    """Frames of a listener, some or all of a block's output, as numpy arrays of their own."""

    if isinstance(y, torch.Tensor):
        return _cut(y.numpy()[listener], time_dim, rows).copy()
    if rows is None:  # nearly always so, in every block
        return type(y)._make([None if v is None else v.numpy()[listener].copy() for v in y])
    return type(y)(
        *[
            None if v is None else _cut(v.numpy()[listener], dim, rows).copy()
            for v, dim in zip(y, time_dim, strict=True)
        ]
    )


def _cut(array: Any, dim: int, rows: slice | None) -> Any:
    """Some frames of an output, or all."""
    return array if rows is None else array[(..., rows, *[slice(None)] * (-1 - dim))]
