"""Sound to loudness in one go: the kernels of the stages, without what stands between them."""

from collections.abc import Mapping
from math import lcm, prod
from operator import is_
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from amt_stream.compose import Chain
from amt_stream.functional.banded import multiply
from amt_stream.functional.dispatch import Array, array, compilable, compiled
from amt_stream.functional.excitation import Filters, _lower_skirts, _select_components
from amt_stream.functional.fir import _fir, _fir_with_tail, _polyphase
from amt_stream.functional.group_skirts import SILENCE, Groups, _group_skirts
from amt_stream.functional.loudness import Channels, _binaural_loudness, _monaural_loudness
from amt_stream.functional.spectrum import _running_spectrum
from amt_stream.functional.threads import SMALL
from amt_stream.stages.excitation import CAM_STEP, PRODUCTS
from amt_stream.stages.loudness import (
    BINAURAL,
    BinauralLoudness,
    Glasberg2002Output,
    MonauralLoudness,
    Moore2016Output,
)
from amt_stream.stages.spectrum import HALVES, HOP
from amt_stream.streaming import Shape, Stage, State


class FusedChain(Chain):
    """`front_end`, `Excitation` and its loudness, quick at one frame a block too.

    Between short kernels torch takes longer than they do. Where no gradient is wanted, nothing is
    traced and no stage has a hook, all of it is done on arrays, by the same kernels in the same
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
            after = {k: torch.empty(v.shape, dtype=v.dtype) for k, v in state.items()}
            given = fused.run(x, state, after)
            if given is not None:
                return given, after
        return super().step(x, state)

    def advance(self, x: Tensor, state: State) -> Any:
        own = type(self).step is FusedChain.step  # else a subclass has another one
        if own and compiled(x) and not (self._forward_hooks or self._forward_pre_hooks):
            fused = _FUSED.get(self)
            if fused is not None and fused.as_made() and fused.takes(x, state, written=True):
                y = fused.run(x, state, state)
                if y is not None:
                    return y
        return super().advance(x, state)


class Room(NamedTuple):
    """Memory for what lies between the kernels, (row, ...): sound with what came before it, too."""

    of: tuple[int, int]
    resampled: Array
    at_rate: Array
    sound: Array
    slow: Array
    heard: Array
    spectrum: Array
    power: Array
    kept: Array
    density: Array
    high: Array
    low: Array


Last = tuple[Array, Array, Array]
"""Memory of the loudness: frames that still count as silence, short-term and long-term."""


class Fused:
    """What `FusedChain` runs, on the tables that its stages have now."""

    def __init__(self, stages: Mapping[str, Stage]) -> None:
        self.stages: list[Any] = list(stages.values())
        self.tables = self._tables()
        self.floats = [table for table in self.tables if table.is_floating_point()]
        named: Any = stages
        self.resample, self.ear = named.get("resample"), named["ear"]
        self.spectrum, self.excitation = named["spectrum"], named["excitation"]
        self.loudness = self.stages[-1]
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
        # Of other layouts the arrays would be copies, which do not change with the tables.
        flat = all(table.is_contiguous() for table in self.tables)
        self.serves = flat and compilable(*self.floats)
        if self.serves:
            self.places = list(map(Tensor.data_ptr, self.tables))
            self.bank = None if self.resample is None else array(self.resample.bank)
            minimum = self.ear.phase == "minimum"
            taps = ("taps", "low_pass", "tail") if minimum else ("taps",)
            self.ear_tables = _arrays(self.ear, taps)
            self.waves = _arrays(self.spectrum, ("cosine", "sine"))
            self.products = _arrays(self.excitation, PRODUCTS)
            kind: Any = Groups if self.excitation.by_groups else Filters
            self.skirts = kind(*_arrays(self.excitation, kind._fields))
            of_channels: Any = _arrays(self.loudness, Channels._fields)
            self.channels: Any = Channels(*of_channels)
            self.binaural = isinstance(self.loudness, BinauralLoudness)
            assert self.binaural or isinstance(self.loudness, MonauralLoudness)
            smoothing = BINAURAL if self.binaural else ("short_term", "long_term")
            self.smoothing = _arrays(self.loudness, smoothing)
            # Taken and given back: a model may run in several threads.
            self.rooms: list[Room] = []
            self.known: tuple[list[int], list[Tensor], dict[str, Array]] | None = None

    def _tables(self) -> list[Any]:
        return [table for stage in self.stages for table in stage._buffers.values()]

    def as_made(self) -> bool:
        """Whether the stages still have the tables that they had, where they had them.

        Tables that are shared with another process move.
        """
        now = self._tables()
        if len(now) != len(self.tables) or not all(map(is_, now, self.tables)):
            return False
        return not self.serves or list(map(Tensor.data_ptr, now)) == self.places

    def takes(self, x: Tensor, state: State, written: bool = False) -> bool:
        """Whether the kernels can take `x` and `state`, and nobody looks in between.

        written: whether `state` is to be written to as well
        """
        if not self.serves or x.dtype is not self.dtype or x.dim() < 2 or not x.numel():
            return False
        for stage in self.stages:
            if stage._forward_hooks or stage._forward_pre_hooks:
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
            if written and (not value.is_contiguous() or value.requires_grad):
                return False
        if torch.is_grad_enabled() and any(table.requires_grad for table in self.floats):
            return False
        return not x.shape[-1] % self.block_size and compiled(
            *[state[key] for key in self.sounding]
        )

    def _state_of(self, rows: Shape) -> dict[str, tuple[Shape, torch.dtype]]:
        """Shape and dtype of what the chain keeps for inputs of `rows`."""
        levels = () if self.excitation.uncertainty_db is None else (3,)
        ears = 2 if self.binaural else rows[-1]
        last = self.loudness.initial_state((*rows[:-1], *levels, ears, self.channels.gain.size))
        found = {key: (rows + shape, self.dtype) for key, shape in self.pasts.items()}
        of_last = {self.last[key]: (tuple(v.shape), v.dtype) for key, v in last.items()}
        return found | of_last

    def run(self, x: Tensor, state: State, into: State) -> Any:
        """Output of the chain; the state after is written to `into`, which may be `state`.

        None, and nothing is written, where tables were changed in place to what kernels do not
        take.
        """
        lead = tuple(x.shape[:-1])
        sound = array(x).reshape(prod(lead), -1)
        room = self._room(sound)
        running = into is state
        before = self._memory(state, sound.shape[0], running)
        after = before if running else self._memory(into, sound.shape[0], False)

        def joined(both: Array, key: str, new: Array | int) -> None:
            past = before[key]
            both[:, : past.shape[1]] = past
            both[:, past.shape[1] :] = new

        def leave(key: str, both: Array) -> None:
            last = after[key]
            last[...] = both[:, both.shape[1] - last.shape[1] :]

        if self.bank is not None:
            joined(room.resampled, "resample/past", sound)
            down = self.resample.block_size
            _polyphase(room.resampled, self.bank, down, self.resample.length, room.at_rate)
            sound = room.at_rate
        joined(room.sound, "ear/past", sound)
        if self.ear.phase == "minimum":
            joined(room.slow, "ear/slow", 0)
            _fir_with_tail(room.sound, *self.ear_tables, room.slow, room.heard)
        else:
            _fir(room.sound, *self.ear_tables, room.heard)
        joined(room.spectrum, "spectrum/past", room.heard)
        _running_spectrum(room.spectrum, *self.waves, HALVES, self.spectrum.bins, HOP, room.power)
        excitation = self._excitation(lead, room)
        if excitation is None:
            return None
        if self.bank is not None:
            leave("resample/past", room.resampled)
        leave("ear/past", room.sound)
        if self.ear.phase == "minimum":
            leave("ear/slow", room.slow)
        leave("spectrum/past", room.spectrum)
        of = self._binaural if self.binaural else self._monaural
        y = of(excitation, *((m["before"], m["short"], m["long"]) for m in (before, after)))
        if x.numel() <= SMALL:
            self.rooms.append(room)
        return y

    def _memory(self, state: State, rows: int, running: bool) -> dict[str, Array]:
        """The memory of `state`, (row, ...), that of a `running` stream without asking again."""
        known = self.known if running else None
        values = list(state.values())
        places = list(map(Tensor.data_ptr, values))
        if known is not None and known[0] == places and all(map(is_, values, known[1])):
            return known[2]
        last = {key: array(state[name]) for key, name in self.last.items()}
        channels = last["short"].shape[-1]
        found = {key: array(state[key]).reshape(rows, -1) for key in self.pasts} | {
            "before": last["before"].reshape(-1),
            "short": last["short"].reshape(-1, channels),
            "long": last["long"].reshape(-1, 1 if self.binaural else 2),
        }
        if running:
            self.known = places, values, found
        return found

    def _room(self, sound: Array) -> Room:
        """For (row, time) of sound: the last one, or a new one."""
        try:
            room = self.rooms.pop()
            if room.of == sound.shape:
                return room
        except IndexError:
            pass
        rows, time = sound.shape
        if self.resample is not None:
            time = int(time * self.resample.ratio)
        past = {key: shape[-1] for key, shape in self.pasts.items()}
        frames, levels = time // HOP, 1 if self.excitation.uncertainty_db is None else 3
        channels = self.channels.gain.size
        slow = past.get("ear/slow", 0) + time // self.ear.block_size
        nodes = self.excitation.nodes
        shapes = (
            (rows, past.get("resample/past", 0) + sound.shape[1]),
            (rows, time),
            (rows, past["ear/past"] + time),
            (rows, slow),
            (rows, time),
            (rows, past["spectrum/past"] + time),
            (rows, frames, sum(self.spectrum.bins)),
            (rows, frames, sum(self.spectrum.bins)),
            (rows * frames, nodes),
            (rows * frames, channels),
            (levels * rows * frames, channels),
        )
        return Room(sound.shape, *(np.empty(shape, sound.dtype) for shape in shapes))

    def _excitation(self, lead: Shape, room: Room) -> Array | None:
        """As `Excitation` gives it; None where a table does not fit."""
        ears = lead[-1] if self.excitation.selection == "binaural" else 1
        _, frames, components = room.power.shape
        listeners = (-1, ears, frames, components)
        _select_components(room.power.reshape(listeners), room.kept.reshape(listeners))
        kept = room.kept.reshape(-1, components)
        levels, levels_blocks, upper, upper_blocks = self.products
        fit = multiply(kept, levels, levels_blocks, room.density)
        fit = fit and multiply(kept, upper, upper_blocks, room.high)
        uncertainty = self.excitation.uncertainty_db
        if uncertainty is None:
            fit = fit and self._lower(kept, room.density, 0.0, room.low)
            np.add(room.low, room.high, out=room.low)
            return room.low.reshape(*lead, frames, -1) if fit else None
        # For each listener the levels come before the ears.
        parts = prod(lead[:-1])
        low = room.low.reshape(parts, 3, lead[-1] * frames, -1)
        apart = (v.reshape(parts, lead[-1] * frames, -1) for v in (kept, room.density, room.high))
        for part, density, high, all_levels in zip(*apart, low, strict=True):
            for db, skirts in zip((-uncertainty, 0.0, uncertainty), all_levels, strict=True):
                fit = fit and self._lower(part, density, db, skirts)
                skirts += high
                skirts *= 10 ** (db / 10)
        return low.reshape(*lead[:-1], 3, lead[-1], frames, -1) if fit else None

    def _lower(self, kept: Array, density: Array, db: float, skirts: Array) -> bool:
        if self.excitation.by_groups:
            return bool(_group_skirts(kept, density, self.skirts, db, skirts))
        level = torch.log10(torch.from_numpy(density).clamp(min=SILENCE)).mul_(10)
        level = level + db if db else level
        return bool(_lower_skirts(kept, level.numpy(), *self.skirts, skirts))

    def _binaural(self, excitation: Array, before: Last, after: Last) -> Moore2016Output:
        shape = excitation.shape
        specific = np.empty_like(excitation)
        stl_ears, ltl_ears = (np.empty(shape[:-1], excitation.dtype) for _ in range(2))
        ears = (-1, *shape[-3:-1])
        _binaural_loudness(
            excitation.reshape(*ears, shape[-1]),
            self.channels,
            *self.smoothing[:2],
            CAM_STEP,
            *self.smoothing[2:],
            *before,
            specific.reshape(*ears, shape[-1]),
            stl_ears.reshape(ears),
            ltl_ears.reshape(ears),
            *after[1:],
        )
        np.maximum(before[0] - shape[-2], 0, out=after[0])
        y: Moore2016Output = self.loudness.given(
            *map(torch.from_numpy, (excitation, specific)), *_of_both(stl_ears, ltl_ears)
        )
        return y

    def _monaural(self, excitation: Array, before: Last, after: Last) -> Glasberg2002Output:
        *rows, ears, frames, channels = excitation.shape
        stl_ears, ltl_ears = (np.empty((*rows, 2, frames), excitation.dtype) for _ in range(2))
        _monaural_loudness(
            excitation.reshape(-1, ears, frames, channels),
            self.channels,
            CAM_STEP,
            *self.smoothing,
            *before,
            stl_ears.reshape(-1, 2, frames),
            ltl_ears.reshape(-1, 2, frames),
            *after[1:],
        )
        np.maximum(before[0] - frames, 0, out=after[0])
        return Glasberg2002Output(*_of_both(stl_ears, ltl_ears))


def _of_both(stl_ears: Array, ltl_ears: Array) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Loudness of both ears together and of each, as outputs hold them."""
    frames, rows = stl_ears.shape[-1], stl_ears.shape[:-2]
    sums = [np.empty((*rows, frames), stl_ears.dtype) for _ in range(2)]
    for ears, y in zip((stl_ears, ltl_ears), sums, strict=True):
        flat = ears.reshape(-1, 2, frames)
        np.add(flat[:, 0], flat[:, 1], out=y.reshape(-1, frames))
    stl, ltl, *each = map(torch.from_numpy, (*sums, stl_ears, ltl_ears))
    return stl, ltl, each[0], each[1]


def _arrays(stage: Stage, names: Any) -> list[Array]:
    return [array(table) for table in stage.registered(*names)]


_FUSED: WeakKeyDictionary[FusedChain, Fused] = WeakKeyDictionary()
