"""A range of colors that follows the values of the last minute without flickering."""

import math

import numpy as np
from numpy.typing import NDArray

PERCENTS = 5.0, 99.9
"""The percentiles of all values at which the colors begin and end."""
EASE_S = 1.5
"""Seconds in which the range comes about two thirds of the way to where it should be."""
EVERY_S = 0.5
"""Seconds of sound between two looks at the values."""
STILL, THERE = 0.05, 0.01
"""Decades: a smaller change moves nothing, and so close to its end a movement ends."""
LEAST, MOST = 1.0, 3.0
"""Decades that the colors cover."""
NOTHING = -4.0
"""Values up to this one are those of bands in which nothing is heard."""


class EasedRange:
    """The range of common logarithms of values; `usual` holds while there are no values."""

    def __init__(self, usual: tuple[float, float]) -> None:
        self._usual = usual
        self.reset()

    def reset(self) -> None:
        """Take the next values at once."""
        self.range = self._usual
        self._target: tuple[float, float] | None = None
        self._moves = False
        self._seen_s = self._moved_s = -math.inf

    @property
    def is_known(self) -> bool:
        """Whether there were values."""
        return self._target is not None

    def follow(self, values: NDArray[np.floating], time_s: float) -> tuple[float, float]:
        """The range of colors for `values` at a time of the sound; NaN is ignored."""
        if time_s < self._moved_s:
            self.reset()
        if time_s - self._seen_s >= EVERY_S and (wanted := range_heard(values)) is not None:
            self._seen_s = time_s
            if self._target is None:
                self.range = wanted
            self._target = wanted
        if self._target is not None:
            self._move(self._target, time_s)
        self._moved_s = time_s
        return self.range

    def _move(self, target: tuple[float, float], time_s: float) -> None:
        far = max(abs(a - b) for a, b in zip(self.range, target, strict=True))
        self._moves = far > (THERE if self._moves else STILL)
        if self._moves:
            share = 1.0 - math.exp(-(time_s - self._moved_s) / EASE_S)
            low, high = (a + share * (b - a) for a, b in zip(self.range, target, strict=True))
            self.range = low, high


def range_heard(values: NDArray[np.floating]) -> tuple[float, float] | None:
    """The percentiles of values above silence, at most `MOST` decades apart; None in silence."""
    with np.errstate(invalid="ignore"):
        heard = values[values > NOTHING]
    if not len(heard):
        return None
    low, high = (float(one) for one in np.percentile(heard, PERCENTS))
    return min(max(low, high - MOST), high - LEAST), high
