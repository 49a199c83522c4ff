"""A model prepared to run: its stream, block size and frame times."""

import math
from collections.abc import Mapping
from copy import copy
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from amt_stream.core.saved_state import Resumable
from amt_stream.core.words import counted
from amt_stream.dsp.checkpoints import fingerprint
from amt_stream.dsp.compute_device import HERE, ComputeDevice
from amt_stream.dsp.contract import check_contract, rows_of, takes_pascal
from amt_stream.dsp.cuda_stream import HostedStream
from amt_stream.dsp.stream import Rebuffer
from amt_stream.dsp.streaming import Stage, joined, map_fields
from amt_stream.engine.history import FrameClock


def refuse_no_model(model: object, fs: float) -> None:
    """Raise TypeError unless `model` is a Stage."""
    if not isinstance(model, Stage):
        raise TypeError(f"the model is {model!r}: give a Stage, such as Moore2016(fs={fs})")


class ReadyModel(Resumable):
    """A model prepared to run: its stream, block size and frame times.

    `channels` of the source go to its `rows`, one to both ears if it has two, for each listener of
    a `batch`. The model is moved to `device`; input and output stay on the CPU. Built outside
    inference mode, by the thread that starts or swaps; used by the engine's thread alone.
    """

    kept = ("memory",)
    input: np.ndarray

    def __init__(
        self,
        model: Stage,
        fs: int,
        block_ms: float,
        channels: int = 2,
        device: ComputeDevice = HERE,
        batch: int = 1,
    ) -> None:
        name = type(model).__name__
        refuse_no_model(model, fs)
        check_contract(model)
        if model.fs not in (None, fs):
            raise ValueError(
                f"{name} was built for {model.fs} Hz and the source gives {fs} Hz: "
                f"build it with fs={fs}"
            )
        if not 1.0 <= block_ms <= 1000.0:
            raise ValueError(f"block_ms is {block_ms}: give 1 to 1000 ms")
        blocks = max(1, round(block_ms * 1e-3 * fs / model.block_size))
        self.model, self.fingerprint = model, fingerprint(model)
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
        self.device, self.shape = device, (batch, self.rows)
        device.take(model)
        self.stream = device.stream(model, self.shape)
        self.rebuffer = Rebuffer(self.stream, blocks)
        with torch.inference_mode():
            silence = torch.zeros(*self.shape, model.block_size)
            self._silence: Any = device.stream(model, self.shape)(silence)
        self.fields = scalar_fields(self._silence)

    def warm(self) -> None:
        """Run noise and silence, so that nothing is compiled while live.

        Within its latency a model has given its first output, so each of its parts has run.
        """
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(*self.shape, self.block, generator=generator)
        count = max(2, math.ceil(self.model.latency / self.block))
        stream = self.device.stream(self.model, self.shape)
        with torch.inference_mode():
            for x in (*[noise] * count, torch.zeros_like(noise)):
                stream(x)
        if isinstance(self.stream, HostedStream):
            self.stream.capture(self.block)

    def make_input(self, samples: int) -> None:
        """Make `input` (listener, row, time), from which `run` takes the next blocks."""
        self.input = np.zeros((*self.shape, samples), np.float32)
        self._tensor = torch.from_numpy(self.input)

    def run(self, n: int) -> Any:
        """The output for the next `n` samples of `input`; None until a block is complete."""
        if n == self.input.shape[-1]:
            return self.stream(self._tensor)
        return self.rebuffer.push(self._tensor[..., :n])  # it copies its remainder

    def be_silent(self, row: int | None) -> None:
        """Set the state of silence, of one listener or all."""
        mask = None
        if row is not None and self.shape[0] > 1:
            mask = torch.zeros(self.shape[0], dtype=torch.bool)
            mask[row] = True
        self.stream.reset(mask)

    def begin_with_input(self) -> None:
        """Begin as if the present `input` had always been there."""
        settled = math.ceil(self.model.settle_s * self.clock.fs / self.block)
        with torch.inference_mode():
            for _ in range(settled if self.input.any() else 0):
                self.stream(self._tensor)
        self.stream.begin_now()

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
        return {"held": self.rebuffer.held, "count": self.rebuffer.count} | self.stream.state

    def of(self, model: Stage) -> "ReadyModel":
        """Another model, prepared for the same input in the same blocks."""
        fs, batch = self.clock.fs, self.shape[0]
        block_ms = 1000.0 * self.block / fs
        return ReadyModel(model, fs, block_ms, self.channels, self.device, batch)

    def lasting(self, samples: int) -> "ReadyModel":
        """The same model on the same stream, with blocks of about `samples` samples."""
        blocks = max(1, round(samples / self.model.block_size))
        other = copy(self)
        other.block = blocks * self.model.block_size
        other.frames = int(other.block * self.model.ratio)
        other.rebuffer = Rebuffer(self.stream, blocks)
        return other

    def take_over(self, before: "ReadyModel") -> None:
        """Take over the state of an equivalent model between two blocks, and its fingerprint."""
        self.fingerprint, self.usual_block = before.fingerprint, before.usual_block
        if self.stream is not before.stream:
            for key, buffer in self.stream.state.items():
                buffer.copy_(before.stream.state[key])

    def nothing(self) -> Any:
        """NaN in the form of a block's output, for a model that did not run."""
        blocks = [self._silence] * (self.block // self.model.block_size)
        y = joined(*blocks, dims=self.model.out_time_dim)
        return map_fields(lambda v: v.fill_(math.nan) if v.is_floating_point() else v, y)


def scalar_fields(y: Any) -> tuple[str, ...]:
    """Names of the outputs with one number per frame."""
    if isinstance(y, torch.Tensor):
        return ("value",) if y.dim() == 2 else ()
    return tuple(
        name for name, v in zip(y._fields, y, strict=True) if v is not None and v.dim() == 2
    )
