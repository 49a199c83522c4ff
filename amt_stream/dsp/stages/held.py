"""Frames of one rate, held until the next, at another."""

from fractions import Fraction

import torch
from torch import Tensor

from amt_stream.dsp.compose import parted, prefixed
from amt_stream.dsp.functional.compiler.dispatch import compilable
from amt_stream.dsp.functional.compiler.threads import one_thread
from amt_stream.dsp.hooks import steps_as
from amt_stream.dsp.streaming import Outputs, Shape, Stage, State


class HeldFrames(Stage):
    """A stage's frames at a rate that its blocks do not fit: each value is held until the next.

    An output is that of the last frame whose time is not after its own, as in rows of several
    models; before the first frame it is 0. A counter in the state says how much of a frame has
    come, so that blocks are those of the outputs, and rows may have begun at different times.

    frames: a stage with a frame per block, time on its last axis, and frames (..., frame, value)
    every: inputs between outputs
    """

    out_time_dim = -2

    def __init__(self, frames: Stage, every: int) -> None:
        super().__init__()
        if frames.ratio * frames.block_size != 1 or frames.out_time_dim != -2:
            raise ValueError(
                f"HeldFrames takes a stage with a frame per block on axis -2, given "
                f"{type(frames).__name__} with ratio {frames.ratio}, blocks of {frames.block_size} "
                f"and frames on axis {frames.out_time_dim}"
            )
        self.frames = frames.to(self.dtype)
        self.block_size = every
        self.ratio = Fraction(1, every)
        # Outputs stand for whole multiples of `every`, which the frames' latency need not be.
        self.late = int(-frames.latency % every)
        self.latency = frames.latency + self.late
        self.fixed_axes, self.shape_remedy = frames.fixed_axes, frames.shape_remedy
        self.frames_stand_for_end = frames.frames_stand_for_end
        self.keeps_double = tuple(f"frames/{key}" for key in frames.keeps_double)

    def _rows(self, shape: Shape) -> Shape:
        """The axes of `shape` (..., those of a row) before a row's own."""
        return shape[: len(shape) - len(self.fixed_axes)]

    def initial_state(self, shape: Shape) -> State:
        rows, waiting = self._rows(shape), self.frames.block_size - 1
        return {
            "waiting": self.state_like("waiting", (*shape, waiting)),
            "count": torch.zeros(rows, dtype=torch.int64, device=self.device),
            "last": self.state_like("last", (*rows, 2, *self.frames.out_shape(shape)[-1:])),
            **prefixed("frames", self.frames.initial_state(shape)),
        }

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        size, time, count = self.frames.block_size, x.shape[-1], state["count"]
        given = torch.cat([state["waiting"], x], -1)
        # Places in `given` of all frames that any row may have; of some rows the last is not whole.
        most = (size - 1 + time) // size
        place = (size - 1 - count)[..., None] + torch.arange(most * size, device=x.device)
        place = place.clamp(max=given.shape[-1] - 1)
        place = place.view(*count.shape, *[1] * (x.dim() - place.dim()), -1)
        blocks = given.gather(-1, place.expand(*x.shape[:-1], -1))
        part = parted(state).get("frames", {})
        frames = [state["last"]]
        sure = time // size
        if sure:
            y, part = self._frames(blocks[..., : sure * size], part)
            frames.append(y)
        if most > sure:
            more = (count + time) // size > sure
            known = compilable(x)
            if not known or bool(more.any()):
                y, after = self._frames(blocks[..., sure * size :], part)
                frames.append(y)
                part = after if known and bool(more.all()) else _where(more, after, part)
        values = torch.cat(frames, -2)
        done = torch.arange(self.block_size, time + 1, self.block_size, device=x.device)
        y = _picked(
            values, torch.div(count[..., None] + done - self.late, size, rounding_mode="floor") + 1
        )
        last = (count + time)[..., None] // size + torch.arange(2, device=x.device)
        after = {"waiting": given[..., time:], "count": (count + time) % size}
        after["last"] = _picked(values, last)
        return y, after | prefixed("frames", part)

    def advance(self, x: Tensor, state: State) -> Outputs:
        size, time, count = self.frames.block_size, x.shape[-1], state["count"]
        own = steps_as(self, HeldFrames) and compilable(x, state["waiting"]) and count.numel()
        # Usually all rows are at the same place.
        begun = int(count.view(-1)[0]) if own else 0
        if not own or (count.numpy() != begun).any():
            return super().advance(x, state)
        given, last = torch.cat([state["waiting"], x], -1), state["last"]
        values, whole = last, (begun + time) // size
        with one_thread(x):
            if whole:
                blocks = given.narrow(-1, size - 1 - begun, whole * size)
                y = self.frames.advance(blocks, parted(state).get("frames", {}))
                assert isinstance(y, Tensor)
                values = torch.cat([last, y], -2)
                last.copy_(values[..., whole:, :])
            state["waiting"].copy_(given[..., time:])
            count.fill_((begun + time) % size)
            done = range(begun - self.late + self.block_size, begun - self.late + time + 1)
            at = [n // size + 1 for n in done[:: self.block_size]]
            return values[..., at, :]

    def _frames(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, after = self.frames.hooked_step(x, state)
        assert isinstance(y, Tensor)
        return y, after

    def out_shape(self, shape: Shape) -> Shape:
        found = self.frames.out_shape(shape)
        assert isinstance(found, tuple)
        return found

    def extra_repr(self) -> str:
        return f"every={self.block_size}"


def _picked(values: Tensor, at: Tensor) -> Tensor:
    """Frames (..., n, value) at places (..., n) of `values` (..., frame, value)."""
    return values.gather(-2, at[..., None].expand(*at.shape, values.shape[-1]))


def _where(rows: Tensor, a: State, b: State) -> State:
    """The state `a` of `rows` (...), and `b` of the others."""
    return {
        key: torch.where(rows.view(*rows.shape, *[1] * (b[key].dim() - rows.dim())), a[key], b[key])
        for key in b
    }
