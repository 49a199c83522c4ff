"""Histograms of levels: percentiles of days of sound in a few kilobytes."""

import math
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amt_stream.core.saved_state import Resumable, Unfitting
from amt_stream.meters.accumulators import loops

SLOTS = 100

LOWEST, HIGHEST = -300.0, 500.0
"""Range of the levels that have classes, in dB or phon."""

WIDTH = 0.05
"""Of a class of levels, in dB or phon."""

SPARE = 200
"""Classes stored beyond a value that had none, at least."""


def known(value: float) -> float | None:
    """A percentile, or None where there is none, or one beyond all classes."""
    return value if value < math.inf else None


class Histogram(Resumable):
    """Counts of values in classes of equal width, in dB, phon or another linear scale.

    Class k has the values from k `width` to (k + 1) `width`. The classes that are stored grow with
    the range of the values. Values below `low` count as silence, which has no level: a percentile
    that lies there is minus infinity, and one that lies from `high` on is infinite. NaN is ignored.
    Other percentiles are the middle of their class, so within half a width of the exact value.
    Values of the `rise` from silence can only be too low: they count only from the class of
    the lowest other value on, or all if there are no others.

    first: number of the lowest class that is stored
    """

    kept = growing = ("used", "rise")

    def __init__(self, low: float = LOWEST, high: float = HIGHEST, width: float = WIDTH) -> None:
        if not (low < high and 0 < width <= high - low):
            raise ValueError(
                f"a histogram from {low} to {high} in classes of {width}: give low < high and a "
                "width that fits between them"
            )
        self.low, self.high, self.width = float(low), float(high), float(width)
        self._least, self._most = round(low / width), round(high / width)
        # Those below `low`, then those of each class from `first` on; the last possible class has
        # all that is beyond.
        self._counts: NDArray[np.int64] = np.zeros(1, np.int64)
        self.first = self._least
        self.rise = np.empty(0)
        loops.compile_loops()

    def __len__(self) -> int:
        """Number of values that count."""
        return int(self._counted().sum())

    @property
    def counts(self) -> NDArray[np.int64]:
        """Counts (class,) from the class `first` on, without values of the rise."""
        return self._counts[1:]

    @property
    def counted(self) -> NDArray[np.int64]:
        """Counts (class,) from the class `first` on, with values of the rise that count."""
        return self._counted()[1:]

    def _counted(self) -> NDArray[np.int64]:
        return self._counts + np.bincount(self._indices_of_rise(), minlength=len(self._counts))

    @property
    def used(self) -> NDArray[np.int64]:
        """Numbers and counts (2, n) of the classes that are not empty; the first is below all."""
        indices = np.flatnonzero(self._counts)
        places = np.where(indices, indices + (self.first - 1), self._least - 1)
        return np.stack([places, self._counts[indices]])

    @used.setter
    def used(self, given: NDArray[np.int64]) -> None:
        places, counts = given
        if ((places < self._least - 1) | (places > self._most)).any():
            classes = f"{self._least} to {self._most - 1}"
            raise Unfitting(f"a histogram of the classes {classes}: the state has others")
        self._counts, self.first = np.zeros(1, np.int64), self._least
        self.put(places, counts)

    @property
    def rise(self) -> NDArray[np.float64]:
        """Values of the rise from silence, in the order in which they came."""
        return self._rise

    @rise.setter
    def rise(self, given: NDArray[np.float64]) -> None:
        self._rise, self._rise_places = given, np.sort(self._places(given[~np.isnan(given)]))
        self._reach(self._rise_places)

    def add(self, values: ArrayLike, rising: int = 0) -> None:
        """Count `values` (n,); the first `rising` of them belong to the rise from silence."""
        given = np.asarray(values, np.float64).ravel()
        at, limits = rising, (float(self._least), float(self._most))
        while True:
            part = given[at:]
            done = loops.count(part, self.width, *limits, self.first, self._counts)
            if done == len(part):
                break
            # A value beyond the stored classes.
            at += done
            self._reach(self._places(given[at : at + 1]))
        if rising:
            self.rise = np.append(self.rise, given[:rising])

    def put(self, places: NDArray[np.integer], counts: NDArray[np.integer]) -> None:
        """Add counts (n,) to the classes of these numbers (n,), negative ones to remove."""
        self._reach(places)
        self._counts[self._indices(places)] += counts

    def clear(self) -> None:
        """Forget all values but those of the rise."""
        self._counts[:] = 0

    def _places(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Numbers of the classes of values (n,), without NaN."""
        places = np.floor(values / self.width)
        return np.clip(places, self._least - 1, self._most).astype(np.int64)

    def _indices(self, places: NDArray[np.integer]) -> NDArray[np.integer]:
        """Indices into `_counts` of the classes of these numbers."""
        return np.where(places < self._least, 0, places - (self.first - 1))

    def _indices_of_rise(self) -> NDArray[np.integer]:
        """Sorted indices into `_counts` of the values of the rise that count."""
        places = self._rise_places
        if not len(places):  # the usual case
            return places
        more = np.empty_like(places)
        return more[: loops.find_rise(places, self._least, self.first, self._counts, more)]

    def _reach(self, places: NDArray[np.integer]) -> None:
        """Store the classes of these numbers, and spare ones around them."""
        there = places[places >= self._least]
        if not len(there):
            return
        begin, end = int(there.min()), int(there.max()) + 1
        count = len(self._counts) - 1
        if count and begin >= self.first and end <= self.first + count:
            return
        # With a quarter of spare room, so that a slow rise is not copied at every class.
        spare = max(SPARE, (end - begin + count) // 4)
        first, last = begin - spare, end + spare
        if count:
            first = self.first if begin >= self.first else first
            last = self.first + count if end <= self.first + count else last
        first, last = max(first, self._least), min(last, self._most + 1)
        counts = np.zeros(1 + last - first, np.int64)
        counts[0] = self._counts[0]
        counts[1 + self.first - first :][:count] = self._counts[1:]
        self._counts, self.first = counts, first

    def exceeded(self, percent: float) -> float | None:
        """The value exceeded `percent` of the time, such as N5; None without values or classes."""
        return known(float(self.percentiles([percent])[0]))

    def percentiles(self, percents: Sequence[float]) -> NDArray[np.float64]:
        """The values (k,) exceeded in these percents of the time; NaN without values.

        They are interpolated between ranks as in `numpy.percentile`.
        """
        if not all(0 <= percent <= 100 for percent in percents):
            raise ValueError(f"exceeded {list(percents)} % of the time: give 0 to 100 %")
        shares, values = np.array(percents, np.float64), np.empty(len(percents))
        rise = self._indices_of_rise()
        loops.find(shares, self.width, self._most, self.first, self._counts, rise, values)
        return values


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
        # Numbers and counts of the classes of each slot, the newest last.
        self._slots: deque[tuple[NDArray[np.int32], NDArray[np.int32]]] = deque()
        self._taken = 0
        # Values after those of the rise, which leave the window by their number.
        self._since_rise = 0

    @property
    def slots(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """How many classes each slot has (slot,), and their numbers and counts (2, n)."""
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
            self.histogram.clear()
            self._newest.clear()
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
        places, counts = self._newest.used.astype(np.int32)
        self._slots.append((places, counts))
        self._newest.clear()
        self._taken = 0
        if len(self._slots) == self._most_slots:
            places, counts = self._slots.popleft()
            self.histogram.put(places, -counts)
