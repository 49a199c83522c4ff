"""ECMA-418-2:2025, roughness and fluctuation strength of a whole sound: simple, slow, independent.

Envelopes are those of blocks' analytic signals, as the standard has them. Of the package it uses
the published tables only.
"""

import numpy as np
import scipy

from amt_stream.dsp.data import table as published_table
from tests.data.independent_ecma418 import EXPONENTS, KNEES, F, bands

E_HALF = [0, 0.0457, 0.0907, 0.1346, 0.1765, 0.2157, 0.2515, 0.2828, 0.3084, 0.3269, 0.3364]
E_HALF += [0.3348, 0.3188, 0.2844, 0.2259, 0.1351, 0]
E_TABLE = np.array([*E_HALF, *(-np.array(E_HALF[:-1][::-1])), 0.0])


def basis(power):
    """Specific basis loudness of mean squares (band,)."""
    p = np.sqrt(power) / 2e-5
    y = 0.0211964 * p
    for knee, before, after in zip(KNEES, EXPONENTS[:-1], EXPONENTS[1:], strict=True):
        y = y * (1 + (p / 10 ** (knee / 20)) ** 1.5) ** ((after - before) / 1.5)
    return np.maximum(y - published_table("ecma418_threshold")["threshold"], 0.0)


def half_up(x):
    return np.floor(x + 0.5)


def blocks(x, size, hop, to_the_end):
    """Ends in samples, and signals (53, size) of the blocks that end there."""
    q = np.concatenate([np.zeros((53, size)), bands(x)], 1)
    ends = list(range(0, x.size + 1, hop))
    if to_the_end and x.size % hop:
        ends.append(x.size)
    for end in ends:
        yield end, q[:, end : end + size]


def envelope(q):
    return np.abs(scipy.signal.hilbert(q, axis=1))[:, ::32]


def to_50_hz(ends, a, count):
    """Amplitudes (block, 53) of blocks at each 1/50 s (frame, 53)."""
    t = np.array(ends) / 48000
    y = scipy.interpolate.PchipInterpolator(t, a, axis=0)(np.arange(count) / 50)
    return np.maximum(y, 0)


def spread(y):
    mean = y.mean(1)
    rms = np.sqrt((y**2).mean(1))
    return np.divide(rms, mean, out=np.zeros_like(mean), where=mean > 0)


def sharpened(y, b, factor):
    x = 0.58449 + 0.37106 * 0.5 * (1 + np.tanh(1.6407 * (b - 2.5804)))
    return np.where(y > 0, factor * y ** x[:, None], 0.0)


def smoothed(y, rise, fall):
    out = y.copy()
    for j in range(1, len(y)):
        a = np.exp(-1 / (50 * np.where(y[j] >= out[j - 1], rise, fall)))
        out[j] = y[j] * (1 - a) + out[j - 1] * a
    return out


def roughness(x, to_the_end=False):
    """Specific roughness (frame, 53), 50 frames a second from 0.

    to_the_end: with a last block that ends where the sound does
    """
    found = [
        (end, rough_amplitudes(q)) for end, q in blocks(np.asarray(x), 16384, 4096, to_the_end)
    ]
    ends, a = zip(*found, strict=True)
    count = int(50 * (len(x) if to_the_end else ends[-1]) / 48000) + 1
    y = to_50_hz(ends, np.array(a), count)
    return smoothed(sharpened(y, spread(y), 0.0180685), 0.0625, 0.5)


def rough_amplitudes(q):
    n = basis(2 * (np.maximum(q, 0) ** 2).mean(1))
    e = envelope(q)
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(512) / 512)) / np.sqrt(0.375)
    power = np.abs(np.fft.rfft(e * window)) ** 2
    energy = n.max() * ((e * window) ** 2).sum(1)
    phi = np.zeros_like(power)
    np.divide((n**2)[:, None] * power, energy[:, None], out=phi, where=energy[:, None] > 0)
    mean = phi.copy()
    mean[1:-1] = (phi[:-2] + phi[1:-1] + phi[2:]) / 3
    s = mean.sum(0)
    k = np.arange(257)
    w0 = 0.0856 * s / (np.median(s[2:256]) + 1e-10)
    w0 = w0 * np.minimum(1, 0.1891 * np.exp(0.012 * k))
    w = np.where(w0 >= 0.05 * w0[2:256].max(), np.clip(w0 - 0.1407, 0, 1), 0)
    return np.array([rough_amplitude(y, f) for y, f in zip(mean * w, F, strict=True)])


def rough_amplitude(y, center):
    df = 1500 / 512
    found, more = scipy.signal.find_peaks(y[2:256], prominence=0)
    keep = np.sort(np.argsort(-more["prominences"])[:10])
    peaks = found[keep] + 2
    if not len(peaks):
        return 0.0
    peaks = peaks[y[peaks] > 0.05 * y[peaks].max()]
    y0, y1, y2 = y[peaks - 1], y[peaks], y[peaks + 1]
    size = y0 + y1 + y2
    ft = (peaks + 0.5 * (y0 - y2) / (y0 - 2 * y1 + y2)) * df
    f = np.array([refined(one, df) for one in ft])
    khz = center / 1000
    f_max = 72.6937 * (1 - 1.1739 * np.exp(-5.4583 * khz))
    r1, r2 = (0.3560, 0.8049) if khz < 1 else (0.8024, 0.9333)
    r_max = 1 / (1 + r1 * abs(np.log2(khz)) ** r2)

    def weight(f, q1, q2):
        return (1 + ((f / f_max - f_max / f) * q1) ** 2) ** -q2

    high = 0.2471
    if khz >= 2**-3.4253:
        high += 0.0129 * (np.log2(khz) + 3.4253) ** 2
    b = size * r_max * np.where(f > f_max, weight(f, 1.2822, high), 1.0)
    b[f <= df] = 0
    best, members, f1 = -1.0, None, 0.0
    for base in f:
        ratio = half_up(f / base)
        off = np.abs(f / np.maximum(ratio * base, 1e-30) - 1)
        own = []
        for r in np.unique(ratio[ratio > 0]):
            same = np.flatnonzero(ratio == r)
            i = same[np.argmin(off[same])]
            if off[i] < 0.04:
                own.append(i)
        if b[own].sum() > best:
            best, members, f1 = b[own].sum(), own, base
    if best <= 0:
        return 0.0
    f, b = f[members], b[members]
    strongest = f[np.argmax(b)]
    total = (1 + 0.1 * abs((f * b).sum() / b.sum() - strongest) ** 0.749) * b.sum()
    if f1 <= df:
        return 0.0
    if f1 <= f_max:
        total *= weight(f1, 0.7066, 1.0967 - 0.0640 * np.log2(khz))
    return total if total >= 0.074376 else 0.0


def refined(ft, df):
    theta = np.arange(34)
    b = (np.floor(ft / df) + theta / 32) * df - (ft + E_TABLE)
    t0 = int(np.argmin(np.abs(b[:33])))
    t = t0 if t0 > 0 and b[t0] * b[t0 - 1] < 0 else t0 + 1
    e0, e1 = E_TABLE[t - 1], E_TABLE[t]
    return ft + e0 - (e1 - e0) * b[t - 1] / (b[t] - b[t - 1])


def roughness_value(specific):
    return np.percentile(0.5 * specific[16:].sum(1), 90)
