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


def fluctuation(x, to_the_end=False):
    """Specific fluctuation strength (frame, 53), 50 frames a second from 0.

    to_the_end: with a last block that ends where the sound does
    """
    found = [
        (end, fluctuating_amplitudes(q))
        for end, q in blocks(np.asarray(x), 65536, 16384, to_the_end)
    ]
    ends, a = zip(*found, strict=True)
    count = int(50 * (len(x) if to_the_end else ends[-1]) / 48000) + 1
    y = to_50_hz(ends, np.array(a), count)
    b = spread(y)
    b = np.array([np.median(b[max(0, j - 35) : j + 36]) for j in range(count)])
    return smoothed(sharpened(y, b, 0.003840572), 0.75, 0.75)


def fluctuating_amplitudes(q):
    weighted, mean = np.array([slow_lines(e, f) for e, f in zip(envelope(q), F, strict=True)]).T
    some = mean > 0
    n = np.where(some, basis(0.5 * mean), 0)
    if not n.max() > 0:
        return np.zeros(53)
    a = 2048 * weighted * n**2 / (n.max() * np.where(some, mean, 1))
    return np.where(a < 5.2519, 0, a)


def analysis_window(e):
    """First and last value to analyze, or None."""
    smooth = np.round(scipy.ndimage.median_filter(e, 33, mode="nearest"), 8)
    inner = smooth.copy()
    inner[:64] = inner[-64:] = 0
    if inner.max() <= 5e-6:
        return None
    above = np.flatnonzero(inner >= np.round(0.01 * inner.max(), 8))
    first, last = above[0], above[-1]
    gaps = np.diff(above) - 1
    if gaps.size and gaps.max() > 320:
        q0, q1 = above[np.argmax(gaps)] + 1, above[np.argmax(gaps) + 1] - 1
        if q0 - first > last - q1:
            last = q0 - 64
        else:
            first = q1 + 64
    if last - first + 1 < 320 or last < 511:
        return None
    part = smooth[first + 10 : last - 9]
    if scipy.signal.detrend(part).std() < 1e-3 * part.mean():
        return None
    return first, last


class LineFit:
    """Constant, powers and error of lines of rates `f` in the spectrum of a windowed envelope."""

    def __init__(self, spectrum, first, last, f, highest=None):
        f = np.atleast_1d(f)
        df = 1500 / 2048
        used = int(min(max(17, half_up((f.max() if highest is None else highest) / df) + 8), 49))
        k, n = np.arange(used)[:, None], np.arange(first, last + 1)

        def w(rate):
            return np.exp(-2j * np.pi * (k / 2048 - rate / 1500) * n).sum(1)

        columns = [w(0.0)]
        for one in f:
            up, down = w(one), w(-one)
            columns += [up + down, 1j * (up - down)]
        a = np.array(columns).T
        a, p = np.concatenate([a.real, a.imag]), spectrum[:used]
        p = np.concatenate([p.real, p.imag])
        x = np.linalg.lstsq(a, p, rcond=None)[0]
        self.constant, self.power = x[0], x[1::2] ** 2 + x[2::2] ** 2
        self.error = ((p - a @ x) ** 2).sum()


def rate_weight(f, center):
    if f <= 4.8659:
        return (1 + ((f / 4.8659 - 4.8659 / f) * 0.33048) ** 2) ** -0.85902
    high = (1 + ((f / 4.8659 - 4.8659 / f) * 0.21792) ** 2) ** -4.6728
    return high / (1 + 0.092623 * abs(np.log2(center / 1000)) ** 1.24)


def slow_lines(e, center):
    """Weighted and mean power of a block of a band's envelope, 0 for none."""
    nothing, df = (0.0, 0.0), 1500 / 2048
    window = analysis_window(e)
    if window is None:
        return nothing
    first, last = window
    taken = np.zeros(2048)
    taken[first : last + 1] = e[first : last + 1]
    spectrum = np.fft.fft(taken)[:49]
    phi = np.abs(spectrum) ** 2

    def fitted(f, highest=None):
        return LineFit(spectrum, first, last, f, highest)

    k = scipy.signal.argrelmax(phi)[0]
    k = k[phi[k] >= max(0.001 * phi[0], 0.15)]
    near = phi[k[:, None] + np.arange(-1, 2)] if k.size else np.zeros((0, 3))
    peaks = ((near * (k[:, None] + np.arange(-1, 2))).sum(1) / near.sum(1)) * df
    search = 0.25 * 2 ** ((np.arange(1, 17) - 2) / 3)
    errors = np.array([fitted(f).error for f in search])
    low = scipy.signal.argrelmin(errors)[0]
    if not low.size and not k.size:
        return nothing
    if not low.size:
        f = peaks
    else:
        slowest = search[low[np.argmin(errors[low])]]
        f = np.append(peaks[np.abs(peaks - slowest) >= 1.25 * df], slowest)
        if f.size <= peaks.size and fitted(f).error >= fitted(peaks).error:
            f = peaks
    a = fitted(f).power
    f, a = f[a > 0.05 * a.max()], a[a > 0.05 * a.max()]
    heard = a * [rate_weight(one, center) for one in f]
    i = np.argmax(heard)
    x = f[i] / 1500
    for _ in range(40):
        before, here, after = (fitted(1500 * (x + d), f[i]).error for d in (-1e-5, 0, 1e-5))
        slope, bend = (after - before) / 2e-5, (after - 2 * here + before) / 1e-10
        step = 0.25 * np.sign(slope) * min(abs(slope) / max(abs(bend), 1e-300), 2e-4)
        x -= step
        if abs(step) <= 1e-7:
            break
    if abs(1500 * x - f[i]) <= 1.25 * df:
        f[i] = 1500 * x
        heard[i] = fitted(f[i]).power[0] * rate_weight(f[i], center)
    base = f[i]
    if base < 0.125:
        return nothing
    best, orders, order = -1.0, None, 1
    for o in (1, 2, 3):
        r = half_up(f / (base / o))
        member = (r >= 1) & (r <= 5) & (np.abs(f / (np.maximum(r, 1) * base / o) - 1) < 0.04)
        if heard[member].sum() > best:
            best, orders, order = heard[member].sum(), np.unique(r[member]), o
    rates = orders * base / order
    fits = [fitted(rate) for rate in rates]
    a = np.array([one.power[0] for one in fits])
    constant = np.mean([one.constant for one in fits])
    heard = a * [rate_weight(rate, center) for rate in rates]
    apart = abs((rates * heard).sum() / heard.sum() - base)
    return (1 + 0.79577 * apart**0.43461) * heard.sum(), constant**2 + 2 * a.sum()
