"""From amplitudes of blocks to frames 50 times a second (ECMA-418-2:2025, 7.1.7 and 9.1.12)."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.dispatch import Array, kernel

FRAME = 30
"""Values of an envelope, 1500 a second, in a frame."""

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

    def position(self, begun: Tensor) -> Tensor:
        """Values of the present hop that came before frame `begun`."""
        return (FRAME * begun) % self.hop

    def after(self, begun: Tensor) -> Tensor:
        """The count of frames, which goes around once the start no longer matters."""
        return torch.where(begun + 1 >= 2 * self.period, begun + 1 - self.period, begun + 1)


def placed(
    recent: Tensor, x: Tensor, older: Tensor, begun: Tensor, grid: Grid
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values of a frame `x` (..., band, 30) joined to those of the present hop and of older ones.

    Gives the last blocks (..., band, block), whether the hop has ended (..., 1, 1), and the next
    `recent` and `older`.
    """
    at = grid.position(begun)[..., None]  # (..., 1, 1)
    k = torch.arange(grid.hop + FRAME, dtype=at.dtype, device=x.device) - at
    new = x.gather(-1, k.clamp(0, FRAME - 1).long().expand(*x.shape[:-1], -1))
    before = torch.nn.functional.pad(recent, (0, FRAME))
    joined = torch.where(k < 0, before, torch.where(k < FRAME, new, 0.0))
    ended = at + FRAME >= grid.hop
    block = torch.cat([older, joined[..., : grid.hop]], -1)
    rest = torch.nn.functional.pad(joined[..., grid.hop :], (0, grid.hop - FRAME))
    recent = torch.where(ended, rest, joined[..., : grid.hop])
    return block, ended, recent, torch.where(ended, block[..., grid.hop :], older)


def summed(power: Tensor, x: Tensor, begun: Tensor, grid: Grid) -> tuple[Tensor, Tensor]:
    """Sums (..., band) of the values of the last four hops, where the present one has ended.

    power: sums of the last three hops and of the present one (..., band, 4), which it gives too
    x: the values of a frame (..., band, 30)
    """
    at = grid.position(begun)[..., None]
    here = torch.arange(FRAME, dtype=at.dtype, device=x.device) + at < grid.hop
    now = power[..., 3] + torch.where(here, x, 0.0).sum(-1)
    next_one = torch.where(here, 0.0, x).sum(-1)
    earlier = power[..., :3]
    shifted = torch.stack([power[..., 1], power[..., 2], now, next_one], -1)
    same = torch.cat([earlier, now[..., None]], -1)
    return earlier.sum(-1) + now, torch.where(at + FRAME >= grid.hop, shifted, same)


def _slope(a: Tensor, b: Tensor) -> Tensor:
    """Slope at a node between lines of slopes `a` and `b`: their harmonic mean."""
    turns = a * b <= 0
    total = torch.where(turns, 1.0, a + b)
    return torch.where(turns, 0.0, 2 * a * b / total)


def _first_slope(a: Tensor, b: Tensor) -> Tensor:
    """Slope at the first node, before lines of slopes `a` and `b`."""
    d = (3 * a - b) / 2
    steep = torch.where((a * b < 0) & (d.abs() > 3 * a.abs()), 3 * a, d)
    return torch.where(d * a <= 0, 0.0, steep)


def around(nodes: Tensor, begun: Tensor, grid: Grid) -> Tensor:
    """Values (..., band, 4) of the blocks of which two are before and two after the frame due.

    nodes, begun: as in `interpolated`
    """
    right = torch.ceil(FRAME * (begun + 1 - grid.wait) / grid.hop)
    spare = torch.floor(FRAME * (begun + 1) / grid.hop) - right - 1
    return torch.where(spare[..., None] > 0, nodes[..., :4], nodes[..., 1:])


def interpolated(nodes: Tensor, begun: Tensor, grid: Grid) -> Tensor:
    """The amplitudes (..., band) of the frame that is due after frame `begun`.

    By a monotone cubic through those of blocks (Fritsch and Butland), 0 before the sound.

    nodes: the amplitudes of the last `NODES` blocks (..., band, 5)
    begun: (..., 1)
    """
    time = FRAME * (begun + 1 - grid.wait)
    right = torch.ceil(time / grid.hop)
    y = around(nodes, begun, grid)
    a, b, c = y.diff(dim=-1).unbind(-1)
    first = torch.where(right <= 1, _first_slope(b, c), _slope(a, b))
    last = _slope(b, c)
    t = time / grid.hop - right + 1
    rise = t * t * (3 - 2 * t)
    low, high = y[..., 1], y[..., 2]
    bend = t * (1 - t) * ((1 - t) * first - t * last)
    return torch.where(time > 0, (low + rise * (high - low) + bend).clamp(min=0), 0.0)


def sharpened(y: Tensor, spread: Tensor, factor: float) -> Tensor:
    """Specific values of amplitudes `y` (..., band): a power that grows with their `spread`.

    spread: root mean square over mean of the bands (..., 1)
    """
    power = 0.58449 + 0.37106 * 0.5 * (1 + torch.tanh(1.6407 * (spread - 2.5804)))
    silent = y <= 0
    return torch.where(silent, 0.0, factor * torch.where(silent, 1.0, y) ** power)


def spread(y: Tensor) -> Tensor:
    """Root mean square over mean of amplitudes (..., band), 0 for none: (..., 1)."""
    mean, square = y.mean(-1, keepdim=True), y.square().mean(-1, keepdim=True)
    silent = mean <= 0
    ratio = torch.where(silent, 1.0, square).sqrt() / torch.where(silent, 1.0, mean)
    return torch.where(silent, 0.0, ratio)


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
def push(nodes: Array, value: Array) -> None:
    """Append `value` (band,) to `nodes` (band, 5)."""
    for band in range(nodes.shape[0]):
        for k in range(nodes.shape[1] - 1):
            nodes[band, k] = nodes[band, k + 1]
        nodes[band, nodes.shape[1] - 1] = value[band]


@kernel
def _slope_between(a: float, b: float) -> float:
    return 0.0 if a * b <= 0 else 2 * a * b / (a + b)


@kernel
def _slope_before(a: float, b: float) -> float:
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
    """The compiled form of `interpolated` for one row, into `y` (band,)."""
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
    """The compiled form of `spread` for one row."""
    total = square = 0.0
    for band in range(y.size):
        total += y[band]
        square += y[band] * y[band]
    return 0.0 if total <= 0 else np.sqrt(square / y.size) / (total / y.size)


@kernel
def sharpen(y: Array, spread: float, factor: float, out: Array) -> None:
    """The compiled form of `sharpened` for one row."""
    power = 0.58449 + 0.37106 * 0.5 * (1 + np.tanh(1.6407 * (spread - 2.5804)))
    for band in range(y.size):
        out[band] = 0.0 if y[band] <= 0 else factor * y[band] ** power
