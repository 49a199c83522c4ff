"""Stages as one or two compiled calls on a plan, without torch between the kernels."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from math import prod
from operator import is_
from typing import Any, ClassVar, NamedTuple
from weakref import finalize

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.compose import Chain
from amt_stream.dsp.functional.compiler import private_torch
from amt_stream.dsp.functional.compiler.ahead import Ahead, compile_kernel
from amt_stream.dsp.functional.compiler.call_table import WIDTH, KernelCall
from amt_stream.dsp.functional.compiler.dispatch import compilable, compiled
from amt_stream.dsp.functional.compiler.threads import SMALL
from amt_stream.dsp.stream import SHAPES, Shortcut
from amt_stream.dsp.streaming import Outputs, Shape, Stage, State

TOGETHER = 32768
"""Most bytes of outputs that are allocated together."""

FEW = 4
"""So many kernels compile sooner than a second process starts."""


class FusedStage(Stage):
    """A stage that is also fast with one frame per block; a subclass defines `unfused_step`.

    Torch's overhead between short kernels exceeds their run time. If no gradient is needed, nothing
    is traced and no part has a hook, one or two compiled calls run the same kernels in the same
    order; the results are bit-identical to those of `unfused_step`.

    fused: the class that runs it
    """

    fused: ClassVar[type["Fused"]]

    _fused: "Fused | None" = None
    _begun: "Fused | None" = None
    """The instance whose kernels a second process compiles, until the first block."""

    def unfused_step(self, x: Tensor, state: State) -> tuple[Outputs, State]:
        """`step` by functions of tensors, one after the other."""
        raise NotImplementedError(f"{type(self).__name__} must define unfused_step(x, state)")

    def parts(self) -> Mapping[str, Any]:
        """The stages that the plan runs, by the names that begin the keys of their state."""
        return {"": self}

    def __getstate__(self) -> dict[str, Any]:
        # A copy has its own tables.
        return {**vars(self), "_fused": None, "_begun": None}

    def as_fused(self) -> "Fused":
        """A new instance that runs the stage with its present tables."""
        return self.fused(self, self.parts())

    def _as_made(self) -> "Fused | None":
        """The instance that runs the stage, if its parts still have the tables it was made for."""
        fused = self._fused
        # Torch's replicas share the attributes but not the parts.
        if fused is None or fused.of is not private_torch.members_of(self):
            return None
        return fused if fused.as_made() else None

    def step(self, x: Tensor, state: State) -> tuple[Outputs, State]:
        # First, because a traced or transformed tensor has no memory to read.
        if not compiled(x):
            return self.unfused_step(x, state)
        fused = self._as_made()
        if fused is None:
            new, self._begun = self._begun, None
            if new is None or new.of is not private_torch.members_of(self) or not new.as_made():
                new = self.as_fused()
            new.compile()
            # The parts process this block, and raise if their tables do not fit.
            y = self.unfused_step(x, state)
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
        return self.unfused_step(x, state)

    def begin_to_compile(self, *also: str) -> None:
        """Start a second process that compiles the kernels before the first block.

        also: functions that it calls first, see `Ahead`
        """
        self._begun = self.as_fused()
        self._begun.begin_to_compile(*also)

    def advance(self, x: Tensor, state: State) -> Outputs:
        own = type(self).step is FusedStage.step  # else a subclass has another one
        fused = self._as_made() if own and compilable(x) else None
        if fused is not None and not any(fused.hooks) and not private_torch.hooked(self):
            y = fused.process(x, state)
            if y is not None:
                return y
        return super().advance(x, state)

    def shortcut(
        self, x: Tensor, state: State, buffers: Mapping[str, Tensor | None], hooks: Sequence[Any]
    ) -> Shortcut | None:
        own = type(self).step is FusedStage.step
        fused = self._as_made() if own and compilable(x) else None
        pool = fused.workspaces.get(x.shape, []) if fused is not None else []
        last = pool[-1:]
        if fused is None or not last or not last[0].holds(state) or len(buffers) != len(state):
            return None
        hooks = [*hooks, *fused.hooks, *private_torch.forward_hooks(self)[:2]]
        return Shortcut(fused, self, pool, state, buffers, hooks)


class FusedChain(FusedStage, Chain):
    """A chain whose stages run together."""

    unfused_step = Chain.step
    parts = Chain.stages


class PlanOnly(FusedStage):
    """A stage for programs without Python, which runs here to be compared with them."""

    def unfused_step(self, x: Tensor, state: State) -> tuple[Outputs, State]:
        fused, after = self.as_fused(), {key: value.clone() for key, value in state.items()}
        fused.compile()
        return fused.process(x, after), after


class HostOutput(NamedTuple):
    """An output, with time on its last axis, for programs that run the plan without Python.

    labels: names of the places on the axes before it, if they are not channels or ears
    """

    name: str
    unit: str
    labels: tuple[tuple[str, ...], ...] = ()


class Workspace:
    """Memory for blocks of one shape, and the plan with the address and shape of each array.

    rows: of the plan, by name
    sound: the row of the input
    arrays: allocated for it
    memory: state by its key: its row and its shape there
    outputs: shapes of the outputs
    given: the rows of the plan for them, as bytes
    allocated: outputs of the next blocks, each with its rows, the last one first
    pool: where it waits between blocks, unless they are too large
    owner: token of the shortcut whose state is in the plan
    """

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self.plan = np.zeros((len(rows), WIDTH), np.int64)
        self.sound = self.plan[rows.given]
        self.arrays: dict[str, Tensor] = {}
        self.memory: dict[str, tuple[str, Shape]] = {}
        self.outputs: tuple[Shape, ...] = ()
        self.allocated: list[tuple[tuple[Tensor, ...], bytes]] = []
        self.given = memoryview(b"")
        self.pool: list[Workspace] | None = None
        self.owner: object = None
        self.state: list[Tensor] = []
        self.places: list[int] = []

    def put(self, name: str, x: Tensor, *shape: int) -> None:
        """Write into the plan the address of contiguous `x`, with this shape or its own."""
        sizes = shape or x.shape
        self.plan[getattr(self.rows, name), : 1 + len(sizes)] = x.data_ptr(), *sizes

    def expect(self, name: str, *shape: int) -> None:
        """Write into the plan the shape of an array whose address follows later."""
        self.plan[getattr(self.rows, name), : 1 + len(shape)] = 0, *shape

    def make(self, name: str, dtype: torch.dtype, *shape: int) -> Tensor:
        """Allocate an array and put it into the plan."""
        with torch.inference_mode(False):  # an inference tensor is writable only in that mode
            return self.keep(name, torch.empty(shape, dtype=dtype))

    def keep(self, name: str, x: Tensor) -> Tensor:
        """Put into the plan an array that nothing else keeps."""
        self.arrays[name] = x
        self.put(name, x)
        return x

    def holds(self, state: State) -> bool:
        """Whether the plan has the present addresses of this state."""
        values = list(state.values())
        return list(map(Tensor.data_ptr, values)) == self.places and all(
            map(is_, values, self.state)
        )

    def remember(self, state: State) -> None:
        """Write the addresses of `state` into the plan."""
        self.owner = None
        for key, (name, shape) in self.memory.items():
            self.put(name, state[key], *shape)
        self.state = list(state.values())
        self.places = list(map(Tensor.data_ptr, self.state))


class Fused:
    """Runs a `FusedStage` on the present tables of its parts.

    home: the module of its kernels
    kernels: names of the kernels that take the plan
    rows: of the plan, by name
    axes: least number of axes of the input
    first_output: the row of the first output; the others follow
    host_outputs: those that programs without Python get, the first ones of all
    output: the type of the output, whose fields are in the order of the rows
    gives: whether the last kernel returns a bool, True if the tables fit
    """

    home: ClassVar[str]
    kernels: tuple[str, ...]
    rows: Any
    axes = 1
    first_output: str
    host_outputs: tuple[HostOutput, ...]
    output: Any
    gives: ClassVar[bool] = False

    def __init__(self, whole: Stage, parts: Mapping[str, Any]) -> None:
        self.of = private_torch.members_of(whole)
        self.named = parts
        *_, last = parts.values()
        self.block_size, self.dtype = whole.block_size, last.dtype
        stages = [stage for part in parts.values() for stage in part.modules()]
        self.buffers = [private_torch.buffers_of(stage) for stage in stages]
        # Those that would see intermediate results; the hooks of the whole run around a step.
        inner = [one for one in stages if one is not whole]
        self.hooks = [hooks for one in inner for hooks in private_torch.forward_hooks(one)[:2]]
        self.tables = self._tables()
        self.floats = [table for table in self.tables if table.is_floating_point()]
        self.states: dict[Shape, dict[str, tuple[Shape, torch.dtype]]] = {}
        # In another layout the arrays would be copies, which miss changes of the tables.
        flat = all(table.is_contiguous() for table in self.tables)
        self.serves = flat and compilable(*self.floats)
        if self.serves:
            self.places = list(map(Tensor.data_ptr, self.tables))
            self.like = torch.empty(0, dtype=self.dtype).numpy()
            # A pool for each shape, because a model may run in several threads.
            self.workspaces: dict[Shape, list[Workspace]] = {}
            # The constant part of a plan.
            self.made = Workspace(self.rows)
            self.called: dict[str, KernelCall] = {}
            self.make(self.made)
            self.entry: Any = getattr(sys.modules[self.home], self.kernels[-1])
            self.ahead: Ahead | None = None

    def make(self, made: Workspace) -> None:
        """Put kernels, tables and constants into the plan."""
        raise NotImplementedError

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        """Allocate the arrays for a block of shape (*lead, time)."""
        raise NotImplementedError

    def run(self, workspace: Workspace) -> Outputs:
        """The output for the planned input; None, with no state written, if a table is unfit."""
        y = self.outputs(workspace)
        self.entry(workspace.plan, self.like)
        return tuple.__new__(self.output, y)  # the class itself takes twice as long

    def suits(self, lead: Shape) -> bool:
        """Whether the kernels take inputs of this shape (without time)."""
        return True

    def _tables(self) -> list[Any]:
        return list(chain.from_iterable(map(dict.values, self.buffers)))

    def as_made(self) -> bool:
        """Whether the parts still have the same tables at the same addresses.

        Sharing tables with another process moves them.
        """
        now = self._tables()
        if len(now) != len(self.tables) or not all(map(is_, now, self.tables)):
            return False
        return not self.serves or list(map(Tensor.data_ptr, now)) == self.places

    def takes(self, x: Tensor, state: State) -> bool:
        """Whether the kernels can take `x` and `state`, and no hook or gradient interferes."""
        if not self.serves or x.dtype is not self.dtype or x.dim() < self.axes or not x.numel():
            return False
        if any(self.hooks) or x.shape[-1] % self.block_size:
            return False
        lead = tuple(x.shape[:-1])
        kept = self.states.get(lead)
        if kept is None:
            self.states = {lead: (kept := {})}
            for name, stage in self.named.items() if self.suits(lead) else ():
                for key, value in stage.initial_state(lead).items():
                    kept[f"{name}/{key}" if name else key] = tuple(value.shape), value.dtype
                lead = stage.out_shape(lead)
        if not kept or len(kept) != len(state):
            return False
        for key, (shape, dtype) in kept.items():
            value = state[key]
            if value.shape != shape or value.dtype is not dtype or not value.is_cpu:
                return False
        if torch.is_grad_enabled() and any(table.requires_grad for table in self.floats):
            return False
        return compiled(*[state[key] for key, (_, of) in kept.items() if of.is_floating_point])

    def process(self, x: Tensor, state: State) -> Any:
        """The output of the stage; updates `state` in place.

        Returns None, and writes nothing, if the kernels do not apply, for example if a table was
        changed in place to unfit values. The caller handles hooks and gradients.
        """
        workspace = self.planned(x, state)
        return None if workspace is None else self.processed(x, workspace)

    def processed(self, x: Tensor, workspace: Workspace) -> Outputs:
        """The output for `x` in a workspace for its shape and state; None as `process` does."""
        if x.is_neg() or not x.is_contiguous():
            x = x.resolve_neg().contiguous()
        workspace.sound[0] = x.data_ptr()
        y = self.run(workspace)
        if y is not None and workspace.pool is not None:
            workspace.pool.append(workspace)
        return y

    def planned(self, x: Tensor, state: State) -> Workspace | None:
        """A pooled or new workspace for this block and state; None if the kernels do not apply."""
        known = self.serves and x.dtype is self.dtype
        found: Workspace | None = None
        if known:
            with suppress(LookupError):  # another thread has it, or blocks are too large
                found = self.workspaces[x.shape].pop()
        if found is None:
            if not self.takes(x, state):
                return None
            found = Workspace(self.rows)
            found.plan[...] = self.made.plan
            found.expect("given", prod(x.shape[:-1]), x.shape[-1])
            self.allocate(found, tuple(x.shape[:-1]), x.shape[-1], state)
            if x.numel() <= SMALL:
                if x.shape not in self.workspaces and len(self.workspaces) >= SHAPES:
                    self.workspaces = {}
                found.pool = self.workspaces.setdefault(x.shape, [])
        if not found.holds(state):
            flat = all(map(Tensor.is_contiguous, state.values()))
            if not flat or not self.takes(x, state):
                return None
            found.remember(state)
        return found

    def outputs(self, workspace: Workspace) -> tuple[Tensor, ...]:
        """New output tensors, with their addresses in the plan."""
        if not workspace.allocated:
            self._allocate_outputs(workspace)
        y, workspace.given[:] = workspace.allocated.pop()
        return y

    def _allocate_outputs(self, workspace: Workspace) -> None:
        """Allocate outputs of the next blocks, of several if they are short: it takes less time."""
        shapes = workspace.outputs
        sizes = [self.like.itemsize * prod(shape) for shape in shapes]
        count = max(1, min(64, TOGETHER // sum(sizes)))
        # Not by views, which count changes in place together; an inference tensor would be one also
        # outside that mode.
        with torch.inference_mode(False):
            each = [
                torch.empty((count * n, *rest), dtype=self.dtype).unsafe_split_with_sizes(
                    [n] * count
                )
                for n, *rest in shapes
            ]
        first = getattr(self.rows, self.first_output)
        given = workspace.plan[first : first + len(shapes)]
        rows = np.repeat(given[None], count, 0)
        rows[..., 0] = np.arange(count)[:, None] * sizes + [v[0].data_ptr() for v in each]
        workspace.given = given.data.cast("B")
        of_blocks = rows.reshape(count, -1).view(f"V{given.nbytes}")[:, 0].tolist()
        workspace.allocated = [*zip(zip(*each, strict=True), of_blocks, strict=True)][::-1]

    def call(self, made: Workspace, called: Mapping[str, KernelCall], *names: str) -> None:
        """Add these kernels; `compile` puts their addresses into the plan."""
        self.called |= {name: called[name] for name in names}

    @property
    def _names(self) -> list[str]:
        return [*self.called, *(f".{name}" for name in self.kernels)]

    def begin_to_compile(self, *also: str) -> None:
        """Start a second process that compiles kernels, if there are many; `compile` ends it."""
        if self.serves and self.ahead is None and len(self._names) > FEW:
            self.ahead = Ahead(self.home, self._names, self.like.dtype, also)
            # If the model never gets a block, the process runs to its end.
            finalize(self, self.ahead.end)

    def compile(self) -> None:
        """Compile the kernels, or load them from the cache."""
        if not self.serves:
            return
        self.begin_to_compile()
        dtype = self.like.dtype
        try:
            for name in self._names:
                compile_kernel(self.home, name, dtype)
        finally:
            if self.ahead is not None:
                self.ahead.end()
        for name, one in self.called.items():
            self.made.plan[getattr(self.rows, name), 0] = one.address(dtype)

    def put_tables(self, made: Workspace, stage: Stage, *names: str) -> None:
        """Put tables of a stage into the rows of the same names."""
        for name, table in zip(names, stage.registered(*names), strict=True):
            made.put(name, table)

    def resample(self, made: Workspace, called: Mapping[str, KernelCall]) -> None:
        """Put the resampler into the plan, if there is one."""
        if "resample" in self.named:
            stage = self.named["resample"]
            self.call(made, called, "to_rate")
            self.put_tables(made, stage, "bank")
            made.plan[self.rows.down, 0] = stage.block_size
            made.plan[self.rows.taken, 0] = stage.length

    def resampled(self, workspace: Workspace, rows: int, time: int) -> int:
        """Allocate for the resampler, if there is one; returns the number of resampled samples."""
        if "resample" not in self.named:
            return time
        stage = self.named["resample"]
        past, after = stage.length - 1, int(time * stage.ratio)
        workspace.memory["resample/past"] = "before_resampling", (rows, past)
        workspace.make("to_resample", self.dtype, rows, past + time)
        workspace.make("resampled", self.dtype, rows, after)
        return after
