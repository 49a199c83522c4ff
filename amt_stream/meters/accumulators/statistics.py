"""Statistics of quantities over time: maxima, means and percentiles of each of their series."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.accumulators.extremes import Maximum
from amt_stream.meters.accumulators.percentiles import Percentiles, Renewals, still_rising

Values = NDArray[np.float64]


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
        return np.log2(np.maximum(values, self.least)) if self.least else values

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


class Statistics(Resumable):
    """Statistics of all quantities of a model that have one rate.

    rules: by quantity
    series: how many series each quantity has, as one for each channel
    wanted: what `update` returns

    All are of the same frames: valid ones after the last reset, outside pauses. In means and
    percentiles, values of the rise from silence count only if they are not lower than all later
    ones. Rolling windows continue through pauses and resets. Percentiles are updated every 0.1 s.
    """

    kept = ("paused", "_each", "_renewals")

    def __init__(
        self, rules: Mapping[str, CountingRule], series: int, wanted: Sequence[Statistic] = ()
    ) -> None:
        self.paused = False
        self._rules, self._wanted = dict(rules), tuple(wanted)
        self._renewals = Renewals()
        self._each = {
            f"{of}/{k}": _Series(rule, [one for one in wanted if one[:2] == (of, k)])
            for of, rule in rules.items()
            for k in range(series)
        }

    def reset(self) -> None:
        """Restart all but rolling windows; a pause continues."""
        for one in self._each.values():
            one.reset()

    def skip(self, count: int) -> None:
        """Skip missing frames, which are left out; windows move on."""
        for one in self._each.values():
            one.skip(count, self.paused)

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
        due = self._renewals.due(time_s)
        found: dict[Statistic, Values] = {}
        for of in self._rules:
            for k, series in enumerate(values[of]):
                one = self._each[f"{of}/{k}"]
                told = one.update(time_s, series, counted[of], due, self.paused)
                found |= zip(one.wanted, told, strict=True)
        if not self._wanted:
            return np.empty((0, len(time_s)))
        return np.stack([found[one] for one in self._wanted])

    def tail(
        self,
        time_s: Values,
        values: Mapping[str, NDArray[np.floating]],
        counted: Mapping[str, NDArray[np.bool_]],
    ) -> None:
        """Take frames after the end of the sound into account: in maxima alone."""
        if self.paused:
            return
        for of in self._rules:
            for k, series in enumerate(values[of]):
                one = self._each[f"{of}/{k}"]
                one.maximum.add(time_s, np.where(counted[of], series, np.nan))

    def reading(self, statistic: Statistic) -> float | None:
        """The statistic so far; None without values."""
        return self._each[f"{statistic.of}/{statistic.series}"].reading(statistic)

    def time_of_maximum_s(self, of: str, series: int = 0) -> float | None:
        """When the maximum was first reached."""
        return self._each[f"{of}/{series}"].maximum.time_s

    def counted_s(self, of: str, series: int = 0) -> tuple[float, float]:
        """Seconds of values that counted, and of those that did not."""
        one, rate = self._each[f"{of}/{series}"], self._rules[of].rate
        return one.measured / rate, one.excluded / rate


class _Series(Resumable):
    """The statistics of one series."""

    kept = ("percentiles", "maximum", "mean", "measured", "excluded")

    def __init__(self, rule: CountingRule, wanted: Sequence[Statistic]) -> None:
        self.rule, self.wanted = rule, tuple(wanted)
        self.percentiles = None
        if rule.width:
            exceeded = [(one.percent, one.window) for one in wanted if one.kind == "exceeded"]
            classes = {"low": rule.low, "high": rule.high, "width": rule.width}
            self.percentiles = Percentiles(exceeded, 1 / rule.rate, **classes)
        self.reset()

    def reset(self) -> None:
        if self.percentiles is not None:
            self.percentiles.reset()
        self.maximum = Maximum()
        self.mean = RunningMean(self.rule) if self.rule.averages else None
        self.measured = self.excluded = 0

    def skip(self, count: int, paused: bool) -> None:
        self.excluded += 0 if paused else count
        if self.percentiles is not None:
            self.percentiles.skip(count)

    def update(
        self,
        time_s: Values,
        values: NDArray[np.floating],
        counted: NDArray[np.bool_],
        due: Sequence[int],
        paused: bool,
    ) -> list[Values]:
        """The wanted statistics (n,) after each frame."""
        rule = self.rule
        there = counted & ~np.isnan(values) & (time_s > rule.start_s - 1e-6)
        heard = np.where(there, values, np.asarray(np.nan, values.dtype))
        if not paused:
            count = int(np.count_nonzero(there))
            self.measured += count
            self.excluded += len(there) - count
        measured = np.full_like(heard, np.nan) if paused else heard
        rising = still_rising(time_s, rule.rise_s) if rule.rise_s else 0
        found = {"max": self.maximum.add(time_s, measured)}
        if self.mean is not None:
            found["mean"] = self.mean.add(measured.astype(np.float64), rising)
        exceeded = iter(())
        if self.percentiles is not None:
            scaled = rule.on_scale(heard), rule.on_scale(measured)
            exceeded = iter(rule.off_scale(self.percentiles.add(scaled[1], scaled[0], due, rising)))
        return [next(exceeded) if w.kind == "exceeded" else found[w.kind] for w in self.wanted]

    def reading(self, statistic: Statistic) -> float | None:
        if statistic.kind == "max":
            return self.maximum.known
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
