"""Loops over frames that meters take: compiled, as a call of numpy for each step costs more.

Each goes on from what it is given to change, one frame after another, in float64.
"""

import math
from functools import cache
from threading import Lock

import numpy as np
from numba import types

from amt_stream.functional.kernel_cache import cached_njit

Array = np.ndarray

_one_by_one = Lock()

_compiled = cached_njit(nogil=True, error_model="numpy")


@_compiled
def count(values: Array, low: float, width: float, counts: Array) -> None:
    """Count `values` (n,) in classes from `low` on; NaN does not count."""
    most = float(len(counts) - 1)
    for value in values:
        if not math.isnan(value):
            place = np.floor((value - low) / width)
            counts[int(min(max(place, 0.0), most))] += 1


@_compiled
def find(ranks: Array, counts: Array, places: Array) -> None:
    """Classes in which values stand by their `ranks` (k,), from the least on, from 0."""
    up_to, k = 0, 0
    for place in range(len(counts)):
        up_to += counts[place]
        while k < len(ranks) and up_to > ranks[k]:
            places[k] = place
            k += 1
        if k == len(ranks):
            return


@_compiled
def hold_highest(values: Array, highest: float, held: Array) -> int:
    """The highest so far after each of `values` (n,); where the last of these came, or -1."""
    place = -1
    for k in range(len(values)):
        if values[k] > highest:
            highest, place = values[k], k
        held[k] = highest
    return place


@_compiled
def lasts(time_s: Array, values: Array, at: int, until_s: float, above: float) -> int:
    """Place of the first of `values` (n,) from `at` on that is late or not above; n for none."""
    while at < len(values) and time_s[at] < until_s and values[at] > above:
        at += 1
    return at


@_compiled
def roll(
    mean_square: Array, taken: int, slot: int, rest: Array, slots: Array, begun: Array, means: Array
) -> float:
    """Means (n,) of a window after each frame, up to the end of its stretch; its last count.

    The arguments are as of `RollingLevel`; a mean of nothing is NaN.
    """
    counted = 0.0
    for k in range(len(mean_square)):
        place = (taken + k) // slot
        if not math.isnan(mean_square[k]):
            slots[0, place] += mean_square[k]
            slots[1, place] += 1.0
            begun[0] += mean_square[k]
            begun[1] += 1.0
        counted = begun[1] + rest[1, place + 1]
        means[k] = (begun[0] + rest[0, place + 1]) / counted if counted else math.nan
    return counted


@_compiled
def measure(
    frames: Array,
    valid: Array,
    since_s: Array,
    frame_s: float,
    rising: Array,
    forgotten: Array,
    paused: bool,
    sums: Array,
    counts: Array,
    highest: Array,
    lowest: Array,
    peak: Array,
    told: Array,
) -> None:
    """Sums and extremes of sound levels after each frame.

    frames: (24, n) mean squares of three weightings, peak, highest of seven levels, lowest of six,
        powers of seven
    valid: (n,) which frames may count; since_s: (n,) how long ago the last fault ended
    frame_s: length of a frame
    rising: (7,) how many of these frames, the first, are of the rise of a level from silence
    forgotten: (7,) frames after a fault after which a level counts
    sums, counts, highest, lowest, peak: what was counted so far, with an axis (1,) of time; lowest
        of six levels after their rise, then of six in it
    told: (20, n) after each frame: means, NaN without frames; squared peak, highest, lowest of six
        levels, in their rise where there is none after it; power of the first where it may count
        and NaN elsewhere; the first sum, counts
    """
    for k in range(len(valid)):
        since = np.rint(since_s[k] / frame_s)
        if valid[k] and not paused:
            for i in range(3):
                sums[i, 0] += frames[i, k]
            counts[0] += 1.0
            peak[0] = max(peak[0], frames[3, k])
        told[17, k] = math.nan
        for i in range(7):
            if valid[k] and since >= forgotten[i]:
                if i == 0:
                    told[17, k] = frames[17, k]
                if not paused:
                    highest[i, 0] = max(highest[i, 0], frames[4 + i, k])
                    if i < 6:
                        # Of a rise what it has reached: it begins from nothing.
                        place, row = (i + 6, 17 + i) if k < rising[i] else (i, 11 + i)
                        lowest[place, 0] = min(lowest[place, 0], frames[row, k])
        # Number by number: slices of arrays take seconds to compile.
        for i in range(3):
            told[i, k] = sums[i, 0] / counts[0] if counts[0] else math.nan
        told[3, k] = peak[0] * peak[0]
        for i in range(7):
            told[4 + i, k] = highest[i, 0]
        for i in range(6):
            told[11 + i, k] = lowest[i, 0] if lowest[i, 0] < math.inf else lowest[i + 6, 0]
        told[18, k] = sums[0, 0]
        told[19, k] = counts[0]


def make_ready() -> None:
    """Compile these, each once for whatever memory its frames come in, so that no sound waits."""
    with _one_by_one:
        _compile()


@cache
def _compile() -> None:
    f8, i8, flags = types.float64, types.int64, types.Array(types.bool_, 1, "A", readonly=True)
    line, table = (types.Array(f8, ndim, "A", readonly=True) for ndim in (1, 2))
    kept, kept_table = (types.Array(f8, ndim, "C") for ndim in (1, 2))
    numbers, frames = (types.Array(i8, 1, "C", readonly=flag) for flag in (False, True))
    for kernel, given in (
        (count, (line, f8, f8, numbers)),
        (find, (line, numbers, numbers)),
        (hold_highest, (line, f8, kept)),
        (lasts, (line, line, i8, f8, f8)),
        (roll, (line, i8, i8, table, kept_table, kept, kept)),
        (
            measure,
            (
                *(table, flags, line, f8, frames, frames, types.bool_),
                *(kept_table, kept, kept_table, kept_table, kept, kept_table),
            ),
        ),
    ):
        kernel.compile(given)
        kernel.disable_compile()
