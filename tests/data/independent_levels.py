"""Sound levels by IEC 61672-1:2013, written once more and plainly.

Whole sounds by one Fourier transform, weighted by the analog filters of Annex E, in float64.
"""

import numpy as np
import scipy

POLES_HZ = (20.598997, 107.65265, 737.86223, 12194.217)
REFERENCE_PA = 20e-6


def response(f, weighting):
    """Complex gain of the weighting "a", "c" or "z" at `f` Hz, not yet 1 at 1 kHz."""
    f1, f2, f3, f4 = POLES_HZ
    s = 1j * np.asarray(f, dtype=float)
    if weighting == "z":
        return np.ones_like(s)
    gain = s**2 / ((s + f1) ** 2 * (s + f4) ** 2)
    return gain if weighting == "c" else gain * s**2 / ((s + f2) * (s + f3))


def weighted(pascal, fs, weighting="a", oversampling=1):
    """Sound (time, channel) as it comes out of a weighting filter, at a multiple of its rate."""
    count = len(pascal)
    size = scipy.fft.next_fast_len(count + fs)  # what rings behind the sound is not wrapped around
    f = np.fft.rfftfreq(size, 1 / fs)
    gain = response(f, weighting) / abs(response(1000.0, weighting))
    spectrum = np.fft.rfft(pascal, size, axis=0) * gain[:, None]
    y = np.fft.irfft(spectrum, size * oversampling, axis=0) * oversampling
    return y[: count * oversampling]


def decibels(mean_square):
    return 10 * np.log10(mean_square / REFERENCE_PA**2)


def equivalent_db(pascal, fs, weighting="a"):
    """Equivalent level of each channel."""
    return decibels(np.mean(weighted(pascal, fs, weighting) ** 2, axis=0))


def peak_db(pascal, fs, weighting="c"):
    """Peak level of each channel, also between samples."""
    return decibels(np.max(weighted(pascal, fs, weighting, 16) ** 2, axis=0))


def levels_db(pascal, fs, weighting="a", tau_s=0.125):
    """Levels (time, channel) with an exponential time weighting, by default fast."""
    keep = np.exp(-1 / (fs * tau_s))
    square = weighted(pascal, fs, weighting) ** 2
    return decibels(scipy.signal.lfilter([1 - keep], [1, -keep], square, axis=0) + 1e-300)


def highest_db(pascal, fs):
    """Highest level of each channel, A-weighted and fast."""
    return levels_db(pascal, fs).max(axis=0)


def exceeded_db(pascal, fs, percent):
    """Level of each channel, A-weighted and fast, that is exceeded so much of the time.

    Of levels every 10 ms, without the first five time constants.
    """
    levels = levels_db(pascal, fs)[:: fs // 100][63:]
    return np.percentile(levels, 100 - percent, axis=0)
