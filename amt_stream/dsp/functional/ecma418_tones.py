"""Compiled form of the analysis of tones of ECMA-418-2:2025, 6.2: blocks of one size at a time.

Memory is laid out as (sample, band), (line, band) or (lag, band), so that loops over bands
vectorize and transforms run many columns at once. Two real columns share a complex one.
"""

import threading
from functools import cache
from math import prod
from typing import NamedTuple

import numpy as np

from amt_stream.dsp.data import table
from amt_stream.dsp.functional.columns import transform_half, transform_padded, turns
from amt_stream.dsp.functional.dispatch import Array, kernel
from amt_stream.dsp.functional.ecma418 import (
    AROUND,
    EPSILON,
    FS,
    GATE,
    HOP,
    LAGS,
    LEAST_SHARE,
    LINES,
    MOST_SNR,
    SIZES,
    WAIT,
    BlocksOfSize,
    basis_loudness,
    neighbors,
)


class Plan(NamedTuple):
    """Tables of the blocks of one size.

    hop: samples between blocks
    most: largest lag of each band, falling with the band (band,)
    weights: of the mean over neighbors (neighbor, target); the first neighbor of target t is band
        `shift` + t, which may lie outside
    shift: see there
    lags: first and last lag of each target (target, 2), both falling
    threshold: basis loudness at the threshold in quiet (band,)
    searches: targets whose lags are transformed together: first, last + 1, length (group, 3)
    least: share of the highest line from which another may lead to the highest of `LINES` (target,)
    turn, single: `turns` of the longest transforms, in double and in single precision
    """

    hop: int
    most: Array
    weights: Array
    shift: int
    lags: Array
    threshold: Array
    searches: Array
    least: Array
    turn: Array
    single: Array


LONGEST_TRANSFORM = 4096


def _searches(lags: Array) -> tuple[Array, Array]:
    """`searches` and `least` of `Plan`: with transforms twice as long as the lags, at least."""
    counts = lags[:, 1] - lags[:, 0] + 1
    sizes = np.array([max(256, 1 << int(2 * count - 1).bit_length()) for count in counts])
    groups = []
    for size in np.unique(sizes)[::-1]:
        at = np.flatnonzero(sizes == size)
        groups.append((at[0], at[-1] + 1, size))
    # The maximum of a trigonometric polynomial, half a line away, is at most 1 / cos as high
    # (Bernstein's inequality). A margin covers single precision.
    return np.array(groups), 0.999 * np.cos(np.pi / 2 * (counts - 1) / sizes) ** 2


@cache
def plan_of(blocks: BlocksOfSize) -> Plan:
    """Tables of these blocks."""
    first, last = blocks.targets
    lags, mean = LAGS[first : last + 1], neighbors(blocks)
    reach = int(np.count_nonzero(mean[-1])) if blocks.last > last else 1
    shift = first - reach // 2 - blocks.first
    taps = np.array(
        [
            [
                mean[t, t + shift + k] if 0 <= t + shift + k < mean.shape[1] else 0.0
                for t in range(len(mean))
            ]
            for k in range(reach)
        ]
    )
    most = (mean > 0) * lags[:, 1:]
    threshold = table("ecma418_threshold")["threshold"][blocks.first : blocks.last + 1]
    groups, least = _searches(lags)
    return Plan(
        blocks.hop,
        most.max(0),
        taps,
        shift,
        np.ascontiguousarray(lags),
        threshold.copy(),
        groups,
        least,
        turns(LONGEST_TRANSFORM),
        turns(LONGEST_TRANSFORM, np.float32),
    )


class Memory(NamedTuple):
    """Memory for `_tones` of blocks of one size, of any content.

    first, second: of transforms (2, line * column)
    single_first, single_second: of those in single precision
    padded: autocorrelation (lag, band), with margins
    averaged: mean autocorrelation (lag, target)
    centered: less its mean (target, lag)
    power: of lines of its transform, in single precision (line, target)
    candidates: lines of each target (target, line)
    """

    first: Array
    second: Array
    single_first: Array
    single_second: Array
    padded: Array
    averaged: Array
    centered: Array
    power: Array
    candidates: Array


class _Own(threading.local):
    """Memory of a thread that outlives a call: the system takes long to hand out large pieces.

    Blocks of all sizes use the same pieces, one after the other, which keeps these in the cache.
    """

    def __init__(self) -> None:
        wanted = {blocks.size: _shapes(plan_of(blocks)) for blocks in SIZES}
        largest = {
            name: max(
                prod(shapes[name][0]) * shapes[name][1]().itemsize for shapes in wanted.values()
            )
            for name in Memory._fields
        }
        pieces = {name: np.zeros(size, np.uint8) for name, size in largest.items()}
        self.memories = {
            size: Memory(
                *(
                    pieces[name][: prod(shape) * dtype().itemsize].view(dtype).reshape(shape)
                    for name, (shape, dtype) in shapes.items()
                )
            )
            for size, shapes in wanted.items()
        }


def _shapes(plan: Plan) -> dict[str, tuple[tuple[int, ...], type[np.generic]]]:
    """Shapes and dtypes of `Memory`."""
    hop, bands, targets = plan.hop, plan.most.size, len(plan.lags)
    depth = int(plan.lags.max()) + 1
    two, three = (int((plan.most >= hops * hop).sum()) for hops in (1, 2))
    columns = two + (bands - two + 1) // 2 + (three + 1) // 2
    pair = (plan.searches[:, 1] - plan.searches[:, 0] + 1) // 2
    single = int((plan.searches[:, 2] * pair).max())
    lines = int(plan.searches[:, 2].max()) // 2 + 1
    return {
        "first": ((2, 2 * hop * columns), np.float64),
        "second": ((2, 2 * hop * columns), np.float64),
        "single_first": ((2, single), np.float32),
        "single_second": ((2, single), np.float32),
        "padded": ((depth, bands + 2 * max(0, -plan.shift)), np.float64),
        "averaged": ((depth, targets), np.float64),
        "centered": ((targets, depth), np.float64),
        "power": ((lines, 2 * int(pair.max())), np.float32),
        "candidates": ((targets, lines), np.int32),
    }


_own = _Own()


@kernel
def _store(x: Array, first: int, begun: int, sound: Array) -> None:
    """Put the positive part of a frame of the bands from `first` on into the ring `sound`."""
    parts = sound.shape[1] // HOP
    newest, start = sound[begun // parts % 4], begun % parts * HOP
    span = 16
    for since in range(0, HOP, span):
        for band in range(newest.shape[1]):
            for t in range(since, since + span):
                v = x[first + band, t]
                newest[start + t, band] = v if v > 0 or v != v else 0.0


@kernel
def _store_all(x: Array, firsts: Array, begun: int, a: Array, b: Array, c: Array, d: Array) -> None:
    """Put a frame `x` (band, time) into the rings of all sizes."""
    _store(x, firsts[0], begun, a)
    _store(x, firsts[1], begun, b)
    _store(x, firsts[2], begun, c)
    _store(x, firsts[3], begun, d)


@kernel
def _estimate(
    plan: Plan,
    memory: Memory,
    begun: int,
    sound: Array,
    lines: Array,
    rows: Array,
    before: Array,
    late: Array,
) -> None:
    """Tonal loudness, total loudness and frequency of a block that ends with a frame, as frames.

    begun: frames before this one
    sound, lines, rows: as in `State` of `tonal_and_noise`, for one row; updated in place. Without
        rows, blocks are not averaged over time
    before: the last estimates of these targets (3, target), replaced by the new ones
    late: frames of these targets (3, target, WAIT + 1)
    """
    frames = plan.hop // HOP
    hops = begun // frames
    _transform(sound[hops % 4], lines[hops % 4], memory, plan)
    _autocorrelate(sound, lines, hops + 1, memory, plan)
    _average(memory.padded, memory.averaged, rows, plan)
    _center(memory.averaged, plan.lags, memory.centered)
    native = np.empty((3, plan.lags.shape[0]))
    for t in range(native.shape[1]):
        native[1, t] = memory.averaged[0, t]
    for g in range(plan.searches.shape[0]):
        _search(plan.searches[g], memory, plan, native)
    first = begun + 1 - (2 * frames if rows.shape[0] else frames)
    for part in range(native.shape[0]):
        for t in range(native.shape[1]):
            last = before[part, t]
            rise = native[part, t] - last
            for k in range(frames):
                late[part, t, (first + k) % (WAIT + 1)] = last + rise * ((k + 1) / frames)
            before[part, t] = native[part, t]


@kernel
def _transform(u: Array, lines: Array, memory: Memory, plan: Plan) -> None:
    """Spectra (2, line, band) of a hop (sample, band), followed by as many zeros."""
    work, other = memory.first, memory.second
    hop, bands = u.shape
    columns, size = (bands + 1) // 2, 2 * hop
    for t in range(hop):
        re, im = work[0, t * columns :], work[1, t * columns :]
        for c in range(columns):
            re[c] = u[t, c]
        for c in range(bands - columns):
            im[c] = u[t, columns + c]
        if bands < 2 * columns:
            im[columns - 1] = 0.0
    z = other if transform_padded(work, other, plan.turn, size, columns) else work
    for f in range(hop + 1):
        a, b = f * columns, (size - f if f else 0) * columns
        re, im = lines[0, f], lines[1, f]
        for c in range(columns):
            re[c] = 0.5 * (z[0, a + c] + z[0, b + c])
            im[c] = 0.5 * (z[1, a + c] - z[1, b + c])
        for c in range(bands - columns):
            re[columns + c] = 0.5 * (z[1, a + c] + z[1, b + c])
            im[columns + c] = 0.5 * (z[0, b + c] - z[0, a + c])


@kernel
def _energies(sound: Array, first: int, lag: int, left: Array, right: Array, total: Array) -> None:
    """Energies of bands of a block: without the last `lag` samples, the first ones, and all.

    sound: (4, sample, band), of which hop `first` modulo 4 is the earliest
    """
    hop = sound.shape[1]
    near, far = min(lag, 4 * hop - lag), max(lag, 4 * hop - lag)
    sums = np.zeros((3, sound.shape[2]))
    for k in range(4):
        u = sound[(first + k) % 4]
        for t in range(hop):
            n = k * hop + t
            out, now = sums[0 if n < near else 1 if n < far else 2], u[t]
            for b in range(now.size):
                out[b] += now[b] * now[b]
    for b in range(left.size):
        total[b] = sums[0, b] + sums[1, b] + sums[2, b]
        left[b], right[b] = sums[0, b], sums[2, b]
        if lag <= 2 * hop:
            left[b] += sums[1, b]
            right[b] += sums[1, b]


LANES = 32
"""Columns of a size of blocks, at most."""


@kernel
def _autocorrelate(sound: Array, lines: Array, begun: int, memory: Memory, plan: Plan) -> None:
    """Autocorrelation of a block, scaled to loudness, into `padded` (lag, band).

    sound, lines: hops and their spectra, of which `begun` modulo 4 is the earliest
    """
    hop, bands, size = plan.hop, sound.shape[2], 2 * plan.hop
    work, other, y = memory.first, memory.second, memory.padded
    pad = (y.shape[1] - bands) // 2
    y[:, :pad] = y[:, pad + bands :] = 0.0
    left, right, total, floor = np.empty(bands), np.empty(bands), np.empty(bands), np.empty(bands)
    scale, inverse = np.empty(bands), np.empty(bands)
    _energies(sound, begun, plan.most[0], left, right, total)
    for b in range(bands):
        scale[b] = basis_loudness(total[b] * (0.5 / hop), plan.threshold[b]) * total[b]
        # Of the same size, so that a loud band does not blur the quiet one that shares its column.
        inverse[b] = 1 / total[b] if total[b] > 0 else 0.0
        floor[b] = LEAST_SHARE * total[b]
    # Lags of one hop and of two share columns, then the other bands in pairs, and those of three.
    two = three = 0
    for b in range(bands):
        two += plan.most[b] >= hop
        three += plan.most[b] >= 2 * hop
    rest, far = (bands - two + 1) // 2, (three + 1) // 2
    columns = two + rest + far
    h0, h1 = lines[begun % 4], lines[(begun + 1) % 4]
    h2, h3 = lines[(begun + 2) % 4], lines[(begun + 3) % 4]
    w = np.zeros((4, LANES))
    for f in range(hop + 1):
        r0, i0 = h0[0, f], h0[1, f]
        r1, i1 = h1[0, f], h1[1, f]
        r2, i2 = h2[0, f], h2[1, f]
        r3, i3 = h3[0, f], h3[1, f]
        # Half a transform later, every other line turns.
        turn = -1.0 if f % 2 else 1.0
        for b in range(two):
            p = r0[b] * r0[b] + i0[b] * i0[b] + r1[b] * r1[b] + i1[b] * i1[b]
            p += r2[b] * r2[b] + i2[b] * i2[b] + r3[b] * r3[b] + i3[b] * i3[b]
            q = r0[b] * r1[b] + i0[b] * i1[b] + r1[b] * r2[b] + i1[b] * i2[b]
            q += r2[b] * r3[b] + i2[b] * i3[b]
            v = r0[b] * i1[b] - i0[b] * r1[b] + r1[b] * i2[b] - i1[b] * r2[b]
            v += r2[b] * i3[b] - i2[b] * r3[b]
            g = r0[b] * r2[b] + i0[b] * i2[b] + r1[b] * r3[b] + i1[b] * i3[b]
            h = r0[b] * i2[b] - i0[b] * r2[b] + r1[b] * i3[b] - i1[b] * r3[b]
            own = inverse[b]
            w[0, b] = own * (p + turn * q)
            w[1, b] = own * turn * v
            w[2, b] = own * (q + turn * g)
            w[3, b] = own * (v + turn * h)
        for c in range(rest):
            b, n = two + c, two + c
            p = r0[b] * r0[b] + i0[b] * i0[b] + r1[b] * r1[b] + i1[b] * i1[b]
            p += r2[b] * r2[b] + i2[b] * i2[b] + r3[b] * r3[b] + i3[b] * i3[b]
            q = r0[b] * r1[b] + i0[b] * i1[b] + r1[b] * r2[b] + i1[b] * i2[b]
            q += r2[b] * r3[b] + i2[b] * i3[b]
            v = r0[b] * i1[b] - i0[b] * r1[b] + r1[b] * i2[b] - i1[b] * r2[b]
            v += r2[b] * i3[b] - i2[b] * r3[b]
            w[0, n] = inverse[b] * (p + turn * q)
            w[1, n] = inverse[b] * turn * v
        for c in range(bands - two - rest):
            b, n = two + rest + c, two + c
            p = r0[b] * r0[b] + i0[b] * i0[b] + r1[b] * r1[b] + i1[b] * i1[b]
            p += r2[b] * r2[b] + i2[b] * i2[b] + r3[b] * r3[b] + i3[b] * i3[b]
            q = r0[b] * r1[b] + i0[b] * i1[b] + r1[b] * r2[b] + i1[b] * i2[b]
            q += r2[b] * r3[b] + i2[b] * i3[b]
            v = r0[b] * i1[b] - i0[b] * r1[b] + r1[b] * i2[b] - i1[b] * r2[b]
            v += r2[b] * i3[b] - i2[b] * r3[b]
            w[2, n] = inverse[b] * (p + turn * q)
            w[3, n] = inverse[b] * turn * v
        for b in range(three):
            g = r0[b] * r2[b] + i0[b] * i2[b] + r1[b] * r3[b] + i1[b] * i3[b]
            h = r0[b] * i2[b] - i0[b] * r2[b] + r1[b] * i3[b] - i1[b] * r3[b]
            q = r0[b] * r3[b] + i0[b] * i3[b]
            v = r0[b] * i3[b] - i0[b] * r3[b]
            k, n = (0, two + rest + b) if b < far else (2, two + rest + b - far)
            w[k, n] = inverse[b] * (g + turn * q)
            w[k + 1, n] = inverse[b] * (h + turn * v)
        # Parts change places, which makes the transform an inverse one.
        k = (size - f if f else 0) * columns
        out = work[1, k : k + columns]
        for c in range(columns):
            out[c] = w[0, c] + w[3, c]
        out = work[0, k : k + columns]
        for c in range(columns):
            out[c] = w[2, c] - w[1, c]
        if 0 < f < hop:
            k = f * columns
            out = work[1, k : k + columns]
            for c in range(columns):
                out[c] = w[0, c] - w[3, c]
            out = work[0, k : k + columns]
            for c in range(columns):
                out[c] = w[2, c] + w[1, c]
    z = other if transform_half(work, other, plan.turn, size, columns) else work
    for b in range(bands):
        scale[b] /= size
        given = z[1, b] if b < two + rest else z[0, b - rest]
        y[0, pad + b] = scale[b] * given / (total[b] + EPSILON)
    width = 0
    for lag in range(plan.most[0], plan.lags[-1, 0] - 1, -1):
        while width < bands and plan.most[width] >= lag:
            width += 1
        at = lag % hop * columns
        first, second = z[1, at : at + columns], z[0, at : at + columns]
        if lag < hop:
            one, distant, split = first, second[two:], two + rest
        elif lag < 2 * hop:
            one, distant, split = second, second, two
        else:
            one, distant, split = first[two + rest :], second[two + rest :], far
        out = y[lag, pad:]
        for b in range(min(split, width)):
            energy = np.sqrt(left[b] * right[b])
            out[b] = scale[b] * one[b] / (max(energy, floor[b]) + EPSILON)
        for b in range(split, width):
            energy = np.sqrt(left[b] * right[b])
            out[b] = scale[b] * distant[b - split] / (max(energy, floor[b]) + EPSILON)
        late, early = 4 * hop - lag, lag - 1
        last = sound[(begun + late // hop) % 4, late % hop]
        before = sound[(begun + early // hop) % 4, early % hop]
        for b in range(bands):
            left[b] += last[b] * last[b]
            right[b] += before[b] * before[b]


@kernel
def _average(a: Array, y: Array, rows: Array, plan: Plan) -> None:
    """The mean over neighboring bands (lag, target), and over three blocks where there are rows."""
    targets = y.shape[1]
    pad = (a.shape[1] - plan.most.size) // 2
    first, last = targets, targets
    for lag in range(y.shape[0]):
        if 0 < lag < plan.lags[-1, 0]:
            continue
        first, last = 0, targets
        if lag:
            while plan.lags[first, 0] > lag:
                first += 1
            while plan.lags[last - 1, 1] < lag:
                last -= 1
        out, start = y[lag], pad + plan.shift
        for t in range(first, last):
            out[t] = plan.weights[0, t] * a[lag, start + t]
        for k in range(1, plan.weights.shape[0]):
            for t in range(first, last):
                out[t] += plan.weights[k, t] * a[lag, start + k + t]
        if rows.shape[0]:
            for t in range(first, last):
                now = out[t]
                out[t] = (rows[0, lag, t] + rows[1, lag, t] + now) / 3
                rows[0, lag, t] = rows[1, lag, t]
                rows[1, lag, t] = now


@kernel
def _center(a: Array, lags: Array, y: Array) -> None:
    """The lags of each target (target, lag), less their mean."""
    for t in range(lags.shape[0]):
        first, count = lags[t, 0], lags[t, 1] - lags[t, 0] + 1
        total = 0.0
        for m in range(count):
            total += a[first + m, t]
        total /= count
        for m in range(count):
            y[t, m] = a[first + m, t] - total


SPAN = 16
"""Samples between turns of the phase of a line."""

PHASES = turns(LINES)
"""Of all lines."""


@kernel
def _powers_of_lines(x: Array, count: int, line: int, sums: Array, power: Array) -> None:
    """Squared magnitudes of three of `LINES` around `line` of the first `count` samples.

    sums: memory (6, SPAN)
    """
    whole = count // SPAN
    c0, s0 = PHASES[SPAN * (line - 1) % LINES]
    c1, s1 = PHASES[SPAN * line % LINES]
    c2, s2 = PHASES[SPAN * (line + 1) % LINES]
    r0 = r1 = r2 = 1.0
    i0 = i1 = i2 = 0.0
    sums[:] = 0.0
    for k in range(whole):
        part = x[SPAN * k : SPAN * (k + 1)]
        for i in range(SPAN):
            v = part[i]
            sums[0, i] += r0 * v
            sums[1, i] += i0 * v
            sums[2, i] += r1 * v
            sums[3, i] += i1 * v
            sums[4, i] += r2 * v
            sums[5, i] += i2 * v
        r0, i0 = r0 * c0 - i0 * s0, r0 * s0 + i0 * c0
        r1, i1 = r1 * c1 - i1 * s1, r1 * s1 + i1 * c1
        r2, i2 = r2 * c2 - i2 * s2, r2 * s2 + i2 * c2
    for near in range(3):
        k = line - 1 + near
        re, im = sums[2 * near], sums[2 * near + 1]
        a = b = 0.0
        for i in range(SPAN):
            c, s = PHASES[i * k % LINES]
            a += re[i] * c - im[i] * s
            b += re[i] * s + im[i] * c
        for m in range(whole * SPAN, count):
            c, s = PHASES[m * k % LINES]
            a += x[m] * c
            b += x[m] * s
        power[near] = a * a + b * b


@kernel
def _highest(x: Array, count: int, line: int, step: int, sums: Array, power: Array) -> int:
    """The highest of `LINES` on the slope at `line`; `power` [1] is its squared magnitude."""
    last, most, leaps = line, 0.0, True
    while True:
        _powers_of_lines(x, count, line, sums, power)
        below, here, above = power[0], power[1], power[2]
        if leaps and line != last and here <= most:  # past the slope
            line, leaps = last, False
            continue
        if above > here and above >= below and line < LINES // 2:
            move = 1
        elif below > here and line > 0:
            move = -1
        else:
            return line
        curve = below - 2 * here + above
        if leaps and curve < 0:
            leap = round(min(max(0.5 * (below - above) / curve, -step), step))
            move = leap if leap * move > 0 else move
        last, most = line, here
        line = min(max(line + move, 0), LINES // 2)


@kernel
def _search(group: Array, memory: Memory, plan: Plan, y: Array) -> None:
    """The strongest of `LINES` of some targets: four times its share, at most all, and in Hz."""
    x, lags = memory.centered, plan.lags
    first, second, power = memory.single_first, memory.single_second, memory.power
    low, targets, size = group[0], group[1] - group[0], group[2]
    columns, half, step = (targets + 1) // 2, size // 2, LINES // size
    first[:, : half * columns] = 0
    for t in range(targets):
        part, c = t // columns, t % columns
        for m in range(lags[low + t, 1] - lags[low + t, 0] + 1):
            first[part, m * columns + c] = x[low + t, m]
    z = second if transform_padded(first, second, plan.single, size, columns) else first
    highest = np.zeros(2 * columns, np.float32)
    for f in range(half + 1):
        k, n = f * columns, (size - f if f else 0) * columns
        out = power[f]
        for c in range(columns):
            a, b = z[0, k + c] + z[0, n + c], z[1, k + c] - z[1, n + c]
            out[c] = a * a + b * b
            a, b = z[1, k + c] + z[1, n + c], z[0, n + c] - z[0, k + c]
            out[columns + c] = a * a + b * b
        for c in range(2 * columns):
            highest[c] = max(highest[c], out[c])
    counts = np.zeros(targets, np.int64)
    for t in range(targets):
        share = np.float32(plan.least[low + t])
        highest[t] = highest[t] * share if highest[t] > 0 else np.float32(np.inf)
    for f in range(half + 1):
        out, found = power[f], 0
        for t in range(targets):
            found += out[t] >= highest[t]
        if found:
            for t in range(targets):
                if out[t] >= highest[t]:
                    memory.candidates[t, counts[t]] = f
                    counts[t] += 1
    sums, three = np.empty((6, SPAN)), np.empty(3)
    for t in range(targets):
        sound, count = x[low + t], lags[low + t, 1] - lags[low + t, 0] + 1
        candidates = memory.candidates[t, : counts[t]]
        top = 0
        for i in range(candidates.size):
            if power[candidates[i], t] > power[candidates[top], t]:
                top = i
        # The highest line first, which rules out most others.
        best, at = 0.0, 0
        for i in range(-1, candidates.size):
            if i == top or candidates.size == 0:
                continue
            f = candidates[i if i >= 0 else top]
            here, line = power[f, t], f * step
            if here < plan.least[low + t] * best:
                continue
            left, right = power[abs(f - 1), t], power[half - abs(half - f - 1), t]
            if left > here or right > here:
                # A slope that falls before the next line may hide a maximum.
                _powers_of_lines(sound, count, line, sums, three)
                if (three[2] > three[0]) == (right > left):
                    continue
            else:
                curve = left - 2 * here + right
                offset = 0.5 * (left - right) / curve if curve < 0 else 0.0
                line = min(max(round((f + offset) * step), 0), LINES // 2)
            line = _highest(sound, count, line, step, sums, three)
            if three[1] > best:
                best, at = three[1], line
        total = y[1, low + t]
        tonal = 4 / count * np.sqrt(best)
        # A sound that is no number has no frequency.
        y[0, low + t] = tonal if tonal < total else total
        y[2, low + t] = at * FS / LINES + 0 * total


@kernel
def _reduce(
    late: Array,
    begun: int,
    smooth: Array,
    smoothing: Array,
    weights: Array,
    gate: Array,
    y: Array,
) -> None:
    """Low-pass and noise reduction of the frame that is due, into `y` (3, band)."""
    bands, at = y.shape[1], (begun + 1) % (WAIT + 1)
    slow = np.empty(3)
    for band in range(bands):
        tonal, total, hz = 0.0, 0.0, 0.0
        # The low-pass begins at frame 0, though the mean over time looks beyond it.
        if begun >= WAIT - 1:
            tonal, total, hz = late[0, band, at], late[1, band, at], late[2, band, at]
        rest = total - tonal
        ratio = tonal / ((rest if rest > 0 or rest != rest else 0.0) + EPSILON)
        given = tonal, ratio if not ratio > MOST_SNR else MOST_SNR, total
        for part in range(3):
            c = part * bands + band
            u, v = given[part], 0.0
            for k in range(smooth.shape[1]):
                s = smooth[0, k, c]
                u = s + (smoothing[0, c] * s + smoothing[2, c] * u)
                smooth[0, k, c] = u
                v += weights[k, c] * u
            slow[part] = v
        tonal, ratio, total = slow
        share = -np.expm1(-GATE[0] * (ratio / gate[band] - GATE[1]))
        tonal *= share if share > 0 or share != share else 0.0
        noise = total - tonal
        y[0, band] = tonal
        y[1, band] = noise if noise > 0 or noise != noise else 0.0
        y[2, band] = hz


_NONE = np.empty((0, 0, 0))

_FIRSTS = np.array([blocks.first for blocks in SIZES])


def tonal_frame(
    x: Array,
    state: dict[str, Array],
    smoothing: Array,
    weights: Array,
    gate: Array,
    y: Array,
) -> None:
    """The frame (3, band) after `HOP` samples of one row `x` (band, time), into `y`.

    state: arrays of `State` of `tonal_and_noise`, without leading axes; updated in place
    smoothing, weights, gate: of its tables
    """
    begun = int(state["begun"][0])
    _store_all(x, _FIRSTS, begun, *(state[f"sound_{blocks.size}"] for blocks in SIZES))
    for blocks in SIZES:
        if (begun + 1) % blocks.frames:
            continue
        size, low, high = blocks.size, blocks.targets[0], blocks.targets[1] + 1
        _estimate(
            plan_of(blocks),
            _own.memories[size],
            begun,
            state[f"sound_{size}"],
            state[f"lines_{size}"],
            state.get(f"rows_{size}", _NONE),
            state["last"][:, low:high],
            state["late"][:, low:high],
        )
    _reduce(state["late"], begun, state["smooth"], smoothing, weights, gate, y)
    begun += 1
    state["begun"][0] = begun - AROUND if begun >= 2 * AROUND else begun
