"""Fluctuation strength from slow changes of envelopes (ECMA-418-2:2025, clause 9)."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, arrays_of, copied, kernel
from amt_stream.dsp.functional.compiler.lanes import LANES, lanes_of, put, where
from amt_stream.dsp.functional.compiler.operators import on_host
from amt_stream.dsp.functional.compiler.shapes import fit_state
from amt_stream.dsp.functional.compiler.tiles import SPAN, load, store
from amt_stream.dsp.functional.ecma418.bands import BANDS, basis_loudness_of
from amt_stream.dsp.functional.ecma418.modulation import (
    FRAME,
    NODES,
    Grid,
    count_on,
    interpolate,
    push,
    sharpen,
    sort,
    spectra,
    spread_of,
)
from amt_stream.dsp.functional.ecma418.slow_lines import LINES, SEARCH, SIZE, all_lines

_lanes = lanes_of(LANES)

GRID = Grid(hop=512, wait=35, period=256)

PARTS = 4
"""Frames over which the bands of a block are analyzed, so that none takes long."""

PART = -(-BANDS // PARTS)
"""Bands analyzed in a frame."""

AROUND = 35
"""Frames before and after one whose spreads the median takes."""

WAIT = GRID.wait + PARTS - 1 + AROUND
"""Frames until that of a time is due."""

FLUCTUATION = 0.003840572
"""Calibration of fluctuation strength, c_F: a tone of 60 dB, modulated by 4 Hz, has 1 vacil."""

LEAST = 5.2519
"""Amplitude of a band below which it does not fluctuate."""

KEEP = float(np.exp(-1 / (50 * 0.75)))
"""Smoothing of specific fluctuation strength from frame to frame."""

MEDIAN = 33
"""Values of an envelope whose median smooths it."""

MARGIN, SHORTEST = 64, 320
"""Values at the ends of a block that are not analyzed, and those that an analysis needs."""

SILENT_PA = 5e-6


class FluctuationTables(NamedTuple):
    """Tables of `fluctuation`, in float64.

    threshold: basis loudness at the threshold in quiet (53,)
    gains: `high_rate_gains`
    search: `SEARCH`
    """

    threshold: Tensor
    gains: Tensor
    search: Tensor


TABLE_SHAPES = dict(zip(FluctuationTables._fields, ((BANDS,), (BANDS,), SEARCH.shape), strict=True))


class FluctuationState(NamedTuple):
    """State of `fluctuation`, in float64.

    past: envelopes of the last block (..., 53, 2048)
    recent: envelopes of the present hop (..., 53, 512)
    found: weighted power and loudness of the bands of that block (..., 53, 2)
    nodes: amplitudes of the last blocks (..., 53, 5)
    spreads: of the last frames over bands (..., 70)
    waiting: amplitudes of the last frames, which wait for their median (..., 53, 35)
    smooth: specific fluctuation strength of the last frame (..., 53)
    begun: frames since the beginning; it goes around (..., 1)
    """

    past: Tensor
    recent: Tensor
    found: Tensor
    nodes: Tensor
    spreads: Tensor
    waiting: Tensor
    smooth: Tensor
    begun: Tensor


_ENVELOPES = (BANDS, SIZE), (BANDS, GRID.hop)
_FRAMES = (BANDS, 2), (BANDS, NODES), (2 * AROUND,), (BANDS, AROUND), (BANDS,), (1,)

STATE_SHAPES = dict(zip(FluctuationState._fields, (*_ENVELOPES, *_FRAMES), strict=True))
"""Without leading axes."""

_IN_ROWS = {name: shape[1:] for name, shape in STATE_SHAPES.items()}


def _like(
    x: Tensor, tables: FluctuationTables, state: FluctuationState
) -> tuple[Tensor, FluctuationState]:
    y = x.new_empty(*x.shape[:-2], BANDS, x.shape[-1] // FRAME)
    return y, FluctuationState(*(v.new_empty(v.shape) for v in state))


@on_host(_like)
def fluctuation(
    x: Tensor, tables: FluctuationTables, state: FluctuationState
) -> tuple[Tensor, FluctuationState]:
    """Specific fluctuation strength (..., 53, frame) in vacil/Bark_HMS, a frame per 30 values.

    A frame stands for the value `WAIT` frames before its end.

    x: envelopes of the bands in pascal (..., 53, time), float64, 1500 a second, a multiple of 30
    """
    fit_state("fluctuation", x, (BANDS,), FRAME, (tables, TABLE_SHAPES), (state, STATE_SHAPES))
    after = FluctuationState(*map(copied, state))
    return fluctuation_in_place(x, tables, after), after


def fluctuation_in_place(x: Tensor, tables: FluctuationTables, state: FluctuationState) -> Tensor:
    """The output of `fluctuation`, which updates `state`; nothing is checked.

    state: contiguous
    """
    lead, time = x.shape[:-2], x.shape[-1]
    sound = array(x).reshape(-1, BANDS, time)
    y = np.empty((len(sound), BANDS, time // FRAME))
    memory = FluctuationState(*arrays_of(state, _IN_ROWS))  # type: ignore[arg-type]
    _slow_frames(sound, FluctuationTables(*map(array, tables)), memory, y)  # type: ignore[arg-type]
    return torch.from_numpy(y).view(*lead, BANDS, -1)


@kernel
def _slow_frames(x: Array, tables: FluctuationTables, state: FluctuationState, y: Array) -> None:
    """The frames (row, band, frame) of `x` (row, band, time), into `y`.

    state: updated in place; each field has one axis for rows and what follows them
    """
    threshold, gains, search = tables
    windowed, windows = np.empty((PART, SIZE)), np.empty((PART, 2), np.int64)
    lines, memory = np.empty((PART, LINES, 2)), np.empty((2, 2, SIZE))
    power, square = np.empty((PART, 2)), np.empty(PART)
    for row in range(x.shape[0]):
        own = slice(row * BANDS, row * BANDS + BANDS)
        past, recent, found = state.past[own], state.recent[own], state.found[own]
        nodes, waiting, smooth = state.nodes[own], state.waiting[own], state.smooth[own]
        spreads = state.spreads[row * 2 * AROUND : (row + 1) * 2 * AROUND]
        for frame in range(y.shape[2]):
            count, start = int(state.begun[row]), frame * FRAME
            at = FRAME * count % GRID.hop
            if at + FRAME >= GRID.hop:
                _end_hop(x[row], start, at, recent, past)
            else:
                for band in range(BANDS):
                    for t in range(FRAME):
                        recent[band, at + t] = x[row, band, start + t]
            part = (at + FRAME) % GRID.hop // FRAME
            if part < PARTS and FRAME * (count + 1) >= GRID.hop:
                first = part * PART
                used = min(PART, BANDS - first)
                _windows(past[first : first + used], windowed, windows)
                spectra(windowed, memory, lines[:used])
                all_lines(lines[:used], windows, gains[first : first + used], search, power)
                for band in range(used):
                    square[band] = 0.5 * power[band, 1]
                n = basis_loudness_of(square[:used], threshold[first : first + used])
                _weigh(power, n, found[first : first + used])
                if part == PARTS - 1:
                    push(nodes, _amplitudes(found))
            _finish(nodes, count, spreads, waiting, smooth, y[row, :, frame])
            state.begun[row] = count_on(count, GRID.period)


@kernel
def _end_hop(x: Array, start: int, at: int, recent: Array, past: Array) -> None:
    """Append the hop that ends in a frame of `x` (band, time) to `past`, and begin the next."""
    hop = recent.shape[1]
    fitting = hop - at
    for band in range(x.shape[0]):
        for t in range(past.shape[1] - hop):
            past[band, t] = past[band, t + hop]
        for t in range(at):
            past[band, past.shape[1] - hop + t] = recent[band, t]
        for t in range(fitting):
            past[band, past.shape[1] - fitting + t] = x[band, start + t]
        recent[band] = 0.0
        for t in range(fitting, FRAME):
            recent[band, t - fitting] = x[band, start + t]


@kernel
def _finish(
    nodes: Array, begun: int, spreads: Array, waiting: Array, smooth: Array, y: Array
) -> None:
    now = np.empty(y.size)
    interpolate(nodes, begun - (PARTS - 1), GRID.hop, GRID.wait, now)
    count = min(max(begun + 2 - (WAIT - AROUND), 1), spreads.size + 1)
    there = np.empty(count)
    newest, number = spread_of(now), True
    there[count - 1] = newest
    for i in range(count - 1):
        there[i] = spreads[spreads.size - count + 1 + i]
    for i in range(count):
        number = number and there[i] == there[i]
    median = np.nan
    if number:  # sorting NaN would leave the array
        sort(there)
        median = 0.5 * (there[(count - 1) // 2] + there[count // 2])
    for i in range(spreads.size - 1):
        spreads[i] = spreads[i + 1]
    spreads[spreads.size - 1] = newest
    due = waiting[:, 0].copy()
    for band in range(y.size):
        for i in range(AROUND - 1):
            waiting[band, i] = waiting[band, i + 1]
        waiting[band, AROUND - 1] = now[band]
    sharpen(due, median, FLUCTUATION, now)
    for band in range(y.size):
        value = now[band] * (1 - KEEP) + smooth[band] * KEEP
        y[band] = smooth[band] = value if begun + 1 > WAIT else 0.0


@kernel
def _amplitudes(found: Array) -> Array:
    """Amplitudes (53,) of a block, from the weighted powers and loudnesses of its bands."""
    out, most = np.zeros(BANDS), 0.0
    for band in range(BANDS):
        n = found[band, 1]
        if n != n:
            out[:] = np.nan
            return out
        most = max(most, n)
    for band in range(BANDS):
        if most > 0:
            y = SIZE * found[band, 0] / most
            out[band] = 0.0 if y < LEAST else y
    return out


@kernel
def _weigh(power: Array, n: Array, found: Array) -> None:
    """Fill `found` (band, 2) from weighted and mean powers (band, 2) and loudnesses."""
    for band in range(n.size):
        if power[band, 1] != power[band, 1]:
            found[band] = np.nan
        elif power[band, 1] <= 0:
            found[band] = 0.0
        else:
            found[band, 0] = power[band, 0] * n[band] * n[band] / power[band, 1]
            found[band, 1] = n[band]


@kernel
def _windows(x: Array, y: Array, windows: Array) -> None:
    """Fill `y` with windowed envelopes `x` (band, 2048), and `windows` with firsts and lasts.

    The first is -1 for a band that is quiet, and -2 for one that is no number.
    """
    _smooth(x, y)
    for band in range(x.shape[0]):
        first, last = _window_of(x[band], y[band])
        windows[band, 0], windows[band, 1] = first, last
        for t in range(SIZE):
            y[band, t] = x[band, t] if first >= 0 and first <= t <= last else 0.0


@kernel
def _smooth(x: Array, y: Array) -> None:
    """Fill `y` (band, 2048) with running medians of up to `LANES` bands, but for the margins."""
    bands, half = x.shape[0], MEDIAN // 2
    tile, ordered = np.zeros((SPAN + MEDIAN, LANES)), np.zeros((MEDIAN + 1, LANES))
    ordered[MEDIAN] = np.inf
    for start in range(MARGIN, SIZE - MARGIN, SPAN):
        length = min(SPAN, SIZE - MARGIN - start)
        load(x, 0, bands, start - half - 1, length + MEDIAN, tile)
        if start == MARGIN:
            for band in range(bands):
                for i in range(MEDIAN):
                    ordered[i, band] = tile[i, band]
                sort(ordered[:MEDIAN, band])
        for t in range(length):
            # The new value joins the ordered ones, which from the old one on move a place back.
            old, new = _lanes(tile, t, 0), _lanes(tile, t + MEDIAN, 0)
            before = _lanes(ordered, 0, 0)
            joined = where(before < new, before, new)
            for i in range(MEDIAN):
                after = _lanes(ordered, i + 1, 0)
                least = where(after < new, after, new)
                following = where(before > least, before, least)
                put(where(joined < old, joined, following), ordered, i, 0)
                before, joined = after, following
            put(_lanes(ordered, half, 0), tile, t, 0)
        store(tile, 0, bands, start, length, y)
    for band in range(bands):
        for t in range(MARGIN, SIZE - MARGIN):
            y[band, t] = np.rint(y[band, t] * 1e8) / 1e8


@kernel
def _window_of(x: Array, smooth: Array) -> tuple[int, int]:
    """First and last value to analyze, from the running medians; as in `_windows`."""
    quiet = -1, -1
    total = 0.0
    for t in range(SIZE):
        total += x[t]
    if not abs(total) < np.inf:
        return -2, -2
    most = 0.0
    for t in range(MARGIN, SIZE - MARGIN):
        most = max(most, smooth[t])
    if most <= SILENT_PA:
        return quiet
    least = np.rint(0.01 * most * 1e8) / 1e8
    first, last = MARGIN, SIZE - MARGIN - 1
    while smooth[first] < least:
        first += 1
    while smooth[last] < least:
        last -= 1
    longest = run = stop = 0
    for t in range(first + 1, last):
        run = run + 1 if smooth[t] < least else 0
        if run > longest:
            longest, stop = run, t
    if longest > SHORTEST:
        start = stop - longest + 1
        if start - first > last - stop:
            last = start - MARGIN
        else:
            first = stop + MARGIN
    if last - first + 1 < SHORTEST or last < SIZE // 4 - 1:
        return quiet
    count = last - first - 19
    level, middle = 0.0, 0.5 * (first + last)
    for t in range(first + 10, last - 9):
        level += smooth[t]
    level /= count
    across = square = 0.0
    for t in range(first + 10, last - 9):
        across += (smooth[t] - level) * (t - middle)
        square += (t - middle) ** 2
    slope, rest = across / square, 0.0
    for t in range(first + 10, last - 9):
        rest += (smooth[t] - level - slope * (t - middle)) ** 2
    if np.sqrt(rest / count) < 1e-3 * level:
        return quiet
    return first, last
