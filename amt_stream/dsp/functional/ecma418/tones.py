"""Tonal and noise parts of specific loudness by autocorrelation (ECMA-418-2:2025, 6.2)."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, arrays_of, bare_kernel, copied
from amt_stream.dsp.functional.compiler.fourier import transform, turns
from amt_stream.dsp.functional.compiler.lanes import LANES, any_of, lanes_of, put, where
from amt_stream.dsp.functional.compiler.operators import on_host
from amt_stream.dsp.functional.compiler.shapes import fit_state
from amt_stream.dsp.functional.ecma418.autocorrelation import (
    PLANS,
    SINGLE_TURN,
    SINGLE_TWIST,
    Memory,
    Plan,
    autocorrelate,
    average,
    keep_positive,
    own,
    transform_hop,
)
from amt_stream.dsp.functional.ecma418.bands import (
    AROUND,
    BANDS,
    EPSILON,
    FS,
    GATE,
    HOP,
    LINES,
    MOST_SNR,
    SIZES,
    WAIT,
)

_lanes = lanes_of(LANES)


class TonalTables(NamedTuple):
    """Tables of `tonal_and_noise`, in float64.

    threshold: basis loudness at the threshold in quiet (53,)
    gate: divisor of the smoothed ratio of tone to noise (53,)
    smoothing, weights: of the low-pass over frames, (3, 159) and (3, 159) of `gammatone_sum`
    """

    threshold: Tensor
    gate: Tensor
    smoothing: Tensor
    weights: Tensor


_LOW_PASS = (3, 3 * BANDS)

TABLE_SHAPES = dict(
    zip(TonalTables._fields, ((BANDS,), (BANDS,), _LOW_PASS, _LOW_PASS), strict=True)
)


class State(NamedTuple):
    """State of `tonal_and_noise`, in float64.

    sound_...: the last hops of the bands (..., band, 4, sample), rectified; each replaces the
        oldest, so that hop n since the beginning is number n modulo 4
    lines_...: real and imaginary parts of their spectra (..., band, 4, 2, line), over two hops
    rows_...: the last two means over bands, where blocks are averaged (..., 2, target band, lag)
    last: the last estimates of each band (..., 3, 53)
    late: estimates that wait for those of longer blocks (..., 3, 53, 16); that of frame n since the
        beginning is number n modulo 16
    smooth: of the low-pass (..., 2, 3, 159)
    begun: frames since the beginning; from twice `AROUND` it goes back by that (..., 1)
    """

    sound_8192: Tensor
    sound_4096: Tensor
    sound_2048: Tensor
    sound_1024: Tensor
    lines_8192: Tensor
    lines_4096: Tensor
    lines_2048: Tensor
    lines_1024: Tensor
    rows_8192: Tensor
    rows_4096: Tensor
    last: Tensor
    late: Tensor
    smooth: Tensor
    begun: Tensor


def _state_shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for blocks in SIZES:
        bands = blocks.last - blocks.first + 1
        shapes[f"sound_{blocks.size}"] = (bands, 4, blocks.hop)
        shapes[f"lines_{blocks.size}"] = (bands, 4, 2, blocks.hop + 1)
        if blocks.averaged:
            targets = blocks.targets[1] - blocks.targets[0] + 1
            shapes[f"rows_{blocks.size}"] = (2, targets, blocks.lags + 1)
    shapes |= {"last": (3, BANDS), "late": (3, BANDS, WAIT + 1), "smooth": (2, 3, 3 * BANDS)}
    shapes["begun"] = (1,)
    return {name: shapes[name] for name in State._fields}


STATE_SHAPES = _state_shapes()
"""Of `State`, without leading axes."""


PHASES = turns(LINES)
"""Of all lines."""


@bare_kernel
def _powers_of_lines(x: Array, row: int, count: int, line: int, sums: Array, power: Array) -> None:
    """Squared magnitudes of three of `LINES` around `line` of the first `count` samples of a row.

    x: (row, sample), 0 beyond the samples up to a whole number of `LANES`
    sums: memory (6, LANES)
    """
    c0, s0 = PHASES[LANES * (line - 1) % LINES]
    c1, s1 = PHASES[LANES * line % LINES]
    c2, s2 = PHASES[LANES * (line + 1) % LINES]
    r0 = r1 = r2 = 1.0
    i0 = i1 = i2 = 0.0
    v = _lanes(x, row, 0)
    a0, a1, a2 = v, v, v
    b0 = b1 = b2 = v - v
    for m in range(LANES, count, LANES):
        r0, i0 = r0 * c0 - i0 * s0, r0 * s0 + i0 * c0
        r1, i1 = r1 * c1 - i1 * s1, r1 * s1 + i1 * c1
        r2, i2 = r2 * c2 - i2 * s2, r2 * s2 + i2 * c2
        v = _lanes(x, row, m)
        a0, b0 = a0 + v * r0, b0 + v * i0
        a1, b1 = a1 + v * r1, b1 + v * i1
        a2, b2 = a2 + v * r2, b2 + v * i2
    put(a0, sums, 0, 0)
    put(b0, sums, 1, 0)
    put(a1, sums, 2, 0)
    put(b1, sums, 3, 0)
    put(a2, sums, 4, 0)
    put(b2, sums, 5, 0)
    for near in range(3):
        k, re, im = line - 1 + near, sums[2 * near], sums[2 * near + 1]
        a = b = 0.0
        for i in range(LANES):
            c, s = PHASES[i * k % LINES]
            a += re[i] * c - im[i] * s
            b += re[i] * s + im[i] * c
        power[near] = a * a + b * b


@bare_kernel
def _highest(
    x: Array, row: int, count: int, line: int, step: int, sums: Array, power: Array
) -> int:
    """The highest of `LINES` on the slope at `line`; `power` [1] is its squared magnitude."""
    last, most, leaps = line, 0.0, True
    while True:
        _powers_of_lines(x, row, count, line, sums, power)
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


@bare_kernel
def _search(x: Array, pair: Array, memory: Memory, plan: Plan, y: Array) -> None:
    """The strongest of `LINES` of two targets: four times its share, at most all, and in Hz.

    x: autocorrelation at the lags of the targets, less its mean (2, lag)
    """
    first, second, power = memory.single_first, memory.single_second, memory.power
    size = np.uintp(pair[2])
    for part in range(2):
        given, out, lags = x[part], first[part], plan.lags[pair[part]]
        count = np.uintp(lags[1] - lags[0] + 1)
        for m in range(count):
            out[m] = given[m]
        for m in range(count, size):
            out[m] = 0.0
    z = second if transform(first, second, SINGLE_TURN, SINGLE_TWIST, pair[2]) else first
    re, im, p, q = z[0], z[1], power[0], power[1]
    p[0], q[0] = 4 * re[0] * re[0], 4 * im[0] * im[0]
    for f in range(np.uintp(1), size // np.uintp(2) + np.uintp(1)):
        a, b = re[f] + re[size - f], im[f] - im[size - f]
        p[f] = a * a + b * b
        a, b = im[f] + im[size - f], re[size - f] - re[f]
        q[f] = a * a + b * b
    for part in range(2):
        t = pair[part]
        count = plan.lags[t, 1] - plan.lags[t, 0] + 1
        power_at, hz = _strongest(
            x,
            part,
            count,
            power,
            pair[2] // 2,
            plan.least[t],
            memory.candidates,
            memory.sums,
            memory.many,
            memory.three,
        )
        total = y[1, t]
        tonal = 4 / count * np.sqrt(power_at)
        # A sound that is no number has no frequency.
        y[0, t] = tonal if tonal < total else total
        y[2, t] = hz + 0 * total


@bare_kernel
def _strongest(
    x: Array,
    row: int,
    count: int,
    powers: Array,
    half: int,
    least: float,
    candidates: Array,
    sums: Array,
    many: Array,
    three: Array,
) -> tuple[float, float]:
    """Squared magnitude and frequency in Hz of the strongest of `LINES` of `count` samples.

    x: (row, sample), 0 beyond the samples
    powers: of `half` + 1 lines of a shorter transform, times any factor (row, line)
    candidates, sums, many, three: of `Memory`
    """
    power, step = powers[row], LINES // (2 * half)
    most = _lanes(powers, row, 0)
    for f in range(LANES, half, LANES):
        v = _lanes(powers, row, f)
        most = where(v > most, v, most)
    put(most, many, 0, 0)
    highest = power[half]
    for i in range(LANES):
        highest = max(highest, many[0, i])
    found = top = 0
    # Nothing leads from lines that are 0 or no number.
    share = highest * np.float32(least) if highest > 0 else np.float32(np.inf)
    for first in range(0, half + 1, LANES):
        if first < half and not any_of(_lanes(powers, row, first) > share):
            continue
        for f in range(first, min(first + LANES, half + 1)):
            if power[f] > share:
                candidates[found] = f
                top = found if power[f] > power[candidates[top]] else top
                found += 1
    # The highest line first, which rules out most others.
    best, at = 0.0, 0
    for i in range(-1, found):
        if i == top or found == 0:
            continue
        f = candidates[i if i >= 0 else top]
        here, line = power[f], f * step
        if here < least * best:
            continue
        left, right = power[abs(f - 1)], power[half - abs(half - f - 1)]
        if left > here or right > here:
            # A slope that falls before the next line may hide a maximum.
            _powers_of_lines(x, row, count, line, sums, three)
            if (three[2] > three[0]) == (right > left):
                continue
        else:
            curve = left - 2 * here + right
            offset = 0.5 * (left - right) / curve if curve < 0 else 0.0
            line = min(max(round((f + offset) * step), 0), LINES // 2)
        line = _highest(x, row, count, line, step, sums, three)
        if three[1] > best:
            best, at = three[1], line
    return best, at * FS / LINES


@bare_kernel
def _estimate(
    plan: Plan,
    memory: Memory,
    begun: int,
    threshold: Array,
    sound: Array,
    lines: Array,
    rows: Array,
    last: Array,
    late: Array,
) -> None:
    """Tonal loudness, total loudness and frequency of a block that ends with a frame, as frames.

    begun: frames before this one
    sound, lines, rows, last, late: as in `State` of `tonal_and_noise`, for one row; updated in
        place. Without rows, blocks are not averaged over time
    """
    hops, targets = begun // plan.frames, plan.lags.shape[0]
    transform_hop(sound, hops % 4, lines, memory)
    autocorrelate(sound, lines, hops + 1, threshold, memory, plan)
    native, averaged = memory.native, memory.energy[0]
    for k in range(plan.pairs.shape[0]):
        pair = plan.pairs[k]
        for part in range(2):
            t, out = pair[part], memory.centered[part]
            if part and t == pair[0]:
                # Averaged already.
                for m in range(out.size):
                    out[m] = memory.centered[0, m]
                continue
            bands, first, end = plan.sources[t], plan.lags[t, 0], plan.lags[t, 1] + 1
            average(memory.padded, bands, 0, 0, rows, t, averaged)
            average(memory.padded, bands, first, end - 1, rows, t, averaged)
            native[1, t] = averaged[0]
            mean = averaged[first:end].sum() / (end - first)
            for m in range(end - first):
                out[m] = averaged[first + m] - mean
            out[end - first :][:LANES] = 0.0
        _search(memory.centered, pair, memory, plan, native)
    start = begun + 1 - (2 if rows.shape[2] else 1) * plan.frames
    for part in range(3):
        before, to = last[part, plan.targets :], late[part, plan.targets :]
        for t in range(targets):
            rise = native[part, t] - before[t]
            for k in range(plan.frames):
                share = (k + 1) / plan.frames
                to[t, (start + k) % (WAIT + 1)] = before[t] + rise * share
            before[t] = native[part, t]


@bare_kernel
def _smoothed(u: float, c: int, smooth: Array, smoothing: Array, weights: Array) -> float:
    """The output of low-pass number `c` for `u`."""
    v = 0.0
    for k in range(smooth.shape[1]):
        s = smooth[0, k, c]
        u = s + (smoothing[0, c] * s + smoothing[2, c] * u)
        smooth[0, k, c] = u
        v += weights[k, c] * u
    return v


@bare_kernel
def _reduce(
    late: Array,
    begun: int,
    smooth: Array,
    smoothing: Array,
    weights: Array,
    gate: Array,
    y: Array,
    frame: int,
) -> None:
    """Low-pass and noise reduction of the frame that is due, into `y` (3, band, frame)."""
    bands, at = y.shape[1], (begun + 1) % (WAIT + 1)
    for band in range(bands):
        tonal, total, hz = 0.0, 0.0, 0.0
        # The low-pass begins at frame 0, though the mean over time looks beyond it.
        if begun >= WAIT - 1:
            tonal, total, hz = late[0, band, at], late[1, band, at], late[2, band, at]
        rest = total - tonal
        ratio = tonal / ((rest if rest > 0 or rest != rest else 0.0) + EPSILON)
        ratio = ratio if not ratio > MOST_SNR else MOST_SNR
        tonal = _smoothed(tonal, band, smooth, smoothing, weights)
        ratio = _smoothed(ratio, bands + band, smooth, smoothing, weights)
        total = _smoothed(total, 2 * bands + band, smooth, smoothing, weights)
        share = -np.expm1(-GATE[0] * (ratio / gate[band] - GATE[1]))
        tonal *= share if share > 0 or share != share else 0.0
        noise = total - tonal
        y[0, band, frame] = tonal
        y[1, band, frame] = noise if noise > 0 or noise != noise else 0.0
        y[2, band, frame] = hz


_COUNTS = tuple(blocks.last - blocks.first + 1 for blocks in SIZES)
"""Bands of each size."""


@bare_kernel
def _frames_of_rows(
    x: Array, tables: TonalTables, state: State, no_rows: Array, memory: Memory, y: Array
) -> None:
    """The frames (row, 3, band, frame) of `x` (row, band, time), into `y`.

    state: updated in place; each field has one axis for rows and what follows them
    no_rows: (2, 53, 0), for sizes of blocks that are not averaged over time
    """
    threshold, gate, smoothing, weights = tables
    a, b, c, d = _COUNTS
    for row in range(x.shape[0]):
        sounds = (
            state.sound_8192[row * a : (row + 1) * a],
            state.sound_4096[row * b : (row + 1) * b],
            state.sound_2048[row * c : (row + 1) * c],
            state.sound_1024[row * d : (row + 1) * d],
        )
        lines = (
            state.lines_8192[row * a : (row + 1) * a],
            state.lines_4096[row * b : (row + 1) * b],
            state.lines_2048[row * c : (row + 1) * c],
            state.lines_1024[row * d : (row + 1) * d],
        )
        two, three = slice(2 * row, 2 * row + 2), slice(3 * row, 3 * row + 3)
        rows = state.rows_8192[two], state.rows_4096[two], no_rows, no_rows
        last, late, smooth = state.last[three], state.late[three], state.smooth[two]
        for frame in range(y.shape[3]):
            count = int(state.begun[row])
            for k in range(len(PLANS)):
                plan, sound = PLANS[k], sounds[k]
                keep_positive(x[row], frame * HOP, plan.first, count, sound)
                if (count + 1) % plan.frames == 0:
                    _estimate(plan, memory, count, threshold, sound, lines[k], rows[k], last, late)
            _reduce(late, count, smooth, smoothing, weights, gate, y[row], frame)
            count += 1
            state.begun[row] = count - AROUND if count >= 2 * AROUND else count


NO_ROWS = np.empty((2, BANDS, 0))

_IN_ROWS = {name: shape[1:] for name, shape in STATE_SHAPES.items()}


def _like(x: Tensor, tables: TonalTables, state: State) -> tuple[Tensor, State]:
    frames = x.new_empty(*x.shape[:-2], 3, BANDS, x.shape[-1] // HOP)
    return frames, State(*(v.new_empty(v.shape) for v in state))


@on_host(_like)
def tonal_and_noise(x: Tensor, tables: TonalTables, state: State) -> tuple[Tensor, State]:
    """Specific loudness of tones and of noise, and frequency, of band signals (..., 53, time).

    Gives (..., 3, 53, frame): tonal and noise loudness in sone_HMS/Bark_HMS and the frequency of
    the tone in Hz, a frame per `HOP` samples. A frame stands for the sample `WAIT` frames before
    its end.

    x: band signals in pascal, float64, a multiple of `HOP` samples
    """
    fit_state("tonal_and_noise", x, (BANDS,), HOP, (tables, TABLE_SHAPES), (state, STATE_SHAPES))
    after = State(*map(copied, state))
    return tonal_and_noise_in_place(x, tables, after), after


def tonal_and_noise_in_place(x: Tensor, tables: TonalTables, state: State) -> Tensor:
    """The output of `tonal_and_noise`, which updates `state`.

    Nothing is checked, which would take as long as the rest in short blocks.

    x: as there, or in float32
    state: contiguous
    """
    lead, time = x.shape[:-2], x.shape[-1]
    sound = array(x).reshape(-1, BANDS, time)
    y = np.empty((len(sound), 3, BANDS, time // HOP))
    given = TonalTables(*map(array, tables)), State(*arrays_of(state, _IN_ROWS))  # type: ignore[arg-type]
    _frames_of_rows(sound, *given, NO_ROWS, own.memory, y)
    return torch.from_numpy(y).view(*lead, 3, BANDS, -1)
