"""Roughness from the modulation spectra of critical bands (ECMA-418-2:2025, clause 7)."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, arrays_of, copied, kernel
from amt_stream.dsp.functional.compiler.operators import on_host
from amt_stream.dsp.functional.compiler.shapes import fit_state
from amt_stream.dsp.functional.ecma418.bands import BANDS, CENTERS, basis_loudness_of
from amt_stream.dsp.functional.ecma418.modulation import (
    FRAME,
    NODES,
    Grid,
    before,
    begin_hop,
    count_on,
    interpolate,
    join_hops,
    push,
    sharpen,
    sort,
    spectra,
    spread_of,
    take,
)

GRID = Grid(hop=128, wait=9, period=64)

SIZE = 4 * GRID.hop
"""Values of an envelope in a block."""

LINE = 1500 / SIZE
"""Spacing of the modulation spectrum in Hz."""

FIRST, LAST = 2, 255
"""Lines of the modulation spectrum that are searched."""

PEAKS = 10
"""Peaks of a band, at most."""

ROUGHNESS = 0.0180685
"""Calibration of roughness, c_R: a tone with full modulation of 70 Hz and 60 dB has 1 asper."""

LEAST = 0.074376
"""Amplitude of a band below which it is not rough."""

RISE_S, FALL_S = 0.0625, 0.5
"""Time constants of specific roughness."""

RISE, FALL = (float(np.exp(-1 / (50 * s))) for s in (RISE_S, FALL_S))

_HALF = [0, 0.0457, 0.0907, 0.1346, 0.1765, 0.2157, 0.2515, 0.2828, 0.3084, 0.3269, 0.3364, 0.3348]
_HALF += [0.3188, 0.2844, 0.2259, 0.1351]
BIAS = np.array([*_HALF, 0, *(-v for v in _HALF[::-1]), 0])
"""Error in Hz of the peak of a parabola, by 1/32 line (ECMA-418-2:2025, Table 10)."""


def weighting() -> np.ndarray:
    """Tables of the weights of modulation rates by band (4, 53).

    The rate of highest sensitivity in Hz, the sensitivity there, and the exponents of the weights
    above and below it (ECMA-418-2:2025, 7.1.5).
    """
    khz = CENTERS / 1000
    octave = np.log2(khz)
    best = 72.6937 * (1 - 1.1739 * np.exp(-5.4583 * khz))
    low = khz < 1
    r1, r2 = np.where(low, 0.3560, 0.8024), np.where(low, 0.8049, 0.9333)
    most = 1 / (1 + r1 * np.abs(octave) ** r2)
    above = 0.2471 + 0.0129 * np.maximum(octave + 3.4253, 0) ** 2
    return np.stack([best, most, above, 1.0967 - 0.0640 * octave])


class RoughnessTables(NamedTuple):
    """Tables of `roughness`, in float64.

    threshold: basis loudness at the threshold in quiet (53,)
    window: of a block (512,)
    gain: of the lines of the modulation spectrum (257,), high at high rates
    bias: `BIAS`
    bands: `weighting`
    """

    threshold: Tensor
    window: Tensor
    gain: Tensor
    bias: Tensor
    bands: Tensor


_SHAPES = (BANDS,), (SIZE,), (SIZE // 2 + 1,), BIAS.shape, (4, BANDS)

TABLE_SHAPES = dict(zip(RoughnessTables._fields, _SHAPES, strict=True))


class RoughnessState(NamedTuple):
    """State of `roughness`, in float64.

    older: envelopes of three hops (..., 53, 384)
    recent: envelopes of the present one (..., 53, 128)
    power: sums of the powers of these (..., 53, 4)
    nodes: amplitudes of the last blocks (..., 53, 5)
    rates: modulation rates of these in Hz, 0 for none (..., 53, 5)
    smooth: specific roughness of the last frame (..., 53)
    rate: modulation rate of the last frame (..., 53)
    begun: frames since the beginning; it goes around (..., 1)
    """

    older: Tensor
    recent: Tensor
    power: Tensor
    nodes: Tensor
    rates: Tensor
    smooth: Tensor
    rate: Tensor
    begun: Tensor


_ENVELOPES = (BANDS, 3 * GRID.hop), (BANDS, GRID.hop), (BANDS, 4)
_FRAMES = (BANDS, NODES), (BANDS, NODES), (BANDS,), (BANDS,), (1,)

STATE_SHAPES = dict(zip(RoughnessState._fields, (*_ENVELOPES, *_FRAMES), strict=True))
"""Without leading axes."""

_IN_ROWS = {name: shape[1:] for name, shape in STATE_SHAPES.items()}


def _like(
    x: Tensor, tables: RoughnessTables, state: RoughnessState
) -> tuple[Tensor, RoughnessState]:
    y = x.new_empty(*x.shape[:-3], 2, BANDS, x.shape[-1] // FRAME)
    return y, RoughnessState(*(v.new_empty(v.shape) for v in state))


@on_host(_like)
def roughness(
    x: Tensor, tables: RoughnessTables, state: RoughnessState
) -> tuple[Tensor, RoughnessState]:
    """Specific roughness in asper/Bark_HMS and modulation rate in Hz (..., 2, 53, frame).

    A frame per 30 values of envelopes; it stands for the value `GRID.wait` frames before its end.
    The rate is the fundamental of the band's strongest harmonic series, of the block of the two
    around the frame in which it is stronger, or the last one if neither has any.

    x: envelope and power of the bands (..., 2, 53, time), float64, 1500 a second, a multiple of 30
    """
    fit_state("roughness", x, (2, BANDS), FRAME, (tables, TABLE_SHAPES), (state, STATE_SHAPES))
    after = RoughnessState(*map(copied, state))
    return roughness_in_place(x, tables, after), after


def roughness_in_place(x: Tensor, tables: RoughnessTables, state: RoughnessState) -> Tensor:
    """The output of `roughness`, which updates `state`; nothing is checked.

    state: contiguous
    """
    lead, time = x.shape[:-3], x.shape[-1]
    sound = array(x).reshape(-1, 2, BANDS, time)
    y = np.empty((len(sound), 2, BANDS, time // FRAME))
    memory = RoughnessState(*arrays_of(state, _IN_ROWS))  # type: ignore[arg-type]
    _rough_frames(sound, RoughnessTables(*map(array, tables)), memory, y)  # type: ignore[arg-type]
    return torch.from_numpy(y).view(*lead, 2, BANDS, -1)


@kernel
def _rough_frames(x: Array, tables: RoughnessTables, state: RoughnessState, y: Array) -> None:
    """The frames (row, 2, band, frame) of `x` (row, 2, band, time), into `y`.

    state: updated in place; each field has one axis for rows and what follows them
    """
    threshold, window, gain, bias, bands = tables
    block, lines = np.empty((BANDS, SIZE)), np.empty((BANDS, SIZE // 2 + 1, 2))
    memory, energy, square = np.empty((2, 2, SIZE)), np.empty(BANDS), np.empty(BANDS)
    for row in range(x.shape[0]):
        own = slice(row * BANDS, row * BANDS + BANDS)
        older, recent, power = state.older[own], state.recent[own], state.power[own]
        nodes, rates, smooth, rate = (
            state.nodes[own],
            state.rates[own],
            state.smooth[own],
            state.rate[own],
        )
        for frame in range(y.shape[3]):
            count, start = int(state.begun[row]), frame * FRAME
            at = FRAME * count % GRID.hop
            fitting = take(x[row], start, at, recent, power)
            if at + FRAME >= GRID.hop:
                join_hops(older, recent, block)
                for band in range(BANDS):
                    p = power[band]
                    square[band] = (p[0] + p[1] + p[2] + p[3]) / (SIZE / 2)
                n = basis_loudness_of(square, threshold)
                _window(block, window, energy)
                spectra(block, memory, lines)
                found = _all_amplitudes(lines, energy, n, gain, bias, bands)
                push(nodes, found[0])
                push(rates, found[1])
                begin_hop(x[row], start, fitting, recent, power)
            _finish(nodes, rates, count, smooth, rate, y[row, :, :, frame])
            state.begun[row] = count_on(count, GRID.period)


@kernel
def _finish(nodes: Array, rates: Array, begun: int, smooth: Array, rate: Array, y: Array) -> None:
    found = np.empty(BANDS)
    interpolate(nodes, begun, GRID.hop, GRID.wait, found)
    sharpen(found, spread_of(found), ROUGHNESS, found)
    low = before(begun, GRID.hop, GRID.wait)
    for band in range(BANDS):
        keep = RISE if found[band] >= smooth[band] else FALL
        value = found[band] * (1 - keep) + smooth[band] * keep
        y[0, band] = smooth[band] = value if begun + 1 > GRID.wait else 0.0
        near = low + 1 if nodes[band, low + 1] >= nodes[band, low] else low
        if rates[band, near] > 0:
            rate[band] = rates[band, near]
        y[1, band] = rate[band]


@kernel
def _window(block: Array, window: Array, energy: Array) -> None:
    for band in range(block.shape[0]):
        for t in range(block.shape[1]):
            block[band, t] *= window[t]
        total = 0.0
        for t in range(block.shape[1]):
            total += block[band, t] * block[band, t]
        energy[band] = total


@kernel
def _all_amplitudes(
    lines: Array, energy: Array, n: Array, gain: Array, bias: Array, bands: Array
) -> Array:
    """Amplitudes and rates of modulation (2, 53), from spectra (53, 257, 2) and energies (53,)."""
    count = lines.shape[1]
    phi, out = np.empty((BANDS, count)), np.zeros((2, BANDS))
    s, w = np.zeros(count), np.empty(count)
    most = 0.0
    for band in range(BANDS):
        if n[band] != n[band] or energy[band] != energy[band]:
            out[0] = np.nan
            return out
        most = max(most, n[band])
    for band in range(BANDS):
        scale = most * energy[band]
        scale = n[band] * n[band] / scale if scale > 0 else 0.0
        for k in range(count):
            phi[band, k] = scale * (lines[band, k, 0] ** 2 + lines[band, k, 1] ** 2)
    mean = phi.copy()
    for band in range(1, BANDS - 1):
        for k in range(count):
            mean[band, k] = (phi[band - 1, k] + phi[band, k] + phi[band + 1, k]) / 3
    for band in range(BANDS):
        for k in range(count):
            s[k] += mean[band, k]
    ordered = s[FIRST : LAST + 1].copy()
    sort(ordered)
    middle = (LAST - FIRST) // 2
    median = 0.5 * (ordered[middle] + ordered[middle + 1])
    most = 0.0
    for k in range(count):
        w[k] = 0.0856 * s[k] / (median + 1e-10) * gain[k]
        if FIRST <= k <= LAST:
            most = max(most, w[k])
    for k in range(count):
        w[k] = 0.0 if w[k] < 0.05 * most else min(max(w[k] - 0.1407, 0.0), 1.0)
    at, f, b = np.empty(count, np.int64), np.empty(PEAKS), np.empty(PEAKS)
    prominence = np.empty(count)
    for band in range(BANDS):
        y = mean[band]
        for i in range(count):
            y[i] *= w[i]
        peaks = _find_peaks(y, at, prominence)
        for i in range(peaks):
            y0, y1, y2 = y[at[i] - 1], y[at[i]], y[at[i] + 1]
            vertex = (at[i] + 0.5 * (y0 - y2) / (y0 - 2 * y1 + y2)) * LINE
            f[i] = _rate(vertex, bias)
            b[i] = 0.0
            if f[i] > LINE:
                b[i] = (y0 + y1 + y2) * bands[1, band]
                if f[i] > bands[0, band]:
                    b[i] *= _weight_of(f[i], bands[0, band], 1.2822, bands[2, band])
        out[0, band], out[1, band] = _amplitude(
            f[:peaks], b[:peaks], bands[0, band], bands[3, band]
        )
    return out


@kernel
def _find_peaks(y: Array, k: Array, prominence: Array) -> int:
    """Fill `k` with the lines of the most prominent peaks, and give their number."""
    count = 0
    for i in range(FIRST + 1, LAST):
        if not (y[i] > y[i - 1] and y[i] > y[i + 1]):
            continue
        left = right = y[i]
        j = i - 1
        while j >= FIRST and y[j] <= y[i]:
            left = min(left, y[j])
            j -= 1
        j = i + 1
        while j <= LAST and y[j] <= y[i]:
            right = min(right, y[j])
            j += 1
        k[count], prominence[count] = i, y[i] - max(left, right)
        count += 1
    while count > PEAKS:
        least = 0
        for i in range(1, count):
            if prominence[i] <= prominence[least]:
                least = i
        for i in range(least, count - 1):
            k[i], prominence[i] = k[i + 1], prominence[i + 1]
        count -= 1
    highest = 0.0
    for i in range(count):
        highest = max(highest, y[k[i]])
    kept = 0
    for i in range(count):
        if y[k[i]] > 0.05 * highest:
            k[kept] = k[i]
            kept += 1
    return kept


@kernel
def _rate(f: float, bias: Array) -> float:
    """Modulation rate in Hz of the vertex of a parabola, without its bias."""
    line = np.floor(f / LINE)
    nearest, least = 0, np.inf
    for i in range(33):
        b = abs((line + i / 32) * LINE - (f + bias[i]))
        if b < least:
            nearest, least = i, b
    at = nearest + 1
    if nearest > 0:
        here = (line + nearest / 32) * LINE - (f + bias[nearest])
        before = (line + (nearest - 1) / 32) * LINE - (f + bias[nearest - 1])
        if here * before < 0:
            at = nearest
    b0 = (line + (at - 1) / 32) * LINE - (f + bias[at - 1])
    b1 = (line + at / 32) * LINE - (f + bias[at])
    return f + bias[at - 1] - (bias[at] - bias[at - 1]) * b0 / (b1 - b0)


@kernel
def _weight_of(f: float, best: float, slope: float, power: float) -> float:
    ratio = f / best
    return (1 + ((ratio - 1 / ratio) * slope) ** 2) ** -power


@kernel
def _is_member(f: Array, base: float, i: int) -> bool:
    """Whether peak `i` is the nearest to a harmonic of `base`, and near."""
    number = np.floor(f[i] / base + 0.5)
    if number <= 0:
        return False
    off = abs(f[i] / (number * base) - 1)
    if not off < 0.04:
        return False
    for j in range(f.size):
        if j != i and np.floor(f[j] / base + 0.5) == number:
            other = abs(f[j] / (number * base) - 1)
            if other < off or (other == off and j < i):
                return False
    return True


@kernel
def _amplitude(f: Array, b: Array, best: float, below: float) -> tuple[float, float]:
    """Amplitude and rate of the strongest harmonic series among the peaks of a band."""
    highest, chosen = -1.0, -1
    for j in range(f.size):
        energy = 0.0
        for i in range(f.size):
            if _is_member(f, f[j], i):
                energy += b[i]
        if energy > highest:
            highest, chosen = energy, j
    if highest <= 0:
        return 0.0, 0.0
    base = f[chosen]
    total = center = 0.0
    loudest = -1
    for i in range(f.size):
        if _is_member(f, base, i):
            total += b[i]
            center += f[i] * b[i]
            if loudest < 0 or b[i] > b[loudest]:
                loudest = i
    if base <= LINE:
        return 0.0, 0.0
    total *= 1 + 0.1 * abs(center / total - f[loudest]) ** 0.749
    if base <= best:
        total *= _weight_of(base, best, 0.7066, below)
    return (total, base) if total >= LEAST else (0.0, 0.0)
