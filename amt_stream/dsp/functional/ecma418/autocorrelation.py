"""Autocorrelation of blocks of one size (ECMA-418-2:2025, 6.2.2 to 6.2.4).

Time, lines and lags are contiguous. Two real signals share a complex transform.
"""

import threading
from collections import namedtuple
from typing import NamedTuple

import numpy as np

from amt_stream.dsp.functional.compiler.dispatch import Array, bare_kernel
from amt_stream.dsp.functional.compiler.fourier import SHORTEST, transform, turns, twists
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.ecma418.bands import (
    EPSILON,
    HOP,
    LAGS,
    LEAST_SHARE,
    SIZES,
    BlocksOfSize,
    basis_loudness,
    neighbors,
)

SMALLEST = float(np.finfo(np.float64).tiny)
"""The least number whose inverse is finite; sound that dies away passes below it."""


class Plan(NamedTuple):
    """Tables of the blocks of one size.

    frames: between blocks
    first: number of the first band
    targets: number of the first target
    used: least and largest lag of each band, other than 0 (band, 2)
    segments: a band and its first lag in hops, for each half of a transform (transform, 2, 2)
    sources: first and last band of the mean of each target (target, 2)
    lags: first and last lag of each target (target, 2)
    pairs: two targets that share a transform of their lags, and its length (pair, 3)
    least: share of the highest line from which another may lead to the highest of `LINES` (target,)
    """

    frames: int
    first: int
    targets: int
    used: Array
    segments: Array
    sources: Array
    lags: Array
    pairs: Array
    least: Array


def _in_pairs(items: list[int]) -> list[tuple[int, int]]:
    """Two at a time; the last of an odd number twice."""
    return list(zip(items[::2], items[1::2] + items[-1:], strict=False))


def _pairs(counts: Array) -> tuple[Array, Array]:
    """`pairs` and `least` of `Plan`: with transforms twice as long as the lags, at least."""
    sizes = np.array([max(SHORTEST, 1 << int(2 * count - 1).bit_length()) for count in counts])
    pairs = [
        (*pair, size)
        for size in np.unique(sizes)
        for pair in _in_pairs(np.flatnonzero(sizes == size).tolist())
    ]
    # The maximum of a trigonometric polynomial, half a line away, is at most 1 / cos as high
    # (Bernstein's inequality). A margin covers single precision.
    return np.array(pairs), 0.999 * np.cos(np.pi / 2 * (counts - 1) / sizes) ** 2


def _plan_of(blocks: BlocksOfSize) -> Plan:
    """Tables of these blocks."""
    low, high = blocks.targets
    lags, mean = LAGS[low : high + 1], neighbors(blocks) > 0
    used = np.stack(
        [np.where(mean, lags[:, :1], blocks.size).min(0), (mean * lags[:, 1:]).max(0)], 1
    )
    # Of a band that needs lags of two hops both share a transform; other lags share one with those
    # of another band.
    hops = used[:, 1] // blocks.hop
    segments = [[(band, 0), (band, 1)] for band in np.flatnonzero(hops >= 1).tolist()]
    for bands, start in ((hops < 1, 0), (hops >= 2, 2)):
        pairs = _in_pairs(np.flatnonzero(bands).tolist())
        segments += [[(band, start) for band in pair] for pair in pairs]
    sources = np.stack([mean.argmax(1), mean.shape[1] - 1 - mean[:, ::-1].argmax(1)], 1)
    counts = lags[:, 1] - lags[:, 0] + 1
    tables = used, np.array(segments), sources, np.ascontiguousarray(lags), *_pairs(counts)
    return Plan(blocks.frames, blocks.first, low, *tables)


PLANS = tuple(map(_plan_of, SIZES))

LONGEST = 4096
"""Samples of a transform, at most."""

TURN, TWIST = turns(LONGEST), twists(LONGEST)
"""Of transforms."""

SINGLE_TURN, SINGLE_TWIST = turns(LONGEST, np.float32), twists(LONGEST, np.float32)
"""The same in single precision."""


Memory = namedtuple(
    "Memory",
    "first second single_first single_second halves padded energy centered power candidates "
    "sums many three totals native",
)
"""Memory for `tonal_and_noise`, of any content.

first, second: of transforms (2, sample)
single_first, single_second: of those in single precision
halves: spectra of the two halves of a transform (2, 2, line)
padded: autocorrelation (band, lag)
energy: squares of a block, then products of energies (2, sample)
centered: mean autocorrelation of two targets, less its mean (2, lag)
power: of lines of their transform, in single precision (2, line)
candidates: lines of a target (line,)
sums: of the samples of a target in each lane (6, LANES)
many: highest powers in each lane, in single precision (1, LANES)
three: powers of neighboring lines (3,)
totals: energy of each band, and its inverse (2, band)
native: of each target, as `last` in `State` of `tonal_and_noise` (3, target)
"""


class _Own(threading.local):
    """Memory of a thread that outlives a call: the system takes long to hand out large pieces.

    Blocks of all sizes use the same pieces, one after the other, which keeps these in the cache.
    """

    def __init__(self) -> None:
        bands, lags = max(len(plan.used) for plan in PLANS), LAGS.max() + 1
        whole, half = (2, LONGEST), LONGEST // 2 + 1
        self.memory = Memory(
            np.zeros(whole),
            np.zeros(whole),
            np.zeros(whole, np.float32),
            np.zeros(whole, np.float32),
            np.zeros((2, 2, half)),
            np.zeros((bands, lags)),
            np.zeros((2, SIZES[0].size)),
            np.zeros((2, lags + LANES)),
            np.zeros((2, half), np.float32),
            np.zeros(half, np.int32),
            np.zeros((6, LANES)),
            np.zeros((1, LANES), np.float32),
            np.zeros(3),
            np.zeros((2, bands)),
            np.zeros((3, bands)),
        )


own = _Own()


@bare_kernel
def keep_positive(x: Array, start: int, first: int, begun: int, sound: Array) -> None:
    """Put the positive part of a frame of the bands from `first` on into the ring `sound`."""
    parts = sound.shape[2] // HOP
    hop, to = begun // parts % 4, begun % parts * HOP
    for band in range(sound.shape[0]):
        given, out = x[first + band, start : start + HOP], sound[band, hop, to : to + HOP]
        for t in range(HOP):
            v = given[t]
            out[t] = v if v > 0 or v != v else 0.0


@bare_kernel
def transform_hop(sound: Array, hop: int, lines: Array, memory: Memory) -> None:
    """Spectra of the hop number `hop` of all bands, followed by as many zeros."""
    x, y = memory.first, memory.second
    bands, size = sound.shape[0], np.uintp(sound.shape[2])
    for band in range(0, bands, 2):
        other = min(band + 1, bands - 1)
        for part in range(2):
            given, out = sound[other if part else band, hop], x[part]
            for t in range(size):
                out[t] = given[t]
            for t in range(size):
                out[size + t] = 0.0
        z = y if transform(x, y, TURN, TWIST, 2 * sound.shape[2]) else x
        zr, zi, n = z[0], z[1], 2 * size
        re, im = lines[band, hop, 0], lines[band, hop, 1]
        for f in range(np.uintp(1), size + np.uintp(1)):
            re[f] = 0.5 * (zr[f] + zr[n - f])
            im[f] = 0.5 * (zi[f] - zi[n - f])
        re[0], im[0] = zr[0], 0.0
        re, im = lines[other, hop, 0], lines[other, hop, 1]
        for f in range(np.uintp(1), size + np.uintp(1)):
            re[f] = 0.5 * (zi[f] + zi[n - f])
            im[f] = 0.5 * (zr[n - f] - zr[f])
        re[0], im[0] = zi[0], 0.0


@bare_kernel
def _segment(lines: Array, begun: int, start: int, factor: float, y: Array) -> None:
    """The spectrum (2, line) of the autocorrelation of a block, `start` hops and more apart.

    lines: spectra of the hops of a band, of which `begun` modulo 4 is the earliest
    """
    h0, h1 = lines[begun % 4], lines[(begun + 1) % 4]
    h2, h3 = lines[(begun + 2) % 4], lines[(begun + 3) % 4]
    r0, i0, r1, i1 = h0[0], h0[1], h1[0], h1[1]
    r2, i2, r3, i3 = h2[0], h2[1], h3[0], h3[1]
    re, im = y[0], y[1]
    for f in range(lines.shape[2]):
        # Half a transform later, every other line turns.
        turn = factor * (1 - 2 * (f & 1))
        if start == 2:
            p = r0[f] * r2[f] + i0[f] * i2[f] + r1[f] * r3[f] + i1[f] * i3[f]
            q = r0[f] * i2[f] - i0[f] * r2[f] + r1[f] * i3[f] - i1[f] * r3[f]
            g = r0[f] * r3[f] + i0[f] * i3[f]
            h = r0[f] * i3[f] - i0[f] * r3[f]
        else:
            g = r0[f] * r1[f] + i0[f] * i1[f] + r1[f] * r2[f] + i1[f] * i2[f]
            g += r2[f] * r3[f] + i2[f] * i3[f]
            h = r0[f] * i1[f] - i0[f] * r1[f] + r1[f] * i2[f] - i1[f] * r2[f]
            h += r2[f] * i3[f] - i2[f] * r3[f]
            if start == 1:
                p, q = g, h
                g = r0[f] * r2[f] + i0[f] * i2[f] + r1[f] * r3[f] + i1[f] * i3[f]
                h = r0[f] * i2[f] - i0[f] * r2[f] + r1[f] * i3[f] - i1[f] * r3[f]
            else:
                p = r0[f] * r0[f] + i0[f] * i0[f] + r1[f] * r1[f] + i1[f] * i1[f]
                p += r2[f] * r2[f] + i2[f] * i2[f] + r3[f] * r3[f] + i3[f] * i3[f]
                q = 0.0
        re[f] = factor * p + turn * g
        im[f] = factor * q + turn * h


@bare_kernel
def autocorrelate(
    sound: Array, lines: Array, begun: int, threshold: Array, memory: Memory, plan: Plan
) -> None:
    """Autocorrelation of a block, scaled to loudness, into `padded`.

    sound, lines: hops and their spectra, of which `begun` modulo 4 is the earliest
    """
    bands, hop = sound.shape[0], sound.shape[2]
    total, inverse = memory.totals[0], memory.totals[1]
    for band in range(bands):
        u = sound[band].reshape(4 * hop)
        energy = 0.0
        for t in range(4 * hop):
            energy += u[t] * u[t]
        total[band] = energy
        # Of the same size, so that a loud band does not blur the quiet one that shares its
        # transform.
        inverse[band] = 1 / energy if energy >= SMALLEST else 0.0
    x, y, w, n = memory.first, memory.second, memory.halves, np.uintp(2 * hop)
    for k in range(plan.segments.shape[0]):
        pair = plan.segments[k]
        for half in range(2):
            band, start = pair[half]
            _segment(lines[band], begun, start, inverse[band], w[half])
        # Parts change places, which makes the transform an inverse one.
        re, im = x[1], x[0]
        a, b, c, d = w[0, 0], w[0, 1], w[1, 0], w[1, 1]
        for f in range(hop + 1):
            re[f] = a[f] - d[f]
            im[f] = c[f] + b[f]
        for f in range(np.uintp(1), np.uintp(hop)):
            re[n - f] = a[f] + d[f]
            im[n - f] = c[f] - b[f]
        z = y if transform(x, y, TURN, TWIST, 2 * hop) else x
        for half in range(2):
            band, start = pair[half]
            given, out = z[1 - half], memory.padded[band, start * hop :]
            for lag in range(min(hop, plan.used[band, 1] + 1 - start * hop)):
                out[lag] = given[lag]
    for band in range(bands):
        loudness = basis_loudness(total[band] * (0.5 / hop), threshold[plan.first + band])
        scale = loudness * total[band] / (2 * hop)
        low, high = plan.used[band]
        out = memory.padded[band, : high + 1]
        _normalize(sound[band], begun, low, total[band], scale, memory.energy, out)


@bare_kernel
def _normalize(
    sound: Array, begun: int, least: int, total: float, scale: float, scratch: Array, y: Array
) -> None:
    """Divide an autocorrelation by the energy of the parts that overlap, and scale it.

    scratch: for squares of the samples, and energies (2, sample)
    y: its lags 0, and `least` and more
    """
    hop, low, high = sound.shape[1], np.uintp(least), np.uintp(y.size - 1)
    square, energy = scratch[0], scratch[1]
    for k in range(4):
        u, out = sound[(begun + k) % 4], square[k * hop :]
        for t in range(hop):
            out[t] = u[t] * u[t]
    # Each is summed from its own end: a difference of two sums would cancel at an onset.
    end = np.uintp(4 * hop)
    left = right = 0.0
    for t in range(end - high):
        left += square[t]
    for t in range(high, end):
        right += square[t]
    one, four = np.uintp(1), np.uintp(4)
    two, three = one + one, four - one
    count = high - low + one
    whole = count // four * four
    for k in range(np.uintp(0), whole, four):
        # Four sums at a time, so that few additions wait for the last.
        a, b = end - high + k, high - four - k
        a1, b1 = square[a], square[b + three]
        a2, b2 = a1 + square[a + one], b1 + square[b + two]
        a3, b3 = a2 + square[a + two], b2 + square[b + one]
        energy[k] = left * right
        energy[k + one] = (left + a1) * (right + b1)
        energy[k + two] = (left + a2) * (right + b2)
        energy[k + three] = (left + a3) * (right + b3)
        left += a3 + square[a + three]
        right += b3 + square[b]
    for k in range(whole, count):
        energy[k] = left * right
        left += square[end - high + k]
        right += square[high - one - k]
    floor = LEAST_SHARE * total
    y[0] *= scale / (total + EPSILON)
    for k in range(count):
        y[high - k] *= scale / (max(np.sqrt(energy[k]), floor) + EPSILON)


@bare_kernel
def average(
    given: Array, bands: Array, low: int, high: int, rows: Array, target: int, y: Array
) -> None:
    """The mean over neighboring bands from lag `low` to `high`, and over three blocks with `rows`.

    given: (band, lag)
    """
    # Slices, so that no index can be negative, which a compiler does not vectorize.
    out, end = y[low : high + 1], high + 1
    first = given[bands[0], low:end]
    for k in range(out.size):
        out[k] = first[k]
    for band in range(bands[0] + 1, bands[1] + 1):
        other = given[band, low:end]
        for k in range(out.size):
            out[k] += other[k]
    share = 1 / (bands[1] - bands[0] + 1)
    if not rows.shape[2]:
        for k in range(out.size):
            out[k] *= share
        return
    before, last = rows[0, target, low:end], rows[1, target, low:end]
    for k in range(out.size):
        now = out[k] * share
        out[k] = (before[k] + last[k] + now) / 3
        before[k] = last[k]
        last[k] = now
