"""Weighted mean squares of sound pressure, as sound level meters take them (IEC 61672-1:2013)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.functional.direct_form import direct_form
from amt_stream.functional.dispatch import Array, array, compiled, kernel
from amt_stream.functional.first_order import first_order
from amt_stream.functional.operators import operator
from amt_stream.functional.peak import _peaks, framed, peaks, per_frame, whole_frames
from amt_stream.functional.shapes import fit, last_axes, signal_axes
from amt_stream.functional.state_space import state_space

WEIGHTINGS = 3
"""Frequency weightings A, C, Z, in this order."""

LEVELS = 7
"""Time-weighted mean squares: F of A, C and Z, S of A, C and Z, I of A, in this order."""

FILTER_STATES, POWER_STATES = 7, LEVELS + 1

COEFFICIENTS = (4, 6, 3, 1, 1)
"""How many coefficients are of high-passes, low-pass, time weightings, gain and decay."""


class Frames(NamedTuple):
    """What is in each frame, in the dtype of the sound; powers are in Pa^2.

    mean_square: (..., 3, frame) of `WEIGHTINGS`
    last, highest, lowest: (..., 7, frame) of `LEVELS`, over the samples of the frame
    c_peak: (..., frame) largest magnitude of the C-weighted pressure, between its samples too
    """

    mean_square: Tensor
    last: Tensor
    highest: Tensor
    lowest: Tensor
    c_peak: Tensor


class Coefficients(NamedTuple):
    """The coefficients of `sound_levels` by name, in their order.

    twice, second, third, lowest: of the high-passes: the double one of A and C, both others of A,
        that of Z
    b0 ... a2: of the low-pass of A and C, with the gain of C
    fast, slow, impulse: weights of a new square in F, S and I
    gain: of A over C
    decay: what a held value of I keeps from sample to sample
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
    """States of the filters of A, C and Z, in their order: of each high-pass and the low-pass."""

    first: float
    first_again: float
    low: float
    low_before: float
    second: float
    third: float
    lowest: float


class PowerState(NamedTuple):
    """The values of `LEVELS` by name, in their order; `held` is I of A, held."""

    a_fast: float
    c_fast: float
    z_fast: float
    a_slow: float
    c_slow: float
    z_slow: float
    a_impulse: float
    held: float


SIZES = (WEIGHTINGS, LEVELS, LEVELS, LEVELS)
"""Rows of each field of `Frames` but the last."""


def states(phases: Tensor) -> int:
    """How long the last axis of the state of `sound_levels` is."""
    return FILTER_STATES + POWER_STATES + phases.shape[1] - 1


def sound_levels(
    x: Tensor, lengths: tuple[int, ...], coefficients: Tensor, phases: Tensor, zi: Tensor
) -> tuple[Frames, Tensor]:
    """Frames of sound pressure `x` (..., time) in pascal, and the next state.

    lengths: samples of one frame after another, over and over; time is a multiple of their sum
    coefficients: (15,) float64: `Coefficients`, high-passes as `first_order` has them
    phases: (phase, tap), between samples, as of `peaks`
    zi, zf: (..., 15 + taps - 1) float64: `FilterState`, `PowerState`, the C-weighted samples before
    """
    lead, time = signal_axes("sound_levels", "x", x, 1)
    frames = whole_frames("sound_levels", time, lengths)
    finer, taps = last_axes("sound_levels", "phases", phases, 2)
    table = (max(1, finer), max(1, taps))
    fit("sound_levels", x.dtype, ("phases", phases, table))
    state = (*lead, FILTER_STATES + POWER_STATES + table[1] - 1)
    given = ("coefficients", coefficients, (sum(COEFFICIENTS),)), ("zi", zi, state)
    fit("sound_levels", torch.float64, *given)
    if torch.compiler.is_compiling():
        *fields, zf = _sound_level_frames(x, lengths, coefficients, phases, zi)
        return Frames(*fields), zf
    if compiled(x, coefficients, phases, zi):
        rows, after = array(x).reshape(-1, time), array(zi).copy()
        y = np.empty((len(rows), sum(SIZES), frames), rows.dtype)
        c_peaks = np.empty((2, len(rows), frames), rows.dtype)
        _sound_levels(
            rows,
            np.array(lengths),
            array(coefficients),
            array(phases),
            after.reshape(-1, after.shape[-1]),
            y,
            c_peaks,
        )
        powers = torch.from_numpy(y.reshape(*lead, sum(SIZES), frames))
        mean_square, last, highest, lowest = powers.split_with_sizes(SIZES, -2)
        c_peak = torch.from_numpy(c_peaks[1].reshape(*lead, frames))
        return Frames(mean_square, last, highest, lowest, c_peak), torch.from_numpy(after)
    high, low, smoothing, gain, decay = coefficients.split(COEFFICIENTS)
    sizes = FILTER_STATES, POWER_STATES, phases.shape[1] - 1
    filters, powers, past = zi.split(sizes, -1)
    pressures, filters = _weighted(x.double(), high, low, gain, filters)
    squares = torch.stack(pressures, -2).square()
    levels, powers = _time_weighted_plainly(squares, smoothing, decay, powers)
    _, c_peak, past = peaks(pressures[1].to(x.dtype), phases, lengths, past.to(x.dtype))
    return Frames(
        per_frame(lambda v: v.mean(-1), squares, lengths).to(x.dtype),
        per_frame(lambda v: v[..., -1], levels, lengths).to(x.dtype),
        per_frame(lambda v: v.amax(-1), levels, lengths).to(x.dtype),
        per_frame(lambda v: v.amin(-1), levels, lengths).to(x.dtype),
        c_peak,
    ), torch.cat([filters, powers, past.double()], -1)


def _like_frames(
    x: Tensor, lengths: Sequence[int], coefficients: Tensor, phases: Tensor, zi: Tensor
) -> tuple[Tensor, ...]:
    one = framed(x, lengths, x)
    several = (one.new_empty(*x.shape[:-1], size, one.shape[-1]) for size in SIZES)
    return *several, one, zi.new_empty(zi.shape)


@operator(_like_frames)
def _sound_level_frames(
    x: Tensor, lengths: Sequence[int], coefficients: Tensor, phases: Tensor, zi: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    frames, zf = sound_levels(x, tuple(lengths), coefficients, phases, zi)
    return *frames, zf


def _weighted(
    x: Tensor, high: Tensor, low: Tensor, gain: Tensor, zi: Tensor
) -> tuple[list[Tensor], Tensor]:
    """Pressures weighted with A, C and Z, (..., time) each, and the next states."""
    twice, second, third, lowest = high.unbind()
    y, f1 = first_order(x, twice, zi[..., :2], high=True)
    c, f4 = direct_form(y, low[None, :3], low[None, 3:], zi[..., None, 2:4])
    y, f2 = first_order(c, second, zi[..., 4:5], high=True)
    y, f3 = first_order(y, third, zi[..., 5:6], high=True)
    z, f0 = first_order(x, lowest, zi[..., 6:], high=True)
    return [gain * y, c, z], torch.cat([f1, f4.squeeze(-2), f2, f3, f0], -1)


def _time_weighted_plainly(
    squares: Tensor, smoothing: Tensor, decay: Tensor, zi: Tensor
) -> tuple[Tensor, Tensor]:
    """`LEVELS` (..., 7, time) of squares (..., 3, time) in A, C and Z, and the next states."""
    # Not by lists of indices, which would come from the host in every step.
    new = torch.cat([smoothing[:2].repeat_interleave(3), smoothing[2:]])
    keep = 1 - new
    y, zf = state_space(
        torch.cat([squares, squares, squares[..., :1, :]], -2),
        keep[:, None, None],
        new[:, None],
        keep[:, None],
        new,
        zi[..., :LEVELS, None],
    )
    held = held_maximum(y[..., -1, :], decay, zi[..., -1])
    after = torch.cat([zf.squeeze(-1), held[..., -1:]], -1)
    return torch.cat([y[..., :-1, :], held.unsqueeze(-2)], -2), after


def held_maximum(x: Tensor, decay: Tensor, zi: Tensor) -> Tensor:
    """h[t] = max(x[t], decay h[t-1]) of `x` (..., time); zi: (...), h before it; plain form."""
    outputs, held = [], zi.unsqueeze(-1)
    # Divided by its decay the held value is a running maximum; in pieces, or it would overflow.
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
def _put(s: Array, values: FilterState | PowerState) -> None:
    for i in range(len(values)):
        s[i] = values[i]


@kernel
def _sound_levels(
    x: Array,
    lengths: Array,
    coefficients: Array,
    phases: Array,
    state: Array,
    y: Array,
    c_peaks: Array,
) -> None:
    longest = 0
    for length in lengths:
        longest = max(longest, length)
    pressure, squares = np.empty((2, longest)), np.empty((WEIGHTINGS, longest))
    levels, out = np.empty((LEVELS, longest)), np.empty(y.shape[1])
    known, past = FILTER_STATES + POWER_STATES, phases.shape[1] - 1
    c = np.empty((x.shape[0], past + x.shape[1]), x.dtype)
    for r in range(x.shape[0]):
        for k in range(past):
            c[r, k] = state[r, known + k]
        start = 0
        for n in range(y.shape[2]):
            length = lengths[n % lengths.size]
            for t in range(length):
                pressure[0, t] = x[r, start + t]
            # The same for sound of either dtype, which is then compiled once.
            _frame(pressure, coefficients, state[r], squares, levels, length, out)
            for t in range(length):
                c[r, past + start + t] = pressure[1, t]
            for k in range(out.size):
                y[r, k, n] = out[k]
            start += length
        for k in range(past):
            state[r, known + k] = c[r, x.shape[1] + k]
    _peaks(c, phases, lengths, c_peaks[0], c_peaks[1])


@kernel
def _frame(
    pressure: Array,
    coefficients: Array,
    state: Array,
    squares: Array,
    levels: Array,
    length: int,
    out: Array,
) -> None:
    _weighted_squares(pressure, coefficients, state, squares, length)
    _time_weighted(squares, coefficients, state, levels, length)
    for k in range(WEIGHTINGS):
        total = 0.0
        for t in range(length):
            total += squares[k, t]
        out[k] = total / length
    for k in range(LEVELS):
        v = levels[k]
        # NaN in a level stays to the end, where neither comparison holds.
        highest = lowest = v[0]
        for t in range(length):
            highest = highest if highest > v[t] else v[t]
            lowest = lowest if lowest < v[t] else v[t]
        out[WEIGHTINGS + k] = v[length - 1]
        out[WEIGHTINGS + LEVELS + k], out[WEIGHTINGS + 2 * LEVELS + k] = highest, lowest


@kernel
def _weighted_squares(
    pressure: Array, coefficients: Array, state: Array, squares: Array, length: int
) -> None:
    k = _coefficients(coefficients)
    s = state[:FILTER_STATES]
    first, first_again, low, low_before, second, third, lowest = s
    x, c = pressure
    for t in range(length):
        p = x[t]
        d = k.twice * (p - first)
        v = p - first - d
        first += 2 * d
        d = k.twice * (v - first_again)
        v = v - first_again - d
        first_again += 2 * d
        w = k.b0 * v + low
        low = k.b1 * v - k.a1 * w + low_before
        low_before = k.b2 * v - k.a2 * w
        c[t] = w
        d = k.second * (w - second)
        v = w - second - d
        second += 2 * d
        d = k.third * (v - third)
        v = k.gain * (v - third - d)
        third += 2 * d
        d = k.lowest * (p - lowest)
        z = p - lowest - d
        lowest += 2 * d
        squares[0, t], squares[1, t], squares[2, t] = v * v, w * w, z * z
    _put(s, FilterState(first, first_again, low, low_before, second, third, lowest))


@kernel
def _time_weighted(
    squares: Array, coefficients: Array, state: Array, levels: Array, length: int
) -> None:
    k = _coefficients(coefficients)
    s = state[FILTER_STATES : FILTER_STATES + POWER_STATES]
    a_fast, c_fast, z_fast, a_slow, c_slow, z_slow, a_impulse, held = s
    for t in range(length):
        a, c, z = squares[0, t], squares[1, t], squares[2, t]
        a_fast += k.fast * (a - a_fast)
        c_fast += k.fast * (c - c_fast)
        z_fast += k.fast * (z - z_fast)
        a_slow += k.slow * (a - a_slow)
        c_slow += k.slow * (c - c_slow)
        z_slow += k.slow * (z - z_slow)
        a_impulse += k.impulse * (a - a_impulse)
        held *= k.decay
        held = held if held > a_impulse else a_impulse
        levels[0, t], levels[1, t], levels[2, t] = a_fast, c_fast, z_fast
        levels[3, t], levels[4, t], levels[5, t], levels[6, t] = a_slow, c_slow, z_slow, held
    _put(s, PowerState(a_fast, c_fast, z_fast, a_slow, c_slow, z_slow, a_impulse, held))
