"""Gated energies of programme loudness, and the compiled loop that counts frames in them."""

import math

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.importing import has_torch
from amt_stream.core.made_once import made_once
from amt_stream.core.saved_state import Resumable, Unfitting
from amt_stream.dsp.functional.compiler.host_loop import host_loop

MOMENTARY, SHORT_TERM = 40, 300
"""Frames in 400 ms and in 3 s."""
WINDOWS = MOMENTARY, SHORT_TERM
GRID = 10
"""Frames between gating blocks, and between values of the loudness range."""

ABSOLUTE_GATE = -70.0
"""The absolute gate in LUFS."""
INTEGRATED_GATE, RANGE_GATE = 10.0, 20.0
"""Relative gates in LU below the mean above the absolute gate."""
RANKS = (0.10, 0.95)
"""Ranks of the levels between which the loudness range lies (EBU Tech 3342)."""

WIDTH = 0.01
"""Of a class of energies in LU."""
USUAL = round((10.0 - ABSOLUTE_GATE) / WIDTH)
MOST = round((300.0 - ABSOLUTE_GATE) / WIDTH)
"""Numbers of classes: up to 10 LUFS, and up to 300 LUFS."""

PEAKS, TOPS = slice(3, 5), slice(5, 7)
"""Rows of what `follow` tells: energies of integrated loudness and of the low and the high end of
the range come first; true and sample peak; highest momentary and short-term loudness."""
NOTHING = np.array([np.nan, np.nan, np.nan, 0.0, 0.0, -np.inf, -np.inf])
"""The same before the first frame."""

TAKEN, UNMEASURED, UNHEARD, MEASURED, EXCLUDED = range(5)
"""Numbers of frames: all; up to and with the last that was not measured, and of these without the
one before the first of this part of the sound; measured ones; excluded ones."""

Energies = NDArray[np.float64]
Array = np.ndarray

_compiled = host_loop()


OFFSET = -0.691
"""Loudness of the energy 1 in LUFS (ITU-R BS.1770-5, Annex 1)."""


@_compiled
def lufs(energy: float) -> float:
    """Loudness in LUFS of a weighted energy; minus infinity for 0 (ITU-R BS.1770-5, Annex 1)."""
    return OFFSET + 10 * math.log10(energy)


LEAST = 10 ** ((ABSOLUTE_GATE - OFFSET) / 10)
"""The energy of the absolute gate."""
INTEGRATED_SHARE, RANGE_SHARE = 10 ** (-INTEGRATED_GATE / 10), 10 ** (-RANGE_GATE / 10)
"""Energies of the relative gates, of the mean."""


@_compiled
def class_of(level: float) -> int:
    """The class of a level in LUFS; negative for one that is not above the absolute gate."""
    return min(int((level - ABSOLUTE_GATE) / WIDTH), MOST - 1) if level > ABSOLUTE_GATE else -1


@_compiled
def pairwise(values: Array) -> float:
    """The sum of `values` (n,) in the order of `numpy.sum`, which rounds least."""
    count = len(values)
    if count < 8:
        total = 0.0
        for value in values:
            total += value
        return total
    if count <= 128:
        # In variables, because an array would be allocated.
        a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        whole = count - count % 8
        for k in range(0, whole, 8):
            a, b, c, d = a + values[k], b + values[k + 1], c + values[k + 2], d + values[k + 3]
            e, f, g, h = e + values[k + 4], f + values[k + 5], g + values[k + 6], h + values[k + 7]
        total = (a + b + (c + d)) + (e + f + (g + h))
        for value in values[whole:]:
            total += value
        return total
    half = count // 2
    half -= half % 8
    return pairwise(values[:half]) + pairwise(values[half:])


@_compiled
def total_of(counts: Array) -> int:
    """The number of blocks; `counts.sum()` would make numba import all of scipy.linalg."""
    total = 0
    for number in counts:
        total += number
    return total


@_compiled
def first_above(counts: Array, sums: Array, share: float) -> int:
    """The first class above the relative gate, at this share of the mean energy of all blocks."""
    total = total_of(counts)
    if not total:
        return len(counts)
    gate = pairwise(sums) / total * share
    place = min(max(0, int(10 * math.log10(gate / LEAST) / WIDTH)), len(counts) - 1)
    # The class in which the gate lies goes with the mean of what is in it.
    return place if counts[place] and sums[place] / counts[place] > gate else place + 1


@_compiled
def tell_mean(counts: Array, sums: Array, told: Array) -> None:
    """Write the mean energy above the relative gate of integrated loudness, NaN without blocks."""
    first = first_above(counts, sums, INTEGRATED_SHARE)
    total = total_of(counts[first:])
    told[0] = pairwise(sums[first:]) / total if total else math.nan


@_compiled
def tell_range(counts: Array, sums: Array, told: Array) -> None:
    """Write the energies that are exceeded 90 % and 5 % of the time (EBU Tech 3342).

    Nearest ranks of the levels above the relative gate; NaN for fewer than two.
    """
    first = first_above(counts, sums, RANGE_SHARE)
    total = total_of(counts[first:])
    told[1] = told[2] = math.nan
    if total < 2:
        return
    for row, share in enumerate(RANKS):
        rank, up_to, place = math.floor((total - 1) * share + 0.5), 0, first
        while up_to + counts[place] <= rank:
            up_to += counts[place]
            place += 1
        told[1 + row] = sums[place] / counts[place]


@_compiled
def window_levels(energies: Array, means: Array, levels: Array) -> None:
    """Mean energies and LUFS (2, n) of both windows that end with a frame.

    energies: (`SHORT_TERM` - 1 + n,) of the frames, after those before them
    """
    for i in range(2):
        window = WINDOWS[i]
        for k in range(means.shape[1]):
            total = 0.0
            for j in range(k + SHORT_TERM - window, k + SHORT_TERM):
                total += energies[j]
            means[i, k] = total / window
            levels[i, k] = lufs(means[i, k])


@_compiled
def tell_readings(levels: Array, told: Array, out: Array) -> None:
    """Readings (8, n) in LUFS, LU, dBTP and dBFS, from levels of both windows and `follow`'s."""
    for k in range(out.shape[1]):
        out[0, k], out[1, k] = levels[0, k], levels[1, k]
        out[2, k], out[3, k] = lufs(told[0, k]), lufs(told[2, k]) - lufs(told[1, k])
        out[4, k], out[5, k] = told[5, k], told[6, k]
        out[6, k], out[7, k] = 20 * math.log10(told[3, k]), 20 * math.log10(told[4, k])


@_compiled
def follow(
    begin: int,
    energy: Array,
    means: Array,
    levels: Array,
    true_peak: Array,
    sample_peak: Array,
    paused: bool,
    grows: bool,
    renewed: Array,
    gated: tuple[tuple[Array, Array], tuple[Array, Array]],
    frames: Array,
    running: Array,
    told: Array,
) -> tuple[int, int]:
    """Count frames from `begin` on in gates, maxima and peaks.

    energy: (n,) NaN for a frame that does not count
    means, levels: (2, n) energies of both windows that end with a frame, and their LUFS
    true_peak, sample_peak: (channel, n)
    grows: whether to return for a class that there is not; else the highest takes its block
    renewed: (2,) whether integrated loudness and its range are columns
    gated: counts and sums of the classes of both windows
    frames: (5,) state, numbers of frames; running: (7,) state, the readings
    told: (7, n) output after each frame

    Returns n; or the frame whose block has no class yet, from which on it is to be called again,
    and the window of this block.
    """
    for k in range(begin, len(energy)):
        end = frames[TAKEN] + 1
        measured = not paused and not math.isnan(energy[k])
        whole = end - frames[UNMEASURED] if measured else 0
        heard = end - frames[UNHEARD] if measured else 0
        due = end % GRID == 0
        for i in range(2):
            place = class_of(levels[i, k]) if grows and due and whole >= WINDOWS[i] else -1
            if place >= len(gated[i][0]):
                return k, i
        frames[TAKEN] = end
        if not measured:
            frames[UNMEASURED] = frames[UNHEARD] = end
        if not paused:
            frames[MEASURED if measured else EXCLUDED] += 1
        for i in range(2):
            counts, sums = gated[i]
            if due and whole >= WINDOWS[i]:
                place = min(class_of(levels[i, k]), len(counts) - 1)
                if place >= 0:
                    counts[place] += 1
                    sums[place] += means[i, k]
            if heard >= WINDOWS[i] and levels[i, k] > running[5 + i]:
                running[5 + i] = levels[i, k]
        if due and renewed[0]:
            tell_mean(*gated[0], running)
        if due and renewed[1]:
            tell_range(*gated[1], running)
        if measured:
            for j in range(true_peak.shape[0]):
                running[3] = max(running[3], np.float64(true_peak[j, k]))
                running[4] = max(running[4], np.float64(sample_peak[j, k]))
        for j in range(len(running)):
            told[j, k] = running[j]
    return len(energy), 0


@made_once
def compile_gating() -> None:
    """Compile the loops for all memory layouts in advance, so that no sound waits."""
    if not has_torch():
        return
    from numba import types

    f8, i8 = types.float64, types.int64
    given, table = (types.Array(f8, ndim, "A", readonly=True) for ndim in (1, 2))
    kept, numbers = (types.Array(kind, 1, "C") for kind in (f8, i8))
    classes = types.Tuple((numbers, kept))
    gated = types.UniTuple(classes, 2)
    flags = types.Array(types.bool_, 1, "C")
    peaks = [types.Array(kind, 2, "A", readonly=True) for kind in (types.float32, f8)]
    state = types.bool_, types.bool_, flags, gated, numbers, kept, types.Array(f8, 2, "C")
    signatures = [(i8, given, table, table, peak, peak, *state) for peak in peaks]
    told, levels = (numbers, kept, kept), types.Array(f8, 2, "C")
    for kernel, *each in (
        (window_levels, (kept, levels, levels)),
        (tell_readings, (levels, levels, levels)),
        (lufs, (f8,)),
        (follow, *signatures),
        (tell_mean, told),
        (tell_range, told),
        (class_of, (f8,)),
    ):
        for signature in each:
            kernel.compile(signature)
        kernel.disable_compile()


class GatedEnergies(Resumable):
    """Energies of blocks in classes of 0.01 LU from -70 LUFS on: years in 128 kB.

    Each class has a count and a sum of energies. Blocks louder than 10 LUFS, as of sound that has
    no full scale, make more classes; those above 300 LUFS count in the top class. Blocks that are
    not above -70 LUFS do not count (the absolute gate).
    """

    kept = growing = ("used",)

    def __init__(self) -> None:
        self.counts: NDArray[np.int64] = np.zeros(USUAL, np.int64)
        self.sums: Energies = np.zeros(USUAL)

    def reach(self, place: int) -> None:
        """Make as many classes as this one needs."""
        more = place + 1 - len(self.counts)
        if more > 0:
            self.counts = np.append(self.counts, np.zeros(more, np.int64))
            self.sums = np.append(self.sums, np.zeros(more))

    @property
    def used(self) -> tuple[NDArray[np.int64], Energies]:
        """Indices and counts (2, n), and sums (n,), of the classes that are not empty."""
        places = np.flatnonzero(self.counts)
        return np.stack([places, self.counts[places]]), self.sums[places]

    @used.setter
    def used(self, given: tuple[NDArray[np.int64], Energies]) -> None:
        (places, counts), sums = given
        outside = (places < 0) | (places >= MOST)
        if len(places) != len(sums) or outside.any():
            raise Unfitting(f"energies in up to {MOST} classes: the state has others")
        self.reach(int(places.max(initial=0)))
        self.counts[:], self.sums[:] = 0, 0.0
        self.counts[places], self.sums[places] = counts, sums
