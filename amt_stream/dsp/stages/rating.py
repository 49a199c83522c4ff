"""What a rating level is made of: A-weighted levels, audible tones, and onsets of impulses."""

from fractions import Fraction
from math import log2
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.contract import whole_hertz
from amt_stream.dsp.functional.rating.levels import STATES as FILTER_STATES
from amt_stream.dsp.functional.rating.levels import a_weighted_powers
from amt_stream.dsp.functional.rating.onsets import FIELDS as ONSET_FIELDS
from amt_stream.dsp.functional.rating.onsets import STATES, impulse_onsets
from amt_stream.dsp.functional.rating.tones import (
    HIGHEST_HZ,
    SpectrumState,
    critical_band,
    tone_audibility,
    tone_spectra,
)
from amt_stream.dsp.scales import P0
from amt_stream.dsp.stages.levels.sound_level import (
    F1,
    F2,
    F3,
    F4,
    FAST,
    REFERENCE,
    frequency_weightings,
)
from amt_stream.dsp.streaming import Shape, Stage, State, output, with_time

FRAME_RATE = 10
STEPS = 5
"""Levels of a frame."""

STEP_S = 0.02
REST_S = 1.0
"""Of the start of a sound, in which the level F rises from silence."""

SPECTRUM_S = 3.0
LINE_HZ = 2.8
"""Distance of lines that is aimed at; a power of two gives 1.98 to 3.96 Hz."""

LEAST_POWER = P0**2 / 100
"""Added to powers, so that digital silence has -20 dB."""


@output
class ToneOutput(NamedTuple):
    """The most audible tone of each spectrum, in the frame that completes it; 0 in other frames.

    Levels are A-weighted, in dB; all but the last are (..., frame).

    complete: 1 in a frame that completes a spectrum
    audibility: by how much it is above the threshold that the noise masks; -10 without a tone
    hz: its frequency; of joined tones, that of the most audible
    level: its level LT; of joined tones, that of all
    noise: mean level LS of the noise lines in its critical band
    uncertainty: of the audibility, for a coverage of 90 %
    tones: how many tones it joins; 0 without a tone
    spectrum: powers of the lines in Pa^2 (..., frame, line)
    """

    complete: Tensor
    audibility: Tensor
    hz: Tensor
    level: Tensor
    noise: Tensor
    uncertainty: Tensor
    tones: Tensor
    spectrum: Tensor


@output
class ImpulseOutput(NamedTuple):
    """A-weighted levels and onsets of impulses per frame, 10 a second.

    mean_square: over the frame, in Pa^2 (..., frame)
    fast: power with time weighting F at each 20 ms, in Pa^2 (..., frame, 5)
    onsets: at each 20 ms (..., frame, 5, 8): seconds since an onset began and since it ended, the
        level before it in dB, level difference in dB, onset rate in dB/s, and prominence P; then P
        of an onset that may still be one with a next rise, and seconds since it began; zeros
        without one
    """

    mean_square: Tensor
    fast: Tensor
    onsets: Tensor


def a_weights(hz: np.ndarray) -> np.ndarray:
    """The A-weighting as a factor on powers (IEC 61672-1:2013, Annex E)."""

    def power(f: np.ndarray | float) -> np.ndarray:
        f2 = np.square(np.asarray(f, np.float64))
        below = (f2 + F1**2) ** 2 * (f2 + F2**2) * (f2 + F3**2) * (f2 + F4**2) ** 2
        found: np.ndarray = f2**4 / below
        return found

    return power(hz) / power(REFERENCE)


def frame_samples(owner: str, fs: int) -> int:
    """Samples of 0.1 s. Raises ValueError for a rate that has no whole number in 20 ms."""
    fs = whole_hertz(owner, fs, 8000)
    if fs * STEP_S % 1:
        raise ValueError(f"{owner}: fs is {fs}: give a multiple of 50 Hz")
    return fs // FRAME_RATE


class ToneSpectrum(Stage):
    """Sound pressure (..., time) in pascal to A-weighted powers of lines (..., frame, line).

    A spectrum is the mean of 3 s: windows of Hann that overlap by half, 16 at 48 kHz, of lines 2.93
    Hz apart. The next one begins after it. Frames are of 0.1 s; one that completes a spectrum holds
    its powers in Pa^2, all others are 0. A tone on a line has its mean square there.

    fs: sampling rate in hertz, a multiple of 50, 8000 or more

    Attributes: `frequencies` of the lines in Hz, from 0 Hz to the edge of the critical band about
    10 kHz.

    Raises ValueError for another rate.

    >>> import torch
    >>> ToneSpectrum(48000)(torch.zeros(2, 48000)).shape
    torch.Size([2, 10, 3830])
    """

    out_time_dim = -2
    input_unit = "pascal"
    out_quantity = "power"
    per_channel = True
    frames_stand_for_end = True
    frame_rate = FRAME_RATE
    keeps_double = ("sums", "begun", "windows")
    on_host = True

    fs: int

    def __init__(self, fs: int = 48000) -> None:
        super().__init__()
        self.block_size = frame_samples("ToneSpectrum", fs)
        self.fs, self.ratio = fs, Fraction(1, self.block_size)
        self.points = 2 ** round(log2(fs / LINE_HZ))
        self.line_hz = fs / self.points
        self.windows_of_one = int((SPECTRUM_S * fs - self.points) / (self.points / 2)) + 1
        self.spectrum_s = (self.windows_of_one + 1) * self.points / 2 / fs
        low, width = critical_band(HIGHEST_HZ)
        self.lines = min(self.points // 2, int((low + width) / self.line_hz)) + 1
        turns = np.arange(self.points) / self.points
        window = 0.5 - 0.5 * np.cos(2 * np.pi * turns)
        self.register_table("window", np.sqrt(2) / window.sum() * window)
        self.register_table("weights", a_weights(self.frequencies))
        self.register_table("windows", np.array([float(self.windows_of_one)]))

    @property
    def frequencies(self) -> np.ndarray:
        """Frequency of each line in Hz (line,)."""
        return np.arange(self.lines) * self.line_hz

    def initial_state(self, shape: Shape) -> State:
        return {
            "past": self.state_like("past", with_time(shape, -1, self.points)),
            "sums": self.state_like("sums", with_time(shape, -1, self.lines)),
            "begun": self.state_like("begun", with_time(shape, -1, 1)),
        }

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        frames = x.unflatten(-1, (-1, self.block_size))
        window, weights, windows = self.registered("window", "weights", "windows")
        y, after = tone_spectra(frames, window, weights, windows, SpectrumState(**state))
        return y, after._asdict()

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape, self.lines)


class ToneAudibility(Stage):
    """Powers of lines (..., frame, line) to `ToneOutput`, by the method of ISO/PAS 20065:2016.

    The engineering method for tones in noise, in the reading of DIN 45681: tones from 50 Hz to 10
    kHz, compared with the noise in the critical band about them. Without gradient.

    frequencies: of the lines in hertz (line,), equally spaced

    Raises ValueError for other frequencies.

    >>> import numpy as np, torch
    >>> tones = ToneAudibility(2.7 * np.arange(40))
    >>> float(tones(torch.ones(1, 40)).audibility[0])
    -10.0
    """

    time_dim = -2
    out_time_dim = ToneOutput(-1, -1, -1, -1, -1, -1, -1, -2)  # type: ignore[arg-type]
    in_quantity = "power"
    keeps_double = ("hz",)
    on_host = True

    def __init__(self, frequencies: np.ndarray) -> None:
        super().__init__()
        frequencies = np.asarray(frequencies, np.float64)
        apart = np.diff(frequencies)
        if frequencies.ndim != 1 or not apart.size or not np.ptp(apart) <= 0.1 * apart.min():
            raise ValueError(
                "ToneAudibility: frequencies are not equally spaced: give two or more, in hertz"
            )
        self.fixed_axes = {-1: frequencies.size}
        self.register_table("hz", frequencies)

    def initial_state(self, shape: Shape) -> State:
        return {}

    def step(self, x: Tensor, state: State) -> tuple[ToneOutput, State]:
        (hz,) = self.registered("hz")
        found = tone_audibility(x, hz).unbind(-1)
        return ToneOutput(*found, x), state  # type: ignore[call-arg]

    def out_shape(self, shape: Shape) -> ToneOutput:
        lead = shape[:-1]
        return ToneOutput(*[lead] * 7, shape)  # type: ignore[call-arg, arg-type]


class ImpulseOnsets(Stage):
    """Sound pressure (..., time) in pascal to `ImpulseOutput`, a frame per 0.1 s.

    The method of ISO/PAS 1996-3:2022 and NT ACOU 112 on the A-weighted level F, each 20 ms. In the
    first second there are none, as the level rises from silence. An onset is known 60 ms after it
    ends, and 20 ms after it what it is if no next rise is one with it. Without gradient.

    fs: sampling rate in hertz, a multiple of 50, 8000 or more

    Raises ValueError for another rate.

    >>> import torch
    >>> ImpulseOnsets(48000)(torch.zeros(2, 9600)).onsets.shape
    torch.Size([2, 2, 5, 8])
    """

    out_time_dim = ImpulseOutput(-1, -2, -3)  # type: ignore[arg-type]
    input_unit = "pascal"
    per_channel = True
    frames_stand_for_end = True
    frame_rate = FRAME_RATE
    keeps_double = ("coefficients", "times", "filters", "levels")
    on_host = True
    settle_s = REST_S
    # F decays by 50 dB in 11.5 time constants; the onset of what follows is then known.
    memory_s = 2.0
    # F rises until the end, and an onset is known three levels later.
    tail_s = 0.2

    fs: int

    def __init__(self, fs: int = 48000) -> None:
        super().__init__()
        self.block_size = frame_samples("ImpulseOnsets", fs)
        self.fs, self.ratio = fs, Fraction(1, self.block_size)
        high, low, gain = frequency_weightings(fs)
        fast = -np.expm1(-1 / (fs * FAST))
        self.register_table("coefficients", np.concatenate([high, *low, [fast, gain]]))
        self.register_table("times", np.array([STEP_S, REST_S]))

    def initial_state(self, shape: Shape) -> State:
        return {
            "filters": self.state_like("filters", with_time(shape, -1, FILTER_STATES)),
            "levels": self.state_like("levels", with_time(shape, -1, STATES)),
        }

    def step(self, x: Tensor, state: State) -> tuple[ImpulseOutput, State]:
        coefficients, times = self.registered("coefficients", "times")
        pieces = x.unflatten(-1, (-1, self.block_size // STEPS))
        powers, filters = a_weighted_powers(pieces, coefficients, state["filters"])
        mean_square, fast = powers.unbind(-2)
        level = torch.log10((fast + LEAST_POWER) / P0**2) * 10
        onsets, levels = impulse_onsets(level, times, state["levels"])
        y = ImpulseOutput(
            mean_square.unflatten(-1, (-1, STEPS)).mean(-1),
            fast.unflatten(-1, (-1, STEPS)),
            onsets.unflatten(-2, (-1, STEPS)),
        )
        return y, {"filters": filters, "levels": levels}

    def out_shape(self, shape: Shape) -> ImpulseOutput:
        return ImpulseOutput(shape, (*shape, STEPS), (*shape, STEPS, ONSET_FIELDS))  # type: ignore[arg-type]
