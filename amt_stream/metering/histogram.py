"""How often each level was there: percentiles of days of sound in a few kilobytes."""

import math
from collections import deque
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

SLOT_S = 60.0


class Histogram:
    """Counts of values in classes of equal width, in dB, phon or whatever is even on its scale.

    What lies outside counts in the class at that end; NaN does not count. A percentile is the
    middle of its class, so at most half a width from exact.
    """

    def __init__(self, low: float = 0.0, high: float = 140.0, width: float = 0.05) -> None:
        if not (low < high and 0 < width <= high - low):
            raise ValueError(
                f"a histogram from {low} to {high} in classes of {width}: give low < high and a "
                "width that fits between them"
            )
        self.low, self.high, self.width = low, high, width
        self.counts: NDArray[np.int64] = np.zeros(round((high - low) / width), np.int64)

    def __len__(self) -> int:
        """How many values there were."""
        return int(self.counts.sum())

    def add(self, values: ArrayLike) -> None:
        """Count `values` (n,)."""
        given = np.asarray(values, np.float64).ravel()
        places = np.floor((given[~np.isnan(given)] - self.low) / self.width)
        inside = np.clip(places, 0, len(self.counts) - 1).astype(np.int64)
        self.counts += np.bincount(inside, minlength=len(self.counts))

    def merge(self, other: "Histogram") -> None:
        """Add the counts of a histogram of the same classes."""
        if (self.low, self.high, self.width) != (other.low, other.high, other.width):
            raise ValueError("only histograms of the same classes can be merged")
        self.counts += other.counts

    def exceeded(self, percent: float) -> float | None:
        """The value exceeded `percent` of the time, such as N5; None where nothing was counted.

        Between the two values at the ranks next to (n - 1)(1 - percent / 100), of n in order from
        0, as `numpy.percentile` has it.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"exceeded {percent} % of the time: give 0 to 100 %")
        total = len(self)
        if not total:
            return None
        rank = (total - 1) * (1 - percent / 100)
        ranks = [math.floor(rank), math.ceil(rank)]
        below, above = np.searchsorted(np.cumsum(self.counts), ranks, side="right")
        place = below + (rank - ranks[0]) * (above - below)
        return float(self.low + (place + 0.5) * self.width)

    def copy(self) -> Self:
        """Another with the same counts."""
        new = type(self)(self.low, self.high, self.width)
        new.counts += self.counts
        return new

    def to_dict(self) -> dict[str, Any]:
        """Classes and counts, those from the first to the last that is not 0, for a file."""
        used = np.flatnonzero(self.counts)
        first, last = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
        return {
            "low": self.low,
            "high": self.high,
            "width": self.width,
            "first": first,
            "counts": self.counts[first:last].tolist(),
        }

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Self:
        """The histogram that `to_dict` told."""
        new = cls(given["low"], given["high"], given["width"])
        first, counts = given["first"], given["counts"]
        new.counts[first : first + len(counts)] = counts
        return new


class RollingHistogram:
    """A histogram of the last `window_s` seconds, to a minute, of values `period_s` apart."""

    def __init__(self, period_s: float, window_s: float, **classes: float) -> None:
        if window_s < SLOT_S:
            raise ValueError(f"window_s is {window_s}: give {SLOT_S:g} s or more")
        self._classes = classes
        self._slot_size = max(1, round(SLOT_S / period_s))
        self._slots: deque[tuple[int, NDArray[np.int32]]] = deque(maxlen=round(window_s / SLOT_S))
        self._present = Histogram(**classes)
        self._taken = 0

    def add(self, values: NDArray[np.floating]) -> None:
        """Count `values` (n,), the newest last; NaN takes up time, but does not count."""
        at = 0
        while at < len(values):
            taken = min(self._slot_size - self._taken, len(values) - at)
            self._present.add(values[at : at + taken])
            self._taken += taken
            at += taken
            if self._taken == self._slot_size:
                used = np.flatnonzero(self._present.counts)
                first, last = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
                counts = self._present.counts[first:last].astype(np.int32)
                self._slots.append((first, counts))
                self._present = Histogram(**self._classes)
                self._taken = 0

    def histogram(self) -> Histogram:
        """All that is in the window."""
        total = self._present.copy()
        for first, counts in self._slots:
            total.counts[first : first + len(counts)] += counts
        return total
