"""Chains in one go: the kernels of the stages, without what stands between them."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from math import prod
from operator import is_
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from amt_stream.compose import Chain
from amt_stream.functional.ahead import compile_kernel, compiled_ahead
from amt_stream.functional.by_address import WIDTH, Called
from amt_stream.functional.dispatch import compilable, compiled
from amt_stream.functional.threads import SMALL
from amt_stream.hooks import EVERYWHERE
from amt_stream.streaming import Shape, Stage, State


class FusedChain(Chain):
    """A chain that is quick at one frame a block too.

    Between short kernels torch takes longer than they do. Where no gradient is wanted, nothing is
    traced and no stage has a hook, two compiled calls do all of it, by the same kernels in the same
    order: the numbers are those of the stages one by one, bit for bit.

    fused: what runs it so
    """

    fused: ClassVar[type["Fused"]]

    def step(self, x: Tensor, state: State) -> tuple[Any, State]:
        # Asked before all else: what is traced or transformed has no memory to look at.
        if not compiled(x):
            return super().step(x, state)
        fused = _FUSED.get(self)
        if fused is None or not fused.as_made():
            new = self.fused(self.stages(), self.block_size)
            # This block by the stages, which refuse tables that do not fit.
            y = super().step(x, state)
            _FUSED[self] = new
            return y
        if fused.takes(x, state):
            after = {
                key: value.detach().clone(memory_format=torch.contiguous_format)
                for key, value in state.items()
            }
            given = fused.run(x, after)
            if given is not None:
                return given, after
        return super().step(x, state)

    def advance(self, x: Tensor, state: State) -> Any:
        own = type(self).step is FusedChain.step  # else a subclass has another one
        watched = self._forward_hooks or self._forward_pre_hooks or any(EVERYWHERE)
        if own and not watched and compiled(x):
            fused = _FUSED.get(self)
            if fused is not None and fused.as_made():
                y = fused.run(x, state)
                if y is not None:
                    return y
        return super().advance(x, state)


class Room:
    """Memory for a block of one shape, and the plan of what lies where.

    rows: those of the plan, by their names
    arrays: what was made for it
    memory: state by its name in the chain: its row, and its shape there
    outputs: shapes of what comes out
    """

    def __init__(self, rows: Any, shape: Shape) -> None:
        self.rows, self.shape = rows, shape
        self.plan = np.zeros((len(rows), WIDTH), np.int64)
        self.arrays: dict[str, Tensor] = {}
        self.memory: dict[str, tuple[str, Shape]] = {}
        self.outputs: tuple[Shape, ...] = ()
        self.keys: list[str] = []
        self.state: list[Tensor] = []
        self.places: list[int] = []

    def put(self, name: str, x: Tensor, *shape: int) -> None:
        """Write in the plan where `x`, contiguous, lies, as an array of that shape or its own."""
        sizes = shape or x.shape
        self.plan[getattr(self.rows, name), : 1 + len(sizes)] = x.data_ptr(), *sizes

    def expect(self, name: str, *shape: int) -> None:
        """Write in the plan the shape of what will be put there."""
        self.plan[getattr(self.rows, name), : 1 + len(shape)] = 0, *shape

    def make(self, name: str, dtype: torch.dtype, *shape: int) -> Tensor:
        """A new array in the plan."""
        with torch.inference_mode(False):  # whose tensors may be written to in it only
            x = self.arrays[name] = torch.empty(shape, dtype=dtype)
        self.put(name, x)
        return x

    def holds(self, state: State) -> bool:
        """Whether the plan has this state where it is."""
        values = list(state.values())
        return (
            list(map(Tensor.data_ptr, values)) == self.places
            and all(map(is_, values, self.state))
            and list(state) == self.keys
        )

    def remember(self, state: State) -> None:
        """Have the state of the block where `state` keeps it."""
        for key, (name, shape) in self.memory.items():
            self.put(name, state[key], *shape)
        self.keys, self.state = list(state), list(state.values())
        self.places = list(map(Tensor.data_ptr, self.state))


class Fused:
    """What a `FusedChain` runs, on the tables that its stages have now.

    home: the module of its kernels
    kernels: those that take the plan, by their names there
    rows: of the plan, by their names
    axes: of the input at least
    """

    home: ClassVar[str]
    kernels: ClassVar[tuple[str, ...]]
    rows: Any
    axes = 1

    def __init__(self, stages: Mapping[str, Stage], block_size: int) -> None:
        self.named: Mapping[str, Any] = stages
        self.stages = list(self.named.values())
        self.block_size, self.dtype = block_size, self.stages[-1].dtype
        self.buffers = [stage._buffers for stage in self.stages]
        self.hooks = [
            hooks
            for stage in self.stages
            for hooks in (stage._forward_hooks, stage._forward_pre_hooks)
        ]
        self.hooks += EVERYWHERE
        self.tables = self._tables()
        self.floats = [table for table in self.tables if table.is_floating_point()]
        self.states: dict[Shape, dict[str, tuple[Shape, torch.dtype]]] = {}
        # Of other layouts the arrays would be copies, which do not change with the tables.
        flat = all(table.is_contiguous() for table in self.tables)
        self.serves = flat and compilable(*self.floats)
        if self.serves:
            self.places = list(map(Tensor.data_ptr, self.tables))
            self.like = torch.empty(0, dtype=self.dtype).numpy()
            # Taken and given back: a model may run in several threads.
            self.rooms: list[Room] = []
            # The part of a plan that does not change.
            self.made = Room(self.rows, ())
            self.called: dict[str, Called] = {}
            self.make(self.made)
            self._compile()

    def make(self, made: Room) -> None:
        """Put kernels, tables and numbers."""
        raise NotImplementedError

    def furnish(self, room: Room, lead: Shape, time: int, state: State) -> None:
        """Make what a block of shape (*lead, time) needs."""
        raise NotImplementedError

    def given(self, room: Room) -> Any:
        """The output for the sound that is put; None, and no state written, if a table is unfit."""
        raise NotImplementedError

    def suits(self, lead: Shape) -> bool:
        """Whether the kernels take inputs of this shape, which is without time."""
        return True

    def _tables(self) -> list[Any]:
        return list(chain.from_iterable(map(dict.values, self.buffers)))

    def as_made(self) -> bool:
        """Whether the stages still have the tables that they had, where they had them.

        Tables that are shared with another process move.
        """
        now = self._tables()
        if len(now) != len(self.tables) or not all(map(is_, now, self.tables)):
            return False
        return not self.serves or list(map(Tensor.data_ptr, now)) == self.places

    def takes(self, x: Tensor, state: State) -> bool:
        """Whether the kernels can take `x` and `state`, and nobody looks in between."""
        if not self.serves or x.dtype is not self.dtype or x.dim() < self.axes or not x.numel():
            return False
        if any(self.hooks) or x.shape[-1] % self.block_size:
            return False
        lead = tuple(x.shape[:-1])
        kept = self.states.get(lead)
        if kept is None:
            kept = self._state_of(lead) if self.suits(lead) else {}
            self.states = {lead: kept}
        if not kept or len(kept) != len(state):
            return False
        for key, (shape, dtype) in kept.items():
            value = state[key]
            if value.shape != shape or value.dtype is not dtype or not value.is_cpu:
                return False
        if torch.is_grad_enabled() and any(table.requires_grad for table in self.floats):
            return False
        return compiled(*[state[key] for key, (_, of) in kept.items() if of.is_floating_point])

    def _state_of(self, lead: Shape) -> dict[str, tuple[Shape, torch.dtype]]:
        """Shape and dtype of what the chain keeps for inputs of shape `lead` without time."""
        found = {}
        for name, stage in self.named.items():
            for key, value in stage.initial_state(lead).items():
                found[f"{name}/{key}"] = tuple(value.shape), value.dtype
            lead = stage.out_shape(lead)
        return found

    def run(self, x: Tensor, state: State) -> Any:
        """Output of the chain; `state` itself is what it is after the block.

        None, and nothing is written, where the kernels do not serve, for tables that were changed
        in place to what they do not take, too.
        """
        room = self._room(x, state)
        if room is None:
            return None
        x = x.resolve_neg().contiguous()
        room.plan[self.rows.given, 0] = x.data_ptr()
        y = self.given(room)
        if y is not None and x.numel() <= SMALL:
            self.rooms.append(room)
        return y

    def _room(self, x: Tensor, state: State) -> Room | None:
        """The last one or a new one, for such a block and this state; None where none serves."""
        room = None
        if self.serves:
            with suppress(IndexError):  # another thread may have taken it meanwhile
                room = self.rooms.pop()
        known = room is not None and room.shape == x.shape and x.dtype is self.dtype
        asked = not known or any(self.hooks) or torch.is_grad_enabled()
        if asked and not self.takes(x, state):
            return None
        if room is None or not known:
            room = Room(self.rows, x.shape)
            room.plan[...] = self.made.plan
            room.expect("given", prod(x.shape[:-1]), x.shape[-1])
            self.furnish(room, tuple(x.shape[:-1]), x.shape[-1], state)
        if not room.holds(state):
            flat = all(map(Tensor.is_contiguous, state.values()))
            if not flat or not self.takes(x, state):
                return None
            room.remember(state)
        return room

    def outputs(self, room: Room, *rows: int) -> list[Tensor]:
        """New tensors for what comes out, put in these rows of the plan."""
        y, plan = [], room.plan
        for row, shape in zip(rows, room.outputs, strict=False):
            new = torch.from_numpy(np.empty(shape, self.like.dtype))
            plan[row, 0] = new.data_ptr()
            y.append(new)
        return y

    def call(self, made: Room, called: Mapping[str, Called], *names: str) -> None:
        """Have the kernels of these names put, compiled."""
        self.called |= {name: called[name] for name in names}

    def _compile(self) -> None:
        names = (*self.called, *(f".{name}" for name in self.kernels))
        dtype = self.like.dtype
        with compiled_ahead(self.home, names, dtype):
            for name in names:
                compile_kernel(self.home, name, dtype)
        for name, one in self.called.items():
            self.made.plan[getattr(self.rows, name), 0] = one.address(dtype)

    def put_tables(self, made: Room, stage: Stage, *names: str) -> None:
        """Put tables of a stage in the rows of their names."""
        for name, table in zip(names, stage.registered(*names), strict=True):
            made.put(name, table)

    def resample(self, made: Room, called: Mapping[str, Called]) -> None:
        """Put the resampler, where there is one."""
        if "resample" in self.named:
            stage = self.named["resample"]
            self.call(made, called, "to_rate")
            self.put_tables(made, stage, "bank")
            made.plan[self.rows.down, 0] = stage.block_size
            made.plan[self.rows.taken, 0] = stage.length

    def resampled(self, room: Room, rows: int, time: int) -> int:
        """Make what the resampler needs, where there is one; samples that come after it."""
        if "resample" not in self.named:
            return time
        stage = self.named["resample"]
        past, after = stage.length - 1, int(time * stage.ratio)
        room.memory["resample/past"] = "before_resampling", (rows, past)
        room.make("to_resample", self.dtype, rows, past + time)
        room.make("resampled", self.dtype, rows, after)
        return after


_FUSED: WeakKeyDictionary[FusedChain, Fused] = WeakKeyDictionary()
