"""Sound level: frequency and time weightings, and the peak (IEC 61672-1:2013)."""

from fractions import Fraction
from math import pi, prod
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.contract import whole_hertz
from amt_stream.dsp.design import frame_lengths, interpolator
from amt_stream.dsp.functional import sound_level
from amt_stream.dsp.functional.peak import ENDLESS, ending
from amt_stream.dsp.functional.sound_level import LEFT_AT, LEVELS, WEIGHTINGS, sound_levels, states
from amt_stream.dsp.fused import Fused, FusedStage, HostOutput, Workspace
from amt_stream.dsp.streaming import Shape, State, Step, output

FRAME_RATE = 100

TIMED = tuple(weighting + speed for speed in "fsi" for weighting in "acz")
"""Names on the axis "timed" of `SoundLevelOutput`."""

F1, F2, F3, F4 = 20.598997, 107.65265, 737.86223, 12194.217
"""Poles of A and C in Hz: F1 and F4 double, F2 and F3 of A only (IEC 61672-1:2013, Annex E)."""

REFERENCE = 1000.0
"""Frequency in hertz at which the weightings are 0 dB."""

FAST, SLOW = 0.125, 1.0
ATTACK, DECAY = 0.035, 1.5
"""Time constants in seconds of F and S (IEC 61672-1:2013, 5.8), and of I (IEC 60651)."""

LOW_PASSES = {
    32000: ((0.669066086, 0.614991499, 0.112206777), (0.480853670, -0.084589308)),
    44100: ((0.513416531, 0.695326487, 0.181909973), (0.633727248, -0.243074257)),
    48000: ((0.499981014, -0.145883261, -0.125322764), (-0.985304684, 0.214079673)),
    88200: ((0.263550288, 0.074781105, -0.001678866), (-0.839564690, 0.176217217)),
    96000: ((0.236356961, 0.067077191, -0.001302994), (-0.900670826, 0.202801984)),
}
"""b0 b1 b2 and a1 a2 of biquads with the magnitude of two poles at F4, within 0.041 dB to 20 kHz
(32 kHz: 0.01 dB to 12.5 kHz). At 48 kHz the bilinear transform would be 6 dB low at 16 kHz."""


@output
class SoundLevelOutput(NamedTuple):
    """Powers and peaks of sound level meters, 100 frames a second; powers are in Pa^2.

    10 lg(power / 4e-10) is a level in dB; silence has none. The axis "weighted" is A, C, Z; the
    axis "timed" is F of A, C and Z, then S, then I of them.

    mean_square: over the frame, frequency-weighted (..., weighted, frame)
    power: frequency- and time-weighted, at the last sample of the frame (..., timed, frame)
    highest, lowest: of that power over all samples of the frame
    impulse: mean over the frame of the I-weighted power (..., weighted, frame)
    peak: frequency-weighted peak in pascal, including between samples (..., weighted, frame)
    """

    mean_square: Tensor
    power: Tensor
    highest: Tensor
    lowest: Tensor
    impulse: Tensor
    peak: Tensor


class RowFrames(Fused):
    """A stage with frames of `lengths` and one state, `past`.

    functions: the module with its rows, its kernels, and `to_frames`, which calls them
    table_names: its tables
    fields: the rows of the output's fields
    """

    functions: ModuleType
    table_names: tuple[str, ...]
    fields: tuple[str, ...]
    kernels = ("to_frames",)

    def __init_subclass__(cls) -> None:
        cls.home, cls.rows = cls.functions.__name__, cls.functions.AT
        cls.first_output = cls.fields[0]

    def make(self, made: Workspace) -> None:
        stage, called = self.named[""], self.functions.CALLS
        self.call(made, called, *called)
        self.put_tables(made, stage, *self.table_names)
        made.keep("lengths", torch.tensor(stage.lengths))

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        rows, stage = prod(lead), self.named[""]
        frames = len(stage.lengths) * time // self.block_size
        workspace.memory["past"] = "state", (rows, *state["past"].shape[len(lead) :])
        shapes = stage.out_shape(lead)
        for name, shape in zip(self.fields, shapes, strict=True):
            workspace.expect(name, rows, *shape[len(lead) :], frames)
        workspace.outputs = tuple((*shape, frames) for shape in shapes)


class SoundLevelFrames(RowFrames):
    """`SoundLevel` as one compiled call."""

    functions = sound_level
    table_names = "coefficients", "phases"
    output: Any = SoundLevelOutput
    fields: tuple[str, ...] = sound_level.LevelFrames._fields
    host_outputs: tuple[HostOutput, ...] = (
        HostOutput("mean_square", "Pa^2", (tuple("acz"),)),
        *(HostOutput(name, "Pa^2", (TIMED,)) for name in ("power", "highest", "lowest")),
        HostOutput("impulse", "Pa^2", (tuple("acz"),)),
        HostOutput("peak", "Pa", (tuple("acz"),)),
    )


class SoundLevel(FusedStage):
    """Sound pressure (..., time) in pascal to `SoundLevelOutput`, a frame per 10 ms.

    Each channel is measured on its own; `accumulators.SoundLevelMeter` computes readings from the
    frames. The filters meet class 1 of IEC 61672-1:2013: within 0.04 dB of its design goals from 20
    Hz to 20 kHz at 44.1 and 48 kHz, within 0.05 dB up to 12.5 kHz at other rates from 16 kHz on,
    within 0.17 dB at 8 kHz. Errors of microphone and sound card come on top. Frame n covers n / 100
    s to (n + 1) / 100 s, peaks 6 samples late; peaks are within 0.32 dB up to 15 kHz at 48 kHz.
    They count up to the last sample of a sound whose end is known (`ending`), and between samples
    where all 12 that the interpolation takes are of the sound.

    fs: sampling rate in whole hertz, 8000 or more. If it is no multiple of 100 Hz (22050 Hz),
        frames end at the samples nearest to each 10 ms, and a block holds several
    z_high_pass: -3 dB in hertz, at most 1 Hz, of a first-order high-pass that removes a sound
        card's DC offset from Z; with 0, Z is unfiltered. A and C have no gain at 0 Hz

    Raises ValueError for an invalid rate or high-pass.

    >>> import torch
    >>> meter = SoundLevel(fs=48000)
    >>> meter(torch.zeros(2, 4800)).power.shape
    torch.Size([2, 9, 10])
    """

    step: Step[SoundLevelOutput]

    fused = SoundLevelFrames
    out_time_dim = SoundLevelOutput(-1, -1, -1, -1, -1, -1)  # type: ignore[arg-type]
    keeps_double = ("coefficients", "past")
    input_unit = "pascal"
    frame_rate = FRAME_RATE
    frames_stand_for_end = True
    per_channel = True
    # After silence F is then within 0.03 dB; S takes 5 s.
    settle_s = 5 * FAST
    # I decays by 50 dB in 11.5 time constants.
    memory_s = 18.0
    # The slowest filter, two poles at 20.6 Hz, decays with 8 ms; the rest are averages.
    tail_s = 0.1

    def __init__(self, fs: int = 48000, z_high_pass: float = 0.0) -> None:
        super().__init__()
        fs = whole_hertz("SoundLevel", fs, 8000)
        if not 0 <= z_high_pass <= 1:
            raise ValueError(
                f"SoundLevel: z_high_pass is {z_high_pass} Hz: give 0 to 1 Hz, so that Z is flat "
                "from 10 Hz on"
            )
        self.fs, self.z_high_pass = fs, z_high_pass
        self.lengths = frame_lengths(self.fs, FRAME_RATE)
        self.block_size = sum(self.lengths)
        self.ratio = Fraction(FRAME_RATE, self.fs)
        high, low, gain = frequency_weightings(self.fs)
        z = high_pass_gain(z_high_pass, self.fs)
        smoothing = -np.expm1(-1 / (self.fs * np.array([FAST, SLOW, ATTACK])))
        decay = np.exp(-1 / (self.fs * DECAY))
        coefficients = np.concatenate([high, [z], *low, smoothing, [gain, decay]])
        self.register_table("coefficients", coefficients)
        self.register_table("phases", interpolator(self.fs))

    def initial_state(self, shape: Shape) -> State:
        return self.ending(
            {"past": self.state_like("past", (*shape, states(self.phases)))}, ENDLESS
        )

    def ending(self, state: State, samples: float) -> State:
        return {"past": ending(state["past"], samples, LEFT_AT)}

    def unfused_step(self, x: Tensor, state: State) -> tuple[SoundLevelOutput, State]:
        coefficients, phases = self.registered("coefficients", "phases")
        frames, past = sound_levels(x, self.lengths, coefficients, phases, state["past"])
        return SoundLevelOutput(*frames), {"past": past}

    def out_shape(self, shape: Shape) -> SoundLevelOutput:
        weighted, timed = (*shape, WEIGHTINGS), (*shape, LEVELS)
        return SoundLevelOutput(weighted, timed, timed, timed, weighted, weighted)  # type: ignore[arg-type]


def frequency_weightings(fs: int) -> tuple[np.ndarray, np.ndarray, float]:
    """High-passes (3,), low-pass (2, 3) and gain of A and C, as `sound_levels` takes them.

    Poles up to 738 Hz by the bilinear transform, those at 12194 Hz by a fitted biquad; 0 dB at 1
    kHz.
    """
    high = np.array([high_pass_gain(f, fs) for f in (F1, F2, F3)])
    b, a = LOW_PASSES[fs] if fs in LOW_PASSES else fitted_low_pass(fs)
    low = np.array([b, (1.0, *a)])
    z = np.exp(-2j * pi * REFERENCE / fs)
    passed = np.abs((1 - high) * (1 - z) / (1 - (1 - 2 * high) * z))
    numerator, denominator = np.abs(low @ z ** np.arange(3))
    low[0] *= denominator / (numerator * passed[0] ** 2)
    return high, low, float(1 / (passed[1] * passed[2]))


def high_pass_gain(f: float, fs: int) -> float:
    """The coefficient of `first_order` for a pole at `f` Hz by the plain bilinear transform."""
    k = pi * f / fs
    return k / (1 + k)


def fitted_low_pass(fs: int) -> tuple[np.ndarray, np.ndarray]:
    """b (3,) and a1 a2 (2,) of a biquad with the magnitude of two poles at F4, 0 dB at 0 Hz.

    Fits the squared magnitude, a ratio of polynomials in u = sin^2(pi f / fs), by linear least
    squares, reweighted with the last denominator (Sanathanan and Koerner 1963) and the last errors,
    to reduce the largest (Lawson). Within 0.08 dB from 0 Hz to 20 kHz or 0.49 fs, at rates from 8
    kHz on.
    """
    fits = [_fit(fs, top) for top in np.linspace(20_000, 24_000, 5)]
    _, b, a = min(fits, key=lambda fit: fit[0])
    numerator, denominator = _minimum_phase(b), _minimum_phase(a)
    return numerator / numerator.sum() * denominator.sum(), denominator[1:]


def _fit(fs: int, top: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Largest error in dB up to 20 kHz, and polynomials (3,) in u fitted up to `top` Hz.

    The error is infinite if the fit has a pole or a zero on the frequency axis.
    """
    f = min(top, 0.49 * fs) * (1 - np.cos(np.linspace(0, pi, 400))) / 2
    u = np.sin(pi * f / fs) ** 2
    goal = (1 + (f / F4) ** 2) ** -2
    weight, below = np.ones_like(u), np.ones_like(u)
    all_u = np.linspace(0, 1, 1001)
    best = np.inf, np.ones(3), np.ones(3)
    for _ in range(30):
        scale = weight / (goal * below)
        system = np.stack([u, u * u, -goal * u, -goal * u * u], 1) * scale[:, None]
        found = np.linalg.lstsq(system, (goal - 1) * scale, rcond=None)[0]
        b, a = np.append(1.0, found[:2]), np.append(1.0, found[2:])
        below = np.abs(np.polyval(a[::-1], u))
        error = np.abs(10 * np.log10(np.abs(np.polyval(b[::-1], u)) / (below * goal)))
        stable = min(np.polyval(b[::-1], all_u).min(), np.polyval(a[::-1], all_u).min()) > 0
        largest = error[f <= 20_000].max() if stable else np.inf
        if largest < best[0]:
            best = largest, b, a
        weight = np.maximum(weight * np.sqrt(error + 1e-3 * error.max()), 1e-4)
        weight /= weight.max()
    return best


def _minimum_phase(p: np.ndarray) -> np.ndarray:
    """Minimum-phase polynomial (3,) in 1/z with squared magnitude `p`, up to a factor.

    p is a polynomial in u = sin^2(w / 2).
    """
    half = 1 - 2 * np.roots(p[::-1]).astype(complex)  # u = (2 - z - 1/z) / 4
    roots = half + np.sqrt(half**2 - 1)
    roots = np.where(np.abs(roots) > 1, 1 / roots, roots)
    return np.poly(roots).real
