"""A model that was compiled ahead, prepared to run: without torch."""

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np

from amt_stream.core.saved_state import Unfitting
from amt_stream.engine.models.ready_model import ReadyModel, scalar_fields
from amt_stream.meters.frames import joined_along, mapped
from amt_stream.native.compiled_model import CompiledInstance, CompiledModel


class ReadyLibrary(ReadyModel):
    """A compiled model prepared to run, with an instance for each listener."""

    model: CompiledModel  # type: ignore[assignment]

    def __init__(
        self, model: CompiledModel, fs: int, block_ms: float, channels: int = 2, batch: int = 1
    ) -> None:
        super().__init__(model, fs, block_ms, channels, batch)  # type: ignore[arg-type]
        self.fingerprint = f"{model.about['fingerprint']}, compiled ahead"
        self._instances = [CompiledInstance(model) for _ in range(batch)]
        self._silence = self._of_block(np.zeros((*self.shape, model.block_size), np.float32))
        self.be_silent(None)
        self.fields = scalar_fields(self._silence)
        self._make_room()

    def _make_room(self) -> None:
        """For the samples of a block that comes in parts."""
        self._part = np.zeros((*self.shape, self.block), np.float32)
        self._held = np.zeros((), np.int64)

    @staticmethod
    def working(owns_thread: bool) -> AbstractContextManager[object]:
        return nullcontext()  # a library flushes denormals itself

    def warm(self) -> None:
        pass  # nothing is compiled, and the constructor has run a block

    def run(self, n: int) -> Any:
        if n == self.input.shape[-1]:
            return self._of_blocks(self.input)
        held = int(self._held)
        self._part[..., held : held + n] = self.input[..., :n]
        self._held[...] = (held + n) % self.block
        return None if self._held else self._of_blocks(self._part)

    def _of_blocks(self, sound: np.ndarray) -> Any:
        size = self.model.block_size
        outputs = [
            self._of_block(sound[..., at : at + size]) for at in range(0, sound.shape[-1], size)
        ]
        return outputs[0] if len(outputs) == 1 else joined_along(self.model.out_time_dim, *outputs)

    def _of_block(self, sound: np.ndarray) -> Any:
        each = [one.run(x) for one, x in zip(self._instances, sound, strict=True)]
        if len(each) == 1:
            return each[0]
        first, *others = each
        return mapped(lambda *of: np.concatenate(of), first, *others)

    @property
    def held(self) -> int:
        return int(self._held)

    def be_silent(self, row: int | None) -> None:
        for one in self._instances if row is None else [self._instances[row]]:
            one.reset()

    def begin_with_input(self) -> None:
        settled = math.ceil(self.model.settle_s * self.clock.fs / self.block)
        for _ in range(settled if self.input.any() else 0):
            self._of_blocks(self.input)
        for one in self._instances:
            one.begin_now()

    def end_after(self, samples: int) -> None:
        for one in self._instances:
            one.end_after(samples)

    @property
    def memory(self) -> dict[str, np.ndarray]:
        return {
            "held": self._part.copy(),
            "count": self._held.copy(),
            "state": np.stack([one.state for one in self._instances]),
        }

    @memory.setter
    def memory(self, given: Mapping[str, np.ndarray]) -> None:
        self._part[...], self._held[...] = given["held"], given["count"]
        for one, state in zip(self._instances, given["state"], strict=True):
            try:
                one.state = state
            except ValueError as error:
                raise Unfitting(str(error)) from error

    def of(self, model: Any) -> Self:
        block_ms = 1000.0 * self.block / self.clock.fs
        return type(self)(model, self.clock.fs, block_ms, self.channels, self.shape[0])

    def lasting(self, samples: int) -> Self:
        other = super().lasting(samples)
        other._make_room()
        return other

    def nothing(self) -> Any:
        def unknown(v: np.ndarray) -> np.ndarray:
            return np.full_like(v, math.nan) if v.dtype.kind == "f" else v.copy()

        blocks = [mapped(unknown, self._silence)] * (self.block // self.model.block_size)
        return joined_along(self.model.out_time_dim, *blocks)
