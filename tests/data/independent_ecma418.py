"""ECMA-418-2:2025, loudness and tonality of a whole sound: simple, slow, independent.

Blocks are cut one by one, bands are convolutions with sampled impulse responses, autocorrelations
are those of numpy on twice the block. It shares only the published tables with the package.
"""

import numpy as np
import scipy

from amt_stream.dsp.data import table as published_table

FS, EPS = 48000, 1e-12
Z = 0.5 * np.arange(1, 54)
F = 81.9289 / 0.1618 * np.sinh(0.1618 * Z)
D = np.sqrt(81.9289**2 + (0.1618 * F) ** 2)
SIZE = np.select([D < 85, D < 170, D < 340], [8192, 4096, 2048], 1024)
KNEES = np.arange(15, 86, 10)
EXPONENTS = np.array([1, 0.6602, 0.0864, 0.6384, 0.0328, 0.4068, 0.2082, 0.3994, 0.6434])
GATES = {8192: (18.21, 0.36), 4096: (12.14, 0.36), 2048: (417.54, 0.71), 1024: (962.68, 0.69)}


def bands(x):
    """Band signals (53, time) of a sound in pascal."""
    x = x.copy()
    n = np.arange(240)
    x[:240] *= 0.5 - 0.5 * np.cos(np.pi * n / 240)
    ear = published_table("ecma418_ear")
    one = np.ones(8)
    sections = [ear["b0"], ear["b1"], ear["b2"], one, ear["a1"], ear["a2"]]
    x = scipy.signal.sosfilt(np.stack(sections, 1), x)
    y = []
    for f, width in zip(F, D, strict=True):
        d = np.exp(-width / (FS * 70 / 512))
        n = np.arange(6000)
        gain = (1 - d) ** 5 / (d + 11 * d**2 + 11 * d**3 + d**4)
        response = gain * n**4.0 * d**n * np.cos(2 * np.pi * f / FS * n)
        y.append(2 * scipy.signal.fftconvolve(x, response)[: x.size])
    return np.array(y)


def basis(power, band):
    p = np.sqrt(power) / 2e-5
    y = 0.0211964 * p
    for knee, before, after in zip(KNEES, EXPONENTS[:-1], EXPONENTS[1:], strict=True):
        y *= (1 + (p / 10 ** (knee / 20)) ** 1.5) ** ((after - before) / 1.5)
    return max(y - published_table("ecma418_threshold")["threshold"][band], 0.0)


def scaled_autocorrelation(u, band):
    """Of one rectified block, at lags below 3/4 of it."""
    size = u.size
    r = np.fft.irfft(np.abs(np.fft.rfft(u, 2 * size)) ** 2)[: 3 * size // 4]
    left = np.cumsum(u**2)[::-1][: r.size]
    right = np.cumsum(u[::-1] ** 2)[::-1][: r.size]
    energy = np.sqrt(left * right)
    # Below this share of the energy, numbers are the rounding of the transform.
    phi = r / (np.maximum(energy, 1e-6 * left[0]) + EPS)
    return basis(2 / size * left[0], band) * phi


def lags(band):
    shortest = max(0.5 / D[band], 0.002)
    longest = max(4 / D[band], shortest + 0.001)
    return int(np.ceil(FS * shortest)) - 1, int(np.floor(FS * longest)) - 1


def estimate(a, band):
    """Tonal and total loudness and frequency of a mean autocorrelation."""
    first, last = lags(band)
    part = a[first : last + 1]
    spectrum = np.abs(np.fft.rfft(part - part.mean(), 16384))
    k = int(np.argmax(spectrum))
    return min(4 / part.size * spectrum[k], a[0]), a[0], k * FS / 16384


def slow(x):
    """The low-pass over frames (band, frame)."""
    d = np.exp(-1 / (187.5 * 6 / 224))
    b = (1 - d) ** 3 / (d + d**2) * np.array([0, d, d**2])
    a = np.poly([d, d, d])
    return scipy.signal.lfilter(b, a, x)


def tonal_and_noise(x):
    """Tonal and noise loudness and frequency (3, 53, frame), frame l at sample 256 l from l = 0.

    Ends where the longest blocks do.
    """
    rectified = np.maximum(bands(x), 0)
    before = np.concatenate([np.zeros((53, 8192)), rectified], 1)
    count = x.size // 2048 * 8 - 8  # a block after the last is needed for the mean over time
    found = np.zeros((3, 53, count + 1))
    for band in range(53):
        size = int(SIZE[band])
        reach = 2 if size > 2048 else 1 if size == 2048 else 0
        above = 1 if band < 2 else reach
        near = range(max(0, band - reach), band + above + 1)
        means = []
        for block in range(x.size // (size // 4) + 1):
            end = 8192 + block * size // 4
            cut = [scaled_autocorrelation(before[b, end - size : end], b) for b in near]
            means.append(np.mean(cut, 0))
        if size > 2048:
            over = [np.zeros_like(means[0]), *means]
            means = [np.mean(over[k : k + 3], 0) for k in range(len(means) - 1)]
        native = np.array([estimate(a, band) for a in means])
        at = np.arange(count + 1) * 1024 / size
        for part in range(3):
            found[part, band] = np.interp(at, np.arange(len(native)), native[:, part])
    tonal, total, frequency = found
    ratio = np.minimum(tonal / (np.maximum(total - tonal, 0) + EPS), 1e6)
    tonal, ratio, total = slow(tonal), slow(ratio), slow(total)
    c, e = np.array([GATES[int(size)] for size in SIZE]).T
    gate = np.maximum(0, 1 - np.exp(-20 * (ratio / (c / F**e)[:, None] - 0.07)))
    tonal = gate * tonal
    return np.stack([tonal, np.maximum(total - tonal, 0), frequency])


def loudness(x):
    """Specific loudness (frame, 53), from frame 0 on."""
    tonal, noise, _ = tonal_and_noise(x)
    e = 0.2918 / ((tonal + noise).max(0) + EPS) + 0.5459
    return ((tonal**e + (0.5331 * noise) ** e) ** (1 / e)).T


def tonality(x):
    """Specific tonality (frame, 53), from frame 0 on."""
    tonal, noise, _ = tonal_and_noise(x)
    ratio = tonal.max(0) / (noise.sum(0) + EPS)
    return (2.8758615 * np.maximum(0, 1 - np.exp(-35 * (ratio - 0.003))) * tonal).T
