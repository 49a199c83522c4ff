"""Bands, blocks and basis loudness of ECMA-418-2:2025, clauses 5 and 6.2."""

from typing import NamedTuple

import numpy as np

from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
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
    [np.ceil(FS * _SHORTEST) - 1, np.floor(FS * np.maximum(4 / BANDWIDTHS, _SHORTEST + 0.001)) - 1],
    1,
).astype(int)
"""First and last lag in samples that shows a tone, per band (53, 2)."""

EPSILON = 1e-12
"""Added to denominators."""

QUIET = 1e-20
"""Lower bound of a power in Pa^2, far below every threshold."""

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
    averaged: whether three blocks are averaged over time
    """

    size: int
    first: int
    last: int
    targets: tuple[int, int]
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
    BlocksOfSize(8192, 0, 4, (0, 2), True),
    BlocksOfSize(4096, 1, 17, (3, 15), True),
    BlocksOfSize(2048, 15, 25, (16, 24), False),
    BlocksOfSize(1024, 25, 52, (25, 52), False),
)

LONGEST = max(blocks.frames for blocks in SIZES)
"""Frames between the longest blocks."""

AROUND = 4 * LONGEST
"""Frames in four of the longest hops, after which all hops are at the same places again."""

WAIT = 2 * LONGEST - 1
"""The latency in frames: the longest blocks are averaged with the next, and interpolated to it."""


RISES = 10 ** (-0.075 * np.array(KNEES_DB))
"""Factors of a power^0.75 at each knee of loudness."""

SLOPES = np.diff(EXPONENTS) / 1.5
"""Changes of the exponent at each, of power^0.75."""


@kernel
def basis_loudness(power: float, threshold: float) -> float:
    """Specific basis loudness of a band in sone_HMS/Bark_HMS (ECMA-418-2:2025, formulas 23 to 25).

    power: mean square in Pa^2, where a sine has that of its RMS
    threshold: in quiet
    """
    ratio = max(power, QUIET) / (P0 * P0)
    # The product of powers as a sum of logarithms, which cost less.
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
