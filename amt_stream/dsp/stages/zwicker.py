"""Loudness after Zwicker (ISO 532-1:2017), from third-octave levels to sone and sone/Bark."""

from fractions import Fraction
from math import exp, sqrt
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.data import table
from amt_stream.dsp.design import octave_midbands
from amt_stream.dsp.functional.zwicker import (
    POINTS,
    STEP,
    Cores,
    Slopes,
    core_loudness,
    levels,
    loudness_pattern,
    third_octave_powers,
    weighted,
)
from amt_stream.dsp.functional.zwicker_decay import decayed
from amt_stream.dsp.streaming import Pointwise, Shape, Stage, State, output

FS = 48000
"""Sampling rate in hertz of the standard's filters."""

CENTERS = octave_midbands(25.0, 12_500.0, 3)
"""Exact center frequencies of the third-octave bands, 25 Hz to 12.5 kHz."""

BANDS = 20
"""Critical bands with a core loudness."""

ZwickerField = Literal["free", "diffuse"]


class ThirdOctaveLevels(Stage):
    """Pressure (..., time) in pascal at 48 kHz to third-octave levels (..., frame, 28) in dB.

    2000 levels a second, 25 Hz to 12.5 kHz (ISO 532-1:2017, Tables A.1 and A.2). The squares pass
    three low-passes with time constants of 2 / (3 fc), at least that of 1 kHz; a level is taken at
    the first of 24 samples. Silence reads -26.02 dB.

    smooth: False gives the mean over each 0.5 ms, for the stationary method
    """

    block_size = STEP
    ratio = Fraction(1, STEP)
    out_time_dim = -2
    out_quantity = "dB"
    keeps_double = ("poles", "gain", "smoothing", "filters")
    fs = FS
    input_unit = "pascal"

    def __init__(self, smooth: bool = True) -> None:
        super().__init__()
        self.smooth = smooth
        rows = table("zwicker_filters")
        poles = [a for i in "123" for a in (-2 - rows[f"da1_{i}"], 1 - rows[f"da2_{i}"])]
        self.register_table("poles", np.array(poles))
        self.register_table("gain", rows["gain"].copy())
        tau = 2 / (3 * np.minimum(CENTERS, 1000.0))
        self.register_table("smoothing", -np.expm1(-1 / (FS * tau)))

    def initial_state(self, shape: Shape) -> State:
        kept = 9 if self.smooth else 6
        return {"filters": self.state_like("filters", (*shape, kept, CENTERS.size))}

    def powers(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Powers (..., frame, 28) in Pa^2, float64, and the next state."""
        smoothing = self.smoothing if self.smooth else None
        poles, gain = self.registered("poles", "gain")
        y, filters = third_octave_powers(x, poles, gain, smoothing, state["filters"])
        return y, {"filters": filters}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, state = self.powers(x, state)
        return levels(y, x.dtype), state

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape, CENTERS.size)


class CoreLoudness(Pointwise):
    """Third-octave levels (..., frame, 28) in dB to core loudness (..., frame, 20) in sone/Bark.

    One value per critical band (ISO 532-1:2017, Tables A.3 to A.7). The correction of the bands up
    to 250 Hz has steps, at which loudness jumps by up to a sixth.

    field: "free" or "diffuse"; raises ValueError for another
    """

    time_dim = out_time_dim = -2
    in_quantity, out_quantity = "dB", "sone/Bark"

    def __init__(self, field: ZwickerField = "free") -> None:
        super().__init__()
        if field not in ("free", "diffuse"):
            raise ValueError(f"field is {field!r}: give free or diffuse")
        self.fixed_axes = {-1: CENTERS.size}
        self.shape_remedy = "give levels of 28 third-octave bands, 25 Hz to 12.5 kHz"
        self.field = field
        ranges, bands = table("zwicker_dll"), table("zwicker_bands")
        correction = np.stack([v for name, v in ranges.items() if name.startswith("dll")], 1)
        self.register_table("limit", ranges["rap_db"][:, None] - correction)
        self.register_table("correction", correction)
        lifted = bands["ddf_db"] if field == "diffuse" else 0
        self.register_table("transmission", bands["a0_db"] - lifted)
        self.register_table("threshold", bands["ltq_db"].copy())
        self.register_table("adaptation", bands["dcb_db"].copy())

    def transform(self, x: Tensor) -> Tensor:
        return core_loudness(x, self.tables())

    def tables(self) -> Cores:
        """Tables of core loudness."""
        return Cores(*self.registered(*Cores._fields))

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], BANDS)


@output
class ZwickerOutput(NamedTuple):
    """Loudness per frame, 500 a second.

    n: in sone (..., frame)
    specific: specific loudness in sone/Bark at 0.1, 0.2 ... 24 Bark (..., frame, 240), or None
    core: core loudness in sone/Bark after decay (..., frame, 20); from it
        `functional.zwicker.loudness_pattern` computes specific loudness
    """

    n: Tensor
    specific: Tensor | None = None
    core: Tensor | None = None


class ZwickerLoudness(Stage):
    """Core loudness (..., frame, 20), 2000 a second, to `ZwickerOutput`, every fourth frame.

    Each core decays slowly, slopes towards higher critical bands are added (ISO 532-1:2017, Tables
    A.8 and A.9), the area is the loudness, and two low-passes smooth it over time. Specific
    loudness is taken before these low-passes.
    """

    block_size = 4
    ratio = Fraction(1, 4)
    time_dim = -2
    in_quantity = "sone/Bark"
    keeps_double = ("decay", "weighting", "cores", "low_passes")

    def __init__(self, specific_loudness: bool = False) -> None:
        super().__init__()
        self.gives_specific_loudness = specific_loudness
        self.fixed_axes = {-1: BANDS}
        self.register_table("decay", decay_coefficients())
        self.register_table("weighting", weighting_coefficients())
        rows = table("zwicker_slopes")
        # As in published programs, this offset keeps a sample at a limit in the lower band.
        upper = np.append(table("zwicker_bands")["zup_bark"], 24.0) + 1e-4
        slopes = np.stack([rows[f"usl_{i}"] for i in range(1, 9)], 1)
        self.register_table("upper", upper)
        self.register_table("floors", rows["rns"].copy())
        self.register_table("slopes", slopes)
        self.segments = most_segments(upper, rows["rns"], slopes)
        below = np.searchsorted(np.arange(1, POINTS + 1) / 10, upper)
        self.samples = tuple(np.diff(below, prepend=0).tolist())
        self.out_time_dim = ZwickerOutput(-1, -2, -2)  # type: ignore[arg-type]

    def initial_state(self, shape: Shape) -> State:
        return {
            "cores": self.state_like("cores", (*shape[:-1], 3, shape[-1])),
            "low_passes": self.state_like("low_passes", (*shape[:-1], 2)),
            "begun": torch.zeros(shape[:-1], dtype=torch.bool, device=self.device),
        }

    def tables(self) -> Slopes:
        """Tables of the loudness pattern."""
        upper, floors, slopes = self.registered("upper", "floors", "slopes")
        return Slopes(upper, floors, slopes, self.segments, self.samples)

    def step(self, x: Tensor, state: State) -> tuple[ZwickerOutput, State]:
        begun = state["begun"]
        decay, weighting = self.registered("decay", "weighting")
        core, cores = decayed(x, decay, state["cores"], begun)
        total, _ = loudness_pattern(core, self.tables())
        n, low_passes = weighted(total, weighting, state["low_passes"], begun)
        specific, shown = None, core[..., ::4, :].contiguous()
        if self.gives_specific_loudness:
            _, specific = loudness_pattern(shown, self.tables(), True)
        after = {"cores": cores, "low_passes": low_passes, "begun": torch.ones_like(begun)}
        return ZwickerOutput(n[..., ::4], specific, shown), after

    def out_shape(self, shape: Shape) -> ZwickerOutput:
        return ZwickerOutput(shape[:-1], (*shape[:-1], POINTS), shape)  # type: ignore[arg-type]


def decay_coefficients() -> np.ndarray:
    """B0 to B5 (6,) of the decay network for one sample at 48 kHz."""
    short, long, var = 0.005, 0.015, 0.075  # time constants in seconds
    dt = 1 / FS
    half = (var + long) / (var * short) / 2
    root = sqrt(half**2 - 1 / (short * var))
    l1, l2 = root - half, -root - half
    e1, e2 = exp(l1 * dt), exp(l2 * dt)
    d, p, q = var * (l1 - l2), var * l1 + 1, var * l2 + 1
    linked = (e1 - e2) / d, (q * e1 - p * e2) / d, (p * e1 - q * e2) / d, p * q * (e1 - e2) / d
    return np.array([*linked, exp(-dt / long), exp(-dt / var)])


def weighting_coefficients() -> np.ndarray:
    """A, c0, c1 and 1 - a (4, 2) of both low-passes, for `weighted`.

    A one-pole low-pass `a` at 48 kHz, with input linear between two values 24 samples apart.
    """
    a = np.exp(-1 / (FS * np.array([0.0035, 0.07])))
    k = np.arange(1, STEP + 1)[:, None]
    reach = (1 - a) * a ** (STEP - k)
    return np.stack([a**STEP, (reach * (1 - k / STEP)).sum(0), (reach * k / STEP).sum(0), 1 - a])


def most_segments(upper: np.ndarray, floors: np.ndarray, slopes: np.ndarray) -> tuple[int, ...]:
    """Upper bound of the number of straight lines of the pattern in each critical band.

    A slope from below may pass part of a range of specific loudness, as many whole ranges as fit
    into the band, part of another, and then reach the band's own loudness.
    """
    most = [1]
    for i, width in enumerate(np.diff(upper)):
        passed = -np.diff(floors) / slopes[1:, min(i, slopes.shape[1] - 1)]
        at = np.append(0, np.cumsum(passed))
        whole = np.searchsorted(at, at + width, "right") - 1 - np.arange(at.size)
        most.append(int(whole.max()) + 3)
    return tuple(most)
