"""From amplitudes of blocks to frames 50 times a second (ECMA-418-2:2025, 7.1.7 and 9.1.12)."""

from typing import NamedTuple

import numpy as np

from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.functional.compiler.fourier import transform, turns, twists

FRAME = 30
"""Values of an envelope, 1500 a second, in a frame."""

LONGEST = 2048
"""Values of an envelope in a block, at most."""

TURN, TWIST = turns(LONGEST), twists(LONGEST)
"""Of transforms."""

NODES = 5
"""Amplitudes of blocks that a frame may need, and one more."""


class Grid(NamedTuple):
    """Blocks and frames of a metric.

    hop: values of an envelope between blocks
    wait: frames until that of a time is due, when the block after the next one has ended
    period: frames after which both begin at once again
    """

    hop: int
    wait: int
    period: int


@kernel
def count_on(begun: int, period: int) -> int:
    """The count of frames, which goes around once the start no longer matters."""
    return begun + 1 if begun + 1 < 2 * period else period


@kernel
def _sum(x: Array) -> float:
    """The sum of `x`, in a loop that writes nothing.

    A loop that also writes is compiled in two forms, which round differently; where its arrays are
    in memory decides between them.
    """
    total = 0.0
    for t in range(x.size):
        total += x[t]
    return total


@kernel
def take(x: Array, start: int, at: int, recent: Array, power: Array) -> int:
    """Join values of a frame, from `start` of `x` (2, band, time), to the present hop.

    Envelopes go to `recent` (band, hop) from `at`, and powers to the last of `power` (band, 4).
    Gives how many fit.
    """
    count = min(FRAME, recent.shape[1] - at)
    for band in range(recent.shape[0]):
        for t in range(count):
            recent[band, at + t] = x[0, band, start + t]
        power[band, 3] += _sum(x[1, band, start : start + count])
    return count


@kernel
def begin_hop(x: Array, start: int, count: int, recent: Array, power: Array) -> None:
    """Begin a hop with the values of a frame after the first `count`."""
    for band in range(recent.shape[0]):
        for t in range(count, FRAME):
            recent[band, t - count] = x[0, band, start + t]
        for t in range(FRAME - count, recent.shape[1]):
            recent[band, t] = 0.0
        for k in range(3):
            power[band, k] = power[band, k + 1]
        power[band, 3] = _sum(x[1, band, start + count : start + FRAME])


@kernel
def join_hops(older: Array, recent: Array, block: Array) -> None:
    """Make `block` (band, time) of three hops and the last one, and keep its last three hops."""
    hop, past = recent.shape[1], older.shape[1]
    for band in range(recent.shape[0]):
        for t in range(past):
            block[band, t] = older[band, t]
        for t in range(hop):
            block[band, past + t] = recent[band, t]
        for t in range(past):
            older[band, t] = block[band, hop + t]


@kernel
def spectra(block: Array, memory: Array, lines: Array) -> None:
    """Spectra (band, line, 2) of `block` (band, time), of as many lines as there is room for.

    memory: of any content (2, 2, time)
    """
    size = block.shape[1]
    for band in range(lines.shape[0]):
        for t in range(size):
            memory[0, 0, t] = block[band, t]
            memory[0, 1, t] = 0.0
        z = memory[1 if transform(memory[0], memory[1], TURN, TWIST, size) else 0]
        for k in range(lines.shape[1]):
            lines[band, k, 0], lines[band, k, 1] = z[0, k], z[1, k]


@kernel
def sort(x: Array) -> None:
    """Sort a few numbers in place; `numpy.sort` allocates memory that only Python can release."""
    for i in range(1, x.size):
        value, k = x[i], i
        while k > 0 and x[k - 1] > value:
            x[k] = x[k - 1]
            k -= 1
        x[k] = value


@kernel
def push(nodes: Array, value: Array) -> None:
    """Append `value` (band,) to `nodes` (band, 5)."""
    for band in range(nodes.shape[0]):
        for k in range(nodes.shape[1] - 1):
            nodes[band, k] = nodes[band, k + 1]
        nodes[band, nodes.shape[1] - 1] = value[band]


@kernel
def _slope_between(a: float, b: float) -> float:
    """Slope at a node between lines of slopes `a` and `b`: their harmonic mean."""
    return 0.0 if a * b <= 0 else 2 * a * b / (a + b)


@kernel
def _slope_before(a: float, b: float) -> float:
    """Slope at the first node, before lines of slopes `a` and `b`."""
    d = (3 * a - b) / 2
    if d * a <= 0:
        return 0.0
    return 3 * a if a * b < 0 and abs(d) > 3 * abs(a) else d


@kernel
def before(begun: int, hop: int, wait: int) -> int:
    """The index of the block before the frame that is due, among those of the last `NODES`."""
    right = -(-FRAME * (begun + 1 - wait) // hop)
    return 2 - (FRAME * (begun + 1) // hop - right - 1)


@kernel
def interpolate(nodes: Array, begun: int, hop: int, wait: int, y: Array) -> None:
    """The amplitudes of the frame that is due after frame `begun`, into `y` (band,).

    By a monotone cubic through those of blocks (Fritsch and Butland), 0 before the sound.

    nodes: the amplitudes of the last `NODES` blocks (band, 5)
    """
    time = FRAME * (begun + 1 - wait)
    if time <= 0:
        y[:] = 0.0
        return
    right, low = -(-time // hop), before(begun, hop, wait)
    t = time / hop - right + 1
    rise = t * t * (3 - 2 * t)
    for band in range(nodes.shape[0]):
        n = nodes[band]
        b, c = n[low + 1] - n[low], n[low + 2] - n[low + 1]
        if right == 1:
            first = _slope_before(b, c)
        else:
            first = _slope_between(n[low] - n[low - 1], b)
        bend = t * (1 - t) * ((1 - t) * first - t * _slope_between(b, c))
        value = n[low] + rise * b + bend
        y[band] = 0.0 if value < 0 else value


@kernel
def spread_of(y: Array) -> float:
    """Root mean square over mean of amplitudes (band,), 0 for none."""
    total = square = 0.0
    for band in range(y.size):
        total += y[band]
        square += y[band] * y[band]
    return 0.0 if total <= 0 else np.sqrt(square / y.size) / (total / y.size)


@kernel
def sharpen(y: Array, spread: float, factor: float, out: Array) -> None:
    """Specific values of amplitudes `y` (band,): a power that grows with their `spread`."""
    power = 0.58449 + 0.37106 * 0.5 * (1 + np.tanh(1.6407 * (spread - 2.5804)))
    for band in range(y.size):
        out[band] = 0.0 if y[band] <= 0 else factor * y[band] ** power
