"""The STIPA test signal: modulated noise in seven octaves (IEC 60268-16, direct method)."""

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.contract import whole_hertz

OCTAVES = (125, 250, 500, 1000, 2000, 4000, 8000)
"""Nominal midband frequencies in hertz."""

MODULATIONS = (
    (1.6, 8.0),
    (1.0, 5.0),
    (0.63, 3.15),
    (2.0, 10.0),
    (1.25, 6.25),
    (0.8, 4.0),
    (2.5, 12.5),
)
"""Two modulation frequencies in hertz of each octave."""

LEVELS_DB = (-2.5, 0.5, 0.0, -6.0, -12.0, -18.0, -24.0)
"""Level of each octave relative to that at 500 Hz: male speech, edition 5."""

DEPTH = 0.55
"""Modulation depth of the intensity at each of the two frequencies."""

PERIOD_S = 100
"""All modulation frequencies are multiples of 0.01 Hz: after this time the signal repeats."""

FS = 48000
"""Rate at which the signal is measured: the lowest octave at 1/64 of it, the highest at all."""

CELL_S = 0.1
WAVES = 5
"""Sums of a cell: of the intensity, and of it times cosine and sine of both modulations."""

LEAST_FS = 22050
RMS = 0.1


def stipa_signal(
    fs: int = FS, seed: int = 1, seconds: float = PERIOD_S, rms: float = RMS
) -> NDArray[np.float32]:
    """The test signal (time,), which can be repeated without a seam if it lasts 100 s.

    In each octave pink noise, half an octave wide, of random phases; both modulations of its
    intensity in opposite phase.

    fs: sampling rate in whole hertz, 22050 or more
    seed: of the noise
    seconds: duration; any that is no multiple of 100 s has a jump of phase where it is repeated
    rms: of the signal, as a fraction of full scale

    Raises ValueError for another rate, duration or RMS.
    """
    fs = whole_hertz("stipa_signal", fs, LEAST_FS)
    if not 0 < seconds < np.inf:
        raise ValueError(f"stipa_signal: seconds is {seconds!r}: give more than 0")
    if not 0 < rms <= 0.15:
        raise ValueError(f"stipa_signal: rms is {rms!r}: give up to 0.15: peaks are 16 dB higher")
    samples, wanted = PERIOD_S * fs, max(1, round(seconds * fs))
    random = np.random.default_rng(seed)
    sound = np.zeros(min(samples, wanted), np.float32)
    t = np.arange(sound.size) / fs
    power = 0.5 * np.sum(10 ** (np.array(LEVELS_DB) / 10))
    for octave, modulations, level_db in zip(OCTAVES, MODULATIONS, LEVELS_DB, strict=True):
        slow, fast = (np.sin(2 * np.pi * f * t) for f in modulations)
        intensity = 0.5 * (1 + DEPTH * (slow - fast))
        carrier = _pink_noise(samples, octave, random)[: sound.size]
        gain = rms * 10 ** (level_db / 20) / np.sqrt(power)
        sound += carrier * (gain * np.sqrt(intensity)).astype(np.float32)
    return np.resize(sound, wanted)


def _pink_noise(samples: int, octave: float, random: np.random.Generator) -> NDArray[np.float32]:
    """Half an octave of noise about a frequency, that repeats after 100 s, with RMS 1."""
    low, high = (round(octave * 2**half * PERIOD_S) for half in (-0.25, 0.25))
    lines = np.arange(low, high + 1)
    amplitude = np.sqrt(2 / lines / np.sum(1 / lines))
    spectrum = np.zeros(samples // 2 + 1, np.complex64)
    spectrum[lines] = samples / 2 * amplitude * np.exp(2j * np.pi * random.random(lines.size))
    return np.asarray(np.fft.irfft(spectrum, samples), np.float32)


def cell_waves(band: int) -> NDArray[np.float64]:
    """1, and cosine and sine of both modulations of an octave, (5, sample) of a cell."""
    fs = FS // 2 ** (len(OCTAVES) - 1 - band)
    t = np.arange(round(fs * CELL_S)) / fs
    parts = [part(2 * np.pi * f * t) for f in MODULATIONS[band] for part in (np.cos, np.sin)]
    return np.stack([np.ones(t.size), *parts])
