"""The speech transmission index STI of modulation transfer values (IEC 60268-16)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values = NDArray[np.float64]

ALPHA = np.array([0.085, 0.127, 0.230, 0.233, 0.309, 0.224, 0.173])
"""Weights of the octaves from 125 Hz: male speech, edition 5."""

BETA = np.array([0.085, 0.078, 0.065, 0.011, 0.047, 0.095])
"""Weights of what neighboring octaves have in common."""

THRESHOLD_DB = np.array([46.0, 27.0, 12.0, 6.5, 7.5, 8.0, 12.0])
"""Of reception of speech, in dB SPL in each octave."""

CATEGORIES = ("A+", *"ABCDEFGHIJ")
"""From an STI of 0.76 downwards in steps of 0.04; below 0.36 it is U."""

SNR_DB = 15.0


def masking_db(level_db: ArrayLike) -> Values:
    """How far the masking of the next octave is below the level of an octave in dB SPL."""
    level = np.asarray(level_db, np.float64)
    slopes = [0.5 * level - 65, 1.8 * level - 146.9, 0.5 * level - 59.8]
    found: Values = np.select([level < 63, level < 67, level < 100], slopes, -10.0)
    return found


def as_heard(
    m: ArrayLike, level_db: ArrayLike | None = None, noise_db: ArrayLike | None = None
) -> Values:
    """Modulation transfer values (band, 2) as a listener has them.

    level_db: levels (band,) in dB SPL with which `m` was measured, for masking and for the
        threshold of hearing; without them neither counts
    noise_db: levels (band,) of noise that was not there and is to be added; needs `level_db`

    Raises ValueError for noise without levels.
    """
    m = np.clip(np.asarray(m, np.float64), 0.0, 1.0)
    if level_db is None:
        if noise_db is not None:
            raise ValueError("noise needs the level of the signal: give level_db too")
        return m
    own = 10 ** (np.asarray(level_db, np.float64) / 10)
    noise = 0.0 if noise_db is None else 10 ** (np.asarray(noise_db, np.float64) / 10)
    there = own + noise
    masking = np.zeros_like(there)
    with np.errstate(divide="ignore"):
        masking[1:] = (there * 10 ** (masking_db(10 * np.log10(there)) / 10))[:-1]
    total = there + masking + 10 ** (THRESHOLD_DB / 10)
    found: Values = m * (own / total)[:, None]
    return found


def transmission(m: ArrayLike) -> Values:
    """Transmission index of modulation transfer values: the ratio to noise of -15 to 15 dB."""
    m = np.clip(np.asarray(m, np.float64), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        snr_db = 10 * (np.log10(m) - np.log10(1 - m))
    return np.asarray((np.clip(snr_db, -SNR_DB, SNR_DB) + SNR_DB) / (2 * SNR_DB))


def index(mti: ArrayLike) -> float:
    """The STI of modulation transfer indices (band,), at most 1."""
    mti = np.asarray(mti, np.float64)
    return min(1.0, float(ALPHA @ mti - BETA @ np.sqrt(mti[:-1] * mti[1:])))


def sti(
    m: ArrayLike, level_db: ArrayLike | None = None, noise_db: ArrayLike | None = None
) -> tuple[float, Values]:
    """STI and modulation transfer indices (band,) of `m` (band, 2); arguments as for `as_heard`."""
    mti = transmission(as_heard(m, level_db, noise_db)).mean(-1)
    return index(mti), mti


def category(value: float) -> str:
    """The letter of an STI, A+ to J or U."""
    # Rounded, so that a limit belongs to the category above it.
    below = -int(np.floor(round((value - 0.76) / 0.04, 6)))
    return CATEGORIES[max(0, below)] if below < len(CATEGORIES) else "U"


SECONDS: Sequence[float] = (5, 10, 15, 20, 30, 60)
DEVIATIONS: Sequence[float] = (0.0135, 0.0096, 0.0080, 0.0062, 0.0036, 0.0010)
"""Standard deviation of the STI of an ideal channel by seconds, which chance in the noise of the
signal leaves; with noise or reverberation it is smaller. Measured."""


def deviation(seconds: ArrayLike) -> Values:
    """Standard deviation of an STI that was measured for so many seconds, more than 0."""
    seconds = np.asarray(seconds, np.float64)
    found = np.exp(np.interp(np.log(seconds), np.log(SECONDS), np.log(DEVIATIONS)))
    return np.asarray(found * np.sqrt(np.maximum(1.0, SECONDS[0] / seconds)))
