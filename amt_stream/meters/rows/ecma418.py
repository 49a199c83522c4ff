"""Readings of the hearing model of ECMA-418-2: a metric of both channels, and of each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonDict
from amt_stream.meters.accumulators.ecma418 import (
    FLUCTUATION,
    LOUDNESS,
    ROUGHNESS,
    TONALITY,
    ECMAMeter,
    Metric,
)
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.meters.accumulators.window import WINDOW
from amt_stream.meters.band_shares import BARK
from amt_stream.meters.frames import LATER, Frames
from amt_stream.meters.rows.column import EXCEEDED, HIGHEST, RENEWED, Column, Meaning, counting
from amt_stream.meters.rows.readings import (
    MeteredReadings,
    Readings,
    Summary,
    fully_heard,
    higher,
    place_of,
    sides_of,
)

METHOD = "By the hearing model of ECMA-418-2."
SINGLE = "The single value of the standard"
EARS = ", both ears"


@dataclass(frozen=True)
class Shown:
    """A metric as columns.

    stem: what the names of its columns begin with
    metric: its rules; the model's output of its letter has its values
    quantity: its name
    unit: as in the standard
    settle_s: seconds after a fault until the sound before it no longer matters
    now, mean: sentences on the present value and on the mean
    usual: statistics that are columns by default
    binaural: whether specific values of both ears combine, as the root of their mean square; if
        not, of two channels the higher one is shown
    fields: fields of `ECMA418Output` that have the metric, its specific values and its frequency
    hz: what the model's output `hz` is, as quantity, label, symbol and sentence, if there is one
    least: values up to this have no such frequency
    method: sentence on the method
    """

    stem: str
    metric: Metric
    quantity: str
    unit: str
    settle_s: float
    now: str
    mean: str
    usual: tuple[str, ...]
    binaural: bool
    fields: tuple[str, ...]
    hz: tuple[str, str, str, str] | None = None
    least: float = 0.0
    method: str = METHOD

    def readings(self, channels: int) -> "MetricReadings":
        """The readings of a model of this metric alone."""
        return MetricReadings(channels, self)


class MetricReadings(MeteredReadings):
    """A metric: the present value, and its mean, maximum and percentiles.

    model: name of the model in the catalog, by default that of this metric alone
    """

    def __init__(self, channels: int, shown: Shown, model: str | None = None) -> None:
        self._channels, self._shown = channels, shown
        letter, unit = shown.metric.letter, shown.metric.unit
        self._stem = shown.stem
        self._model = model or self._stem
        statistic = rf"mean|max|{letter}(?P<percent>\d\d?)(?:_(?P<window>{WINDOW}))?"
        self._pattern = re.compile(
            rf"{self._stem}(?:_(?P<statistic>{statistic}))?(?P<side>_left|_right)?"
            rf"_(?P<unit>{unit}|hz)"
        )
        sides = sides_of(channels)
        statistics = ["", "_mean", "_max", *(f"_{letter}{p}" for p in PERCENTS)]
        names = [f"{self._stem}{side}_hz" for side in sides]
        names += [f"{self._stem}{what}{side}_{unit}" for what in statistics for side in sides]
        offered = [column for column in map(self.named, names) if column is not None]
        self.headlines = self.of_interval = tuple(f"{self._stem}_{s}_{unit}" for s in shown.usual)
        usual = [column.name for column in offered if not column.counted]
        super().__init__(self._model, offered, [*usual, *self.headlines])

    def named(self, name: str) -> Column | None:
        found = self._pattern.fullmatch(name)
        if found is None or (found["side"] and self._channels < 2):
            return None
        shown, statistic, percent = self._shown, found["statistic"], found["percent"]
        quantity, letter = shown.quantity, shown.metric.letter.upper()
        unit, both = shown.unit, EARS if shown.binaural else higher(2)
        if found["unit"] == "hz":
            if shown.hz is None or statistic:
                return None
            quantity, *words, about = shown.hz
            unit, both = "Hz", ", of the channel where it is higher"
            words = ["instantaneous", *words]
        elif percent:
            words = [f"exceeded {percent} % of the time"]
            words += [f"{quantity.capitalize()} exceeded {percent} % of time", f"{letter}{percent}"]
            about = EXCEEDED.format(percent=percent)
        elif statistic == "max":
            words, about = ["maximum", f"Highest {quantity}", f"{letter}max"], HIGHEST
        elif statistic == "mean":
            kind = "mean" if shown.metric.exponent == 1 else "power mean"
            words, about = [kind, f"Average {quantity}", f"{letter} mean"], shown.mean
        else:
            words, about = ["instantaneous", quantity.capitalize(), letter], shown.now
        words += [f"{about} {shown.method}", RENEWED if percent else ""]
        column = Meaning(quantity, *words).column(
            *(name, unit, self._model, found["side"], found["window"]),
            both if self._channels == 2 else "",
        )
        if statistic:
            return counting(column, shown.settle_s, found["window"])
        return replace(column, settle_s=shown.settle_s)

    def coverage(self) -> JsonDict:
        return super().coverage() | {"from_s": max(self.from_s, self._shown.metric.start_s)}

    def renew(self) -> None:
        parts = [self._pattern.fullmatch(column.name) for column in self.columns]
        named = [(part["unit"] == "hz", part["statistic"], part["side"]) for part in parts if part]
        statistics = list(dict.fromkeys(s for _, s, _ in named if s))
        rows = ["hz", None, *statistics]
        # Side and row, in `take`, of each column.
        self._places = np.array(
            [(place_of(side), rows.index("hz" if hz else s)) for hz, s, side in named], np.int64
        ).reshape(-1, 2)
        names = [f"{statistic}_{self._shown.metric.unit}" for statistic in statistics]
        sides = 3 if self._channels == 2 else 1
        self._meters = [ECMAMeter(self._shown.metric, names) for _ in range(sides)]

    def _by_sides(self, frames: Frames) -> NDArray[np.float64]:
        """The metric of both channels and of each (3, n), or of the only one (1, n)."""
        each = np.asarray(getattr(frames.values, self._shown.metric.letter), np.float64)
        if self._channels == 1:
            return each
        if self._shown.binaural:
            square = np.square(frames.values.specific, dtype=np.float64)
            both = BARK * np.sqrt(square.mean(0)).sum(-1)
        else:
            both = np.fmax(*each)
        return np.concatenate([both[None], each])

    def _hz_by_sides(self, frames: Frames, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The frequencies of values (side, n); NaN where there is none."""
        if self._shown.hz is None:
            return np.full(values.shape, np.nan)
        each = np.asarray(frames.values.hz, np.float64)
        if self._channels == 2:
            each = np.concatenate([np.where(values[1] >= values[2], each[0], each[1])[None], each])
        there = (values > self._shown.least) & fully_heard(frames)
        return np.where(there, each, np.nan)

    def take(self, frames: Frames) -> NDArray[np.float64]:
        counted = self.counted(frames, self._shown.settle_s)
        values = self._by_sides(frames)
        hz = self._hz_by_sides(frames, values)
        sides = []
        for meter, *now in zip(self.meters, hz, values, strict=True):
            sides.append(np.stack([*now, *meter.update(frames.time_s, now[1], counted)]))
        return np.stack(sides)[*self._places.T].T

    def tail(self, frames: Frames) -> None:
        # Frames before a cut have looked ahead at all of the sound.
        if frames.cut:
            return
        counted = self.counted(frames, self._shown.settle_s)
        for meter, values in zip(self.meters, self._by_sides(frames), strict=True):
            meter.tail(frames.time_s, np.where(counted, values, np.nan))

    def summary(self) -> Summary:
        summary: Summary = {}
        unit = f"_{self._shown.metric.unit}"
        readings = [meter.reading() for meter in self._meters]
        for name in readings[0]:
            if name.endswith(unit):
                for side, reading in zip(("", "_left", "_right"), readings, strict=False):
                    what = name.removesuffix(unit)
                    summary[f"{self._stem}_{what}{side}{unit}"] = reading[name]
        return summary


SHOWN = (
    Shown(
        "ecma_loudness",
        LOUDNESS,
        "loudness",
        "sone_HMS",
        1.2,
        "How loud the sound is at this moment; a tone of 1 kHz and 40 dB has 1 sone_HMS.",
        f"{SINGLE}: a mean of all that was counted, in which loud moments weigh more.",
        ("mean", "n5", "max"),
        binaural=True,
        fields=("n", "specific_n"),
    ),
    Shown(
        "ecma_tonality",
        TONALITY,
        "tonality",
        "tu_HMS",
        1.2,
        "How much a tone stands out at this moment: from 0.4 tu_HMS on it is prominent.",
        f"{SINGLE}: the mean of all that was counted above 0.02 tu_HMS.",
        ("mean", "t5", "max"),
        binaural=False,
        fields=("t", "specific_t", "tone_hz"),
        hz=(
            "frequency of the strongest tone",
            "Strongest tone",
            "f",
            "The frequency of the tone that stands out most.",
        ),
        least=TONALITY.above,
    ),
    Shown(
        "ecma_roughness",
        ROUGHNESS,
        "roughness",
        "asper",
        4.5,
        "How rough the sound is at this moment, as fast modulation makes it: from 0.2 asper on it "
        "is prominent.",
        "The mean of all that was counted.",
        ("r10", "max"),
        binaural=True,
        fields=("r", "specific_r", "modulation_hz"),
        hz=(
            "modulation rate of the roughest band",
            "Modulation rate",
            "f mod",
            "How many times a second the roughest band swells.",
        ),
        least=0.02,
    ),
    Shown(
        "ecma_fluctuation",
        FLUCTUATION,
        "fluctuation strength",
        "vacil_HMS",
        9.5,
        "How much the sound swells and fades at this moment, a few times a second: from 0.2 "
        "vacil_HMS on it is prominent. Provisional.",
        "The mean of all that was counted.",
        ("f10", "max"),
        binaural=True,
        fields=("f", "specific_f"),
    ),
)
"""All metrics."""


ecma_loudness_readings = SHOWN[0].readings
ecma_tonality_readings = SHOWN[1].readings
ecma_roughness_readings = SHOWN[2].readings
ecma_fluctuation_readings = SHOWN[3].readings


SLOW, FAST = 4, 15
"""Frames of roughness, 50 a second, and of loudness, 187.5 a second, in the same time."""

SAME = 1e-3
"""Times that differ by less of a frame are equal."""


class ECMA418Readings(Readings):
    """The readings of all metrics of `ECMA418`, as those of the models of each metric."""

    kept = (*Readings.kept, "_parts", "_last", "_number")

    def __init__(self, channels: int) -> None:
        self._parts = [MetricReadings(channels, shown, "ecma") for shown in SHOWN]
        self.headlines = self.of_interval = tuple(n for one in self._parts for n in one.headlines)
        offered = [column for one in self._parts for column in one.offered]
        usual = [column.name for one in self._parts for column in one.columns]
        super().__init__("ecma", offered, usual)

    def named(self, name: str) -> Column | None:
        return next(filter(None, (one.named(name) for one in self._parts)), None)

    def coverage(self) -> JsonDict:
        starts = [one.metric.start_s for one in SHOWN]
        return super().coverage() | {"from_s": max(self.from_s, min(starts))}

    def renew(self) -> None:
        names = [column.name for column in self.columns]
        # Places of each part's columns among all.
        self._places = []
        for one in self._parts:
            one.from_s, one.to_s = self.from_s, self.to_s
            one.choose([column for column in self.columns if one.named(column.name)])
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
        number = _number_of(frames, LOUDNESS.frame_rate)
        last = number * SLOW // FAST
        new = last > (number - 1) * SLOW // FAST
        # Each of those before the frame that has its values, unless both are of one time.
        between = np.flatnonzero(new & (number * SLOW % FAST > 0))
        at = np.insert(np.arange(len(frames)), between, between)
        time_s = np.insert(frames.time_s, between, last[between] / ROUGHNESS.frame_rate)
        dims = zip(frames.values, frames.time_dim, strict=True)
        values = type(frames.values)(*(np.take(v, at, axis=dim) for v, dim in dims))
        return _picked(frames, at, time_s, values)

    def _split(self, frames: Frames) -> Iterator[tuple[MetricReadings, Frames, NDArray[np.int64]]]:
        """Each metric's readings and frames, and how many of these there are up to each frame."""
        for one, shown in zip(self._parts, SHOWN, strict=True):
            rate = shown.metric.frame_rate
            mine = np.abs(frames.time_s * rate - _number_of(frames, rate)) < SAME
            at, names = np.flatnonzero(mine), (shown.metric.letter, "specific", "hz")
            given = (getattr(frames.values, name)[:, at] for name in shown.fields)
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
        self._number = int(_number_of(frames, LOUDNESS.frame_rate)[-1])
        return found

    def tail(self, frames: Frames) -> None:
        for one, part, _ in self._split(frames):
            if len(part):
                one.tail(part)

    def skip(self, count: int) -> None:
        before, self._number = self._number, self._number + count
        slow = self._number * SLOW // FAST - before * SLOW // FAST
        for one, shown in zip(self._parts, SHOWN, strict=True):
            one.paused = self.paused
            one.skip(slow if shown.metric.frame_rate == ROUGHNESS.frame_rate else count)

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
