"""Histograms of levels: percentiles of days of sound in a few kilobytes."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amt_stream.core.json_types import JsonDict
from amt_stream.core.saved_state import Resumable, Unfitting
from amt_stream.meters.accumulators import loops

SLOTS = 100


class Histogram(Resumable):
    """Counts of values in classes of equal width, in dB, phon or another linear scale.

    Values outside count in the nearest class; NaN is ignored. A percentile is the middle of its
    class, so within half a width of the exact value. Values of the `rise` from silence can only be
    too low: they count only from the class of the lowest other value on, or all if there are no
    others.
    """

    kept = growing = ("used", "rise")

    def __init__(self, low: float = 0.0, high: float = 140.0, width: float = 0.05) -> None:
        if not (low < high and 0 < width <= high - low):
            raise ValueError(
                f"a histogram from {low} to {high} in classes of {width}: give low < high and a "
                "width that fits between them"
            )
        self.low, self.high, self.width = float(low), float(high), float(width)
        self.counts: NDArray[np.int64] = np.zeros(round((high - low) / width), np.int64)
        self.rise = np.empty(0)
        loops.compile_loops()

    def __len__(self) -> int:
        """Number of values that count."""
        return int(self.counted.sum())

    @property
    def used(self) -> NDArray[np.int64]:
        """Indices and counts (2, n) of the classes that are not empty."""
        places = np.flatnonzero(self.counts)
        return np.stack([places, self.counts[places]])

    @used.setter
    def used(self, given: NDArray[np.int64]) -> None:
        places, counts = given
        if ((places < 0) | (places >= len(self.counts))).any():
            raise Unfitting(f"a histogram of {len(self.counts)} classes: the state has others")
        self.counts[:] = 0
        self.counts[places] = counts

    @property
    def rise(self) -> NDArray[np.float64]:
        """Values of the rise from silence, in the order in which they came."""
        return self._rise

    @rise.setter
    def rise(self, given: NDArray[np.float64]) -> None:
        places = np.floor((given[~np.isnan(given)] - self.low) / self.width)
        places = np.clip(places, 0, len(self.counts) - 1).astype(np.int64)
        self._rise, self._rise_places = given, np.sort(places)

    def add(self, values: ArrayLike, rising: int = 0) -> None:
        """Count `values` (n,); the first `rising` of them belong to the rise from silence."""
        given = np.asarray(values, np.float64).ravel()
        loops.count(given[rising:], self.low, self.width, self.counts)
        if rising:
            self.rise = np.append(self.rise, given[:rising])

    @property
    def counted(self) -> NDArray[np.int64]:
        """Counts (class,), including values of the rise that count."""
        return self.counts + np.bincount(self._places_of_rise(), minlength=len(self.counts))

    def _places_of_rise(self) -> NDArray[np.int64]:
        """Sorted classes of the values of the rise that count."""
        found = self._rise_places
        return found[found.searchsorted(self.counts.astype(bool).argmax()) :]

    def merge(self, other: "Histogram") -> None:
        """Add the counts of a histogram of the same classes."""
        if (self.low, self.high, self.width) != (other.low, other.high, other.width):
            raise ValueError("only histograms of the same classes can be merged")
        self.counts += other.counts
        self.rise = np.append(self.rise, other.rise)

    def exceeded(self, percent: float) -> float | None:
        """The value exceeded `percent` of the time, such as N5; None without values."""
        value = float(self.percentiles([percent])[0])
        return None if math.isnan(value) else value

    def percentiles(self, percents: Sequence[float]) -> NDArray[np.float64]:
        """The values (k,) exceeded in these percents of the time; NaN without values.

        They are interpolated between ranks as in `numpy.percentile`.
        """
        shares = np.asarray(percents, np.float64)
        if not ((shares >= 0) & (shares <= 100)).all():
            raise ValueError(f"exceeded {list(percents)} % of the time: give 0 to 100 %")
        loops.find(shares, self.counts, self._places_of_rise(), places := np.empty(len(shares)))
        return np.asarray(self.low + (places + 0.5) * self.width)

    def to_dict(self) -> JsonDict:
        """Data for JSON: classes and counts from the first to the last one above 0."""
        used = np.flatnonzero(self.counts)
        first, last = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
        return {
            "low": self.low,
            "high": self.high,
            "width": self.width,
            "first": first,
            "counts": self.counts[first:last].tolist(),
            "rise": self.rise[~np.isnan(self.rise)].tolist(),
        }

    @classmethod
    def from_dict(cls, given: JsonDict) -> Self:
        """Make a histogram from `to_dict`."""
        new = cls(given["low"], given["high"], given["width"])
        first, counts = given["first"], given["counts"]
        new.counts[first : first + len(counts)] = counts
        new.rise = np.array(given["rise"], np.float64)
        return new


class RollingHistogram(Resumable):
    """A histogram of the last `window_s` seconds, of values `period_s` apart.

        The window moves in slots of a hundredth of its length, or of one value if that is longer:
        it has the last `window_s`, less up to a slot. At the start it has all values so far. Only
        used classes of a slot are stored.

        classes: as in `Histogram`

    Raises ValueError for a window shorter than 1 s.
    """

    kept = ("histogram", "_newest", "_taken", "_since_rise", "slots")
    growing = ("slots",)

    def __init__(self, period_s: float, window_s: float, **classes: float) -> None:
        if not 1 <= window_s < math.inf:
            raise ValueError(f"a window of {window_s} s: give 1 s or more")
        self.period_s, self.window_s = period_s, window_s
        self.histogram, self._newest = Histogram(**classes), Histogram(**classes)
        self._length = max(1, round(window_s / period_s))
        self._slot_size = math.ceil(self._length / SLOTS)
        self._most_slots = math.ceil(self._length / self._slot_size)
        # Classes and counts of each slot, the newest last.
        self._slots: deque[tuple[NDArray[np.int32], NDArray[np.int32]]] = deque()
        self._taken = 0
        # Values after those of the rise, which leave the window by their number.
        self._since_rise = 0

    @property
    def covered_s(self) -> float:
        """Seconds of the window with values."""
        return len(self.histogram) * self.period_s

    @property
    def slots(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Number of classes of each slot (slot,), and their indices and counts (2, n)."""
        sizes = np.array([len(places) for places, _ in self._slots], np.int32)
        used = [np.zeros((2, 0), np.int32), *(np.stack(one) for one in self._slots)]
        return sizes, np.concatenate(used, axis=1)

    @slots.setter
    def slots(self, given: tuple[NDArray[np.int32], NDArray[np.int32]]) -> None:
        sizes, used = given
        ends = np.cumsum(sizes, dtype=np.int64)
        if len(sizes) > self._most_slots or (len(sizes) and ends[-1] != used.shape[1]):
            raise Unfitting(f"a window of {self.window_s} s: the state has other slots")
        places, counts = (np.split(one, ends[:-1]) for one in used)
        self._slots = deque(zip(places, counts, strict=True) if len(sizes) else ())

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        super().load_state_dict(state)
        self.refuse_state(0 <= self._taken <= self._slot_size, "_taken")

    def percentiles(self, percents: Sequence[float]) -> NDArray[np.float64]:
        """`Histogram.percentiles` of the window."""
        return self.histogram.percentiles(percents)

    def add(self, values: ArrayLike, rising: int = 0) -> None:
        """Count `values` (n,), newest last; NaN takes time but does not count.

        rising: number of first values that are of the rise from silence
        """
        given = np.asarray(values, np.float64).ravel()
        if rising:
            missed = np.full(min(self._since_rise, self._length), np.nan)
            rise = [self.histogram.rise, missed, given[:rising]]
            self.histogram.rise, self._since_rise = np.concatenate(rise), 0
            given = np.where(np.arange(len(given)) < rising, np.nan, given)
        self._drop_rise(len(given[rising:]))
        at = 0
        while at < len(given):
            if self._taken == self._slot_size:
                self._begin_slot()
            part = given[at : at + self._slot_size - self._taken]
            self._newest.add(part)
            self.histogram.add(part)
            self._taken += len(part)
            at += len(part)

    def skip(self, count: int) -> None:
        """Skip missing values, like NaN, but faster."""
        self._drop_rise(count)
        if count >= self._slot_size * self._most_slots:
            self._slots.clear()
            self.histogram.counts[:] = self._newest.counts[:] = 0
            self._taken = (self._taken + count) % self._slot_size
            return
        while count:
            if self._taken == self._slot_size:
                self._begin_slot()
            passed = min(count, self._slot_size - self._taken)
            self._taken += passed
            count -= passed

    def _drop_rise(self, count: int) -> None:
        """Drop values of the rise that leave the window after `count` more values."""
        rise = self.histogram.rise
        if len(rise):
            self._since_rise += count
            left = max(0, self._length - self._since_rise)
            if left < len(rise):
                self.histogram.rise = rise[len(rise) - left :]

    def _begin_slot(self) -> None:
        used = np.flatnonzero(self._newest.counts)
        self._slots.append((used.astype(np.int32), self._newest.counts[used].astype(np.int32)))
        self._newest.counts[used] = 0
        self._taken = 0
        if len(self._slots) == self._most_slots:
            places, counts = self._slots.popleft()
            self.histogram.counts[places] -= counts
