"""Adaptation loops of the auditory nerve: divisions by low-pass filtered output, in series."""

from collections.abc import Sequence
from math import factorial, log
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from numba import types
from numba.extending import overload
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compiled
from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit
from amt_stream.dsp.functional.compiler.lanes import (
    LANES,
    any_of,
    halved,
    lanes_of,
    magnitude,
    put,
    rounded_down,
    where,
)
from amt_stream.dsp.functional.compiler.lowering import Kernel, Kind, Number
from amt_stream.dsp.functional.compiler.operators import alike, operator
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes
from amt_stream.dsp.functional.compiler.tiles import SPAN, load, store

ROWS = 2 * LANES
"""Rows processed together: more than elsewhere, because divisions have a long latency."""

_lanes = lanes_of(LANES)

# Without "arcp", because divisions must be exact for silence to give 0.
exact: Kernel = cached_njit(nogil=True, fastmath={"contract", "nsz"}, error_model="numpy")


class Loops(NamedTuple):
    """Parameters of the loops; (channel,) may also be 0-dim.

    floor: (channel,) lower limit of the input
    rates: (loop,) gain of each loop's low-pass, 1 - exp(-1 / (tau fs))
    overshoot: (loop,) or (channel, loop), largest output above 1, or None for no limit
    corr, mult: (channel,) output is (last loop - corr) mult
    """

    floor: Tensor
    rates: Tensor
    overshoot: Tensor | None
    corr: Tensor
    mult: Tensor


@operator(alike)
def adaptation_loops(x: Tensor, loops: Loops, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`x` (..., channel, time) divided by the states of the loops in series.

    Each loop divides by its state s, limits a quotient above 1 to 1 + m tanh((v - 1) / m), and
    low-passes the result: s += rate (v - s) (Puschel 1988; Dau, Puschel & Kohlrausch 1996; the
    limit: Dau, Kollmeier & Kohlrausch 1997).

    zi, zf: (..., channel, loop, 2), the states and the rounding errors of their last steps, at
        first 0 (compensated summation). Otherwise float32 would lose steps of 1e-5, and a steady
        tone would end 0.2 model units off. A state within rounding of its target does not move, so
        that silence is steady.
    """
    lead, _ = signal_axes("adaptation_loops", "x", x, 1)
    floor, rates, overshoot, corr, mult = loops
    count = max(1, rates.numel())
    channels, state = lead[-1:], ("zi", zi, (*lead, count, 2))
    fit("adaptation_loops", x.dtype, ("rates", rates, (count,)), state)
    for name, value in (("floor", floor), ("corr", corr), ("mult", mult)):
        fit("adaptation_loops", x.dtype, (name, value, channels if value.dim() else ()))
    if overshoot is not None:
        table = (*(channels if overshoot.dim() > 1 else ()), count)
        fit("adaptation_loops", x.dtype, ("overshoot", overshoot, table))
    tensors = [x, zi, *(t for t in loops if t is not None)]
    if compiled(*tensors):
        return _forward(x, loops, zi)
    if gpu.serves(*tensors):
        still = _STILL * torch.finfo(x.dtype).eps
        y, zf = gpu.adapt(x, *loops, zi, still, _PER_OCTAVE, float(_LEAST))
        return y, zf
    if compiled(*(t.detach() for t in tensors)):
        lead, count = x.shape[:-1], zi.shape[-2]
        limited = loops.overshoot is not None
        most = x.new_ones(count) if loops.overshoot is None else loops.overshoot
        v, zf = _Loops.apply(
            x.reshape(-1, x.shape[-1]),
            loops.floor.expand(lead).reshape(-1),
            loops.rates,
            most.expand(*lead, count).reshape(-1, count),
            zi.reshape(-1, count, 2),
            limited,
        )
        return _scaled(v.view(x.shape), loops), zf.view(zi.shape)
    return plain_loops(x, loops, zi)


def plain_loops(x: Tensor, loops: Loops, zi: Tensor) -> tuple[Tensor, Tensor]:
    """The plain form, sample by sample in torch: the definition."""
    floor = loops.floor[..., None]
    states, left = list(zi[..., 0].unbind(-1)), list(zi[..., 1].detach().unbind(-1))
    still = _STILL * torch.finfo(x.dtype).eps
    outputs = []
    for v in torch.where(x < floor, floor, x).unbind(-1):
        for j, s in enumerate(states):
            v = v / s
            if loops.overshoot is not None:
                m = loops.overshoot[..., j]
                v = v.clamp(max=1) + m * torch.tanh((v - 1).clamp(min=0) / m)
            way = v - s
            # Detached, so that a step within rounding of 0 still has a gradient.
            way = way - torch.where(way.abs() <= still * s, way, 0).detach()
            gone = loops.rates[j] * way + left[j]
            states[j] = s + gone
            left[j] = (gone - (states[j] - s)).detach()
        outputs.append(v)
    zf = torch.stack([torch.stack(states, -1), torch.stack(left, -1)], -1)
    return _scaled(torch.stack(outputs, -1), loops), zf


def _scaled(v: Tensor, loops: Loops) -> Tensor:
    return (v - loops.corr[..., None]) * loops.mult[..., None]


# tanh(z) = (1 - q) / (1 + q) with q = e^(-2z) = 2^-w. The integer part of w is exact; for the
# fraction, at most 1/2, a power series is accurate to rounding.
_PER_OCTAVE = 2 / log(2)
_LEAST = 58
"""Octaves below 1 at which q is negligible."""


_STILL = 8
"""A state this many rounding errors from its target has reached it; every division rounds."""


def _series(dtype: type[np.floating], terms: int) -> tuple[np.floating, ...]:
    """Coefficients of 2^-f, highest power first."""
    return tuple(dtype((-log(2)) ** k / factorial(k)) for k in range(terms, -1, -1))


_SERIES = {types.float32: _series(np.float32, 7), types.float64: _series(np.float64, 13)}


def _series_of(x: Number) -> Number:
    """The series for the type of `x`."""
    raise NotImplementedError("compiled code only")


@overload(_series_of, inline="always")
def _series_of_type(x: Kind) -> Kernel:
    series = _SERIES[x.dtype]

    def form(x: Number) -> Number:
        return series

    return form


@numba.njit(inline="always")
def _bend(
    u: Number, slope: Number, series: Sequence[Number], zero: Number, half: Number, least: Number
) -> Number:
    """e^(-2 (u - 1) / m) for u above 1, else 1; slope: 2 / (m ln 2)."""
    w = (u - (half + half)) * slope
    w = where(w > least, least, w)
    w = where(w < zero, zero, w)
    whole = rounded_down(w + half)
    f = w - whole
    q = series[0] * f + series[1]
    for c in series[2:]:
        q = q * f + c
    return q * halved(whole)


@numba.njit(inline="always")
def _follow(
    s: Number, left: Number, aim: Number, rate: Number, still: Number, zero: Number
) -> tuple[Number, Number]:
    """The state one step closer to its target, and the rounding error of the step."""
    way = aim - s
    way = where(magnitude(way) <= still * s, zero, way)
    gone = rate * way + left
    after = s + gone
    return after, gone - (after - s)


def _forward(x: Tensor, loops: Loops, zi: Tensor) -> tuple[Tensor, Tensor]:
    floor, rates, most, corr, mult = loops
    y, zf = x.new_empty(x.shape), zi.new_empty(zi.shape)
    rows, states = (-1, x.shape[-1]), (-1, *zi.shape[-2:])
    _adapt(
        array(x).reshape(rows),
        array(floor).reshape(-1),
        array(rates),
        array(zi.new_empty(0) if most is None else most).reshape(-1, zi.shape[-2]),
        array(corr).reshape(-1),
        array(mult).reshape(-1),
        array(zi).reshape(states),
        y.numpy().reshape(rows),
        zf.numpy().reshape(states),
    )
    return y, zf


@exact
def _adapt(
    x: Array,
    floor: Array,
    rates: Array,
    most: Array,
    corr: Array,
    mult: Array,
    zi: Array,
    y: Array,
    zf: Array,
) -> None:
    """most: (channel or 1, loop), or (0, loop) for no limit."""
    real, loops, series, limited = x.dtype.type, rates.size, _series_of(x), most.size > 0
    zero, half, one, least = real(0), real(0.5), real(1), real(_LEAST)
    # Full vector registers; unused lanes stay at 1.
    lanes = min(ROWS, -(-x.shape[0] // LANES) * LANES)
    tile = np.ones((SPAN, lanes), x.dtype)
    still = real(_STILL) * real(np.finfo(x.dtype).eps)
    states, left = np.ones((loops, lanes), x.dtype), np.zeros((loops, lanes), x.dtype)
    m, slopes = np.ones((loops, lanes), x.dtype), np.ones((loops, lanes), x.dtype)
    line = np.ones((3, lanes), x.dtype)  # floor, corr and mult
    for first in range(0, x.shape[0], lanes):
        rows = min(lanes, x.shape[0] - first)
        for i in range(rows):
            row = first + i
            line[0, i] = floor[row % floor.size]
            line[1, i], line[2, i] = corr[row % corr.size], mult[row % mult.size]
            for j in range(loops):
                states[j, i], left[j, i] = zi[row, j, 0], zi[row, j, 1]
                if limited:
                    m[j, i] = most[row % most.shape[0], j]
                    slopes[j, i] = real(_PER_OCTAVE) / m[j, i]
        for start in range(0, x.shape[1], SPAN):
            length = min(SPAN, x.shape[1] - start)
            load(x, first, rows, start, length, tile)
            for i in range(0, lanes, LANES):
                lowest = _lanes(line, 0, i)
                for t in range(length):
                    v = _lanes(tile, t, i)
                    put(where(v < lowest, lowest, v), tile, t, i)
            # Loop j processes sample step - j, so that the loops are independent within a step.
            for step in range(length + loops - 1):
                for j in range(max(0, step - length + 1), min(loops, step + 1)):
                    for i in range(0, lanes, LANES):
                        s = _lanes(states, j, i)
                        u = _lanes(tile, step - j, i) / s
                        # Needed only at onsets: otherwise the limiter adds 0.
                        if limited and any_of(u > one):
                            q = _bend(u, _lanes(slopes, j, i), series, zero, half, least)
                            over = _lanes(m, j, i)
                            u = where(u > one, one, u) + over * ((one - q) / (one + q))
                        s, lost = _follow(s, _lanes(left, j, i), u, rates[j], still, zero)
                        put(s, states, j, i)
                        put(lost, left, j, i)
                        put(u, tile, step - j, i)
            for i in range(0, lanes, LANES):
                rest, scale = _lanes(line, 1, i), _lanes(line, 2, i)
                for t in range(length):
                    put((_lanes(tile, t, i) - rest) * scale, tile, t, i)
            store(tile, first, rows, start, length, y)
        for i in range(rows):
            for j in range(loops):
                zf[first + i, j, 0], zf[first + i, j, 1] = states[j, i], left[j, i]


class _Loops(torch.autograd.Function):
    """The last loop's output for rows (row, time), with a compiled gradient."""

    @staticmethod
    def forward(
        x: Tensor, floor: Tensor, rates: Tensor, most: Tensor, zi: Tensor, limited: bool
    ) -> tuple[Tensor, Tensor]:
        loops = Loops(floor, rates, most if limited else None, x.new_zeros(1), x.new_ones(1))
        return _forward(x, loops, zi)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        *tensors, ctx.limited = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gy: Tensor, gzf: Tensor) -> tuple[Tensor | None, ...]:
        x, floor, rates, most, zi = ctx.saved_tensors
        gx, gfloor, gmost = torch.empty_like(x), torch.zeros_like(floor), torch.zeros_like(most)
        grates, gzi = torch.zeros_like(most), torch.empty_like(most)
        _adapt_backward(
            *(array(t) for t in (x, floor, rates, most)),
            ctx.limited,
            array(zi),
            *(array(t) for t in (gy, gzf[..., 0])),
            *(t.numpy() for t in (gx, gfloor, grates, gmost, gzi)),
        )
        # The remainder is a rounding error, hence its gradient is 0.
        gzi = torch.stack([gzi, torch.zeros_like(gzi)], -1)
        return gx, gfloor, grates.sum(0), gmost if ctx.limited else None, gzi, None


@exact
def _adapt_backward(
    x: Array,
    floor: Array,
    rates: Array,
    most: Array,
    limited: bool,
    zi: Array,
    gy: Array,
    gzf: Array,
    gx: Array,
    gfloor: Array,
    grates: Array,
    gmost: Array,
    gzi: Array,
) -> None:
    real, loops, time, series = x.dtype.type, rates.size, x.shape[1], _series_of(x)
    zero, half, one, least = real(0), real(0.5), real(1), real(_LEAST)
    lanes = min(ROWS, x.shape[0])
    states = np.ones((time + 1, loops, lanes), x.dtype)
    still = real(_STILL) * real(np.finfo(x.dtype).eps)
    room = np.ones((8, loops, lanes), x.dtype)
    m, slopes, gs, gm, grate = room[0], room[1], room[2], room[3], room[4]
    quotients, bends, left = room[5], room[6], room[7]
    line = np.ones((3, lanes), x.dtype)
    lowest, v, g = line[0], line[1], line[2]
    for first in range(0, x.shape[0], lanes):
        rows = min(lanes, x.shape[0] - first)
        for i in range(rows):
            lowest[i] = floor[first + i]
            for j in range(loops):
                states[0, j, i], left[j, i] = zi[first + i, j, 0], zi[first + i, j, 1]
                m[j, i] = most[first + i, j]
                slopes[j, i] = real(_PER_OCTAVE) / m[j, i]
                gs[j, i], gm[j, i], grate[j, i] = gzf[first + i, j], zero, zero
        # Only the states are stored; the other intermediate values are recomputed.
        for t in range(time):
            for i in range(rows):
                v[i] = lowest[i] if x[first + i, t] < lowest[i] else x[first + i, t]
            for j in range(loops):
                s, after, lost = states[t, j], states[t + 1, j], left[j]
                over, slope = m[j], slopes[j]
                for i in range(v.size):
                    u = v[i] / s[i]
                    if limited:
                        q = _bend(u, slope[i], series, zero, half, least)
                        u = (one if u > one else u) + over[i] * ((one - q) / (one + q))
                    after[i], lost[i] = _follow(s[i], lost[i], u, rates[j], still, zero)
                    v[i] = u
        for t in range(time - 1, -1, -1):
            for i in range(rows):
                v[i] = lowest[i] if x[first + i, t] < lowest[i] else x[first + i, t]
                g[i] = gy[first + i, t]
            for j in range(loops):
                s, over, slope = states[t, j], m[j], slopes[j]
                quotient, bend = quotients[j], bends[j]
                for i in range(v.size):
                    u = v[i] / s[i]
                    quotient[i] = u
                    if limited:
                        q = _bend(u, slope[i], series, zero, half, least)
                        bend[i] = (one - q) / (one + q)
                        u = (one if u > one else u) + over[i] * bend[i]
                    v[i] = u
            for j in range(loops - 1, -1, -1):
                s, over, quotient, bend = states[t, j], m[j], quotients[j], bends[j]
                gstate, gover, gmine = gs[j], gm[j], grate[j]
                for i in range(v.size):
                    u = quotient[i]
                    out = u
                    slope_of = one
                    gout = g[i] + rates[j] * gstate[i]
                    if limited and u > one:
                        out = one + over[i] * bend[i]
                        slope_of = one - bend[i] * bend[i]
                        gover[i] += gout * (bend[i] - (u - one) / over[i] * slope_of)
                    gmine[i] += gstate[i] * (out - s[i])
                    gu = gout * slope_of
                    gstate[i] = (one - rates[j]) * gstate[i] - gu * u / s[i]
                    g[i] = gu / s[i]
            for i in range(rows):
                below = x[first + i, t] < lowest[i]
                gx[first + i, t] = zero if below else g[i]
                gfloor[first + i] += g[i] if below else zero
        for i in range(rows):
            for j in range(loops):
                gzi[first + i, j], gmost[first + i, j] = gs[j, i], gm[j, i]
                grates[first + i, j] = grate[j, i]
