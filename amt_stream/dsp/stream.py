"""A running stage, and what it takes: blocks, chunks of any length, or a whole sound."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import ceil
from operator import is_
from typing import Any, Generic, Protocol, cast

import torch
from torch import Tensor, nn

from amt_stream.dsp.checkpoints import Checkpointed
from amt_stream.dsp.functional.compiler import private_torch
from amt_stream.dsp.functional.compiler.dispatch import compilable
from amt_stream.dsp.functional.compiler.threads import one_thread
from amt_stream.dsp.streaming import (
    Outputs,
    Shape,
    Stage,
    State,
    Y_co,
    carried,
    joined,
    map_fields,
    outputs_of,
    pad_end,
    refuse_dtype,
    with_time,
    without,
)

SHAPES = 4
"""Shapes of blocks that are remembered together; a `Rebuffer` with chunks of one length gives 2."""

TOGETHER = 2048
"""Most values of short blocks that a `Rebuffer` passes on together: at 48 kHz, 21 ms of 2 ears."""


def refuse_no_stage(taker: str, given: object) -> None:
    """Raise TypeError, with a remedy, unless `given` is a Stage."""
    if isinstance(given, Stage):
        return
    remedy = "give a Stage, such as Moore2016(fs=48000)"
    if isinstance(given, Stream):
        remedy = "give its stage, which is stateless"
    elif isinstance(given, nn.Module):
        remedy = "a plain torch module goes into a Chain(name=module), which makes a stage of it"
    raise TypeError(f"{taker} takes a Stage, given {type(given).__name__}: {remedy}")


class Gives(Protocol[Y_co]):
    """A stage with one output type, for type checkers."""

    def step(self, x: Tensor, state: State, /) -> tuple[Y_co, State]: ...


class Stream(Checkpointed, Generic[Y_co]):
    """A running stage: `live = Stream(stage, shape); y = live(block)`.

    `shape` is the input's shape without time. Only the stream holds state, in buffers, so that
    `.to()`, `.double()` and `state_dict()` include it: a saved stream resumes mid-sound in a new
    process. The buffers stay at fixed addresses. Gradients end at the block's edge (truncated
    backpropagation through time). Hooks of the stage and its members see each block.
    """

    _PREFIX = "state/"  # torch forbids dots; the prefix avoids clashes with module attributes

    stage: Stage

    def __init__(self, stage: Gives[Y_co], shape: Sequence[int]) -> None:
        super().__init__()
        refuse_no_stage("Stream", stage)
        if not isinstance(shape, Sequence):
            raise TypeError(
                f"Stream of {type(stage).__name__} takes a shape without time, given {shape!r}: "
                "give a sequence, such as (1, 2)"
            )
        self.stage = stage = cast(Stage, stage)
        self.shape = tuple(shape)
        # Block shapes that were accepted, with what `Stage.shortcut` gave for blocks of each.
        self._accepted: dict[Shape, Callable[[Tensor, Any, Any], Outputs] | None] = {}
        stage.check_shape(self.shape)
        # A tensor made in inference mode can never be updated or saved for backward outside it.
        with torch.inference_mode(False), torch.no_grad():
            initial = stage.initial_state(self.shape)
            self._names = {key: self._PREFIX + key for key in initial}
            for key, value in initial.items():
                self.register_buffer(self._names[key], value.clone())

    @property
    def state(self) -> State:
        """The current state: the buffers, not copies."""
        buffers: Any = self._buffers
        return {key: buffers[name] for key, name in self._names.items()}

    @property
    def io_device(self) -> torch.device:
        """Device of input and output blocks."""
        return self.stage.device

    def __call__(self, block: Tensor) -> Y_co:
        # Torch's own call takes as long as the kernels of a short model.
        if type(block) is Tensor and not torch.compiler.is_compiling():
            shortcut = self._accepted.get(block.shape)
            if shortcut is not None and not torch.is_grad_enabled():
                y: Y_co = shortcut(block, self._modules["stage"], self._buffers)
                if y is not None:
                    return y
                self._accepted[block.shape] = None
        return cast(Y_co, super().__call__(block))

    def forward(self, block: Tensor) -> Outputs:
        """The output for the next block, of any multiple of the stage's block size.

        Raises ValueError for a wrong shape or a fraction of a block.
        """
        stage: Any = self._modules["stage"]
        accepted = {} if torch.compiler.is_compiling() else self._accepted
        again = type(block) is Tensor and block.shape in accepted
        x = self.whole_block(block)
        before = self.state
        if not torch.is_grad_enabled():
            y = stage.advance(x, before)
            # Which leaves out this method.
            if again and type(self).forward is Stream.forward:
                hooks = *private_torch.forward_hooks(self)[:2], *private_torch.global_hooks()
                accepted[x.shape] = stage.shortcut(x, before, self._buffers, hooks)
            return y
        with one_thread(x):
            y, after = stage.hooked_step(x, {key: v.clone() for key, v in before.items()})
            with torch.no_grad():
                for key, buffer in before.items():
                    buffer.copy_(after[key])
        return y

    def __getstate__(self) -> dict[str, Any]:
        # A copy has its own state.
        return {**vars(self), "_accepted": {}}

    def whole_block(self, block: Tensor) -> Tensor:
        """`block` in the stage's dtype; raises as `forward` does."""
        stage: Any = self._modules["stage"]
        x: Tensor = stage.converted(block)
        shape = x.shape
        accepted = {} if torch.compiler.is_compiling() else self._accepted
        if shape in accepted:
            return x
        self.check_block(x)
        length = shape[stage.time_dim]
        if length == 0 or length % stage.block_size:
            raise ValueError(
                f"Stream of {type(stage).__name__} takes multiples of {stage.block_size} along "
                f"time, given {length}: put a Rebuffer before it"
            )
        if len(accepted) == SHAPES:
            accepted.clear()
        accepted[shape] = None
        return x

    def check_block(self, x: Tensor) -> None:
        """Raise ValueError if `x` does not have the stream's shape."""
        stage: Any = self._modules["stage"]
        dim = stage.time_dim
        given = without(x.shape, dim) if x.dim() >= -dim else None
        # The constructor checked that the stage takes this shape.
        if given != self.shape:
            stage.checked(x)
            raise ValueError(
                f"Stream of {type(stage).__name__} was made for shape {self.shape} without "
                f"time, given {given or tuple(x.shape)}: make a new Stream for another shape"
            )

    @torch.no_grad()
    def reset(self, mask: Tensor | None = None) -> None:
        """Reset to silence: all rows, or those (first axis) where the boolean `mask` is true."""
        mask = None if mask is None else torch.as_tensor(mask)
        for (key, buffer), fresh in zip(
            self.state.items(), self.stage.initial_state(self.shape).values(), strict=True
        ):
            if mask is None:
                buffer.copy_(fresh)
            elif mask.dtype != torch.bool or mask.shape != buffer.shape[:1]:
                raise ValueError(
                    f"reset takes a boolean mask of shape {tuple(buffer.shape[:1])}, one per row, "
                    f"given {mask.dtype} of shape {tuple(mask.shape)} (state {key!r})"
                )
            else:
                rows = mask.to(buffer.device).view(-1, *[1] * (buffer.dim() - 1))
                buffer.copy_(torch.where(rows, fresh, buffer))

    def begin_now(self) -> None:
        """The sound begins now, after a constant input that was none (`Stage.beginning`)."""
        self._take(self.stage.beginning(self.state))

    def end_after(self, samples: int) -> None:
        """The sound ends after so many more samples, which zeros follow (`Stage.ending`)."""
        self._take(self.stage.ending(self.state, samples))

    @torch.no_grad()
    def _take(self, given: State) -> None:
        state = self.state
        for key, value in given.items():
            if value is not state[key]:
                state[key].copy_(value)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Stream":
        dtype = fn(self.stage._probe).dtype
        refuse_dtype(self, dtype)
        kept = {k: v for k, v in self.state.items() if k in self.stage.keeps_double}
        rests = {}
        if dtype != self.stage.dtype and self.stage.device.type != "meta":
            silence = self.stage.initial_state(self.shape)
            rests = {key: buffer == silence[key] for key, buffer in self.state.items()}
        super()._apply(fn, recurse)
        for key, buffer in kept.items():
            self._buffers[self._PREFIX + key] = carried(buffer, fn)
        if rests and self.stage.device.type != "meta":
            # State that still equals silence takes the exact value in the new dtype.
            silence = self.stage.initial_state(self.shape)
            for key, buffer in self.state.items():
                buffer.copy_(torch.where(rests[key].to(buffer.device), silence[key], buffer))
        return self


class Shortcut:
    """A call of a `Stream` of a `FusedStage` for blocks of one shape, without gradients.

    Checks at once all that `Stream` and `Fused` check one after the other, which takes longer than
    the kernels of a short model.

    fused: the stage's `Fused`
    model: the stage
    pool: workspaces of `fused` for blocks of this shape
    state, buffers: of the stream
    hooks: mappings that are empty as long as no hook sees the blocks
    """

    def __init__(
        self,
        fused: Any,
        model: Stage,
        pool: list[Any],
        state: State,
        buffers: Mapping[str, Any],
        hooks: Sequence[Any],
    ) -> None:
        self.fused, self.model, self.state, self.buffers = fused, model, state, buffers
        self.hooks, self.pool, self.token = hooks, pool, object()
        # With an end, so that a longer or shorter dict is not equal.
        self.values = [*map(dict.values, [*fused.buffers, buffers]), (self.token,)]
        *tensors, _ = self.tensors = list(chain.from_iterable(self.values))
        self.filled = [x for x in tensors if x.numel()]
        self.places = list(map(Tensor.data_ptr, self.filled))

    def __call__(self, x: Tensor, stage: object, buffers: object) -> Outputs:
        fused = self.fused
        if (
            x.dtype is not fused.dtype
            or not x.is_cpu
            or stage is not self.model
            or buffers is not self.buffers
            or any(self.hooks)
            or private_torch.autocast()
            or private_torch.forward_mode()
            or private_torch.transform() is not None
            or private_torch.trace() is not None
            or not all(map(is_, chain.from_iterable(self.values), self.tensors))
            or list(map(Tensor.data_ptr, self.filled)) != self.places
        ):
            return None
        try:
            workspace = self.pool.pop()
        except IndexError:  # another thread has it
            return None
        if workspace.owner is not self.token:
            workspace.remember(self.state)
            workspace.owner = self.token
        return fused.processed(x, workspace)


class Rebuffer(nn.Module, Generic[Y_co]):
    """Feeds a `Stream` from chunks of any length.

    `push` calls the stream with `blocks` blocks, or a multiple if a chunk completes several short
    ones, and buffers the remainder, so that a saved state_dict resumes in the middle of a block.
    More at a time cost less: `Moore2016`, whose blocks are of 1 ms, a third with 10. With gradients
    each call has exactly `blocks` blocks. Gradients do not pass the buffer.
    """

    held: Tensor
    count: Tensor

    _remainder: "_Remainder | None" = None

    def __init__(self, live: Stream[Y_co], blocks: int = 1) -> None:
        super().__init__()
        if not isinstance(live, Stream):
            raise TypeError(
                f"Rebuffer takes a Stream, given {type(live).__name__}: give Stream(stage, shape)"
            )
        if not isinstance(blocks, int) or blocks < 1:
            raise ValueError(f"Rebuffer takes at least 1 block at a time, given {blocks}")
        self.live = live
        self.size = blocks * live.stage.block_size
        with torch.inference_mode(False):
            shape = with_time(live.shape, live.stage.time_dim, self.size)
            self.register_buffer("held", live.stage.state_like("", shape).to(live.io_device))
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_remainder": None}  # a copy has its own buffers

    def push(self, chunk: Tensor) -> Y_co | None:
        """The outputs of the blocks that `chunk` completes, joined; None if it completes none."""
        known = self._remainder
        if known is None or not known.takes(chunk, self._buffers):
            stage: Any = self.live.stage
            x = stage.converted(chunk)
            self.live.check_block(x)
            plain = x is chunk and compilable(x, self.held)
            known = _Remainder(x.shape, stage.time_dim, self.held, self.count, plain)
            self._remainder = known if plain else None
            chunk = x
        live: Any = self._modules["live"]
        at, length, size, count = 0, known.length, self.size, known.filled.item()
        outputs = []
        while count + length - at >= size:
            most = 1 if torch.is_grad_enabled() else max(1, TOGETHER // known.held.numel())
            take = min(most, (count + length - at) // size) * size - count
            block = chunk if take == length else chunk.narrow(known.dim, at, take)
            if count:
                block = block.detach() if block.requires_grad else block
                block = torch.cat((known.part(0, count), block), known.dim)
            outputs.append(live(block))
            at, count = at + take, 0
        if at < length:
            rest = chunk.narrow(known.dim, at, length - at) if at else chunk
            known.part(count, length - at).copy_(rest.detach() if rest.requires_grad else rest)
            count += length - at
        known.filled[()] = count
        if len(outputs) < 2:
            return outputs[0] if outputs else None
        with one_thread(chunk):
            return joined(*outputs, dims=live.stage.out_time_dim)

    def flush(self) -> Y_co | None:
        """The outputs still pending: feeds `latency` zeros, then zeros to fill the last block.

        For n input samples there have then been ceil((n + latency) * ratio) outputs. Reset before
        the next sound.
        """
        stage = self.live.stage
        tail = ceil(stage.latency)
        self.live.end_after(int(self.count))
        last = (int(self.count) + tail) % self.size
        fill = -last % self.size
        shape = with_time(self.live.shape, stage.time_dim, tail + fill)
        y = self.push(stage.state_like("", shape))
        if y is None:
            return None
        excess = int(self.size * stage.ratio) - ceil(last * stage.ratio) if last else 0
        return map_fields(
            lambda v, dim: v.narrow(dim, 0, v.shape[dim] - excess), y, stage.out_time_dim
        )

    @torch.no_grad()
    def reset(self) -> None:
        """Reset the state to silence and drop the remainder."""
        self.live.reset()
        self.held.zero_()
        self.count.zero_()


class _Remainder:
    """The buffers of a `Rebuffer`, and their parts, for chunks of a checked shape.

    Making a view of a part takes torch longer than copying 1 ms of audio into it.

    plain: whether the buffers have memory that can be read without torch, which is faster
    """

    def __init__(self, shape: Shape, dim: int, held: Tensor, count: Tensor, plain: bool) -> None:
        self.shape, self.dtype, self.held, self.count = shape, held.dtype, held, count
        self.places = (held.data_ptr(), count.data_ptr()) if plain else ()
        self.filled: Any = count.numpy() if plain else count
        self.dim, self.length = dim, shape[dim]
        self.parts: dict[tuple[int, int], Tensor] = {}

    def takes(self, x: Tensor, buffers: Mapping[str, Tensor | None]) -> bool:
        """Whether `x` is as the chunk before, and the buffers are where they were."""
        return (
            buffers["held"] is self.held
            and buffers["count"] is self.count
            and (self.held.data_ptr(), self.count.data_ptr()) == self.places
            and x.shape == self.shape
            and x.dtype is self.dtype
            and compilable(x)
            and not private_torch.autocast()
        )

    def part(self, begin: int, length: int) -> Tensor:
        """The part of the buffer from `begin` on, of this length."""
        part = self.parts.get((begin, length))
        if part is None:
            with torch.inference_mode(False):  # made there, it would be writable only in that mode
                part = self.held.detach().narrow(self.dim, begin, length)
            self.parts[begin, length] = part
        return part


def aligned(stage: Stage, x: Tensor) -> Outputs:
    """Output of `stage` for a whole signal, compensated for latency: ceil(length * ratio) long.

    Output k stands for input position k / ratio; nothing of the end is lost.
    """
    refuse_no_stage("aligned", stage)
    x = stage.checked(x)
    length = x.shape[stage.time_dim]
    early, outputs = ceil(stage.latency * stage.ratio), outputs_of(length, stage.ratio)
    return map_fields(
        lambda v, dim: v.narrow(dim, early, outputs),
        stage.whole(pad_end(x, stage.time_dim, ceil(stage.latency))),
        stage.out_time_dim,
    )
