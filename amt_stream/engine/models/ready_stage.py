"""A stage of torch, prepared to run as a model."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch

from amt_stream.dsp.checkpoints import fingerprint
from amt_stream.dsp.compute_device import HERE, ComputeDevice
from amt_stream.dsp.cuda_stream import HostedStream
from amt_stream.dsp.functional.compiler.threads import flushing_denormals, work_alone
from amt_stream.dsp.stream import Rebuffer
from amt_stream.dsp.streaming import Stage, joined, map_fields
from amt_stream.engine.models.ready_model import ReadyModel, scalar_fields


class ReadyStage(ReadyModel):
    """A stage prepared to run, on `device`: its stream. Built outside inference mode."""

    def __init__(
        self,
        model: Stage,
        fs: int,
        block_ms: float,
        channels: int = 2,
        device: ComputeDevice = HERE,
        batch: int = 1,
    ) -> None:
        super().__init__(model, fs, block_ms, channels, batch)
        self.fingerprint = fingerprint(model)
        self.device = device
        device.take(model)
        self.stream = device.stream(model, self.shape)
        self.rebuffer = Rebuffer(self.stream, self.block // model.block_size)
        with torch.inference_mode():
            silence = torch.zeros(*self.shape, model.block_size)
            self._silence: Any = device.stream(model, self.shape)(silence)
        self.fields = scalar_fields(self._silence)

    @staticmethod
    @contextmanager
    def working(owns_thread: bool) -> Iterator[None]:
        if owns_thread:
            work_alone()
            with torch.inference_mode():
                yield
        else:  # restore the settings of the thread
            with flushing_denormals(), torch.inference_mode():
                yield

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
        super().make_input(samples)
        self._tensor = torch.from_numpy(self.input)

    def run(self, n: int) -> Any:
        if n == self.input.shape[-1]:
            return _arrays(self.stream(self._tensor))
        y = self.rebuffer.push(self._tensor[..., :n])  # it copies its remainder
        return None if y is None else _arrays(y)

    @property
    def held(self) -> int:
        return int(self.rebuffer.count)

    def be_silent(self, row: int | None) -> None:
        mask = None
        if row is not None and self.shape[0] > 1:
            mask = torch.zeros(self.shape[0], dtype=torch.bool)
            mask[row] = True
        self.stream.reset(mask)

    def begin_with_input(self) -> None:
        settled = math.ceil(self.model.settle_s * self.clock.fs / self.block)
        with torch.inference_mode():
            for _ in range(settled if self.input.any() else 0):
                self.stream(self._tensor)
        self.stream.begin_now()

    def end_after(self, samples: int) -> None:
        self.stream.end_after(samples)

    @property
    def memory(self) -> dict[str, np.ndarray]:
        return {name: v.cpu().numpy().copy() for name, v in self._buffers.items()}

    @memory.setter
    def memory(self, given: Mapping[str, np.ndarray]) -> None:
        with torch.no_grad():
            for name, buffer in self._buffers.items():
                buffer.copy_(torch.from_numpy(given[name]))

    @property
    def _buffers(self) -> dict[str, torch.Tensor]:
        return {"held": self.rebuffer.held, "count": self.rebuffer.count} | self.stream.state

    def of(self, model: Stage) -> Self:
        fs, batch = self.clock.fs, self.shape[0]
        block_ms = 1000.0 * self.block / fs
        return type(self)(model, fs, block_ms, self.channels, self.device, batch)

    def lasting(self, samples: int) -> Self:
        other = super().lasting(samples)
        other.rebuffer = Rebuffer(self.stream, other.block // self.model.block_size)
        return other

    def take_over(self, before: Self) -> None:
        super().take_over(before)
        if self.stream is not before.stream:
            for key, buffer in self.stream.state.items():
                buffer.copy_(before.stream.state[key])

    def nothing(self) -> Any:
        blocks = [self._silence] * (self.block // self.model.block_size)
        y = joined(*blocks, dims=self.model.out_time_dim)
        return _arrays(map_fields(lambda v: v.fill_(math.nan) if v.is_floating_point() else v, y))


def _arrays(y: Any) -> Any:
    """An output as arrays, which share its memory."""
    return map_fields(torch.Tensor.numpy, y)  # type: ignore[arg-type]
