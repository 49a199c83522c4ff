"""Roughness and fluctuation strength of ECMA-418-2:2025."""

from fractions import Fraction
from math import pi
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import compiled
from amt_stream.dsp.functional.ecma418 import fluctuation, roughness, slow_lines
from amt_stream.dsp.functional.ecma418.bands import BANDS
from amt_stream.dsp.functional.ecma418.envelopes import STEP, envelopes, envelopes_in_place
from amt_stream.dsp.functional.ecma418.modulation import FRAME
from amt_stream.dsp.functional.ecma418.parts import roughness_of_parts, total_of_bands
from amt_stream.dsp.hooks import steps_as
from amt_stream.dsp.stages.ecma418 import CriticalBands, OfBlocks
from amt_stream.dsp.streaming import Shape, State, output


class ECMAEnvelopes(CriticalBands):
    """Sound (..., time) at 48 kHz to envelope and power (..., 2, 53, frame) of critical bands.

    1500 frames a second. The bands are those of `ECMAFilterbank`; the envelope in pascal is the
    magnitude of its complex form at the first sample of 32, where the standard takes a block's
    analytic signal. The power in Pa^2 is the mean square of the rectified band over the 32 samples.
    Computed on the CPU, without gradients.

    Attributes: `fc`, center frequencies in Hz.
    """

    block_size = STEP
    ratio = Fraction(1, STEP)
    on_host = True

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        poles, weights = self.registered("poles", "weights")
        y, u = envelopes(x, poles, weights, state["u"])
        return y, {"u": u}

    def advance(self, x: Tensor, state: State) -> Tensor:
        given = x, *self.registered("poles", "weights"), state["u"]
        if steps_as(self, ECMAEnvelopes) and compiled(*given) and state["u"].is_contiguous():
            return envelopes_in_place(*given)
        y: Tensor = super().advance(x, state)
        return y

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape, 2, BANDS)


@output
class ECMARoughnessOutput(NamedTuple):
    """Roughness per frame, 50 a second.

    r: in asper (..., frame)
    hz: modulation rate of the roughest band (..., frame)
    specific: specific roughness in asper/Bark_HMS (..., frame, 53)
    """

    r: Tensor
    hz: Tensor
    specific: Tensor


class _AfterEnvelopes(OfBlocks):
    """A stage after `ECMAEnvelopes`."""

    block_size = FRAME
    ratio = Fraction(1, FRAME)

    def __init__(self, lead_in: int = 0) -> None:
        super().__init__(lead_in)
        self.fixed_axes = {-3: 2, -2: BANDS}
        self.shape_remedy = "give what ECMAEnvelopes gives"
        self.register_tables()

    def register_tables(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define register_tables()")


class ECMASpecificRoughness(_AfterEnvelopes):
    """Envelopes and powers (..., 2, 53, time) of `ECMAEnvelopes` to `ECMARoughnessOutput`.

    50 frames a second, from blocks of 341 ms, each 85 ms after the last. The spectrum of each
    band's envelope shows its modulation; noise is suppressed, the strongest harmonic series is
    weighted by its rate, and roughness rises faster than it falls (ECMA-418-2:2025, clause 7).
    Frames lag by 180 ms: 171 ms until the block after the next one has ended, to whole frames.
    Computed in float64, on the CPU, without gradients.

    lead_in: frames of silence before the sound, with which the first block begins
    """

    latency = Fraction(roughness.GRID.wait * FRAME)
    out_time_dim = ECMARoughnessOutput(-1, -1, -2)  # type: ignore[arg-type]
    keeps_double = (*roughness.RoughnessTables._fields, *roughness.RoughnessState._fields)
    memory = roughness.RoughnessTables, roughness.RoughnessState, roughness.STATE_SHAPES

    def register_tables(self) -> None:
        size = roughness.SIZE
        turn = 2 * pi / size * np.arange(size)
        self.register_table("window", (0.5 - 0.5 * np.cos(turn)) / np.sqrt(0.375))
        lines = np.arange(size // 2 + 1)
        self.register_table("gain", np.minimum(1, 0.1891 * np.exp(0.012 * lines)))
        self.register_table("bias", roughness.BIAS.copy())
        self.register_table("bands", roughness.weighting())

    def after(self, x: Tensor, tables: Any, state: Any) -> tuple[Tensor, Any]:
        return roughness.roughness(x.double(), tables, state)

    def in_place(self, x: Tensor, tables: Any, state: Any) -> Tensor:
        return roughness.roughness_in_place(x.double(), tables, state)

    def output(self, y: Tensor, dtype: torch.dtype) -> ECMARoughnessOutput:
        return ECMARoughnessOutput(*roughness_of_parts(y.to(dtype).mT.contiguous()))

    def out_shape(self, shape: Shape) -> ECMARoughnessOutput:
        lead = shape[:-2]
        return ECMARoughnessOutput(lead, lead, (*lead, BANDS))  # type: ignore[arg-type]


@output
class ECMAFluctuationOutput(NamedTuple):
    """Fluctuation strength per frame, 50 a second.

    f: in vacil_HMS (..., frame)
    specific: specific fluctuation strength in vacil_HMS/Bark_HMS (..., frame, 53)
    """

    f: Tensor
    specific: Tensor


class ECMASpecificFluctuation(_AfterEnvelopes):
    """Envelopes and powers (..., 2, 53, time) of `ECMAEnvelopes` to `ECMAFluctuationOutput`.

    50 frames a second, from blocks of 1.37 s, each 0.34 s after the last. A few lines are fitted to
    the spectrum of each band's envelope; the strongest harmonic series is weighted by its rate
    (ECMA-418-2:2025, clause 9). Frames lag by 1.46 s: 0.70 s until the block after the next one has
    ended, 0.06 s in which its bands are analyzed, and 0.70 s for a median over frames before and
    after. Computed in float64, on the CPU, without gradients.

    lead_in: frames of silence before the sound, with which the first block begins
    """

    latency = Fraction(fluctuation.WAIT * FRAME)
    out_time_dim = ECMAFluctuationOutput(-1, -2)  # type: ignore[arg-type]
    keeps_double = (*fluctuation.FluctuationTables._fields, *fluctuation.FluctuationState._fields)
    memory = fluctuation.FluctuationTables, fluctuation.FluctuationState, fluctuation.STATE_SHAPES

    def register_tables(self) -> None:
        self.register_table("gains", slow_lines.high_rate_gains())
        self.register_table("search", slow_lines.SEARCH.copy())

    def after(self, x: Tensor, tables: Any, state: Any) -> tuple[Tensor, Any]:
        return fluctuation.fluctuation(x.select(-3, 0).double(), tables, state)

    def in_place(self, x: Tensor, tables: Any, state: Any) -> Tensor:
        return fluctuation.fluctuation_in_place(x.select(-3, 0).double(), tables, state)

    def output(self, y: Tensor, dtype: torch.dtype) -> ECMAFluctuationOutput:
        specific = y.to(dtype).mT.contiguous()
        return ECMAFluctuationOutput(total_of_bands(specific), specific)

    def out_shape(self, shape: Shape) -> ECMAFluctuationOutput:
        lead = shape[:-2]
        return ECMAFluctuationOutput(lead, (*lead, BANDS))  # type: ignore[arg-type]
