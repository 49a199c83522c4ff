"""Runs one model on a stream of samples and emits frames."""

import math
import queue
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable, SavedState, Unfitting
from amt_stream.core.words import counted
from amt_stream.dsp.functional.input_gate import make_ready
from amt_stream.dsp.streaming import map_fields
from amt_stream.engine.gaps import LONGEST_FILLED_GAP_S
from amt_stream.engine.last_moments import LastMoments
from amt_stream.engine.listener import Listener
from amt_stream.engine.ready_model import ReadyModel
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Fault, Frames
from amt_stream.meters.source_description import InputGain

OF_LATE = 0.01
"""Weight of the newest block in a model's cost, an average over about a hundred."""

LATE_PEAK = 6
"""Delay in samples of interpolated peaks."""

GOING_ON_S = 0.05
"""For how long a steady sound goes on at least: alike for models with other frames, some of which
look ahead."""

LATEST = 2**60
"""Upper limit of a plausible sample count: a million years of sound."""


@thread_checked
class Measurement(Resumable):
    """Feeds a model with samples and emits `Frames`; its sample count is the only clock.

    The model runs on one row for each of the `listeners`, all at the same sample; each listener
    has its own state and frames. Only the thread that calls `take` may use it.
    """

    kept: ClassVar[tuple[str, ...]] = (
        "block",
        "position",
        "_origin",
        "_index",
        "_first",
        "_unmeasured",
    )
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
        self.cost_s = 0.0
        """Average seconds per block, for comparison between models on the same sound."""
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
            "blocks": f"{self.ready.usual_block} samples of "
            f"{counted(self.ready.channels, 'channel')}",
            "calibration": " | ".join(listener.input.form for listener in self.listeners),
        }

    @property
    def block(self) -> int:
        """Samples per block; may temporarily exceed the usual number."""
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
        """The model's state and the samples buffered for its next block, by name."""
        return {name: v.cpu().numpy().copy() for name, v in self._buffers.items()}

    @memory.setter
    def memory(self, given: Mapping[str, np.ndarray]) -> None:
        with torch.no_grad():
            for name, buffer in self._buffers.items():
                buffer.copy_(torch.from_numpy(given[name]))

    @property
    def _buffers(self) -> dict[str, torch.Tensor]:
        rebuffer = self.ready.rebuffer
        return {"held": rebuffer.held, "count": rebuffer.count} | self.ready.stream.state

    def state_dict(self) -> SavedState:
        """The state, for a measurement with an equal model and calibration [model-thread]."""
        return {**self._form, **super().state_dict()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Continue from a saved state [before start]."""
        saved = dict(state)
        for name, mine in self._form.items():
            was = saved.pop(name, None)
            if was != mine:
                raise Unfitting(f"the {name} was {was}, and is {mine}: go on with the same")
        super().load_state_dict(saved)
        self.refuse_state(LATEST > self.position >= self._origin >= 0, "position")
        fits = int(self.ready.rebuffer.count) == (self.position - self._origin) % self.ready.block
        self.refuse_state(fits, "position")

    @property
    def samples(self) -> int:
        """Input samples so far, including lost ones [any-thread]."""
        return self.position if self._end is None else self._end

    @property
    def frames(self) -> int:
        """Frames so far, of the row with the most [any-thread]."""
        return max(listener.frames for listener in self.listeners)

    @property
    def lost(self) -> int:
        """Missing samples, in the row that lacks most [any-thread]."""
        return max(listener.gaps.lost for listener in self.listeners)

    @property
    def dropped(self) -> int:
        """How many of the missing samples this program dropped [any-thread]."""
        return max(min(one.gaps.dropped, one.gaps.lost) for one in self.listeners)

    def note_dropped(self, samples: int) -> None:
        """Count missing samples as dropped by this program, in all rows [model-thread]."""
        for listener in self.listeners:
            listener.gaps.dropped += samples

    @property
    def silent(self) -> bool:
        """Whether all rows had only exact zeros for more than a second [any-thread]."""
        return all(listener.input.silent for listener in self.listeners)

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """Calibration of the first row [any-thread]."""
        return self.listeners[0].input.calibration

    def _set_model(self, ready: ReadyModel) -> None:
        self.ready = ready
        self._origin = self.position
        self._index = int(self.position * ready.clock.ratio)
        self._make_input(ready.block)
        self._moments.change(ready.shape[1])
        self._unmeasured = 0
        for listener, into in zip(self.listeners, self._input, strict=True):
            listener.enter(ready, into)

    def _make_input(self, samples: int) -> None:
        self._input = np.zeros((*self.ready.shape, samples), np.float32)
        self._tensor = torch.from_numpy(self._input)

    def reset(self, row: int | None = None) -> None:
        """Reset the model to silence, in one row or all; the clock goes on [model-thread]."""
        self._silence(row)
        self._begin_anew(row)

    def _silence(self, row: int | None) -> None:
        """Set the state of silence, in one row or all."""
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
        """Use another calibration (for both ears or one each) and gain, in one row or all.

        Readings settle again after the step in level [model-thread].
        """
        for listener in self._of(row):
            listener.input.recalibrate(calibration, gain_db, keep_corrections)
        self._begin_anew(row)

    def know_gains(self, gains: Sequence[InputGain | None]) -> list[Listener]:
        """Take the gain of each channel's input; returns the rows with a change [model-thread]."""
        return [one for one in self.listeners if one.know_gain(gains, self.position)]

    def _of(self, row: int | None) -> tuple[Listener, ...]:
        return self.listeners if row is None else (self.listeners[row],)

    def know_offset(self, offset: NDArray[np.float64]) -> None:
        """Set the offset of each channel of the source, before the first sound [model-thread].

        It is removed from sound in pascal. Peaks re full scale are those of the samples as they
        are, so a model of full scale begins as if the offset had always been there instead.
        """
        for listener in self.listeners:
            listener.input.offset[:] = offset[listener.input.columns]
        begins = self.position == self._begin
        if begins and not self.ready.in_pascal and self.listeners[0].input.has_offset:
            self._begin_with_offset()

    def _begin_with_offset(self) -> None:
        for row, listener in enumerate(self.listeners):
            self._input[row] = (listener.input.offset * listener.input.gain)[:, None]
        settled = math.ceil(self.ready.model.settle_s * self.ready.clock.fs / self.ready.block)
        with torch.inference_mode():
            for _ in range(settled if self._input.any() else 0):
                self.ready.stream(self._tensor)
        self.ready.stream.begin_now()

    def _begin_anew(self, row: int | None = None) -> None:
        for listener in self._of(row):
            listener.begin_anew(self.position)

    def swap(self, ready: ReadyModel) -> None:
        """Switch to another model where its blocks fit next [model-thread].

        It takes as many channels, in the same unit.
        """
        self._next_model = ready

    def exchange(self, before: ReadyModel, after: ReadyModel) -> None:
        """Replace `before`, if it runs, by `after` from the next block on [any-thread].

        It takes over the state, so readings need not settle.
        """
        self.commands.put(partial(self._exchange, before, after))

    def _exchange(self, before: ReadyModel, after: ReadyModel) -> None:
        if self.ready is before:
            after.take_over(before)
            self._set_model(after)

    def switch_off(self) -> None:
        """Stop running the model and give NaN, marked as off [model-thread]."""
        self.off = True
        self._silence(None)

    def switch_on(self) -> None:
        """Run the model again, from silence [model-thread]."""
        self.off = False

    @property
    def wanted(self) -> int:
        """Samples still needed for the present block."""
        return self.ready.block - (self.position - self._origin) % self.ready.block

    def take(
        self, chunk: NDArray[np.float32], lost: int = 0, flags: int = 0, together: bool = False
    ) -> None:
        """Process samples `(time, channel)`, before which `lost` are missing [model-thread].

        together: whether to process all whole blocks of it at once, if `fits_together`
        """
        if lost:
            self._cross_gap(lost, flags)
        elif flags:
            self._mark(flags, 1)
        if self.late:
            self._mark(Fault.OVERLOAD, len(chunk))
        at = 0
        while at < len(chunk):
            n = self._room(len(chunk) - at, together)
            self._feed(chunk[at : at + n])
            self._push(n)
            at += n

    def took(self, seconds: float) -> None:
        """Record the newest block's cost; a model that is off keeps its own [model-thread]."""
        if not self.off:
            self.cost_s += OF_LATE * (seconds - self.cost_s)

    def flush(self) -> None:
        """After the end, push zeros until the model has given all frames, if any [model-thread].

        That includes the frame at the very end and those of the following `tail_s`. A sound that
        was steady is cut off there, and the model's response to that step is not part of it: then
        only frames that include its last samples follow, filled as if the sound continued.
        """
        self.close_holes()
        if self.position == self._begin:
            return
        self._end = end = self.position
        self.ready.stream.end_after(self.ready.block - self.wanted)
        stop = max(self._tail_stop(row, end) for row in range(len(self.listeners)))
        if self.ready.model.frames_stand_for_end and not self.off:
            clock = self.ready.clock
            going_on = round(GOING_ON_S * clock.fs)
            self._go_on(max(going_on, math.ceil(clock.position(stop - 1)) - end))
        while self._index < stop:
            self._fill(self.wanted)

    def _go_on(self, samples: int) -> None:
        """Push the continuation of a steady sound, zeros after any other."""
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
        """Index after the last frame needed of a row whose sound ended there."""
        clock, model = self.ready.clock, self.ready.model
        after_s = 0.0 if self._moments.steady(row) else model.tail_s
        stop = clock.first_after(end + round(after_s * clock.fs))
        # The frame at the end includes sound, and peaks are slightly late.
        past = clock.first_from(end + LATE_PEAK) + 1 if model.frames_stand_for_end else 0
        return max(stop, past)

    def close_holes(self) -> None:
        """End open gaps of single rows at the end of the sound [model-thread]."""
        for listener in self.listeners:
            listener.close_hole()

    def _mark(self, fault: int, samples: int) -> None:
        """Mark the next samples in all rows."""
        for listener in self.listeners:
            listener.marks.add(fault, self.position, self.position + samples)

    def _room(self, samples: int, together: bool = False) -> int:
        """How many of `samples` fit into this block, or into the whole blocks that begin here.

        Executes commands at the start of a block.
        """
        wanted = self.wanted
        if wanted == self.ready.block:
            self.obey()
            # After the end there is no input for another model.
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
        """Execute pending commands [model-thread]."""
        while not self.commands.empty():
            self.commands.get()()

    def _change_model(self, ready: ReadyModel) -> None:
        if self.position % ready.model.block_size:
            return
        self._next_model = None
        reached = self.ready.clock.position(max(self._index, self._first) - 1)
        self._set_model(ready)
        # Frames that the old model has given must not come again.
        self._first = max(ready.clock.first_from(self._begin), ready.clock.first_after(reached))
        for listener in self.listeners:
            listener.change(max(self._first, self._index) - 1)
        self._begin_anew()
        self._model_changed(ready)

    def _cross_gap(self, lost: int, flags: int) -> None:
        """Fill a gap with zeros; skip a long one, after which the model restarts.

        In an overload a gap is skipped too, because zeros would cost as much as sound.
        """
        fault, end = flags | Fault.GAP, self.position + lost
        for listener in self.listeners:
            listener.miss(fault, self.position, end)
        long = lost > LONGEST_FILLED_GAP_S * self.ready.clock.fs
        if long or flags & Fault.OVERLOAD:
            # First flush the sound still in the model.
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
        # The position first, so that a reader never sees more samples lost than passed.
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

    def _feed(self, block: NDArray[np.float32]) -> None:
        """Take sound into each row's input."""
        for listener in self.listeners:
            if not self.off:
                listener.feed(block, self.position)
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
            self._unmeasured += n
        self.position += n
        for row, listener in enumerate(self.listeners):
            # After a long gap the row starts its next block from silence.
            if listener.gaps.starts_anew and self.wanted == self.ready.block:
                listener.gaps.starts_anew = False
                self._silence(row)
        if (y := self._run(n)) is not None:
            self._take_level()
            self._emit(y, max(1, n // self.ready.block))

    def _run(self, n: int) -> Any:
        """The model's output for the next samples, once a block is complete."""
        if n == self._input.shape[-1]:
            return self.ready.stream(self._tensor)
        return self.ready.rebuffer.push(self._tensor[..., :n])  # it copies its remainder

    def _pass_by(self, n: int) -> None:
        """As `_push`, without the model."""
        self._mark(Fault.OFF | Fault.OVERLOAD, n)
        self.position += n
        if self.wanted == self.ready.block:
            self._emit(self.ready.nothing())

    def _take_level(self) -> None:
        """Update the input level for this block; in a flush the last level stays."""
        if self._unmeasured:
            for listener in self.listeners:
                listener.input.take_level(self._unmeasured, self._index)
        self._unmeasured = 0

    def _emit(self, y: object, blocks: int = 1) -> None:
        """Pass on the model's output for this number of blocks."""
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
        """Emit frames of an output that starts at frame `start`: from `first` to each row's stop.

        ended: for frames after the end: where the sound ended
        """
        clock, dims = self.ready.clock, self.ready.model.out_time_dim
        for row, (listener, stop) in enumerate(zip(self.listeners, stops, strict=True)):
            for low, high in listener.pieces(first, stop, self._end):
                whole = low == start and high == self._index
                part = None if whole else slice(low - start, high - start)
                epoch = self._epoch(self.position / clock.fs)
                given = as_arrays(y, dims, part, row), low, high, self.position, epoch
                cut = ended is not None and self._moments.steady(row)
                self._emit_frames(listener.make_frames(*given, self.name, self.off, ended, cut))


def fits_together(chunk: NDArray[np.float32], suspect_from: np.float32) -> bool:
    """Whether no sample is clipped or invalid: each such fault is marked in its own block."""
    return bool(np.abs(chunk).max(initial=0.0) < suspect_from)


def as_arrays(y: Any, time_dim: Any, rows: slice | None, listener: int = 0) -> Any:
    """All or some frames of one listener from a block's output, as new numpy arrays."""

    def cut(v: torch.Tensor, dim: int) -> Any:
        array = v.numpy()[listener]
        return (array if rows is None else array[(..., rows, *[slice(None)] * (-1 - dim))]).copy()

    return map_fields(cut, y, time_dim)
