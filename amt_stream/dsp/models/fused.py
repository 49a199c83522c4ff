"""Chains in one go: the kernels of the stages, without what stands between them."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from math import prod
from operator import is_
from typing import Any, ClassVar
from weakref import finalize

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.compose import Chain
from amt_stream.dsp.functional.ahead import Ahead, compile_kernel
from amt_stream.dsp.functional.call_table import WIDTH, KernelCall
from amt_stream.dsp.functional.dispatch import compilable, compiled
from amt_stream.dsp.functional.threads import SMALL
from amt_stream.dsp.hooks import EVERYWHERE
from amt_stream.dsp.streaming import Outputs, Shape, Stage, State


class FusedChain(Chain):
    """A chain that is quick at one frame a block too.

    Between short kernels torch takes longer than they do. Where no gradient is wanted, nothing is
    traced and no stage has a hook, one or two compiled calls do all of it, by the same kernels in
    the same order: the numbers are those of the stages one by one, bit for bit.

    fused: what runs it so
    """

    fused: ClassVar[type["Fused"]]

    _fused: "Fused | None" = None
    _begun: "Fused | None" = None
    """What a second process compiles kernels for, until the first block."""

    def __getstate__(self) -> dict[str, Any]:
        # A copy has its tables elsewhere.
        return {**vars(self), "_fused": None, "_begun": None}

    def _as_made(self) -> "Fused | None":
        """What runs the chain, if it was made for the tables that the stages have now."""
        fused = self._fused
        # A replica of torch's shares the attributes, not the stages.
        return (
            fused if fused is not None and fused.of is self._modules and fused.as_made() else None
        )

    def step(self, x: Tensor, state: State) -> tuple[Outputs, State]:
        # Asked before all else: what is traced or transformed has no memory to look at.
        if not compiled(x):
            return super().step(x, state)
        fused = self._as_made()
        if fused is None:
            new, self._begun = self._begun, None
            if new is None or new.of is not self._modules or not new.as_made():
                new = self.fused(self)
            new.compile()
            # This block by the stages, which refuse tables that do not fit.
            y = super().step(x, state)
            self._fused = new
            return y
        if fused.takes(x, state):
            after = {
                key: value.detach().clone(memory_format=torch.contiguous_format)
                for key, value in state.items()
            }
            given = fused.process(x, after)
            if given is not None:
                return given, after
        return super().step(x, state)

    def begin_to_compile(self, *also: str) -> None:
        """Have a second process compile the kernels from now on, for the first block to find.

        also: what it calls before, as of `Ahead`
        """
        self._begun = self.fused(self)
        self._begun.begin_to_compile(*also)

    def advance(self, x: Tensor, state: State) -> Outputs:
        own = type(self).step is FusedChain.step  # else a subclass has another one
        fused = self._as_made() if own and compilable(x) else None
        if fused is not None and not any(fused.watchers):
            y = fused.process(x, state)
            if y is not None:
                return y
        return super().advance(x, state)


class Workspace:
    """Memory for a block of one shape, and the plan of what lies where.

    rows: those of the plan, by their names
    arrays: what was made for it
    memory: state by its name in the chain: its row, and its shape there
    outputs: shapes of what comes out
    """

    def __init__(self, rows: Any, shape: Shape) -> None:
        self.rows, self.shape = rows, shape
        self.small = prod(shape) <= SMALL
        self.plan = np.zeros((len(rows), WIDTH), np.int64)
        self.arrays: dict[str, Tensor] = {}
        self.memory: dict[str, tuple[str, Shape]] = {}
        self.outputs: tuple[Shape, ...] = ()
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
        return list(map(Tensor.data_ptr, values)) == self.places and all(
            map(is_, values, self.state)
        )

    def remember(self, state: State) -> None:
        """Have the state of the block where `state` keeps it."""
        for key, (name, shape) in self.memory.items():
            self.put(name, state[key], *shape)
        self.state = list(state.values())
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

    def __init__(self, chain: Chain) -> None:
        self.of = chain._modules
        self.named: Mapping[str, Any] = chain.stages()
        stages = list(self.named.values())
        self.block_size, self.dtype = chain.block_size, stages[-1].dtype
        self.buffers = [stage._buffers for stage in stages]
        # Whose hooks see what is not made here: all of the stages, and those of the chain itself,
        # which runs them around a step.
        self.hooks = [h for one in stages for h in (one._forward_hooks, one._forward_pre_hooks)]
        self.hooks += EVERYWHERE
        self.watchers = [*self.hooks, chain._forward_hooks, chain._forward_pre_hooks]
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
            self.workspaces: list[Workspace] = []
            # The part of a plan that does not change.
            self.made = Workspace(self.rows, ())
            self.called: dict[str, KernelCall] = {}
            self.make(self.made)
            self.ahead: Ahead | None = None

    def make(self, made: Workspace) -> None:
        """Put kernels, tables and numbers."""
        raise NotImplementedError

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        """Make what a block of shape (*lead, time) needs."""
        raise NotImplementedError

    def run(self, workspace: Workspace) -> Outputs:
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

    def process(self, x: Tensor, state: State) -> Any:
        """Output of the chain; `state` itself is what it is after the block.

        None, and nothing is written, where the kernels do not serve, for tables that were changed
        in place to what they do not take, too. Hooks and gradients are the caller's business.
        """
        workspace = self._workspace(x, state)
        if workspace is None:
            return None
        x = (x.resolve_neg() if x.is_neg() else x).contiguous()
        workspace.plan[self.rows.given, 0] = x.data_ptr()
        y = self.run(workspace)
        if y is not None and workspace.small:
            self.workspaces.append(workspace)
        return y

    def _workspace(self, x: Tensor, state: State) -> Workspace | None:
        """The last one or a new one, for such a block and this state; None where none serves."""
        found = None
        if self.serves:
            with suppress(IndexError):  # another thread may have taken it meanwhile
                found = self.workspaces.pop()
        known = found is not None and found.shape == x.shape and x.dtype is self.dtype
        if not known and not self.takes(x, state):
            return None
        if found is None or not known:
            found = Workspace(self.rows, x.shape)
            found.plan[...] = self.made.plan
            found.expect("given", prod(x.shape[:-1]), x.shape[-1])
            self.allocate(found, tuple(x.shape[:-1]), x.shape[-1], state)
        if not found.holds(state):
            flat = all(map(Tensor.is_contiguous, state.values()))
            if not flat or not self.takes(x, state):
                return None
            found.remember(state)
        return found

    def outputs(self, workspace: Workspace, *rows: int) -> list[Tensor]:
        """New tensors for what comes out, put in these rows of the plan."""
        y, plan = [], workspace.plan
        for row, shape in zip(rows, workspace.outputs, strict=False):
            new = torch.from_numpy(np.empty(shape, self.like.dtype))
            plan[row, 0] = new.data_ptr()
            y.append(new)
        return y

    def call(self, made: Workspace, called: Mapping[str, KernelCall], *names: str) -> None:
        """Have the kernels of these names put, compiled."""
        self.called |= {name: called[name] for name in names}

    @property
    def _names(self) -> list[str]:
        return [*self.called, *(f".{name}" for name in self.kernels)]

    def begin_to_compile(self, *also: str) -> None:
        """Have a second process compile the kernels; `compile` ends it."""
        if self.serves and self.ahead is None:
            self.ahead = Ahead(self.home, self._names, self.like.dtype, also)
            # A model that never hears a block leaves it to the end of its work.
            finalize(self, self.ahead.end)

    def compile(self) -> None:
        """Compile the kernels, or find them compiled, before any block."""
        self.begin_to_compile()
        if self.ahead is None:
            return
        dtype = self.like.dtype
        try:
            for name in self._names:
                compile_kernel(self.home, name, dtype)
        finally:
            self.ahead.end()
        for name, one in self.called.items():
            self.made.plan[getattr(self.rows, name), 0] = one.address(dtype)

    def put_tables(self, made: Workspace, stage: Stage, *names: str) -> None:
        """Put tables of a stage in the rows of their names."""
        for name, table in zip(names, stage.registered(*names), strict=True):
            made.put(name, table)

    def resample(self, made: Workspace, called: Mapping[str, KernelCall]) -> None:
        """Put the resampler, where there is one."""
        if "resample" in self.named:
            stage = self.named["resample"]
            self.call(made, called, "to_rate")
            self.put_tables(made, stage, "bank")
            made.plan[self.rows.down, 0] = stage.block_size
            made.plan[self.rows.taken, 0] = stage.length

    def resampled(self, workspace: Workspace, rows: int, time: int) -> int:
        """Make what the resampler needs, where there is one; samples that come after it."""
        if "resample" not in self.named:
            return time
        stage = self.named["resample"]
        past, after = stage.length - 1, int(time * stage.ratio)
        workspace.memory["resample/past"] = "before_resampling", (rows, past)
        workspace.make("to_resample", self.dtype, rows, past + time)
        workspace.make("resampled", self.dtype, rows, after)
        return after
