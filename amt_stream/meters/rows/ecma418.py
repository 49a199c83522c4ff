"""Readings of the hearing model of ECMA-418-2: a metric of both channels, and of each."""

import re
from dataclasses import dataclass, replace

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
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows.column import EXCEEDED, HIGHEST, RENEWED, Column, Meaning, counting
from amt_stream.meters.rows.readings import (
    SIDES,
    Readings,
    Summary,
    fully_heard,
    higher,
    place_of,
)

METHOD = "By the hearing model of ECMA-418-2."
SINGLE = "The single value of the standard"
BARK = 0.5
"""Spacing of the bands in Bark_HMS."""
EARS = ", both ears"


@dataclass(frozen=True)
class Shown:
    """A metric as columns.

    metric: its rules; the model's output of its letter has its values
    quantity: its name
    unit: as in the standard
    settle_s: seconds after a fault until the sound before it no longer matters
    now, mean: sentences on the present value and on the mean
    usual: statistics that are columns by default
    binaural: whether specific values of both ears combine, as the root of their mean square; if
        not, of two channels the higher one is shown
    hz: what the model's output `hz` is, as quantity, label, symbol and sentence, if there is one
    least: values up to this have no such frequency
    """

    metric: Metric
    quantity: str
    unit: str
    settle_s: float
    now: str
    mean: str
    usual: tuple[str, ...]
    binaural: bool
    hz: tuple[str, str, str, str] | None = None
    least: float = 0.0


class ECMAReadings(Readings):
    """A metric of ECMA-418-2: the present value, and its mean, maximum and percentiles."""

    kept = (*Readings.kept, "_meters")

    def __init__(self, channels: int, shown: Shown) -> None:
        self._channels, self._shown = channels, shown
        letter, unit = shown.metric.letter, shown.metric.unit
        self._stem = f"ecma_{shown.quantity.removesuffix(' strength')}"
        statistic = rf"mean|max|{letter}(?P<percent>\d\d?)(?:_(?P<window>{WINDOW}))?"
        self._pattern = re.compile(
            rf"{self._stem}(?:_(?P<statistic>{statistic}))?(?P<side>_left|_right)?"
            rf"_(?P<unit>{unit}|hz)"
        )
        sides = ["", *(f"_{side}" for side in SIDES)] if channels == 2 else [""]
        statistics = ["", "_mean", "_max", *(f"_{letter}{p}" for p in PERCENTS)]
        names = [f"{self._stem}{side}_hz" for side in sides]
        names += [f"{self._stem}{what}{side}_{unit}" for what in statistics for side in sides]
        offered = [column for column in map(self.named, names) if column is not None]
        self.headlines = self.of_interval = tuple(f"{self._stem}_{s}_{unit}" for s in shown.usual)
        usual = [column.name for column in offered if not column.counted]
        super().__init__(self._stem, offered, [*usual, *self.headlines])

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
        words += [f"{about} {METHOD}", RENEWED if percent else ""]
        column = Meaning(quantity, *words).column(
            *(name, unit, self._stem, found["side"], found["window"]),
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

    def reset(self) -> None:
        for meter in self._meters:
            meter.reset()

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
        for meter, *now in zip(self._meters, hz, values, strict=True):
            meter.paused = self.paused
            sides.append(np.stack([*now, *meter.update(frames.time_s, now[1], counted)]))
        return np.stack(sides)[*self._places.T].T

    def tail(self, frames: Frames) -> None:
        counted = self.counted(frames, self._shown.settle_s)
        for meter, values in zip(self._meters, self._by_sides(frames), strict=True):
            meter.paused = self.paused
            meter.tail(frames.time_s, np.where(counted, values, np.nan))

    def skip(self, count: int) -> None:
        for meter in self._meters:
            meter.paused = self.paused
            meter.skip(count)

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

    def counted_s(self) -> Summary:
        reading = self._meters[0].reading()
        return {name: reading[name] for name in ("measured_s", "excluded_s")}


def ecma_loudness_readings(channels: int) -> ECMAReadings:
    """Of `ECMALoudness`."""
    shown = Shown(
        LOUDNESS,
        "loudness",
        "sone_HMS",
        1.2,
        "How loud the sound is at this moment; a tone of 1 kHz and 40 dB has 1 sone_HMS.",
        f"{SINGLE}: a mean of all that was counted, in which loud moments weigh more.",
        ("mean", "n5", "max"),
        binaural=True,
    )
    return ECMAReadings(channels, shown)


def ecma_tonality_readings(channels: int) -> ECMAReadings:
    """Of `ECMATonality`."""
    shown = Shown(
        TONALITY,
        "tonality",
        "tu_HMS",
        1.2,
        "How much a tone stands out at this moment: from 0.4 tu_HMS on it is prominent.",
        f"{SINGLE}: the mean of all that was counted above 0.02 tu_HMS.",
        ("mean", "t5", "max"),
        binaural=False,
        hz=(
            "frequency of the strongest tone",
            "Strongest tone",
            "f",
            "The frequency of the tone that stands out most.",
        ),
        least=TONALITY.above,
    )
    return ECMAReadings(channels, shown)


def ecma_roughness_readings(channels: int) -> ECMAReadings:
    """Of `ECMARoughness`."""
    shown = Shown(
        ROUGHNESS,
        "roughness",
        "asper",
        4.5,
        "How rough the sound is at this moment, as fast modulation makes it: from 0.2 asper on it "
        "is prominent.",
        "The mean of all that was counted.",
        ("r10", "max"),
        binaural=True,
        hz=(
            "modulation rate of the roughest band",
            "Modulation rate",
            "f mod",
            "How many times a second the roughest band swells.",
        ),
        least=0.02,
    )
    return ECMAReadings(channels, shown)


def ecma_fluctuation_readings(channels: int) -> ECMAReadings:
    """Of `ECMAFluctuation`."""
    shown = Shown(
        FLUCTUATION,
        "fluctuation strength",
        "vacil_HMS",
        9.5,
        "How much the sound swells and fades at this moment, a few times a second: from 0.2 "
        "vacil_HMS on it is prominent. Provisional.",
        "The mean of all that was counted.",
        ("f10", "max"),
        binaural=True,
    )
    return ECMAReadings(channels, shown)
