"""The background level of a column, for triggers of sound events."""

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

WINDOW_S = 300.0
EXCEEDED_PERCENT = 90
KNOWN_S = 10.0
"""Seconds of sound before there is a background."""

TAKEN_S = 0.1
RENEWED_S = 1.0


class BackgroundLevel:
    """The value exceeded for 90 % of the last five minutes, updated once a second.

    At most one row per 0.1 s is used, which limits its memory.
    """

    def __init__(self) -> None:
        self._taken: deque[tuple[float, float]] = deque()
        self._next_s = self._renew_s = -math.inf
        self._began_s = math.nan
        self._now = math.nan

    def __call__(
        self, time_s: NDArray[np.float64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The background at each row, after taking rows (n,) in order; NaN until it is known."""
        found = np.full(len(values), math.nan)
        for at, (when, value) in enumerate(zip(time_s.tolist(), values.tolist(), strict=True)):
            if when >= self._next_s and math.isfinite(value):
                self._take(when, value)
            found[at] = self._now
        return found

    def _take(self, when: float, value: float) -> None:
        self._next_s = when + TAKEN_S - 1e-6
        self._began_s = when if math.isnan(self._began_s) else self._began_s
        self._taken.append((when, value))
        while self._taken[0][0] <= when - WINDOW_S:
            self._taken.popleft()
        if when >= max(self._renew_s, self._began_s + KNOWN_S):
            self._renew_s = when + RENEWED_S
            values = [value for _, value in self._taken]
            self._now = float(np.percentile(values, 100 - EXCEEDED_PERCENT))
