"""Sound to excitation in one go: the kernels of the stages, without what stands between them."""

from collections.abc import Mapping
from fractions import Fraction
from math import prod
from operator import is_
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from amt_stream.compose import Chain
from amt_stream.functional.banded import multiply
from amt_stream.functional.dispatch import Array, array, compilable, compiled
from amt_stream.functional.excitation import _select_components
from amt_stream.functional.fir import _fir, _fir_with_tail, _polyphase
from amt_stream.functional.group_skirts import Groups, _group_skirts
from amt_stream.functional.spectrum import _running_spectrum
from amt_stream.stages.excitation import PRODUCTS
from amt_stream.stages.spectrum import HALVES, HOP
from amt_stream.streaming import Shape, Stage, State


class FusedChain(Chain):
    """`front_end`, `Excitation` and one stage more, quick at one frame a block too.

    Between short kernels torch takes longer than they do. Where no gradient is wanted, nothing is
    traced and no stage has a hook, all up to the excitation is one call on arrays, of the same
    kernels in the same order: the numbers are those of the stages one by one, bit for bit.
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
        if not fused.takes(x, state):
            return super().step(x, state)
        found = fused.excite(x, state)
        if found is None:
            return super().step(x, state)
        excitation, after = found
        name = self._names[-1] + "/"
        own = {key[len(name) :]: v for key, v in state.items() if key.startswith(name)}
        last: Any = self._modules[self._names[-1]]
        given, own = last.hooked_step(excitation, own)
        return given, after | {name + key: v for key, v in own.items()}


class Fused:
    """What `FusedChain` runs, on the tables that its stages have now."""

    def __init__(self, stages: Mapping[str, Stage]) -> None:
        self.front: list[Any] = list(stages.values())[:-1]
        self.tables = self._tables()
        self.floats = [table for table in self.tables if table.is_floating_point()]
        named: Any = stages
        self.resample, self.ear = named.get("resample"), named["ear"]
        self.spectrum, self.excitation = named["spectrum"], named["excitation"]
        self.dtype = self.ear.dtype
        # As a state of silence has them, without the rows.
        self.pasts: dict[str, Shape] = {
            f"{name}/{key}": tuple(value.shape)
            for name, stage in zip(stages, self.front, strict=False)
            if stage is not self.excitation
            for key, value in stage.initial_state(()).items()
        }
        # Of other layouts the arrays would be copies, which do not change with the tables.
        flat = all(table.is_contiguous() for table in self.tables)
        self.serves = self.excitation.by_groups and flat and compilable(*self.floats)
        if self.serves:
            self.places = [table.data_ptr() for table in self.tables]
            self.bank = None if self.resample is None else array(self.resample.bank)
            names = ("taps", "low_pass", "tail") if self.ear.phase == "minimum" else ("taps",)
            self.ear_tables = [array(t) for t in self.ear.registered(*names)]
            self.waves = [array(t) for t in self.spectrum.registered("cosine", "sine")]
            self.products = [array(t) for t in self.excitation.registered(*PRODUCTS)]
            groups: Any = map(array, self.excitation.groups())
            self.groups: Any = Groups(*groups)

    def _tables(self) -> list[Any]:
        return [table for stage in self.front for table in stage._buffers.values()]

    def as_made(self) -> bool:
        """Whether the stages still have the tables that they had, where they had them.

        Tables that are shared with another process move.
        """
        now = self._tables()
        if len(now) != len(self.tables) or not all(map(is_, now, self.tables)):
            return False
        return not self.serves or [table.data_ptr() for table in now] == self.places

    def takes(self, x: Tensor, state: State) -> bool:
        """Whether the kernels can take `x` and `state`, and nobody looks in between."""
        if not self.serves or x.dtype != self.dtype or x.dim() < 2 or not x.numel():
            return False
        for stage in self.front:
            if stage._forward_hooks or stage._forward_pre_hooks:
                return False
        rows = tuple(x.shape[:-1])
        for key, shape in self.pasts.items():
            if state[key].shape != rows + shape or state[key].dtype != self.dtype:
                return False
        ratio = Fraction(1) if self.resample is None else self.resample.ratio
        whole = x.shape[-1] * ratio.numerator % (ratio.denominator * HOP) == 0
        return whole and compiled(*(state[key] for key in self.pasts), *self.floats)

    def excite(self, x: Tensor, state: State) -> tuple[Tensor, State] | None:
        """Excitation as `Excitation` gives it, and the state after of all stages up to it.

        None where tables were changed in place to what kernels do not take.
        """
        lead, after = tuple(x.shape[:-1]), dict[str, Tensor]()
        rows = prod(lead)

        def joined(key: str, y: Array) -> Array:
            both = np.concatenate((array(state[key]).reshape(rows, -1), y), 1)
            after[key] = torch.from_numpy(both[:, y.shape[1] :].reshape(*lead, -1))
            return both

        sound = array(x).reshape(rows, -1)
        if self.bank is not None:
            up, down = self.bank.shape[0], self.resample.block_size
            given = np.empty((rows, sound.shape[1] // down * up), sound.dtype)
            past = joined("resample/past", sound)
            _polyphase(past, self.bank, down, self.resample.length, given)
            sound = given
        heard = np.empty_like(sound)
        past = joined("ear/past", sound)
        if self.ear.phase == "minimum":
            late = np.zeros((rows, sound.shape[1] // self.ear.block_size), sound.dtype)
            late = joined("ear/slow", late)
            _fir_with_tail(past, *self.ear_tables, late, heard)
            slow = late[:, -state["ear/slow"].shape[-1] :]
            after["ear/slow"] = torch.from_numpy(slow.reshape(*lead, -1))
        else:
            _fir(past, *self.ear_tables, heard)
        bins, frames = self.spectrum.bins, sound.shape[1] // HOP
        power = np.empty((rows, frames, sum(bins)), sound.dtype)
        _running_spectrum(joined("spectrum/past", heard), *self.waves, HALVES, bins, HOP, power)
        ears = lead[-1] if self.excitation.selection == "binaural" else 1
        kept, listeners = np.empty_like(power), (-1, ears, frames, power.shape[2])
        _select_components(power.reshape(listeners), kept.reshape(listeners))
        excitation = self._of_components(kept.reshape(rows * frames, -1))
        if excitation is None:
            return None
        levels = () if self.excitation.uncertainty_db is None else (3,)
        ears_apart = (*lead[:-1], lead[-1], frames, excitation.shape[-1])
        y = excitation.reshape(*levels, *ears_apart)
        return torch.from_numpy(np.moveaxis(y, 0, -4) if levels else y), after

    def _of_components(self, kept: Array) -> Array | None:
        """Excitation (row, channel), with levels before them where there is an uncertainty.

        None as above.
        """
        levels, levels_blocks, upper, upper_blocks = self.products
        density = np.empty((kept.shape[0], self.groups.middle.size), kept.dtype)
        high = np.empty((kept.shape[0], self.groups.center.size), kept.dtype)
        fit = multiply(kept, levels, levels_blocks, density)
        fit = fit and multiply(kept, upper, upper_blocks, high)
        uncertainty = self.excitation.uncertainty_db
        shifts = (0.0,) if uncertainty is None else (-uncertainty, 0.0, uncertainty)
        low = np.empty((len(shifts), *high.shape), kept.dtype)
        for db, skirts in zip(shifts, low, strict=True):
            fit = fit and _group_skirts(kept, density, self.groups, db, skirts)
            skirts += high
            if uncertainty is not None:
                skirts *= 10 ** (db / 10)
        return low if fit else None


_FUSED: WeakKeyDictionary[FusedChain, Fused] = WeakKeyDictionary()
