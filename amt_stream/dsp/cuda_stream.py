"""A stream on a GPU with input and output on the host."""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from operator import is_
from typing import Any, Protocol

import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.gpu import refuse_short_products
from amt_stream.dsp.functional.compiler.private_torch import buffers_of, forward_hooks
from amt_stream.dsp.functional.compiler.threads import one_thread
from amt_stream.dsp.stream import Stream
from amt_stream.dsp.streaming import Outputs, Shape, Stage, fields, map_fields, with_time

Work = Callable[[], None]

WARM = 3
"""Steps that run before capture, so that kernels are compiled and memory is allocated."""

URGENT = -1
"""CUDA stream priority above the default."""

log = logging.getLogger("amt_stream")


class Device(Protocol):
    """The device operations that a `HostedStream` needs."""

    def working(self) -> AbstractContextManager[Any]:
        """Context in which work is queued on the device, after all earlier work."""

    def memory(self, shape: Shape, dtype: torch.dtype) -> Tensor:
        """New zeroed host memory that can be copied to and from the device asynchronously."""

    def captured(self, work: Work) -> Work:
        """A function that repeats `work`, in the same memory, with one launch; not run yet.

        Raises RuntimeError for work that reads a value from the device.
        """

    def wait(self) -> None:
        """Block until all work is done."""


class Cuda:
    """A CUDA device with its own high-priority CUDA stream."""

    def __init__(self, device: torch.device) -> None:
        refuse_short_products()
        self._device = device
        self._stream = torch.cuda.Stream(device, priority=URGENT)
        self._done = torch.cuda.Event(blocking=True)

    def working(self) -> AbstractContextManager[Any]:
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        return torch.cuda.stream(self._stream)

    def memory(self, shape: Shape, dtype: torch.dtype) -> Tensor:
        return torch.zeros(shape, dtype=dtype, pin_memory=True)

    def captured(self, work: Work) -> Work:
        # Not torch.cuda.graph, which synchronizes the whole device: other threads may use it.
        graph = torch.cuda.CUDAGraph()
        with self.working():
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                work()
            except BaseException:
                with suppress(RuntimeError):  # of a graph that is invalid, which is told without
                    graph.capture_end()
                raise
            graph.capture_end()
        replay: Work = graph.replay
        return replay

    def wait(self) -> None:
        self._done.record(self._stream)
        self._done.synchronize()


class HostedStream(Stream):
    """A `Stream` of a stage on a GPU that takes and gives host tensors.

        live = HostedStream(Moore2016(fs=48000).to("cuda"), (64, 2))
        live.capture(480)
        y = live(torch.zeros(64, 2, 480))

    Each block is copied once each way through pinned memory; the call waits for the result. The
    outputs have no gradients.

    device: replaces the stage's CUDA device, for tests

    Raises ValueError for a stage that is not on CUDA, and if matrix products have reduced
    precision.
    """

    def __init__(self, stage: Stage, shape: Sequence[int], device: Device | None = None) -> None:
        super().__init__(stage, shape)
        if device is None and stage.device.type != "cuda":
            raise ValueError(
                f"HostedStream takes a stage on a CUDA device, and {type(stage).__name__} is on "
                f"{stage.device}: give stage.to('cuda'), or make a Stream"
            )
        self._gpu: Device = Cuda(stage.device) if device is None else device
        self._members = tuple(stage.modules())
        self._passages: dict[int, _Passage] = {}

    @property
    def io_device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def _hooked(self) -> bool:
        """Whether a hook sees, and may change, each block."""
        return any(any(forward_hooks(m)[:2]) for m in self._members)

    @torch.no_grad()
    def capture(self, length: int) -> bool:
        """Capture the step as a CUDA graph for blocks of `length` samples; the state is unchanged.

        Blocks of other lengths run without a graph, as do all blocks while a stage has a hook and
        after `.to()`. Returns False if a stage has a hook or the step cannot be captured (logged).
        """
        if self._hooked:
            return False
        passage = _Passage(self, self._gpu, length)
        before = {key: value.clone() for key, value in self.state.items()}
        try:
            for _ in range(WARM):
                passage(passage.sound)
            passage.replay = self._gpu.captured(passage.work)
        except RuntimeError as error:
            log.warning(
                "%s cannot be captured as a graph and runs without one: %s",
                type(self.stage).__name__,
                str(error).partition("\n")[0],
            )
            return False
        finally:
            self._gpu.wait()
            for key, buffer in self.state.items():
                buffer.copy_(before[key])
        self._passages[length] = passage
        return True

    @torch.no_grad()
    def forward(self, block: Tensor) -> Outputs:
        """As `Stream.forward`; the outputs are new host tensors."""
        x = self.whole_block(block)
        return self._passage(x.shape[self.stage.time_dim])(x)

    def _passage(self, length: int) -> "_Passage":
        if self._hooked:
            return _Passage(self, self._gpu, length)
        found = self._passages.get(length)
        if found is None or not found.as_made():
            kept = {n: p for n, p in self._passages.items() if p.replay is not None and p.as_made()}
            found = _Passage(self, self._gpu, length)
            self._passages = {**kept, length: found}
        return found


class _Passage:
    """Transfer of a block of one length to the device, through the step, and back.

    sound: host memory for the input
    replay: the captured `work`, or None
    """

    def __init__(self, stream: Stream, device: Device, length: int) -> None:
        stage: Stage = stream.stage
        self.replay: Work | None = None
        self._stream, self._stage, self._device = stream, stage, device
        shape = with_time(stream.shape, stage.time_dim, length)
        # A tensor made in inference mode cannot be written outside it.
        with torch.inference_mode(False):
            self.sound = device.memory(shape, stage.dtype)
            self._input = torch.empty(shape, dtype=stage.dtype, device=stage.device)
        self._like: object = None
        self._numbers: Tensor
        self._made_for = self._tensors()

    def _tensors(self) -> list[Tensor | None]:
        """Tensors whose addresses are fixed in the captured graph."""
        return [buffers_of(self._stage)["_probe"], *self._stream.state.values()]

    def as_made(self) -> bool:
        """Whether stage and state are still at the addresses they had."""
        return all(map(is_, self._tensors(), self._made_for))

    def work(self) -> None:
        """The device's work for a block."""
        self._input.copy_(self.sound, non_blocking=True)
        state = self._stream.state
        y, after = self._stage.hooked_step(self._input, state)
        packed = _packed(fields(y))
        if self._like is None:
            self._like = map_fields(lambda v: torch.empty_like(v, device="meta"), y)
            with torch.inference_mode(False):
                self._numbers = self._device.memory(packed.shape, packed.dtype)
        self._numbers.copy_(packed, non_blocking=True)
        for key, buffer in state.items():
            buffer.copy_(after[key])

    def __call__(self, x: Tensor) -> Outputs:
        # With torch's thread pool a copy sometimes waits 10 ms for a sleeping thread.
        with one_thread():
            if x is not self.sound:
                self.sound.copy_(x)
            with self._device.working():
                (self.work if self.replay is None else self.replay)()
            self._device.wait()
            found = dict(_unpacked(self._numbers, fields(self._like)))
            return map_fields(lambda v: found[id(v)].clone(), self._like)


def _wide_first(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Sorted by element size, so that each tensor is aligned when packed."""
    return sorted(tensors, key=lambda v: -v.element_size())


def _packed(tensors: Iterable[Tensor]) -> Tensor:
    """The bytes of all tensors, to be copied at once."""
    # A single value counts as contiguous whatever its stride, and would keep it.
    flat = [v.contiguous().as_strided((v.numel(),), (1,)) for v in _wide_first(tensors)]
    return torch.cat([v.view(torch.uint8) for v in flat])


def _unpacked(numbers: Tensor, like: Sequence[Tensor]) -> Iterable[tuple[int, Tensor]]:
    """Views into `_packed` tensors, each with the id of its template in `like`."""
    at = 0
    for one in _wide_first(like):
        end = at + one.numel() * one.element_size()
        yield id(one), numbers[at:end].view(one.dtype).view(one.shape)
        at = end
