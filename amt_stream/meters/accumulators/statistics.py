"""Statistics of quantities over time: maxima, means and percentiles of each of their series."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.accumulators import loops
from amt_stream.meters.accumulators.percentiles import Percentiles, Renewals, still_rising

Values = NDArray[np.float64]


def binary_logarithm(values: Any, least: Any) -> Any:
    """Logarithm to base 2 of values, of at least `least`, for arrays and for compiled loops."""
    return np.log2(np.maximum(values, least))


@dataclass(frozen=True)
class CountingRule:
    """How statistics of a quantity are counted.

    rate: values per second
    low, high, width: classes of its percentiles, as in `Histogram`; without a width there are none
    least: classes are of the logarithm to base 2 of values, lower ones than this counting as this;
        0 if they are of the values themselves
    rise_s: seconds of the rise from silence, whose values can only be too low
    start_s: time of the first value that counts
    averages: whether there is a mean
    exponent: of the power mean
    above: only greater values count in the mean, which is 0 without any
    """

    rate: float
    low: float = 0.0
    high: float = 0.0
    width: float = 0.0
    least: float = 0.0
    rise_s: float = 0.0
    start_s: float = -np.inf
    averages: bool = False
    exponent: float = 1.0
    above: float = -1.0

    def on_scale(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Values on the scale of the classes, in the type that they have."""
        return binary_logarithm(values, self.least) if self.least else values

    def off_scale(self, values: Values) -> Values:
        """Values from the scale of the classes."""
        return np.exp2(values) if self.least else values

    def number(self, value: float | None) -> float | None:
        """As `off_scale`, of a number."""
        return 2.0**value if self.least and value is not None else value


class Statistic(NamedTuple):
    """A statistic that is wanted after each frame.

    of, series: quantity, and which of its series
    kind: "max", "mean" or "exceeded"
    percent, window: of "exceeded"; the window is as in names, "" for all that was counted
    """

    of: str
    series: int
    kind: str
    percent: int = 0
    window: str = ""


class Tops(NamedTuple):
    """Of each series (row,) its maximum, when it was reached, and (row, 2) counts.

    The counts are those of values that counted and of those that did not.
    """

    highest: Values
    reached_s: Values
    counts: NDArray[np.int64]


class Statistics(Resumable):
    """Statistics of all quantities of a model that have one rate.

    rules: by quantity
    series: how many series each quantity has, as one for each channel
    wanted: what `update` returns

    All are of the same frames: valid ones after the last reset, outside pauses. In means and
    percentiles, values of the rise from silence count only if they are not lower than all later
    ones. Rolling windows continue through pauses and resets. Percentiles are updated every 0.1 s.
    """

    kept = ("paused", "_so_far", "_each", "_renewals")

    def __init__(
        self, rules: Mapping[str, CountingRule], series: int, wanted: Sequence[Statistic] = ()
    ) -> None:
        self.paused = False
        self._rules, self._wanted, self._series = dict(rules), tuple(wanted), series
        self._renewals = Renewals()
        keys = [(of, k) for of in rules for k in range(series)]
        self._each = {f"{of}/{k}": _Series(rules[of], (of, k), self._wanted) for of, k in keys}
        self._rows = {key: row for row, key in enumerate(self._each)}
        self._start_s = np.array([rules[of].start_s - 1e-6 for of, _ in keys])
        # The set of frames that count of each row, if they differ between quantities.
        self._sets = np.repeat(np.arange(len(rules)), series)
        tops = [
            (place, self._rows[f"{one.of}/{one.series}"])
            for place, one in enumerate(wanted)
            if one.kind == "max"
        ]
        self._tops = np.array(tops, np.int64).reshape(-1, 2).T
        self._so_far: Tops
        self.reset()

    def take_over(self, before: Self) -> None:
        fresh = self._so_far
        super().take_over(before)
        for key, row in self._rows.items():
            if key in before._rows:
                for now, was in zip(fresh, before._so_far, strict=True):
                    now[row] = was[before._rows[key]]
        self._so_far = fresh

    def reset(self) -> None:
        """Restart all but rolling windows; a pause continues."""
        rows = len(self._each)
        counts = np.zeros((rows, 2), np.int64)
        self._so_far = Tops(np.full(rows, -np.inf), np.full(rows, np.nan), counts)
        for one in self._each.values():
            one.reset()

    def skip(self, count: int) -> None:
        """Skip missing frames, which are left out; windows move on."""
        if not self.paused:
            self._so_far.counts[:, 1] += count
        for one in self._each.values():
            one.skip(count)

    def update(
        self,
        time_s: Values,
        values: Mapping[str, NDArray[np.floating]],
        counted: Mapping[str, NDArray[np.bool_]],
    ) -> Values:
        """Take frames at `time_s` (n,), and return the wanted statistics (statistic, n) after each.

        values: of each quantity (series, n), NaN for none
        counted: which frames (n,) count for each quantity

        A statistic is not finite before the first value.
        """
        heard, highest = self._count(time_s, values, counted, self._start_s, self._so_far)
        told = np.empty((len(self._wanted), len(time_s)))
        told[self._tops[0]] = highest[self._tops[1]]
        due, row = self._renewals.due(time_s), 0
        for of, rule in self._rules.items():
            own = slice(row, row + self._series)
            row += self._series
            rising = still_rising(time_s, rule.rise_s) if rule.rise_s else 0
            if rule.width:
                scaled = heard[own]
                if rule.least:
                    unknown = np.isnan(scaled)
                    # In the type that the values have.
                    scaled = rule.on_scale(values[of]).astype(np.float64)
                    scaled[unknown] = np.nan
                for k, one in enumerate(scaled):
                    self._each[f"{of}/{k}"].add(one, due, rising, self.paused, told)
            if rule.averages:
                for k, one in enumerate(heard[own]):
                    self._each[f"{of}/{k}"].average(one, rising, self.paused, told)
        return told

    def _count(
        self,
        time_s: Values,
        values: Mapping[str, NDArray[np.floating]],
        counted: Mapping[str, NDArray[np.bool_]],
        start_s: Values,
        so_far: Tops,
    ) -> tuple[Values, Values]:
        """Count values in maxima; returns those that count, else NaN, and the maxima (row, n)."""
        table = np.concatenate([values[of] for of in self._rules], dtype=np.float64)
        flags = [counted[of] for of in self._rules]
        sets = np.stack(flags), self._sets
        if all(one is flags[0] for one in flags):
            sets = flags[0][None], np.zeros_like(self._sets)
        heard, highest = np.empty((2, *table.shape))
        given = table, *sets, start_s, time_s, self.paused
        loops.count_series(*given, *so_far, heard, highest)
        return heard, highest

    def tail(
        self,
        time_s: Values,
        values: Mapping[str, NDArray[np.floating]],
        counted: Mapping[str, NDArray[np.bool_]],
    ) -> None:
        """Take frames after the end of the sound into account: in maxima alone."""
        always = np.full(len(self._each), -np.inf)
        so_far = self._so_far._replace(counts=np.zeros_like(self._so_far.counts))
        self._count(time_s, values, counted, always, so_far)

    def reading(self, statistic: Statistic) -> float | None:
        """The statistic so far; None without values."""
        key = f"{statistic.of}/{statistic.series}"
        if statistic.kind == "max":
            row = self._rows[key]
            highest, reached_s, _ = self._so_far
            return None if np.isnan(reached_s[row]) else float(highest[row])
        return self._each[key].reading(statistic)

    def time_of_maximum_s(self, of: str, series: int = 0) -> float | None:
        """When the maximum was first reached."""
        time_s = float(self._so_far.reached_s[self._rows[f"{of}/{series}"]])
        return None if math.isnan(time_s) else time_s

    def counted_s(self, of: str, series: int = 0) -> tuple[float, float]:
        """Seconds of values that counted, and of those that did not."""
        measured, excluded = self._so_far.counts[self._rows[f"{of}/{series}"]].tolist()
        return measured / self._rules[of].rate, excluded / self._rules[of].rate


class _Series(Resumable):
    """The mean and the percentiles of one series, and the rows of those that are wanted."""

    kept = ("percentiles", "mean")

    def __init__(
        self, rule: CountingRule, key: tuple[str, int], wanted: Sequence[Statistic]
    ) -> None:
        self.rule = rule
        own = [(row, one) for row, one in enumerate(wanted) if one[:2] == key]
        self._mean_rows = [row for row, one in own if one.kind == "mean"]
        self._rows = [row for row, one in own if one.kind == "exceeded"]
        self.percentiles = None
        if rule.width:
            exceeded = [(one.percent, one.window) for _, one in own if one.kind == "exceeded"]
            classes = {"low": rule.low, "high": rule.high, "width": rule.width}
            self.percentiles = Percentiles(exceeded, 1 / rule.rate, **classes)
        self.reset()

    def reset(self) -> None:
        if self.percentiles is not None:
            self.percentiles.reset()
        self.mean = RunningMean(self.rule) if self.rule.averages else None

    def skip(self, count: int) -> None:
        if self.percentiles is not None:
            self.percentiles.skip(count)

    def add(
        self, scaled: Values, due: Sequence[int], rising: int, paused: bool, told: Values
    ) -> None:
        """Count values (n,) on the scale of the classes, and write percentiles."""
        assert self.percentiles is not None
        measured = np.full_like(scaled, np.nan) if paused else scaled
        exceeded = self.percentiles.add(measured, scaled, due, rising)
        if self._rows:
            told[self._rows] = self.rule.off_scale(exceeded)

    def average(self, heard: Values, rising: int, paused: bool, told: Values) -> None:
        """Count values (n,), and write means."""
        assert self.mean is not None
        told[self._mean_rows] = self.mean.add(
            np.full_like(heard, np.nan) if paused else heard, rising
        )

    def reading(self, statistic: Statistic) -> float | None:
        if statistic.kind == "mean":
            assert self.mean is not None
            return self.mean.now
        assert self.percentiles is not None
        return self.rule.number(self.percentiles.reading(statistic.percent, statistic.window))


class RunningMean(Resumable):
    """The mean of all values so far, as the rule says."""

    kept = ("_sum", "_counts", "_least", "_rise")
    growing = ("_rise",)

    def __init__(self, rule: CountingRule) -> None:
        self._exponent, self._above = rule.exponent, rule.above
        # Numbers of values, and of those in the mean.
        self._sum, self._counts = 0.0, np.zeros(2, np.int64)
        # The lowest value after the rise, and all values of the rise.
        self._least, self._rise = math.nan, np.empty(0)

    @property
    def now(self) -> float | None:
        """The mean so far; None without values."""
        mean = float(self._after(np.empty(0))[0])
        return None if math.isnan(mean) else mean

    def add(self, values: Values, rising: int) -> Values:
        """Take values (n,), the first `rising` of the rise; the mean after each, NaN for none."""
        return np.concatenate([self._in_rise(values[:rising]), self._after(values[rising:])[1:]])

    def _in_rise(self, values: Values) -> Values:
        """The mean after each of `values` (n,) of the rise."""
        before, there = len(self._rise), values[~np.isnan(values)]
        self._rise = np.append(self._rise, there)
        averaged = self._rise > self._above
        sums = np.append(0.0, self._powers(self._rise).cumsum())
        at = before + np.cumsum(~np.isnan(values))
        return self._mean(sums[at], at, np.append(0, averaged.cumsum())[at])

    def _after(self, values: Values) -> Values:
        """The mean (n + 1,) before and after each of `values` (n,) after the rise."""
        # One value after another, however they are cut into blocks.
        sums = np.append(self._sum, self._powers(values)).cumsum()
        added = np.stack([~np.isnan(values), values > self._above], 1)
        counts = np.concatenate([self._counts[None], added]).cumsum(0)
        least = np.fmin.accumulate(np.append(self._least, values))
        self._sum, self._counts, self._least = float(sums[-1]), counts[-1].copy(), float(least[-1])
        counted, of_mean = counts.T
        if len(self._rise):
            # Values of the rise count if they are not below the lowest later one, if there is one.
            rise = np.sort(self._rise)[::-1]
            bound = np.where(counted > 0, least, -np.inf)
            from_rise = len(rise) - np.searchsorted(rise[::-1], bound)
            sums = sums + np.append(0.0, self._powers(rise).cumsum())[from_rise]
            counted = counted + from_rise
            of_mean = of_mean + np.append(0, (rise > self._above).cumsum())[from_rise]
        return self._mean(sums, counted, of_mean)

    def _powers(self, values: Values) -> Values:
        """What each value adds to the sum of the mean."""
        return np.asarray(np.where(values > self._above, values, 0.0) ** self._exponent)

    def _mean(self, sums: Values, counted: Values, of_mean: Values) -> Values:
        means = (sums / np.maximum(of_mean, 1)) ** (1 / self._exponent)
        return np.asarray(np.where(counted > 0, means, np.nan))
