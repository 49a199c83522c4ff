"""Onsets of impulses in a level over time (ISO/PAS 1996-3:2022, NT ACOU 112)."""

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, copied, recurrence
from amt_stream.dsp.functional.compiler.operators import on_host
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes

STEEP = 10.0
"""Of an onset, in dB/s: the level rises faster."""

JOINED_S = 0.05
"""Between two rises that may be one onset."""

FIELDS = 8
"""Of an onset: seconds since its start and its end, level at the start, LD, OR and P; then P of one
that may still be one with a next rise, and seconds since its start."""

STATES = 16
"""Levels so far, and the last; then of an onset that waits and of one that rises: see `_onsets`."""


def _like(level: Tensor, times: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    return level.new_empty(*level.shape, FIELDS), zi.new_empty(zi.shape)


@on_host(_like)
def impulse_onsets(level: Tensor, times: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """The onset that each level ends the wait for, (..., frame, 8) as `FIELDS`, or zeros.

    An onset is a run of levels that rise faster than 10 dB/s. Two at most 50 ms apart are one, if
    both from start to start and from end to end the level rises faster than that too. The level
    difference LD in dB is that of its ends, the onset rate OR in dB/s the slope of the straight
    line through all its levels, and prominence P = 3 lg OR + 2 lg LD. An onset comes 60 ms after
    its end, and its P from 20 ms after it until then; an OR of 10 dB/s or less is none.

    level: (..., frame) in dB, A-weighted, F
    times: (2,) float64: seconds from one level to the next, and at the start in which none rises
    zi, zf: (..., 16) float64, 0 at the start
    """
    lead, frames = signal_axes("impulse_onsets", "level", level, 1)
    fit("impulse_onsets", level.dtype, ("level", level, (*lead, frames)))
    given = ("times", times, (2,)), ("zi", zi, (*lead, STATES))
    fit("impulse_onsets", torch.float64, *given)
    y, _ = _like(level, times, zi)
    after = copied(zi)
    step_s, rest_s = times.tolist()
    rows = array(level).reshape(-1, frames)
    states, found = after.numpy().reshape(-1, STATES), y.numpy().reshape(-1, frames, FIELDS)
    _onsets(rows, step_s, max(1, round(rest_s / step_s)), states, found)
    return y, after


@recurrence
def _onsets(level: Array, step_s: float, rest: int, state: Array, y: Array) -> None:
    """Sums over the levels of an onset are of what they are above its first, plain and times place.

    Ages are in levels. One onset may wait for a rise that it is one with, while another rises.
    """
    steep, apart = STEEP * step_s, int(JOINED_S / step_s + 1e-9)
    for r in range(level.shape[0]):
        s = state[r]
        for n in range(level.shape[1]):
            v = np.float64(level[r, n])
            out = y[r, n]
            out[:] = 0.0
            last, seen = s[1], s[0]
            rises = seen >= rest and v - last > steep
            # The one that waits: whether there is one, ages of start and end, first and last level,
            # its sums, and those up to now.
            waits, start_age, end_age, first, end = s[2], s[3], s[4], s[5], s[6]
            total, placed, on, on_placed = s[7], s[8], s[9], s[10]
            # The one that rises: whether, age, first level, and sums.
            rising, age, foot, sum_, sum_placed = s[11], s[12], s[13], s[14], s[15]
            if v != v or last != last:
                out[:] = np.nan
                s[1] = np.nan
                continue
            if rises:
                if rising == 0.0:
                    rising, age, foot, sum_, sum_placed = 1.0, 0.0, last, 0.0, 0.0
                age += 1
                sum_ += v - foot
                sum_placed += age * (v - foot)
            elif rising > 0.0:
                rising = 0.0
                joined = (
                    waits > 0.0
                    and last - end > steep * end_age
                    and foot - first > steep * (start_age - age)
                )
                if joined:
                    total, placed, end, end_age = on, on_placed, last, 0.0
                else:
                    if waits > 0.0:
                        slope = _slope(start_age - end_age, total, placed) / step_s
                        _finish(start_age, end_age, first, end, slope, step_s, out)
                    waits, start_age, end_age, first, end = 1.0, age, 0.0, foot, last
                    total, placed, on, on_placed = sum_, sum_placed, sum_, sum_placed
            if waits > 0.0:
                slope = _slope(start_age - end_age, total, placed) / step_s
                if rising == 0.0 and end_age + 1 > apart:
                    _finish(start_age, end_age, first, end, slope, step_s, out)
                    waits = 0.0
                elif slope > STEEP:
                    out[6], out[7] = _prominence(slope, end - first), (start_age + 1) * step_s
            start_age += 1
            end_age += 1
            on += v - first
            on_placed += start_age * (v - first)
            s[0], s[1] = min(seen + 1, rest), v
            s[2], s[3], s[4], s[5], s[6] = waits, start_age, end_age, first, end
            s[7], s[8], s[9], s[10] = total, placed, on, on_placed
            s[11], s[12], s[13], s[14], s[15] = rising, age, foot, sum_, sum_placed


@recurrence
def _slope(last: float, total: float, placed: float) -> float:
    """Of the straight line through the levels of an onset, up to place `last`, per level."""
    count = last + 1
    return (placed - last / 2 * total) * 12 / (count * (count * count - 1))


@recurrence
def _prominence(slope: float, rise: float) -> float:
    return 3 * np.log10(slope) + 2 * np.log10(rise)


@recurrence
def _finish(
    start_age: float,
    end_age: float,
    first: float,
    end: float,
    slope: float,
    step_s: float,
    out: Array,
) -> None:
    """Fill `out` with the `FIELDS` of an onset, if it is one; ages are as of the level before."""
    if slope > STEEP:
        rise = end - first
        out[0], out[1] = (start_age + 1) * step_s, (end_age + 1) * step_s
        out[2], out[3], out[4], out[5] = first, rise, slope, _prominence(slope, rise)
