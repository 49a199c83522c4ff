"""Compiled loops over frames for meters, as numpy calls for each step would cost more.

Each one continues from the state in its arguments, frame by frame, in float64.
"""

import math

import numpy as np

from amt_stream.core.importing import has_torch
from amt_stream.core.made_once import made_once
from amt_stream.dsp.functional.compiler.host_loop import host_loop

Array = np.ndarray

DIGITS = 7
"""Digits of a reading, as it is written."""

POWERS = 10.0 ** np.arange(23)
"""The powers of ten that float64 holds exactly."""

_compiled = host_loop()


@_compiled
def class_number(value: float, width: float, least: float, most: float) -> int:
    """Number of the class of a value; that below `least` for all that is lower (see `count`)."""
    return int(max(min(np.floor(value / width), most), least - 1.0))


@_compiled
def count(values: Array, width: float, least: float, most: float, first: int, counts: Array) -> int:
    """Count `values` (n,) in classes of this width; NaN is ignored.

    least, most: numbers of the lowest class and of that for all that is higher; what is lower
        counts in `counts[0]`
    first: number of the class of `counts[1]`

    Returns how many values were taken: all, or those before one whose class `counts` has not.
    """
    for k in range(len(values)):
        if not math.isnan(values[k]):
            place = class_number(values[k], width, least, most)
            at = 0 if place < least else place - first + 1
            if at < 0 or at >= len(counts) or (at == 0 and place >= least):
                return k
            counts[at] += 1
    return len(values)


@_compiled
def find_rise(places: Array, least: int, first: int, counts: Array, more: Array) -> int:
    """Write sorted indices into `counts` of those values of a rise that count, to the first `more`.

    They count from the lowest class on that has another value, or all if there are no others.

    places: sorted numbers of their classes; least, first: as in `count`

    Returns how many they are.
    """
    lowest, counted = 0, 0
    while lowest < len(counts) and not counts[lowest]:
        lowest += 1
    for place in places:
        index = 0 if place < least else place - first + 1
        if index >= lowest or lowest == len(counts):
            more[counted] = index
            counted += 1
    return counted


@_compiled
def find(
    percents: Array,
    width: float,
    most: int,
    first: int,
    counts: Array,
    more: Array,
    values: Array,
) -> None:
    """Find the values (k,) that are exceeded in these percents.

    They are interpolated between the middles of the classes of two values; NaN without values. What
    `counts[0]` and the class `most` count has no place on the scale: what includes it is infinite.

    width, most, first: as in `count`
    more: sorted indices into `counts` of further values
    """
    values[:] = math.nan
    # Not `counts.sum()`, with which numba keeps an import of all of scipy.linalg.
    total = len(more)
    for number in counts:
        total += number
    if not total:
        return
    # Upward through the classes that are not empty, as percents mostly come in rising order: `at`
    # is one with the values from rank `before` to `up_to`, and the one below it is `last`.
    at, last, before, up_to, j, place = -1, -1, 0, 0, 0, -1
    for k in range(len(percents) - 1, -1, -1):
        rank = (total - 1) * (1 - percents[k] / 100)
        low, high = math.floor(rank), math.ceil(rank)
        if high < before:
            at, last, before, up_to, j, place = -1, -1, 0, 0, 0, -1
        while up_to <= high:
            place += 1
            number = counts[place]
            while j < len(more) and more[j] == place:
                number += 1
                j += 1
            if number:
                at, last, before, up_to = place, at, up_to, up_to + number
        below = at if low >= before else last
        # Alike whichever classes are stored.
        lower = below - 1 + first
        values[k] = (lower + (rank - low) * (at - below) + 0.5) * width
        if below == 0:
            values[k] = -math.inf
        elif at - 1 + first >= most:
            values[k] = math.inf


@_compiled
def round_digits(values: Array) -> None:
    """Round `values` (n,) to `DIGITS` digits, in place; NaN for those that are not finite.

    One product or division by an exact power of ten rounds like text.
    """
    for k in range(len(values)):
        value = values[k]
        size = abs(value)
        if not math.isfinite(value):
            values[k] = math.nan
        elif size > 0.0:
            place = math.floor(math.log10(size)) - (DIGITS - 1)
            if 0 <= place < len(POWERS):
                values[k] = np.rint(value / POWERS[place]) * POWERS[place]
            elif 0 < -place < len(POWERS):
                values[k] = np.rint(value * POWERS[-place]) / POWERS[-place]


@_compiled
def lasts(time_s: Array, values: Array, at: int, until_s: float, above: float) -> int:
    """Index of the first of `values` (n,) from `at` on that is late or not above; else n."""
    while at < len(values) and time_s[at] < until_s and values[at] > above:
        at += 1
    return at


@_compiled
def count_series(
    values: Array,
    flags: Array,
    sets: Array,
    start_s: Array,
    time_s: Array,
    paused: bool,
    highest: Array,
    reached_s: Array,
    counts: Array,
    heard: Array,
    held: Array,
) -> None:
    """Count values (row, n) of several series in their maxima.

    flags: (set, n) which frames count
    sets: (row,) the set of each row
    start_s: (row,) only values after it count
    highest, reached_s: (row,) state: maximum, and when it was first reached
    counts: (row, 2) state: numbers of values that counted, and of others
    heard, held: (row, n) output: values that count, else NaN; the maximum after each
    """
    for row in range(values.shape[0]):
        for k in range(values.shape[1]):
            value = values[row, k]
            there = flags[sets[row], k] and not math.isnan(value) and time_s[k] > start_s[row]
            heard[row, k] = value if there else math.nan
            if not paused:
                counts[row, 0 if there else 1] += 1
                if there and value > highest[row]:
                    highest[row], reached_s[row] = value, time_s[k]
            held[row, k] = highest[row]


@_compiled
def roll(
    mean_square: Array, taken: int, slot: int, rest: Array, slots: Array, begun: Array, means: Array
) -> float:
    """Means (n,) of a window after each frame, up to the end of its stretch, and its last count.

    The arguments are those of `RollingLevel`; a mean of no values is NaN.
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
def tell(
    sums: Array,
    counts: Array,
    highest: Array,
    lowest: Array,
    peak: Array,
    impulse: Array,
    intervals: Array,
    out: Array,
    k: int,
) -> None:
    """Column `k` of `out` (29 or more, n): what `RUNNING` of sound level names, as powers.

    NaN without a value. The arguments are those of `Running`.
    """
    for i in range(3):
        out[i, k] = sums[i, 0] / counts[0] if counts[0] else math.nan
        out[3 + i, k] = impulse[0, i] / impulse[1, i] if impulse[1, i] else math.nan
        out[6 + i, k] = peak[i, 0] * peak[i, 0]
    for i in range(9):
        out[9 + i, k] = highest[i, 0]
        out[18 + i, k] = lowest[i, 0] if lowest[i, 0] < math.inf else lowest[i + 9, 0]
    for i in range(2):
        out[27 + i, k] = intervals[i, 2] / intervals[i, 3] if intervals[i, 3] else math.nan


@_compiled
def measure_frames(
    mean_square: Array,
    power: Array,
    highest_power: Array,
    lowest_power: Array,
    held: Array,
    peaks: Array,
    valid: Array,
    there: Array,
    since_s: Array,
    frame_s: float,
    taken: int,
    risen: Array,
    forgotten: Array,
    lengths: Array,
    paused: bool,
    sums: Array,
    counts: Array,
    highest: Array,
    lowest: Array,
    peak: Array,
    impulse: Array,
    intervals: Array,
    out: Array,
) -> int:
    """Sums and extremes of sound levels after each frame; returns how many frames are valid.

    mean_square, peaks, held: (3, n) of three weightings, the last being the means of I
    power, highest_power, lowest_power: (9, n) of nine levels
    valid: (n,) which frames may count; those with infinite or NaN mean squares do not
    there: (n,) which frames are of complete sound
    since_s: (n,) time since the end of the last fault
    frame_s: length of a frame
    taken: number of frames before
    risen: (9,) first frames, counted from 1, that are not of the rise of each level from silence
    forgotten: (9,) frames after a fault until a level counts
    lengths: (2,) frames of the intervals whose highest levels are averaged
    sums, counts, highest, lowest, peak, impulse, intervals: state, as in `Running`
    out: (52 or more, n) output after each frame: that of `tell`; powers of nine levels if they
        count, else NaN; the first sum; counts; mean squares of valid frames, else NaN; powers of
        nine levels that are there, else NaN
    """
    heard = 0
    for k in range(len(valid)):
        since = np.rint(since_s[k] / frame_s)
        known = bool(valid[k])
        for i in range(3):
            known &= math.isfinite(mean_square[i, k])
        heard += known
        counted = known and not paused
        for i in range(3):
            out[40 + i, k] = mean_square[i, k] if known else math.nan
        if counted:
            for i in range(3):
                sums[i, 0] += np.float64(mean_square[i, k])
                peak[i, 0] = max(peak[i, 0], np.float64(peaks[i, k]))
            counts[0] += 1.0
        for i in range(9):
            now = np.float64(power[i, k])
            out[29 + i, k] = math.nan
            out[43 + i, k] = now if there[k] else math.nan
            if known and since >= forgotten[i]:
                out[29 + i, k] = now
                if not paused:
                    highest[i, 0] = max(highest[i, 0], np.float64(highest_power[i, k]))
                    # Of a rise what it has reached: it begins from nothing.
                    rises = taken + 1 + k < risen[i]
                    place, least = i, np.float64(lowest_power[i, k])
                    if rises:
                        place, least = i + 9, now
                    lowest[place, 0] = min(lowest[place, 0], least)
                    if i >= 6:
                        impulse[0, i - 6] += np.float64(held[i - 6, k])
                        impulse[1, i - 6] += 1.0
        if counted:
            for i in range(2):
                intervals[i, 0] += 1.0
                if since >= forgotten[0]:
                    intervals[i, 1] = max(intervals[i, 1], np.float64(highest_power[0, k]))
                if intervals[i, 0] == lengths[i]:
                    # Of an interval in which no level had settled nothing is known.
                    if intervals[i, 1] >= 0:
                        intervals[i, 2] += intervals[i, 1]
                        intervals[i, 3] += 1.0
                    intervals[i, 0], intervals[i, 1] = 0.0, -1.0
        tell(sums, counts, highest, lowest, peak, impulse, intervals, out, k)
        out[38, k] = sums[0, 0]
        out[39, k] = counts[0]
    return heard


@_compiled
def measure_bands(
    mean_square: Array,
    power: Array,
    highest_power: Array,
    valid: Array,
    since_s: Array,
    frame_s: float,
    waits: Array,
    paused: bool,
    sums: Array,
    counts: Array,
    highest: Array,
    now: Array,
    squares: Array,
    out: Array,
) -> int:
    """Sums and maxima of bands after each frame; returns how many frames are valid.

    mean_square: (band, n); power, highest_power: (2, band, n)
    valid, since_s, frame_s: as in `measure_frames`
    waits: (3, band) frames after a fault until the mean square counts, and until each power does
    sums, counts, highest, now: state, as in `BandSums`
    squares: (band, n) output: mean squares that count, else NaN
    out: (5, band, n) output after each frame: both powers of valid frames, else NaN; the mean of
        all squares that were measured, NaN for none; the highest of both powers
    """
    heard = 0
    for k in range(len(valid)):
        since = np.rint(since_s[k] / frame_s)
        known = bool(valid[k])
        for band in range(len(sums)):
            known &= math.isfinite(mean_square[band, k])
        heard += known
        for band in range(len(sums)):
            there = known and since >= waits[0, band]
            squares[band, k] = mean_square[band, k] if there else math.nan
            if there and not paused:
                sums[band] += np.float64(mean_square[band, k])
                counts[band] += 1.0
            out[2, band, k] = sums[band] / counts[band] if counts[band] else math.nan
            for i in range(2):
                now[i, band] = power[i, band, k] if known else math.nan
                out[i, band, k] = now[i, band]
                if known and not paused and since >= waits[1 + i, band]:
                    highest[i, band] = max(highest[i, band], np.float64(highest_power[i, band, k]))
                out[3 + i, band, k] = highest[i, band]
    return heard


@_compiled
def arrange(channels: Array, sides: Array, rows: Array, more: Array, out: Array) -> None:
    """Columns (n, column) from rows of one or two channels (channel, row, n).

    sides: (column,) 0 for the higher of both channels, 1 and 2 for each
    rows: (column,) the row of each
    more: (column,) what is added
    """
    for j in range(len(rows)):
        one = channels[max(0, sides[j] - 1), rows[j]]
        if sides[j] == 0 and channels.shape[0] == 2:
            other = channels[1, rows[j]]
            for k in range(len(one)):
                higher = one[k] if one[k] >= other[k] or math.isnan(other[k]) else other[k]
                out[k, j] = higher + more[j]
        else:
            for k in range(len(one)):
                out[k, j] = one[k] + more[j]


@made_once
def compile_loops() -> None:
    """Compile the loops for all memory layouts in advance, so that no sound waits."""
    if not has_torch():
        return
    from numba import types

    f8, i8 = types.float64, types.int64
    flags, flag_table = (types.Array(types.bool_, ndim, "A", readonly=True) for ndim in (1, 2))
    line, table = (types.Array(f8, ndim, "A", readonly=True) for ndim in (1, 2))
    kept, kept_table, channels = (types.Array(f8, ndim, "C") for ndim in (1, 2, 3))
    numbers, frames = (types.Array(i8, 1, "C", readonly=flag) for flag in (False, True))
    running = (kept_table, kept, *[kept_table] * 5)
    counts = types.Array(i8, 2, "C")
    of_sound = flags, flags, line, f8, i8, frames, frames, frames, types.bool_
    of_bands = flags, line, f8, kept_table, types.bool_, kept, kept, *[kept_table] * 3, channels
    measured, banded = [], []
    for kind in (types.float32, f8):
        pair, triple = (types.Array(kind, ndim, "A", readonly=True) for ndim in (2, 3))
        measured.append((*[pair] * 6, *of_sound, *running, kept_table))
        banded.append((pair, triple, triple, *of_bands))
    for kernel, *signatures in (
        (class_number, (f8, f8, f8, f8)),
        (count, (line, f8, f8, f8, i8, numbers)),
        (find_rise, (numbers, i8, i8, numbers, numbers)),
        (find, (line, f8, i8, i8, numbers, numbers, kept)),
        (round_digits, (kept,)),
        (lasts, (line, line, i8, f8, f8)),
        (
            count_series,
            (
                *(table, flag_table, frames, line, line, types.bool_),
                *(kept, kept, counts, kept_table, kept_table),
            ),
        ),
        (roll, (line, i8, i8, table, kept_table, kept, kept)),
        (tell, (*running, kept_table, i8)),
        (measure_frames, *measured),
        (measure_bands, *banded),
        (arrange, (channels, frames, frames, kept, kept_table)),
    ):
        for given in signatures:
            kernel.compile(given)
        kernel.disable_compile()
