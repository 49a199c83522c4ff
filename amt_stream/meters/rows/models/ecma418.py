"""Readings of the hearing model of ECMA-418-2: a metric of both channels, and of each."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import log10
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonDict
from amt_stream.meters.accumulators.statistics import CountingRule
from amt_stream.meters.frames import LATER, Frames
from amt_stream.meters.names import sides_of
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.models.band_shares import BARK
from amt_stream.meters.rows.models.quantity import (
    ColumnWords,
    Quantity,
    QuantityReadings,
    Unit,
    Values,
)
from amt_stream.meters.rows.readings import Readings, Summary, fully_heard, higher

METHOD = "By the hearing model of ECMA-418-2."
SINGLE = "The single value of the standard"
MEAN = "The mean of all that was counted."
EARS = ", both ears"

# Within 0.02 % of the exact value; below 0.00006 is 0.
LEAST = 2.0**-14
RULE = partial(
    CountingRule, low=np.log2(LEAST), high=30.0, width=0.0005, least=LEAST / 2, averages=True
)


@dataclass(frozen=True)
class Metric:
    """A metric of the model, and its columns.

    letter: its symbol; the model's output of this name has its values
    quantity: its columns
    usual: names of the statistics that are columns by default
    binaural: whether specific values of both ears combine, as the root of their mean square; if
        not, of two channels the higher one is shown
    fields: fields of `ECMA418Output` that have the metric, its specific values and its frequency
    hz: what the model's output `hz` is, if there is one
    least: values up to this have no such frequency
    """

    letter: str
    quantity: Quantity
    usual: tuple[str, ...]
    binaural: bool
    fields: tuple[str, ...]
    hz: Quantity | None = None
    least: float = 0.0

    @property
    def rule(self) -> CountingRule:
        """How its statistics are counted; the standard leaves out frames before `start_s`."""
        assert self.quantity.rule is not None
        return self.quantity.rule

    def readings(self, channels: int) -> "MetricReadings":
        """The readings of a model of this metric alone."""
        return MetricReadings(channels, self)


def metric_quantity(
    stem: str,
    letter: str,
    noun: str,
    unit: Unit,
    settle_s: float,
    now: str,
    rule: CountingRule,
    mean: str = MEAN,
    both: str = higher(2),
    method: str = METHOD,
) -> Quantity:
    """The columns of a metric.

    stem: what their names begin with
    unit: names end in what is before "_" of it
    now, mean: sentences on the present value and on the mean
    """
    end = unit.written.partition("_")[0]
    form, symbol = f"{stem}{{}}{{{{side}}}}_{end}".format, letter.upper()
    mean_kind = "mean" if rule.exponent == 1 else "power mean"
    return Quantity(
        stem,
        noun,
        {end: unit},
        {
            "now": ColumnWords(form(""), "instantaneous", noun.capitalize(), symbol, now),
            "mean": ColumnWords(
                form("_mean"), mean_kind, f"Average {noun}", f"{symbol} mean", mean
            ),
            "max": ColumnWords.maximum(form("_max"), f"Highest {noun}", f"{symbol}max"),
            "exceeded": ColumnWords.percentile(
                form(f"_{letter}{{percent}}{{window}}"),
                f"{noun.capitalize()} exceeded {{percent}} % of time",
                f"{symbol}{{percent}}",
            ),
        },
        method,
        settle_s,
        rule,
        both,
    )


def _hz(of: Quantity, noun: str, label: str, symbol: str, about: str) -> Quantity:
    """The columns of a frequency that belongs to a metric."""
    words = ColumnWords(f"{of.of}{{side}}_hz", "instantaneous", label, symbol, about)
    both = ", of the channel where it is higher"
    return Quantity(
        f"{of.of}_hz", noun, {"hz": Unit("Hz")}, {"now": words}, METHOD, of.settle_s, both=both
    )


class MetricReadings(QuantityReadings):
    """A metric: the present value, and its mean, maximum and percentiles.

    model: name of the model in the catalog, by default that of this metric alone
    """

    def __init__(self, channels: int, metric: Metric, model: str | None = None) -> None:
        self._metric, stem = metric, metric.quantity.of
        quantities = [*filter(None, [metric.hz, metric.quantity])]
        (end,) = metric.quantity.units
        self.headlines = self.of_interval = tuple(f"{stem}_{s}_{end}" for s in metric.usual)
        now = [
            one.name("now", side=side, unit=unit)
            for one in quantities
            for side in sides_of(channels)
            for unit in one.units
        ]
        usual = [*now, *self.headlines]
        super().__init__(model or stem, channels, quantities, usual, own_both=True)

    def coverage(self) -> JsonDict:
        return super().coverage() | {"from_s": max(self.from_s, self._metric.rule.start_s)}

    def values(self, frames: Frames) -> Values:
        values = self._by_sides(frames)
        found = {self._metric.quantity.of: values}
        if self._metric.hz is not None:
            found[self._metric.hz.of] = self._hz_by_sides(frames, values)
        return found

    def _by_sides(self, frames: Frames) -> NDArray[np.float64]:
        """The metric of both channels and of each (3, n), or of the only one (1, n)."""
        each = np.asarray(getattr(frames.values, self._metric.letter), np.float64)
        if self._channels == 1:
            return each
        if self._metric.binaural:
            square = np.square(frames.values.specific, dtype=np.float64)
            both = BARK * np.sqrt(square.mean(0)).sum(-1)
        else:
            both = np.fmax(*each)
        return np.concatenate([both[None], each])

    def _hz_by_sides(self, frames: Frames, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The frequencies of values (side, n); NaN where there is none."""
        each = np.asarray(frames.values.hz, np.float64)
        if self._channels == 2:
            each = np.concatenate([np.where(values[1] >= values[2], each[0], each[1])[None], each])
        there = (values > self._metric.least) & fully_heard(frames)
        return np.where(there, each, np.nan)

    def tail(self, frames: Frames) -> None:
        # Frames before a cut have looked ahead at all of the sound.
        if not frames.cut:
            super().tail(frames)


_LOUDNESS = metric_quantity(
    "ecma_loudness",
    "n",
    "loudness",
    Unit("sone_HMS"),
    1.2,
    "How loud the sound is at this moment; a tone of 1 kHz and 40 dB has 1 sone_HMS.",
    RULE(187.5, start_s=57 / 187.5, exponent=1 / log10(2)),
    f"{SINGLE}: a mean of all that was counted, in which loud moments weigh more.",
    EARS,
)
LOUDNESS = Metric("n", _LOUDNESS, ("mean", "n5", "max"), True, ("n", "specific_n"))
_TONALITY = metric_quantity(
    "ecma_tonality",
    "t",
    "tonality",
    Unit("tu_HMS"),
    1.2,
    "How much a tone stands out at this moment: from 0.4 tu_HMS on it is prominent.",
    RULE(187.5, start_s=57 / 187.5, above=0.02),
    f"{SINGLE}: the mean of all that was counted above 0.02 tu_HMS.",
)
TONALITY = Metric(
    "t",
    _TONALITY,
    ("mean", "t5", "max"),
    False,
    ("t", "specific_t", "tone_hz"),
    _hz(
        _TONALITY,
        "frequency of the strongest tone",
        "Strongest tone",
        "f",
        "The frequency of the tone that stands out most.",
    ),
    0.02,
)
_ROUGHNESS = metric_quantity(
    "ecma_roughness",
    "r",
    "roughness",
    Unit("asper"),
    4.5,
    "How rough the sound is at this moment, as fast modulation makes it: from 0.2 asper on it "
    "is prominent.",
    RULE(50, start_s=16 / 50),
    both=EARS,
)
ROUGHNESS = Metric(
    "r",
    _ROUGHNESS,
    ("r10", "max"),
    True,
    ("r", "specific_r", "modulation_hz"),
    _hz(
        _ROUGHNESS,
        "modulation rate of the roughest band",
        "Modulation rate",
        "f mod",
        "How many times a second the roughest band swells.",
    ),
    0.02,
)
_FLUCTUATION = metric_quantity(
    "ecma_fluctuation",
    "f",
    "fluctuation strength",
    Unit("vacil_HMS"),
    9.5,
    "How much the sound swells and fades at this moment, a few times a second: from 0.2 "
    "vacil_HMS on it is prominent. Provisional.",
    RULE(50, start_s=36 / 50),
    both=EARS,
)
FLUCTUATION = Metric("f", _FLUCTUATION, ("f10", "max"), True, ("f", "specific_f"))

METRICS = LOUDNESS, TONALITY, ROUGHNESS, FLUCTUATION

ecma_loudness_readings = LOUDNESS.readings
ecma_tonality_readings = TONALITY.readings
ecma_roughness_readings = ROUGHNESS.readings
ecma_fluctuation_readings = FLUCTUATION.readings


SLOW, FAST = 4, 15
"""Frames of roughness, 50 a second, and of loudness, 187.5 a second, in the same time."""

SAME = 1e-3
"""Times that differ by less of a frame are equal."""


class ECMA418Readings(Readings):
    """The readings of all metrics of `ECMA418`, as those of the models of each metric."""

    kept = (*Readings.kept, "_parts", "_last", "_number")

    def __init__(self, channels: int) -> None:
        self._parts = [MetricReadings(channels, metric, "ecma") for metric in METRICS]
        self.headlines = self.of_interval = tuple(n for one in self._parts for n in one.headlines)
        offered = [column for one in self._parts for column in one.offered]
        usual = [column.name for one in self._parts for column in one.columns]
        super().__init__("ecma", offered, usual)

    def named(self, name: str) -> Column | None:
        return next(filter(None, (one.named(name) for one in self._parts)), None)

    def coverage(self) -> JsonDict:
        starts = [one.rule.start_s for one in METRICS]
        return super().coverage() | {"from_s": max(self.from_s, min(starts))}

    def renew(self) -> None:
        names = [column.name for column in self.columns]
        # Places of each part's columns among all.
        self._places = []
        for one in self._parts:
            one.from_s, one.to_s = self.from_s, self.to_s
            one.choose([column for column in self.columns if column.of in one.quantities])
            self._places.append([names.index(column.name) for column in one.columns])
        self._last = np.full(len(names), np.nan)
        # Of the last frame, counted from 0 s.
        self._number = 0

    def take_over(self, before: "ECMA418Readings") -> None:
        last = dict(zip([column.name for column in before.columns], before._last, strict=True))
        super().take_over(before)
        self._last = np.array([last.get(column.name, np.nan) for column in self.columns])

    def reset(self) -> None:
        for one in self._parts:
            one.reset()

    def refined(self, frames: Frames) -> Frames:
        """The frames, and between them those of metrics that have 50 a second."""
        number = _number_of(frames, LOUDNESS.rule.rate)
        last = number * SLOW // FAST
        new = last > (number - 1) * SLOW // FAST
        # Each of those before the frame that has its values, unless both are of one time.
        between = np.flatnonzero(new & (number * SLOW % FAST > 0))
        at = np.insert(np.arange(len(frames)), between, between)
        time_s = np.insert(frames.time_s, between, last[between] / ROUGHNESS.rule.rate)
        dims = zip(frames.values, frames.time_dim, strict=True)
        values = type(frames.values)(*(np.take(v, at, axis=dim) for v, dim in dims))
        return _picked(frames, at, time_s, values)

    def _split(self, frames: Frames) -> Iterator[tuple[MetricReadings, Frames, NDArray[np.int64]]]:
        """Each metric's readings and frames, and how many of these there are up to each frame."""
        for one, metric in zip(self._parts, METRICS, strict=True):
            rate = metric.rule.rate
            mine = np.abs(frames.time_s * rate - _number_of(frames, rate)) < SAME
            at, names = np.flatnonzero(mine), (metric.letter, "specific", "hz")
            given = (getattr(frames.values, name)[:, at] for name in metric.fields)
            values = SimpleNamespace(**dict(zip(names, given, strict=False)))
            one.paused = self.paused
            yield one, _picked(frames, at, frames.time_s[at], values), np.cumsum(mine)

    def take(self, frames: Frames) -> NDArray[np.float64]:
        found = np.empty((len(frames), len(self.columns)))
        for (one, part, count), places in zip(self._split(frames), self._places, strict=True):
            values = self._last[None, places]
            if len(part):
                values = np.concatenate([values, one.take(part)])
            found[:, places] = values[count]
        self._last = found[-1].copy()
        self._number = int(_number_of(frames, LOUDNESS.rule.rate)[-1])
        return found

    def tail(self, frames: Frames) -> None:
        for one, part, _ in self._split(frames):
            if len(part):
                one.tail(part)

    def skip(self, count: int) -> None:
        before, self._number = self._number, self._number + count
        slow = self._number * SLOW // FAST - before * SLOW // FAST
        for one, metric in zip(self._parts, METRICS, strict=True):
            one.paused = self.paused
            one.skip(slow if metric.rule.rate == ROUGHNESS.rule.rate else count)

    def summary(self) -> Summary:
        return {name: v for one in self._parts for name, v in one.summary().items()}

    def counted_s(self) -> Summary:
        return self._parts[0].counted_s()

    def measured_of(self) -> Summary:
        return {
            column.name: one.counted_s()["measured_s"]
            for one in self._parts
            for column in {*one.offered, *one.columns}
            if column.counted
        }


def _number_of(frames: Frames, rate: float) -> NDArray[np.int64]:
    """The frames at this rate up to each, counted from 0 s, to the nearest."""
    return np.rint(frames.time_s * rate).astype(np.int64)


def _picked(
    frames: Frames, at: NDArray[np.intp], time_s: NDArray[np.float64], values: object
) -> Frames:
    """Values of the times `time_s`, with the marks of the frames `at` that brought them."""
    marks = {name: getattr(frames, name)[..., at] for name in LATER}
    since_s = marks["since_s"] - (marks["time_s"] - time_s)
    return replace(frames, values=values, **(marks | {"time_s": time_s, "since_s": since_s}))
