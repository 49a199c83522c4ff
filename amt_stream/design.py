"""Filters, designed once in float64 with numpy."""

import numpy as np

GRID = 2**18
"""Points of the frequency grid on which filters are sampled: short of aliasing in time."""


def kaiser_low_pass(half: int, cutoff: float, attenuation_db: float) -> np.ndarray:
    """Taps (2 half + 1,) of a Kaiser-windowed sinc, half the gain at `cutoff` cycles per sample.

    DC gain 1; `attenuation_db` of at least 50 sets the window (Kaiser & Schafer 1980).
    """
    beta = 0.1102 * (attenuation_db - 8.7)
    taps = np.sinc(2 * cutoff * np.arange(-half, half + 1)) * np.kaiser(2 * half + 1, beta)
    return taps / taps.sum()


def linear_phase(gain: np.ndarray, taps: int) -> np.ndarray:
    """Taps of a linear-phase filter of `gain` at GRID / 2 + 1 frequencies, 0 to fs / 2.

    An odd number of taps. The impulse response is cut, not tapered; its delay is (taps - 1) / 2.
    """
    response = np.fft.irfft(gain, GRID)
    return np.roll(response, taps // 2)[:taps]


def minimum_phase(gain: np.ndarray, taps: int) -> np.ndarray:
    """Taps of the minimum-phase filter of `gain` > 0 at GRID / 2 + 1 frequencies, 0 to fs / 2.

    By the real cepstrum, folded onto positive time (Oppenheim & Schafer, Discrete-Time Signal
    Processing, homomorphic systems).
    """
    cepstrum = np.fft.irfft(np.log(gain), GRID)
    cepstrum[1 : GRID // 2] *= 2
    cepstrum[GRID // 2 + 1 :] = 0
    return np.fft.irfft(np.exp(np.fft.rfft(cepstrum)), GRID)[:taps]
