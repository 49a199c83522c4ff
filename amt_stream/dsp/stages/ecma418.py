"""The Sottek hearing model of ECMA-418-2:2025: ear, bands, tonal and noise loudness, tonality."""

from collections.abc import Mapping
from fractions import Fraction
from math import exp, pi
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.data import table
from amt_stream.dsp.functional.compiler.dispatch import compiled
from amt_stream.dsp.functional.ecma418 import tones
from amt_stream.dsp.functional.ecma418.bands import BANDS, BANDWIDTHS, CENTERS, FS, HOP, SIZES, WAIT
from amt_stream.dsp.functional.ecma418.parts import loudness_of_parts, tonality_of_parts
from amt_stream.dsp.functional.ecma418.tones import State as Memory
from amt_stream.dsp.functional.filters.direct_form import direct_form, direct_form_in_place
from amt_stream.dsp.functional.gammatone import gammatone_sum, gammatone_sum_in_place, one_poles
from amt_stream.dsp.hooks import steps_as
from amt_stream.dsp.streaming import Outputs, Shape, Stage, State, output

ECMAField = Literal["free", "diffuse"]

FRAME_RATE = 187.5
"""Frames a second."""

FADE = 240
"""Samples of the fade-in."""

LOW_PASS_S = 6 / (32 * 7)
"""Time constant of the low-pass over frames (ECMA-418-2:2025, 6.2.5)."""

GATES = {8192: (18.21, 0.36), 4096: (12.14, 0.36), 2048: (417.54, 0.71), 1024: (962.68, 0.69)}
"""Constant and exponent of the noise reduction by block size (6.2.7)."""


def of_lead_in(stage: Stage, amount: int) -> int:
    """`amount`, the silence before the sound in what `stage` counts.

    Raises ValueError unless it is a whole number, 0 or more.
    """
    given: object = amount
    if not isinstance(given, Integral) or amount < 0:
        raise ValueError(
            f"{type(stage).__name__}: lead_in is {amount!r}: give a whole number, 0 or more"
        )
    return int(amount)


class ECMAEarFilter(Stage):
    """Sound pressure (..., time) in pascal at 48 kHz to that at the cochlea, after a fade-in.

    The sound fades in within 5 ms from silence, then passes second-order sections for outer and
    middle ear (ECMA-418-2:2025, 5.1.2 and 5.1.3). The gain at 1 kHz is 1 in the free field.

    field: "free", or "diffuse", which omits the sections of the outer ear
    lead_in: samples before the sound, which are silenced

    Raises ValueError for any other value.
    """

    fs = FS
    input_unit = "pascal"
    per_channel = True
    keeps_double = ("fade", "numerators", "denominators", "past")

    def __init__(self, field: ECMAField = "free", lead_in: int = 0) -> None:
        super().__init__()
        self.lead_in = of_lead_in(self, lead_in)
        if field not in ("free", "diffuse"):
            raise ValueError(f"ECMAEarFilter: field is {field!r}: give free or diffuse")
        self.field = field
        self.register_table("fade", 0.5 - 0.5 * np.cos(pi / FADE * np.arange(FADE + 1)))
        rows = table("ecma418_ear")
        first = 0 if field == "free" else 2
        b, a = (
            np.stack([rows[name] for name in names], 1)[first:]
            for names in (("b0", "b1", "b2"), ("a1", "a2"))
        )
        self.register_table("numerators", b)
        self.register_table("denominators", np.insert(a, 0, 1.0, axis=1))

    def initial_state(self, shape: Shape) -> State:
        return {
            "begun": torch.full(shape, -self.lead_in, dtype=torch.int64, device=self.device),
            "past": self.state_like("past", (*shape, *self.design("numerators").shape[:1], 2)),
        }

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        begun, time = state["begun"], x.shape[-1]
        at = (begun[..., None] + torch.arange(time, device=x.device)).clamp(0, FADE)
        fade, b, a = self.registered("fade", "numerators", "denominators")
        faded = x.double() * fade[at]
        y, past = direct_form(faded, b, a, state["past"])
        return y.to(x.dtype), {"begun": (begun + time).clamp(max=FADE), "past": past}

    def advance(self, x: Tensor, state: State) -> Tensor:
        begun, past = state["begun"], state["past"]
        b, a = self.registered("numerators", "denominators")
        own = steps_as(self, ECMAEarFilter) and compiled(x, b, a, past) and past.is_contiguous()
        if not own or (begun.numpy() < FADE).any():
            y: Tensor = super().advance(x, state)
            return y
        return direct_form_in_place(x.double(), b, a, past).to(x.dtype)


class CriticalBands(Stage):
    """The filters of `ECMAFilterbank`, and their state."""

    fs = FS
    per_channel = True
    fc = CENTERS

    def __init__(self) -> None:
        super().__init__()
        decay = torch.from_numpy(BANDWIDTHS * (512 / 70 / (2 * pi)))
        poles = one_poles(torch.from_numpy(CENTERS), decay, FS).numpy()
        gap = poles[2]
        d = 1 - gap
        powers = np.stack([gap**4, -15 * gap**3, 50 * gap**2, -60 * gap, 24 + 0 * gap])
        self.register_table("poles", poles)
        self.register_table("weights", 2 * powers / (d + 11 * d**2 + 11 * d**3 + d**4))

    def initial_state(self, shape: Shape) -> State:
        return {"u": self.state_like("u", (*shape, 2, 5, BANDS))}

    def extra_repr(self) -> str:
        return f"bands={BANDS}"


class ECMAFilterbank(CriticalBands):
    """Sound (..., time) at 48 kHz to 53 critical bands (..., band, time), half a Bark_HMS apart.

    Each is twice the real part of a complex gammatone filter of order 5 (ECMA-418-2:2025, 5.1.4),
    whose envelope t^4 exp(-t / tau) is a weighted sum of the stages of a cascade of one-pole
    filters: with d = exp(-1 / (fs tau)), s = 1 / (1 - d z^-1), the transform of n^4 d^n is
    24 s^5 - 60 s^4 + 50 s^3 - 15 s^2 + s. The standard's polynomials lose six digits to rounding.

    Attributes: `fc`, center frequencies in Hz.
    """

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        poles, weights = self.registered("poles", "weights")
        y, u = gammatone_sum(x[..., None, :], poles, weights, state["u"])
        return y, {"u": u}

    def advance(self, x: Tensor, state: State) -> Tensor:
        given = x[..., None, :], *self.registered("poles", "weights"), state["u"]
        if steps_as(self, ECMAFilterbank) and compiled(*given) and state["u"].is_contiguous():
            return gammatone_sum_in_place(*given)
        y: Tensor = super().advance(x, state)
        return y

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape, BANDS)


class OfBlocks(Stage):
    """A stage over blocks that end with a frame: in float64, on the CPU, without gradients.

    lead_in: frames of silence before the sound, with which the first blocks begin
    """

    frames_stand_for_end = True
    on_host = True
    memory: ClassVar[tuple[Any, Any, Mapping[str, Shape]]]
    """The types of its tables and its state, and the shapes of the state without leading axes."""

    def __init__(self, lead_in: int) -> None:
        super().__init__()
        self.lead_in = of_lead_in(self, lead_in)
        self.register_table("threshold", table("ecma418_threshold")["threshold"].copy())

    def initial_state(self, shape: Shape) -> State:
        # Every fixed axis is one of the last before time.
        lead, shapes = shape[: 1 + min(self.fixed_axes)], self.memory[2]
        state = {key: self.state_like(key, (*lead, *v)) for key, v in shapes.items()}
        return state | {"begun": state["begun"] - self.lead_in}

    def after(self, x: Tensor, tables: Any, state: Any) -> tuple[Tensor, Any]:
        """What the blocks give, and the state after them."""
        raise NotImplementedError

    def in_place(self, x: Tensor, tables: Any, state: Any) -> Tensor:
        """What the blocks give, with the state after them in `state`."""
        raise NotImplementedError

    def output(self, y: Tensor, dtype: torch.dtype) -> Any:
        """The stage's output in `dtype`, of what the blocks give."""
        raise NotImplementedError

    def _given(self, state: State) -> tuple[Any, Any]:
        tables, memory, _ = self.memory
        return tables(*self.registered(*tables._fields)), memory(**state)

    def step(self, x: Tensor, state: State) -> tuple[Any, State]:
        y, after = self.after(x, *self._given(state))
        return self.output(y, x.dtype), after._asdict()

    def advance(self, x: Tensor, state: State) -> Outputs:
        tables, memory = self._given(state)
        own = steps_as(self, OfBlocks) and compiled(x, *tables, *memory)
        if not own or not all(v.is_contiguous() for v in memory):
            return super().advance(x, state)
        return self.output(self.in_place(x, tables, memory), x.dtype)

    def extra_repr(self) -> str:
        return f"bands={BANDS}, lead_in={self.lead_in}"


class ECMATonalNoise(OfBlocks):
    """Bands (..., 53, time) in pascal to the loudness of tones and noise (..., 3, frame, 53).

    187.5 frames a second: specific loudness of the tonal part and of the noise, both in
    sone_HMS/Bark_HMS, and the frequency of the tone in Hz (ECMA-418-2:2025, 5.1.5 to 5.1.9 and
    6.2.2 to 6.2.7). Blocks of 171 ms in the lowest bands to 21 ms in the highest are rectified; a
    tone shows in their autocorrelation, averaged over neighboring bands, at lags from 2 to 50 ms.
    Frames lag by 80 ms: two hops of the longest block less a frame. The work of a frame is that of
    the blocks that end with it. Computed in float64, on the CPU, without gradients.

    lead_in: frames of silence before the sound, with which the first blocks begin
    """

    # Of two frames: shorter blocks would cost more by the calls, longer ones are longer bursts.
    block_size = 2 * HOP
    ratio = Fraction(1, HOP)
    latency = Fraction(WAIT * HOP)
    out_time_dim = -2
    fs = FS
    keeps_double = (*tones.TonalTables._fields, *Memory._fields)
    memory = tones.TonalTables, Memory, tones.STATE_SHAPES

    def __init__(self, lead_in: int = 0) -> None:
        super().__init__(lead_in)
        self.fixed_axes = {-2: BANDS}
        self.shape_remedy = "give the bands of ECMAFilterbank"
        count = [blocks.targets[1] - blocks.targets[0] + 1 for blocks in SIZES]
        constants = np.repeat([GATES[blocks.size] for blocks in SIZES], count, 0)
        self.register_table("gate", constants[:, 0] / CENTERS ** constants[:, 1])
        none = np.zeros(3 * BANDS)
        width = torch.from_numpy(none + 1 / (2 * pi * LOW_PASS_S))
        smoothing = one_poles(torch.from_numpy(none), width, FRAME_RATE).numpy()
        gap, d = smoothing[2], exp(-1 / (FRAME_RATE * LOW_PASS_S))
        # n^2 d^n in the same way as the bands' envelopes: 2 s^3 - 3 s^2 + s.
        weights = np.stack([gap**2, -3 * gap, 2 + 0 * gap]) / (d + d**2)
        self.register_table("smoothing", smoothing)
        self.register_table("weights", weights)

    def after(self, x: Tensor, tables: Any, state: Any) -> tuple[Tensor, Any]:
        return tones.tonal_and_noise(x.double(), tables, state)

    def in_place(self, x: Tensor, tables: Any, state: Any) -> Tensor:
        return tones.tonal_and_noise_in_place(x, tables, state)

    def output(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        # In one order, so that sums over bands round alike everywhere.
        return y.to(dtype).mT.contiguous()

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], 3, shape[-1])


class _OfTonesAndNoise(Stage):
    """A memoryless stage that takes what `ECMATonalNoise` gives; it runs on the CPU."""

    time_dim = -2
    on_host = True

    def __init__(self) -> None:
        super().__init__()
        self.fixed_axes = {-3: 3, -1: BANDS}
        self.shape_remedy = "give what ECMATonalNoise gives"

    def initial_state(self, shape: Shape) -> State:
        return {}

    def extra_repr(self) -> str:
        return f"bands={BANDS}"


@output
class ECMALoudnessOutput(NamedTuple):
    """Loudness per frame, 187.5 a second.

    n: in sone_HMS (..., frame)
    specific: specific loudness in sone_HMS/Bark_HMS (..., frame, 53)
    """

    n: Tensor
    specific: Tensor


class ECMASpecificLoudness(_OfTonesAndNoise):
    """Loudness of tones and noise (..., 3, frame, 53) to `ECMALoudnessOutput`.

    Both parts of a band add with an exponent that falls as the sound gets louder; noise counts
    about half (ECMA-418-2:2025, 8.1.1).
    """

    out_time_dim = ECMALoudnessOutput(-1, -2)  # type: ignore[arg-type]

    def step(self, x: Tensor, state: State) -> tuple[ECMALoudnessOutput, State]:
        return ECMALoudnessOutput(*loudness_of_parts(x)), state

    def out_shape(self, shape: Shape) -> ECMALoudnessOutput:
        return ECMALoudnessOutput(shape[:-2], (*shape[:-2], BANDS))  # type: ignore[arg-type]


@output
class ECMATonalityOutput(NamedTuple):
    """Tonality per frame, 187.5 a second.

    t: in tu_HMS (..., frame), that of the most tonal band
    hz: frequency of its tone (..., frame)
    specific: specific tonality in tu_HMS (..., frame, 53)
    """

    t: Tensor
    hz: Tensor
    specific: Tensor


class ECMASpecificTonality(_OfTonesAndNoise):
    """Loudness of tones and noise (..., 3, frame, 53) to `ECMATonalityOutput`.

    Tonal loudness, scaled and suppressed where the loudest tone is weak beside all noise
    (ECMA-418-2:2025, 6.2.8 to 6.2.10).
    """

    out_time_dim = ECMATonalityOutput(-1, -1, -2)  # type: ignore[arg-type]

    def step(self, x: Tensor, state: State) -> tuple[ECMATonalityOutput, State]:
        return ECMATonalityOutput(*tonality_of_parts(x)), state

    def out_shape(self, shape: Shape) -> ECMATonalityOutput:
        lead = shape[:-2]
        return ECMATonalityOutput(lead, lead, (*lead, BANDS))  # type: ignore[arg-type]
