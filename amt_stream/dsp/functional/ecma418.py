"""Bands, blocks and basis loudness of ECMA-418-2:2025, clauses 5 and 6.2."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.dispatch import Array, array, kernel
from amt_stream.dsp.scales import P0

FS = 48000

HOP = 256
"""Samples between frames."""

BANDS = 53

LOWEST_WIDTH, GROWTH = 81.9289, 0.1618
"""Bandwidth in Hz at 0 Hz, and the share of the frequency that it approaches at high ones."""

CENTERS = LOWEST_WIDTH / GROWTH * np.sinh(GROWTH * 0.5 * np.arange(1, BANDS + 1))
"""Center frequencies in Hz, half a Bark_HMS apart."""

BANDWIDTHS = np.sqrt(LOWEST_WIDTH**2 + (GROWTH * CENTERS) ** 2)
"""In Hz."""

_SHORTEST = np.maximum(0.5 / BANDWIDTHS, 0.002)
LAGS = np.stack(
    [
        np.ceil(FS * _SHORTEST) - 1,
        np.floor(FS * np.maximum(4 / BANDWIDTHS, _SHORTEST + 0.001)) - 1,
    ],
    1,
).astype(int)
"""First and last lag in samples that shows a tone, per band (53, 2)."""

EPSILON = 1e-12
"""Added to denominators."""

QUIET = 1e-20
"""Lower bound of a power in Pa^2, for gradients: far below every threshold."""

LOUDNESS = 0.0211964
"""Calibration of specific loudness, c_N, in sone_HMS/Bark_HMS."""

TONALITY = 2.8758615
"""Calibration of tonality, c_T: a tone of 1 kHz and 40 dB has 1 tu_HMS."""

WIDTH = 0.5
"""Spacing of the bands in Bark_HMS."""

KNEES_DB = (15, 25, 35, 45, 55, 65, 75, 85)
"""Levels in dB at which the exponent of loudness changes."""

EXPONENTS = (1.0, 0.6602, 0.0864, 0.6384, 0.0328, 0.4068, 0.2082, 0.3994, 0.6434)
"""Exponents of loudness re pressure, below the first knee and after each."""

LINES = 16384
"""Length of the transform over lags, which is the grid of a tone's frequencies."""

MOST_SNR = 1e6
"""Bound of the ratio of tone to noise; beyond it, nothing changes by more than 1e-6."""

GATE = (20.0, 0.07)
"""Slope and threshold of the noise reduction."""

LEAST_SHARE = 1e-6
"""Energy of the overlapping parts of a block, re the block's, below which only rounding is left.

It is less in the first samples after digital silence alone."""


class BlocksOfSize(NamedTuple):
    """Blocks of `size` samples, each size / 4 after the last, and the bands that use them.

    first, last: bands whose blocks are analyzed, both included
    targets: first and last band that take the mean of their neighbors among these
    transform: length that holds the autocorrelation at the largest lag without aliasing
    averaged: whether three blocks are averaged over time
    """

    size: int
    first: int
    last: int
    targets: tuple[int, int]
    transform: int
    averaged: bool

    @property
    def hop(self) -> int:
        """Samples between blocks."""
        return self.size // 4

    @property
    def frames(self) -> int:
        """Frames between blocks."""
        return self.hop // HOP

    @property
    def lags(self) -> int:
        """The largest lag of the target bands."""
        return int(LAGS[self.targets[0] : self.targets[1] + 1, 1].max())


SIZES = (
    BlocksOfSize(8192, 0, 4, (0, 2), 10800, True),
    BlocksOfSize(4096, 1, 17, (3, 15), 6400, True),
    BlocksOfSize(2048, 15, 25, (16, 24), 3200, False),
    BlocksOfSize(1024, 25, 52, (25, 52), 1600, False),
)

LONGEST = max(blocks.frames for blocks in SIZES)
"""Frames between the longest blocks."""

AROUND = 4 * LONGEST
"""Frames in four of the longest hops, after which all hops are at the same places again."""

WAIT = 2 * LONGEST - 1
"""The latency in frames: the longest blocks are averaged with the next, and interpolated to it."""


def specific_basis_loudness(power: Tensor, threshold: Tensor) -> Tensor:
    """Specific basis loudness in sone_HMS/Bark_HMS (ECMA-418-2:2025, formulas 23 to 25).

    power: mean square in Pa^2 of a band, where a sine has that of its RMS
    threshold: in quiet, of the band
    """
    ratio = power.clamp(min=QUIET) / P0**2
    # The product of powers as a sum of logarithms, which cost less.
    rise = ratio**0.75
    total = torch.zeros_like(rise)
    for knee_db, below, above in zip(KNEES_DB, EXPONENTS, EXPONENTS[1:], strict=False):
        total = total + (above - below) / 1.5 * torch.log1p(10 ** (-0.075 * knee_db) * rise)
    return (LOUDNESS * ratio.sqrt() * total.exp() - threshold).clamp(min=0)


RISES = 10 ** (-0.075 * np.array(KNEES_DB))
"""Factors of a power^0.75 at each knee of loudness."""

SLOPES = np.diff(EXPONENTS) / 1.5
"""Changes of the exponent at each, of power^0.75."""


@kernel
def basis_loudness(power: float, threshold: float) -> float:
    """The compiled form of `specific_basis_loudness`, for a band."""
    ratio = max(power, QUIET) / (P0 * P0)
    rise = ratio**0.75
    total = 0.0
    for k in range(RISES.size):
        total += SLOPES[k] * np.log1p(RISES[k] * rise)
    return max(LOUDNESS * np.sqrt(ratio) * np.exp(total) - threshold, 0.0)


@kernel
def basis_loudness_of(power: Array, threshold: Array) -> Array:
    """The same of bands (band,)."""
    y = np.empty(power.size)
    for band in range(power.size):
        y[band] = basis_loudness(power[band], threshold[band])
    return y


def neighbors(blocks: BlocksOfSize) -> np.ndarray:
    """Weights (target, source) of the mean over neighboring bands."""
    bands = np.arange(blocks.first, blocks.last + 1)
    target = np.arange(blocks.targets[0], blocks.targets[1] + 1)[:, None]
    reach = {8192: 2, 4096: 2, 2048: 1, 1024: 0}[blocks.size]
    above = np.where(target < reach, 1, reach)  # the two lowest bands have one neighbor above
    weights = (bands >= target - reach) & (bands <= target + above)
    return weights / weights.sum(1, keepdims=True)


def loudness_of_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """The compiled form of `ECMASpecificLoudness`: loudness (..., frame), then of each band."""
    specific = x.new_empty(*x.shape[:-3], *x.shape[-2:])
    n = x.new_empty(specific.shape[:-1])
    _loudness(_rows(x), _rows(n, 0), _rows(specific, 1))
    return n, specific


def tonality_of_parts(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The compiled form of `ECMASpecificTonality`: the highest, its frequency, then each band's."""
    specific = x.new_empty(*x.shape[:-3], *x.shape[-2:])
    t, hz = (x.new_empty(specific.shape[:-1]) for _ in range(2))
    _tonality(_rows(x), _rows(t, 0), _rows(hz, 0), _rows(specific, 1))
    return t, hz, specific


def _rows(x: Tensor, axes: int = 2) -> Array:
    """Parts (..., 3, frame, 53) as rows of these, or values (..., frame) or (..., frame, 53)."""
    y = array(x)
    return y.reshape(-1, *y.shape[-1 - axes :])


@kernel
def _loudness(x: Array, n: Array, specific: Array) -> None:
    for row in range(x.shape[0]):
        for frame in range(x.shape[2]):
            tonal, noise, out = x[row, 0, frame], x[row, 1, frame], specific[row, frame]
            most = tonal[0] + noise[0]
            for band in range(out.size):
                v = tonal[band] + noise[band]
                most = v if v > most or v != v else most
            e, total = 0.2918 / (most + EPSILON) + 0.5459, 0.0
            for band in range(out.size):
                high, low = tonal[band] + 0.0, 0.5331 * noise[band]
                if high < low:
                    high, low = low, high
                ratio = low / max(high, EPSILON**2)
                ratio = ratio if ratio > EPSILON**2 or ratio != ratio else EPSILON**2
                value = high * (1 + ratio**e) ** (1 / e)
                out[band] = value
                total += value
            n[row, frame] = WIDTH * total


@kernel
def _tonality(x: Array, t: Array, hz: Array, specific: Array) -> None:
    for row in range(x.shape[0]):
        for frame in range(x.shape[2]):
            tonal, noise, out = x[row, 0, frame], x[row, 1, frame], specific[row, frame]
            at, total = 0, 0.0
            for band in range(out.size):
                total += noise[band]
                if tonal[band] > tonal[at] or tonal[band] != tonal[band]:
                    at = band
            seen = -np.expm1(-35 * (tonal[at] / (total + EPSILON) - 0.003))
            factor = TONALITY * (seen if seen > 0 or seen != seen else 0.0)
            for band in range(out.size):
                out[band] = factor * tonal[band]
            at = at if factor > 0 else 0
            t[row, frame], hz[row, frame] = out[at], x[row, 2, frame, at]
