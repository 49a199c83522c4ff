"""Sound to loudness in one go: the kernels of the stages, without what stands between them."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from math import lcm, prod
from operator import is_
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from amt_stream.compose import Chain
from amt_stream.functional.by_address import WIDTH
from amt_stream.functional.component_loudness import AT, CALLED, to_density, to_loudness
from amt_stream.functional.dispatch import Array, compilable, compiled
from amt_stream.functional.excitation import Filters
from amt_stream.functional.group_skirts import SILENCE, Groups
from amt_stream.functional.loudness import Channels
from amt_stream.functional.threads import SMALL
from amt_stream.stages.excitation import CAM_STEP, PRODUCTS
from amt_stream.stages.loudness import BINAURAL, BinauralLoudness, Glasberg2002Output
from amt_stream.stages.spectrum import HALVES, HOP
from amt_stream.streaming import Shape, Stage, State


class FusedChain(Chain):
    """`front_end`, `Excitation` and its loudness, quick at one frame a block too.

    Between short kernels torch takes longer than they do. Where no gradient is wanted, nothing is
    traced and no stage has a hook, two compiled calls do all of it, by the same kernels in the same
    order: the numbers are those of the stages one by one, bit for bit.
    """

    def step(self, x: Tensor, state: State) -> tuple[Any, State]:
        # Asked before all else: what is traced or transformed has no memory to look at.
        if not compiled(x):
            return super().step(x, state)
        fused = _FUSED.get(self)
        if fused is None or not fused.as_made():
            # This block by the stages, which refuse tables that do not fit.
            y = super().step(x, state)
            _FUSED[self] = Fused(self.stages())
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
        if own and compiled(x) and not (self._forward_hooks or self._forward_pre_hooks):
            fused = _FUSED.get(self)
            if fused is not None and fused.as_made():
                y = fused.run(x, state)
                if y is not None:
                    return y
        return super().advance(x, state)


class Room:
    """Memory for a block of one shape, and the plan of what lies where."""

    def __init__(self, shape: torch.Size) -> None:
        self.shape = shape
        self.plan = np.zeros((len(AT), WIDTH), np.int64)
        self.arrays: dict[str, Tensor] = {}
        self.outputs: tuple[Shape, ...] = ()
        self.full: Shape = ()
        self.keys: list[str] = []
        self.state: list[Tensor] = []
        self.places: list[int] = []

    def put(self, name: str, x: Tensor, *shape: int) -> None:
        """Write in the plan where `x`, contiguous, lies, as an array of that shape or its own."""
        sizes = shape or x.shape
        self.plan[getattr(AT, name), : 1 + len(sizes)] = x.data_ptr(), *sizes

    def make(self, name: str, dtype: torch.dtype, *shape: int) -> Tensor:
        """A new array in the plan."""
        x = torch.empty(shape, dtype=dtype)
        self.arrays[name] = x
        self.put(name, x)
        return x


class Fused:
    """What `FusedChain` runs, on the tables that its stages have now."""

    def __init__(self, stages: Mapping[str, Stage]) -> None:
        self.stages: list[Any] = list(stages.values())
        self.buffers = [stage._buffers for stage in self.stages]
        self.hooks = [
            hooks
            for stage in self.stages
            for hooks in (stage._forward_hooks, stage._forward_pre_hooks)
        ]
        self.tables = self._tables()
        self.floats = [table for table in self.tables if table.is_floating_point()]
        named: Any = stages
        self.resample, self.ear = named.get("resample"), named["ear"]
        self.spectrum, self.excitation = named["spectrum"], named["excitation"]
        self.loudness = self.stages[-1]
        self.binaural = isinstance(self.loudness, BinauralLoudness)
        self.dtype = self.ear.dtype
        self.block_size = HOP
        if self.resample is not None:
            self.block_size = int(lcm(HOP, self.resample.ratio.numerator) / self.resample.ratio)
        # As a state of silence has them, without the rows.
        self.pasts: dict[str, Shape] = {
            f"{name}/{key}": tuple(value.shape)
            for name, stage in zip(stages, self.stages[:-2], strict=False)
            for key, value in stage.initial_state(()).items()
        }
        self.last = {key: f"{list(stages)[-1]}/{key}" for key in ("before", "short", "long")}
        self.sounding = [*self.pasts, self.last["short"], self.last["long"]]
        self.states: dict[Shape, dict[str, tuple[Shape, torch.dtype]]] = {}
        uncertainty = self.excitation.uncertainty_db
        self.shifts = (0.0,) if uncertainty is None else (-uncertainty, 0.0, uncertainty)
        # Of other layouts the arrays would be copies, which do not change with the tables.
        flat = all(table.is_contiguous() for table in self.tables)
        self.serves = flat and compilable(*self.floats)
        if self.serves:
            self.places = list(map(Tensor.data_ptr, self.tables))
            self.like = torch.empty(0, dtype=self.dtype).numpy()
            self.made = self._made()
            # Taken and given back: a model may run in several threads.
            self.rooms: list[Room] = []

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
        if not self.serves or x.dtype is not self.dtype or x.dim() < 2 or not x.numel():
            return False
        if any(self.hooks):
            return False
        rows = tuple(x.shape[:-1])
        kept = self.states.get(rows)
        if kept is None:
            kept = self._state_of(rows)
            self.states = {rows: kept}
        if len(kept) != len(state):
            return False
        for key, (shape, dtype) in kept.items():
            value = state[key]
            if value.shape != shape or value.dtype is not dtype or not value.is_cpu:
                return False
        if torch.is_grad_enabled() and any(table.requires_grad for table in self.floats):
            return False
        return not x.shape[-1] % self.block_size and compiled(
            *[state[key] for key in self.sounding]
        )

    def _state_of(self, rows: Shape) -> dict[str, tuple[Shape, torch.dtype]]:
        """Shape and dtype of what the chain keeps for inputs of `rows`."""
        levels = () if len(self.shifts) == 1 else (len(self.shifts),)
        ears, channels = 2 if self.binaural else rows[-1], self.excitation.fc.shape[0]
        last = self.loudness.initial_state((*rows[:-1], *levels, ears, channels))
        found = {key: (rows + shape, self.dtype) for key, shape in self.pasts.items()}
        of_last = {self.last[key]: (tuple(v.shape), v.dtype) for key, v in last.items()}
        return found | of_last

    def run(self, x: Tensor, state: State) -> Any:
        """Output of the chain; `state` itself is what it is after the block.

        None, and nothing is written, where the kernels do not serve, for tables that were changed
        in place to what they do not take, too.
        """
        room = self._room(x, state)
        if room is None:
            return None
        x = x.resolve_neg().contiguous()
        plan = room.plan
        plan[AT.given, 0] = x.data_ptr()
        number = self.like.dtype
        y = [torch.from_numpy(np.empty(shape, number)) for shape in room.outputs]
        plan[AT.stl :, 0] = list(map(Tensor.data_ptr, y))
        wanted = self._wanted(room)
        fits = to_density(plan, self.like)
        if fits and not self.excitation.by_groups:
            self._told(room)
        if not (fits and to_loudness(plan, self.like)):
            return None
        if x.numel() <= SMALL:
            self.rooms.append(room)
        return self.loudness.given(*wanted, *y) if self.binaural else Glasberg2002Output(*y)

    def _room(self, x: Tensor, state: State) -> Room | None:
        """The last one or a new one, for such a block and this state; None where none serves."""
        room = None
        if self.serves:
            with suppress(IndexError):  # another thread may have taken it meanwhile
                room = self.rooms.pop()
        if room is None or room.shape != x.shape or x.dtype is not self.dtype:
            if not self.takes(x, state):
                return None
            room = self._new(x)
        elif any(self.hooks):
            return None
        values = list(state.values())
        places = list(map(Tensor.data_ptr, values))
        if (
            torch.is_grad_enabled()
            or places != room.places
            or not all(map(is_, values, room.state))
            or list(state) != room.keys
        ):
            if not self.takes(x, state) or not all(map(Tensor.is_contiguous, values)):
                return None
            self._remember(room, state)
        return room

    def _made(self) -> Array:
        """The part of a plan that does not change: kernels, tables and numbers."""
        made = Room(torch.Size())
        number, of_ear = self.like.dtype, ["taps"]
        kernels = ["to_spectrum", "to_kept", "to_density", "to_high", "to_shifted", "to_end"]
        if self.resample is not None:
            kernels.append("to_rate")
            made.put("bank", self.resample.bank)
            made.plan[AT.down, 0] = self.resample.block_size
            made.plan[AT.taken, 0] = self.resample.length
        if self.ear.phase == "minimum":
            kernels.append("through_ear_with_tail")
            of_ear += ["low_pass", "tail"]
        else:
            kernels.append("through_ear")
        made.plan[AT.hop, 0] = HOP
        self.windows = torch.tensor(HALVES), torch.tensor(self.spectrum.bins)
        made.put("halves", self.windows[0])
        made.put("bins", self.windows[1])
        filters = Groups if self.excitation.by_groups else Filters
        kernels.append("by_groups" if self.excitation.by_groups else "one_by_one")
        smoothing = BINAURAL if self.binaural else ("short_term", "long_term")
        kernels.append("to_binaural" if self.binaural else "to_monaural")
        for stage, names in (
            (self.ear, of_ear),
            (self.spectrum, ("cosine", "sine")),
            (self.excitation, (*PRODUCTS, *filters._fields)),
            (self.loudness, (*Channels._fields, *smoothing)),
        ):
            for name, table in zip(names, stage.registered(*names), strict=True):
                made.put(name, table)
        for name in kernels:
            made.plan[getattr(AT, name), 0] = CALLED[name].address(number)
        shifts = [self.shifts, [10 ** (db / 10) for db in self.shifts]]
        self.shifted = torch.tensor(shifts, dtype=torch.float64)
        self.step = torch.tensor(CAM_STEP, dtype=torch.float64)
        made.put("shifts", self.shifted)
        made.put("step", self.step)
        return made.plan

    def _new(self, x: Tensor) -> Room:
        """For blocks as `x`."""
        room, lead, given = Room(x.shape), tuple(x.shape[:-1]), x.shape[-1]
        room.plan[...] = self.made
        rows, shifts, ears = prod(lead), len(self.shifts), lead[-1]
        time = given if self.resample is None else int(given * self.resample.ratio)
        frames, components = time // HOP, sum(self.spectrum.bins)
        nodes, channels = self.excitation.nodes, self.excitation.fc.shape[0]
        past = {key: shape[-1] for key, shape in self.pasts.items()}

        def make(name: str, *shape: int) -> Tensor:
            return room.make(name, self.dtype, *shape)

        room.put("given", x.new_empty(0), rows, given)
        room.put("nothing", x.new_empty(0), rows, 0)
        if self.resample is not None:
            make("to_resample", rows, past["resample/past"] + given)
            make("resampled", rows, time)
        make("to_ear", rows, past["ear/past"] + time)
        if self.ear.phase == "minimum":
            make("to_tail", rows, past["ear/slow"] + time // self.ear.block_size)
        make("heard", rows, time)
        make("to_transform", rows, past["spectrum/past"] + time)
        # Components are compared with those of which ears: of both, or of the same.
        seen = ears if self.excitation.selection == "binaural" else 1
        compared = (rows // seen, seen, frames, components)
        room.put("seen", make("power", rows, frames, components), *compared)
        parts = 1 if shifts == 1 else rows // ears
        lines = rows // parts * frames
        room.put("seen_kept", make("kept", parts, lines, components), *compared)
        room.put("all_kept", room.arrays["kept"], parts * lines, components)
        room.put("all_density", make("density", parts, lines, nodes), parts * lines, nodes)
        if not self.excitation.by_groups:
            make("level", parts * shifts, lines, nodes)
        room.put("all_high", make("high", parts, lines, channels), parts * lines, channels)
        listeners = rows // ears * shifts
        low = make("low", parts * shifts, lines, channels)
        room.put("excitation", low, listeners, ears, frames, channels)
        if self.binaural:
            make("specific", listeners, ears, frames, channels)
        each = (*lead[:-1], *((shifts,) if shifts > 1 else ()))
        room.outputs = (*((*each, frames),) * 2, *((*each, 2, frames),) * 2)
        for name in ("stl", "ltl"):
            room.put(name, x.new_empty(0), listeners, frames)
            room.put(f"{name}_ears", x.new_empty(0), listeners, 2, frames)
        room.full = (*each, ears, frames, channels)
        return room

    def _remember(self, room: Room, state: State) -> None:
        """Have the state of the block where `state` keeps it."""
        for key, name in PASTS.items():
            if key in self.pasts:
                room.put(name, state[key], prod(room.shape[:-1]), self.pasts[key][-1])
        before, short, long = (state[key] for key in self.last.values())
        room.put("before", before, before.numel())
        # Of both ears together for their own coefficients, or of each by itself.
        lines = (short.shape[-1], 1) if self.binaural else (2, 2)
        for name, value, length in zip(("short", "long"), (short, long), lines, strict=True):
            room.put(name, value, value.numel() // length, length)
        room.keys, room.state = list(state), list(state.values())
        room.places = list(map(Tensor.data_ptr, room.state))

    def _told(self, room: Room) -> None:
        """Levels per ERB in dB of what is taken component by component."""
        density, level = room.arrays["density"], room.arrays["level"].numpy()
        told = torch.log10(density.clamp(min=SILENCE)).mul_(10)
        apart = level.reshape(-1, len(self.shifts), *density.shape[1:])
        for k, db in enumerate(self.shifts):
            apart[:, k] = (told + db if db else told).numpy()

    def _wanted(self, room: Room) -> tuple[Tensor | None, Tensor | None]:
        """Memory for the excitation and for specific loudness, where they are given."""
        if not self.binaural:
            return None, None
        excitation = specific = None
        if self.loudness.gives_excitation_db:
            excitation = torch.empty(room.full, dtype=self.dtype)
            room.plan[[AT.low, AT.excitation], 0] = excitation.data_ptr()
        if self.loudness.gives_specific_loudness:
            specific = torch.empty(room.full, dtype=self.dtype)
            room.plan[AT.specific, 0] = specific.data_ptr()
        return excitation, specific


PASTS = {
    "resample/past": "before_resampling",
    "ear/past": "before_ear",
    "ear/slow": "before_tail",
    "spectrum/past": "before_spectrum",
}
"""State of the stages, by its row in a plan."""

_FUSED: WeakKeyDictionary[FusedChain, Fused] = WeakKeyDictionary()
