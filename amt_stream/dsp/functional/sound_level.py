"""Weighted mean squares of sound pressure for sound level meters (IEC 61672-1:2013)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.call_table import Calls, TupleOf, plan_rows
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compiled, kernel
from amt_stream.dsp.functional.compiler.lanes import lanes_of, put, where
from amt_stream.dsp.functional.compiler.operators import operator
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes
from amt_stream.dsp.functional.filters.direct_form import direct_form
from amt_stream.dsp.functional.filters.first_order import first_order
from amt_stream.dsp.functional.filters.state_space import state_space
from amt_stream.dsp.functional.peak import (
    BOUNDS,
    frame_peak,
    framed,
    largest,
    pass_frame,
    peaks,
    per_frame,
    whole_frames,
)

WEIGHTINGS = 3
"""Frequency weightings A, C, Z, in this order."""

SPEEDS = 3
"""Time weightings F, S and I, in this order."""

LEVELS = SPEEDS * WEIGHTINGS
"""Time-weighted mean squares: F of A, C and Z, then S, then I of them."""

FILTER_STATES, POWER_STATES = 7, LEVELS + WEIGHTINGS
"""Power states are F, S, I before peak hold, and I after it, of A, C and Z each."""

KNOWN = FILTER_STATES + POWER_STATES + BOUNDS
"""Numbers in the state before earlier samples; the last of them are bounds as in `peaks`."""

LEFT_AT = KNOWN - 1
"""The place of the number of samples left."""

COEFFICIENTS = (4, 6, 3, 1, 1)
"""Numbers of coefficients of high-passes, low-pass, time weightings, gain and decay."""

SIDE = 4
"""A, C and Z in one register of float64, with one lane unused."""

_lanes = lanes_of(SIDE)


class LevelFrames(NamedTuple):
    """Values per frame, in the dtype of the sound; powers are in Pa^2.

    mean_square: (..., 3, frame) of `WEIGHTINGS`
    last, highest, lowest: (..., 9, frame) of `LEVELS`, over the samples of the frame
    impulse: (..., 3, frame) mean of I over the frame, of `WEIGHTINGS`
    peak: (..., 3, frame) largest magnitude of the weighted pressure, also between samples
    """

    mean_square: Tensor
    last: Tensor
    highest: Tensor
    lowest: Tensor
    impulse: Tensor
    peak: Tensor


class Coefficients(NamedTuple):
    """The coefficients of `sound_levels` by name, in order.

    twice, second, third, lowest: of the high-passes: the double one of A and C, two more of A, and
        that of Z
    b0 ... a2: of the low-pass of A and C, including the gain of C
    fast, slow, impulse: weights of a new square in F, S and I
    gain: of A over C
    decay: factor per sample on the held value of I
    """

    twice: float
    second: float
    third: float
    lowest: float
    b0: float
    b1: float
    b2: float
    a0: float
    a1: float
    a2: float
    fast: float
    slow: float
    impulse: float
    gain: float
    decay: float


class FilterState(NamedTuple):
    """States of the high-passes and the low-pass of A, C and Z, in processing order."""

    first: float
    first_again: float
    low: float
    low_before: float
    second: float
    third: float
    lowest: float


SIZES = (WEIGHTINGS, LEVELS, LEVELS, LEVELS, WEIGHTINGS, WEIGHTINGS)
"""Rows of each field of `LevelFrames`."""


def states(phases: Tensor) -> int:
    """Length of the last axis of the state of `sound_levels`."""
    return KNOWN + WEIGHTINGS * (phases.shape[1] - 1)


def _like_frames(
    x: Tensor, lengths: Sequence[int], coefficients: Tensor, phases: Tensor, zi: Tensor
) -> tuple[LevelFrames, Tensor]:
    one = framed(x, lengths, x)
    several = (one.new_empty(*x.shape[:-1], size, one.shape[-1]) for size in SIZES)
    return LevelFrames(*several), zi.new_empty(zi.shape)


@operator(_like_frames)
def sound_levels(
    x: Tensor, lengths: Sequence[int], coefficients: Tensor, phases: Tensor, zi: Tensor
) -> tuple[LevelFrames, Tensor]:
    """Frames of sound pressure `x` (..., time) in pascal, and the next state.

    lengths: samples of consecutive frames, repeated; time is a multiple of their sum
    coefficients: (15,) float64: `Coefficients`, with high-passes as in `first_order`
    phases: (phase, tap) for interpolation, as in `peaks`
    zi, zf: (..., 21 + 3 (taps - 1)) float64: `FilterState`, powers as in `POWER_STATES`, bounds of
        the sound as in `peaks`, and earlier samples weighted with A, C and Z
    """
    lead, time = signal_axes("sound_levels", "x", x, 1)
    frames = whole_frames("sound_levels", time, lengths)
    finer, taps = last_axes("sound_levels", "phases", phases, 2)
    table = (max(1, finer), max(1, taps))
    fit("sound_levels", x.dtype, ("phases", phases, table))
    state = (*lead, KNOWN + WEIGHTINGS * (table[1] - 1))
    given = ("coefficients", coefficients, (sum(COEFFICIENTS),)), ("zi", zi, state)
    fit("sound_levels", torch.float64, *given)
    if compiled(x, coefficients, phases, zi):
        rows, after = array(x).reshape(-1, time), array(zi).copy()
        y = [np.empty((len(rows), size, frames), rows.dtype) for size in SIZES]
        _sound_levels(
            rows,
            np.array(lengths),
            array(coefficients),
            array(phases),
            after.reshape(-1, after.shape[-1]),
            LevelFrames(*y),  # type: ignore[arg-type]
        )
        shaped = (torch.from_numpy(v.reshape(*lead, *v.shape[1:])) for v in y)
        return LevelFrames(*shaped), torch.from_numpy(after)
    high, low, smoothing, gain, decay = coefficients.split(COEFFICIENTS)
    sizes = FILTER_STATES, POWER_STATES, BOUNDS, WEIGHTINGS * (phases.shape[1] - 1)
    filters, powers, bounds, past = zi.split(sizes, -1)
    pressures, filters = _weighted(x.double(), high, low, gain, filters)
    squares = pressures.square()
    levels, powers = _time_weighted_plainly(squares, smoothing, decay, powers)
    past = past.unflatten(-1, (WEIGHTINGS, -1)).to(x.dtype)
    of_each = bounds[..., None, :].expand(*past.shape[:-1], BOUNDS)
    before = torch.cat([of_each.to(x.dtype), past], -1)
    _, peak, after_x = peaks(pressures.to(x.dtype), phases, lengths, before)
    bounds, past = after_x[..., 0, :BOUNDS].double(), after_x[..., BOUNDS:]
    impulse = levels[..., -WEIGHTINGS:, :]
    return LevelFrames(
        per_frame(lambda v: v.mean(-1), squares, lengths).to(x.dtype),
        per_frame(lambda v: v[..., -1], levels, lengths).to(x.dtype),
        per_frame(lambda v: v.amax(-1), levels, lengths).to(x.dtype),
        per_frame(lambda v: v.amin(-1), levels, lengths).to(x.dtype),
        per_frame(lambda v: v.mean(-1), impulse, lengths).to(x.dtype),
        peak,
    ), torch.cat([filters, powers, bounds, past.flatten(-2).double()], -1)


def _weighted(
    x: Tensor, high: Tensor, low: Tensor, gain: Tensor, zi: Tensor
) -> tuple[Tensor, Tensor]:
    """Pressures weighted with A, C and Z (..., 3, time), and the next states."""
    twice, second, third, lowest = high.unbind()
    y, f1 = first_order(x, twice, zi[..., :2], high=True)
    c, f4 = direct_form(y, low[None, :3], low[None, 3:], zi[..., None, 2:4])
    y, f2 = first_order(c, second, zi[..., 4:5], high=True)
    y, f3 = first_order(y, third, zi[..., 5:6], high=True)
    z, f0 = first_order(x, lowest, zi[..., 6:], high=True)
    weighted = torch.stack([gain * y, c, z], -2)
    return weighted, torch.cat([f1, f4.squeeze(-2), f2, f3, f0], -1)


def _time_weighted_plainly(
    squares: Tensor, smoothing: Tensor, decay: Tensor, zi: Tensor
) -> tuple[Tensor, Tensor]:
    """`LEVELS` (..., 9, time) of squares (..., 3, time) in A, C and Z, and the next states."""
    # Not by index lists, which would be copied from the host in every step.
    new = smoothing.repeat_interleave(WEIGHTINGS)
    keep = 1 - new
    y, zf = state_space(
        torch.cat([squares] * SPEEDS, -2),
        keep[:, None, None],
        new[:, None],
        keep[:, None],
        new,
        zi[..., :LEVELS, None],
    )
    held = held_maximum(y[..., -WEIGHTINGS:, :], decay, zi[..., LEVELS:])
    after = torch.cat([zf.squeeze(-1), held[..., -1]], -1)
    return torch.cat([y[..., :-WEIGHTINGS, :], held], -2), after


def held_maximum(x: Tensor, decay: Tensor, zi: Tensor) -> Tensor:
    """h[t] = max(x[t], decay h[t-1]) of `x` (..., time); zi: (...), the previous h; plain form."""
    outputs, held = [], zi.unsqueeze(-1)
    # Divided by its decay, the held value is a running maximum; in pieces to avoid overflow.
    for piece in x.split(2**16, -1):
        fall = decay ** torch.arange(piece.shape[-1] + 1, dtype=x.dtype, device=x.device)
        risen = torch.cat([held, piece], -1) / fall
        held = (risen.cummax(-1).values * fall)[..., 1:]
        outputs.append(held)
        held = held[..., -1:]
    return torch.cat(outputs, -1)


@kernel
def _coefficients(c: Array) -> Coefficients:
    high, low = (c[0], c[1], c[2], c[3]), (c[4], c[5], c[6], c[7], c[8], c[9])
    return Coefficients(*high, *low, c[10], c[11], c[12], c[13], c[14])


@kernel
def _put(s: Array, values: FilterState) -> None:
    for i in range(len(values)):
        s[i] = values[i]


@kernel
def _sound_levels(
    x: Array, lengths: Array, coefficients: Array, phases: Array, state: Array, y: LevelFrames
) -> None:
    """Updates `state` (row, n) in place; y: (row, ..., frame) each."""
    longest = 0
    for length in lengths:
        longest = max(longest, length)
    pressure, weighted = np.empty(longest), np.empty((longest, SIDE))
    past = phases.shape[1] - 1
    # The frame with the samples before it, which interpolation needs.
    near = np.empty((WEIGHTINGS, past + longest), x.dtype)
    finer = np.empty(longest, x.dtype)
    powers, out = np.zeros((SPEEDS + 1, SIDE)), np.empty((1 + 3 * SPEEDS + 1, SIDE))
    for r in range(x.shape[0]):
        for k in range(WEIGHTINGS):
            for i in range(past):
                near[k, i] = state[r, KNOWN + past * k + i]
            for i in range(SPEEDS + 1):
                powers[i, k] = state[r, FILTER_STATES + WEIGHTINGS * i + k]
        start = 0
        for n in range(y.peak.shape[2]):
            length = lengths[n % lengths.size]
            for t in range(length):
                pressure[t] = x[r, start + t]
            # In float64 for both dtypes, so that it is compiled once.
            _weigh(pressure, coefficients, state[r], weighted, length)
            _time_weighted(weighted, coefficients, powers, length, out)
            first, end = pass_frame(state[r, KNOWN - BOUNDS : KNOWN], past, length)
            for k in range(WEIGHTINGS):
                y.mean_square[r, k, n], y.impulse[r, k, n] = out[0, k], out[1 + 3 * SPEEDS, k]
                for i in range(SPEEDS):
                    level = WEIGHTINGS * i + k
                    y.last[r, level, n] = out[1 + i, k]
                    y.highest[r, level, n] = out[1 + SPEEDS + i, k]
                    y.lowest[r, level, n] = out[1 + 2 * SPEEDS + i, k]
                for t in range(length):
                    near[k, past + t] = weighted[t, k]
                highest = largest(near[k, past : past + end], x.dtype.type(0))
                y.peak[r, k, n] = frame_peak(
                    near[k, first : past + end], phases, finer[: end - first], highest
                )
                for i in range(past):
                    near[k, i] = near[k, length + i]
            start += length
        for k in range(WEIGHTINGS):
            for i in range(past):
                state[r, KNOWN + past * k + i] = near[k, i]
            for i in range(SPEEDS + 1):
                state[r, FILTER_STATES + WEIGHTINGS * i + k] = powers[i, k]


@kernel
def _weigh(
    pressure: Array, coefficients: Array, state: Array, weighted: Array, length: int
) -> None:
    """Fill `weighted` (time, `SIDE`) with the pressure in A, C and Z, and 0."""
    k = _coefficients(coefficients)
    s = state[:FILTER_STATES]
    first, first_again, low, low_before, second, third, lowest = s
    for t in range(length):
        p = pressure[t]
        d = k.twice * (p - first)
        v = p - first - d
        first += 2 * d
        d = k.twice * (v - first_again)
        v = v - first_again - d
        first_again += 2 * d
        w = k.b0 * v + low
        low = k.b1 * v - k.a1 * w + low_before
        low_before = k.b2 * v - k.a2 * w
        d = k.second * (w - second)
        v = w - second - d
        second += 2 * d
        d = k.third * (v - third)
        v = k.gain * (v - third - d)
        third += 2 * d
        d = k.lowest * (p - lowest)
        z = p - lowest - d
        lowest += 2 * d
        weighted[t, 0], weighted[t, 1], weighted[t, 2], weighted[t, 3] = v, w, z, 0.0
    _put(s, FilterState(first, first_again, low, low_before, second, third, lowest))


@kernel
def _time_weighted(
    weighted: Array, coefficients: Array, powers: Array, length: int, out: Array
) -> None:
    """Fill `out` (11, `SIDE`): mean square, last, highest and lowest F, S, I, and the mean of I.

    powers: (4, `SIDE`) of F, S, I before hold and I, updated in place
    """
    k = _coefficients(coefficients)
    for i in range(SIDE):
        out[0, i], out[1, i] = 0.0, np.inf
    total, lowest = _lanes(out, 0, 0), _lanes(out, 1, 0)
    fast, slow = _lanes(powers, 0, 0), _lanes(powers, 1, 0)
    impulse, held = _lanes(powers, 2, 0), _lanes(powers, 3, 0)
    mean, f_high, s_high, i_high = total, total, total, total
    f_low, s_low, i_low = lowest, lowest, lowest
    for t in range(length):
        x = _lanes(weighted, t, 0)
        x = x * x
        total = total + x
        fast = fast + (x - fast) * k.fast
        slow = slow + (x - slow) * k.slow
        impulse = impulse + (x - impulse) * k.impulse
        held = held * k.decay
        held = where(held > impulse, held, impulse)
        mean = mean + held
        # Written so that NaN persists: no comparison with it holds.
        f_high, f_low = where(f_high > fast, f_high, fast), where(f_low < fast, f_low, fast)
        s_high, s_low = where(s_high > slow, s_high, slow), where(s_low < slow, s_low, slow)
        i_high, i_low = where(i_high > held, i_high, held), where(i_low < held, i_low, held)
    for i, power in enumerate((fast, slow, impulse, held)):
        put(power, powers, i, 0)
    total, mean = total * (1.0 / length), mean * (1.0 / length)
    values = total, fast, slow, held, f_high, s_high, i_high, f_low, s_low, i_low, mean
    for i, power in enumerate(values):
        put(power, out, i, 0)


AT = plan_rows(
    # A kernel, tables, the state and the sound, and the outputs.
    "to_levels lengths coefficients phases state given "
    "mean_square last highest lowest impulse peak "
)
"""Rows of a plan, by name."""

CALLS = Calls(AT)
"""The kernels, by their rows in a plan."""

_a, _i, _d, _ = CALLS.arguments

_to_levels = CALLS.add(
    "to_levels",
    _sound_levels,
    *(*_a(2, "given"), *_i(1, "lengths"), *_d(1, "coefficients"), *_a(2, "phases")),
    *_d(2, "state"),
    TupleOf(LevelFrames, _a(3, *LevelFrames._fields)),
)


@kernel
def to_frames(plan: Array, like: Array) -> None:
    """Sound to levels; like: any array of the sound's dtype."""
    _to_levels(plan, like)
