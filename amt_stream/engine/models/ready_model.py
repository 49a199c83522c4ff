"""A model prepared to run: its block size, frame times and state."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from copy import copy
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from amt_stream.core.saved_state import Resumable
from amt_stream.core.words import counted
from amt_stream.dsp.contract import check_contract, rows_of, takes_pascal
from amt_stream.engine.history import FrameClock

if TYPE_CHECKING:
    from amt_stream.dsp.streaming import Stage


class ReadyModel(Resumable, ABC):
    """A model prepared to run: `run` takes sound from `input` and gives arrays.

    `channels` of the source go to its `rows`, one to both ears if it has two, for each listener of
    a `batch`. Input and output stay on the CPU. Built by the thread that starts or swaps; used by
    the engine's thread alone.

    block, frames: samples of a block, and the frames that it gives
    fields: names of the outputs with one number per frame
    fingerprint: a text that differs for models with other numbers
    """

    kept: ClassVar[tuple[str, ...]] = ("memory",)
    input: np.ndarray
    fields: tuple[str, ...]
    fingerprint: str

    def __init__(
        self, model: "Stage", fs: int, block_ms: float, channels: int = 2, batch: int = 1
    ) -> None:
        name = type(model).__name__
        check_contract(model)
        if model.fs not in (None, fs):
            raise ValueError(
                f"{name} was built for {model.fs} Hz and the source gives {fs} Hz: "
                f"build it with fs={fs}"
            )
        if not 1.0 <= block_ms <= 1000.0:
            raise ValueError(f"block_ms is {block_ms}: give 1 to 1000 ms")
        blocks = max(1, round(block_ms * 1e-3 * fs / model.block_size))
        self.model = model
        self.block = self.usual_block = blocks * model.block_size
        lead = 1 / model.ratio if model.frames_stand_for_end else Fraction(0)
        self.clock = FrameClock(model.ratio, model.latency - lead, fs)
        self.frames = int(self.block * model.ratio)
        self.start = round(model.settle_s * fs)
        self.forget = round(max(model.settle_s, model.memory_s) * fs)
        self.channels, self.in_pascal = channels, takes_pascal(model)
        self.rows = rows_of(model, channels)
        if channels > self.rows or (channels < self.rows and not self.in_pascal):
            raise ValueError(
                f"{name} was built for {counted(self.rows, 'channel')} and gets {channels}: "
                f"build it for {channels}, or choose {self.rows} of them"
            )
        self.shape = batch, self.rows

    @staticmethod
    @abstractmethod
    def working(owns_thread: bool) -> AbstractContextManager[object]:
        """What a thread needs in which such models run.

        owns_thread: whether the thread does nothing else, so that its settings may stay
        """

    @abstractmethod
    def warm(self) -> None:
        """Prepare all that takes time at the first block, such as compiling."""

    def make_input(self, samples: int) -> None:
        """Make `input` (listener, row, time), from which `run` takes the next blocks."""
        self.input = np.zeros((*self.shape, samples), np.float32)

    @abstractmethod
    def run(self, n: int) -> Any:
        """The output, arrays, for the next `n` samples of `input`; None until a block is complete.

        With all of several whole blocks it is that of all.
        """

    @property
    @abstractmethod
    def held(self) -> int:
        """Samples of a block that is not complete yet."""

    @abstractmethod
    def be_silent(self, row: int | None) -> None:
        """Set the state of silence, of one listener or all."""

    @abstractmethod
    def begin_with_input(self) -> None:
        """Begin as if the present `input` had always been there."""

    @abstractmethod
    def end_after(self, samples: int) -> None:
        """The sound ends after so many more samples, which zeros follow."""

    @property
    @abstractmethod
    def memory(self) -> Mapping[str, np.ndarray]:
        """The model's state and the samples of its next block so far, by name."""

    @memory.setter
    @abstractmethod
    def memory(self, given: Mapping[str, np.ndarray]) -> None: ...

    @abstractmethod
    def of(self, model: "Stage") -> Self:
        """Another model, prepared for the same input in the same blocks."""

    def lasting(self, samples: int) -> Self:
        """The same model with the same state, with blocks of about `samples` samples."""
        blocks = max(1, round(samples / self.model.block_size))
        other = copy(self)
        other.block = blocks * self.model.block_size
        other.frames = int(other.block * self.model.ratio)
        return other

    def take_over(self, before: Self) -> None:
        """Take over the state of an equivalent model between two blocks, and its fingerprint."""
        self.fingerprint, self.usual_block = before.fingerprint, before.usual_block

    @abstractmethod
    def nothing(self) -> Any:
        """NaN in the form of a block's output, for a model that did not run."""


def scalar_fields(y: Any) -> tuple[str, ...]:
    """Names of the outputs, arrays or tensors, with one number per frame of each listener."""
    if not isinstance(y, tuple):
        return ("value",) if y.ndim == 2 else ()
    names: tuple[str, ...] = y._fields  # type: ignore[attr-defined]
    return tuple(name for name, v in zip(names, y, strict=True) if v is not None and v.ndim == 2)
