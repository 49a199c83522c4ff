"""Runs one model on a stream of samples and emits frames."""

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable, SavedState, Unfitting
from amt_stream.core.words import counted
from amt_stream.dsp.functional.input_gate import make_ready
from amt_stream.engine.models.batch import Batch
from amt_stream.engine.models.listener import Listener
from amt_stream.engine.models.position import Position
from amt_stream.engine.models.ready_model import ReadyModel
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Fault, Frames
from amt_stream.meters.source_description import InputGain

OF_LATE = 0.01
"""Weight of the newest block in a model's cost, an average over about a hundred."""


@thread_checked
class Measurement(Resumable):
    """Feeds a model with samples and emits `Frames`.

    The model runs on one row for each of the `listeners`, all at the same `position`; each listener
    has its own state and frames. Only the thread that calls `take` may use it.

    late: whether sound that is taken is marked OVERLOAD
    cost_s: average seconds per block, for comparison between models on the same sound
    commands: executed before the next block
    """

    kept: ClassVar[tuple[str, ...]] = ("block", "position", "listeners", "_batch")

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
        self.name, self.listeners = name, tuple(listeners)
        self.position = position = Position(ready, begin)
        make_ready()
        self.late, self.cost_s = False, 0.0
        self.commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._model_changed = model_changed
        self._next_model: ReadyModel | None = None
        self._batch = Batch(name, position, self.listeners, self._before_block, emit, epoch)
        for listener in self.listeners:
            listener.begin(position)

    @property
    def ready(self) -> ReadyModel:
        """The present model [any-thread]."""
        return self.position.ready

    @property
    def _form(self) -> dict[str, str]:
        """What it measures with, in words."""
        ready = self.ready
        return {
            "model": ready.fingerprint,
            "blocks": f"{ready.usual_block} samples of {counted(ready.channels, 'channel')}",
            "calibration": " | ".join(one.input.in_use.form for one in self.listeners),
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
            self._batch.enter(longer)
            self.refuse_state(samples == longer.block, "block")
            self.exchange(longer, usual)

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
        fits = self.ready.held == self.position.held
        self.position.refuse_state(fits, "sample")

    @property
    def off(self) -> bool:
        """Whether the model does not run, and gives NaN [any-thread]."""
        return self._batch.off

    def reset(self, row: int | None = None) -> None:
        """Reset the model to silence, in one row or all; the clock goes on [model-thread]."""
        self._batch.silence(row)
        for listener in self._batch.of(row):
            listener.begin_anew()

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
        for listener in self._batch.of(row):
            listener.input.recalibrate(calibration, gain_db, keep_corrections)
        for listener in self._batch.of(row):
            listener.begin_anew()

    def know_gains(self, gains: Sequence[InputGain | None]) -> list[Listener]:
        """Take the gain of each channel's input; returns the rows with a change [model-thread]."""
        return [one for one in self.listeners if one.know_gain(gains)]

    def know_offset(self, offset: NDArray[np.float64]) -> None:
        """Set the offset of each channel of the source, before the first sound [model-thread].

        It is removed from sound in pascal. Peaks re full scale are those of the samples as they
        are, so a model of full scale begins as if the offset had always been there instead.
        """
        for listener in self.listeners:
            listener.input.offset[:] = offset[listener.input.columns]
        begins, ready = self.position.sample == self.position.begin, self.ready
        if begins and not ready.in_pascal and self.listeners[0].input.has_offset:
            for into, listener in zip(ready.input, self.listeners, strict=True):
                into[:] = (listener.input.offset * listener.input.in_use.gain)[:, None]
            ready.begin_with_input()

    def swap(self, ready: ReadyModel) -> None:
        """Switch to another model where its blocks fit next [model-thread].

        It takes as many channels, in the same unit.
        """
        self._next_model = ready

    def exchange(self, before: ReadyModel, after: ReadyModel) -> None:
        """Replace `before`, if it runs, by `after` from the next block on [any-thread].

        It takes over the state, so readings need not settle.
        """

        def command() -> None:
            if self.ready is before:
                after.take_over(before)
                self._batch.enter(after)

        self.commands.put(command)

    def switch_off(self) -> None:
        """Stop running the model and give NaN, marked as off [model-thread]."""
        self._batch.off = True
        self._batch.silence()

    def switch_on(self) -> None:
        """Run the model again, from silence [model-thread]."""
        self._batch.off = False

    def take(
        self, chunk: NDArray[np.float32], lost: int = 0, flags: int = 0, together: bool = False
    ) -> None:
        """Process samples `(time, channel)`, before which `lost` are missing [model-thread].

        together: whether to process all whole blocks of it at once, if `fits_together`
        """
        began = time.perf_counter()
        if lost:
            self._batch.cross_gap(lost, flags)
        elif flags:
            self._batch.mark(flags, 1)
        if self.late:
            self._batch.mark(Fault.OVERLOAD, len(chunk))
        self._batch.take(chunk, together)
        if not self.off:  # a model that is off keeps its own cost
            self.cost_s += OF_LATE * (time.perf_counter() - began - self.cost_s)

    def flush(self) -> None:
        """After the end, push zeros until the model has given all frames, if any [model-thread]."""
        for listener in self.listeners:
            listener.close_hole()
        if self.position.sample > self.position.begin:
            self._batch.end()

    def _before_block(self) -> bool:
        """Execute commands, and change the model; False if another model waits."""
        self.obey()
        ready, at = self._next_model, self.position.sample
        # After the end there is no input for another model.
        if ready is not None and self.position.end is None and at % ready.model.block_size == 0:
            self._next_model = None
            self._change_model(ready)
        return self._next_model is None

    def obey(self) -> None:
        """Execute pending commands [model-thread]."""
        while not self.commands.empty():
            self.commands.get()()

    def _change_model(self, ready: ReadyModel) -> None:
        first = self.position.first_of(ready)
        self._batch.enter(ready)
        self.position.first = first
        for listener in self.listeners:
            listener.change_model()
        for listener in self.listeners:
            listener.begin_anew()
        self._model_changed(ready)
