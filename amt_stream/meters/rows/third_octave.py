"""Readings of octaves and third octaves, of each channel and of the higher one."""

import re
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.design import nominal_midband, octave_midbands
from amt_stream.meters.accumulators import ThirdOctaveMeter
from amt_stream.meters.accumulators.third_octave import LEVELS, NAME, band_name, forgotten_s
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows.column import HIGHEST, TIMES, Column, Meaning, counting
from amt_stream.meters.rows.readings import (
    MeteredReadings,
    Summary,
    by_side,
    by_sides,
    higher,
    place_of,
    sides_of,
)

SIDED = re.compile(r"(?P<stem>.*?)(?P<side>_left|_right)?_db")
NORM = "IEC 61260-1."
TIMED = {"f": "fast (F)", "s": "slow (S)"}
WHATS = (*LEVELS, "lzeq", *(f"{level}max" for level in LEVELS))


class ThirdOctaveReadings(MeteredReadings):
    """Levels in third octaves: the higher of two channels in each band, and each of them.

    model: the `ThirdOctaves` with the bands; by default those from 6.3 Hz to 20 kHz
    """

    of_interval: tuple[str, ...] = ("lzeq_*hz_db",)

    called, fraction = "third octave", 3
    """Name of a band, and its fraction of an octave."""

    before = ""
    """Prefix of the columns' names."""

    range_hz: ClassVar[tuple[float, float]] = (6.3, 20_000.0)

    def __init__(self, channels: int, model: Any = None) -> None:
        self._channels = channels
        bands = map(nominal_midband, octave_midbands(*self.range_hz, self.fraction))
        self._nominal = tuple(bands if model is None else model.nominal)
        self._hz = {band_name(f): f for f in self._nominal}
        memory, timed = (
            np.round(v, 2) for v in forgotten_s(np.array(self._nominal), self.fraction)
        )
        self._forgotten = dict(zip(self._nominal, zip(memory, timed.T, strict=True), strict=True))
        sides = sides_of(channels)
        whats = [f"{self.before}{what}" for what in WHATS]
        names = [f"{what}_{band}{side}_db" for what in whats for band in self._hz for side in sides]
        offered = [column for column in map(self.named, names) if column is not None]
        usual = [f"{self.before}lzf_{band}_db" for band in self._hz]
        super().__init__(self.called.replace(" ", "_"), offered, usual)

    def named(self, name: str) -> Column | None:
        sided = SIDED.fullmatch(name.removeprefix(self.before))
        found = sided and NAME.fullmatch(f"{sided['stem']}_db")
        if not (name.startswith(self.before) and sided and found) or found["band"] not in self._hz:
            return None
        if (sided["side"] and self._channels < 2) or (found["window"] and found["what"] != "lzeq"):
            return None
        column = self._column(name, found, sided["side"])
        return replace(column, band_hz=self._hz[found["band"]])

    def renew(self) -> None:
        names = [column.name.removeprefix(self.before) for column in self.columns]
        sided = [SIDED.fullmatch(name) for name in names]
        parts = [(f"{one['stem']}_db", place_of(one["side"])) for one in sided if one]
        columns = list(dict.fromkeys(name for name, _ in parts))
        places = [(side, columns.index(name)) for name, side in parts]
        # Indices of each column: side, and column of the meters.
        self._places = np.array(places, np.int64).reshape(-1, 2).T
        self._meters = [
            ThirdOctaveMeter(self._nominal, columns, self.fraction) for _ in range(self._channels)
        ]

    def take(self, frames: Frames) -> NDArray[np.float64]:
        counted = self.counted(frames, 0.0)
        channels = []
        for meter, *values in zip(self.meters, *frames.values, strict=True):
            channels.append(meter.update(*values, counted, frames.since_s))
        return by_sides(channels)[*self._places].T

    def tail(self, frames: Frames) -> None:
        shares = self.shares(frames, self.counted(frames, 0.0))
        for meter, *values in zip(self.meters, *frames.values, strict=True):
            meter.tail(*values, shares, frames.since_s, frames.part)

    def summary(self) -> Summary:
        readings = [meter.reading() for meter in self._meters]
        summary: Summary = {}
        for name in readings[0]:
            if name.endswith("_s") or name.startswith(tuple(f"{level}_" for level in LEVELS)):
                continue
            for side, value in by_side([reading[name] for reading in readings]):
                summary[f"{self.before}{name.removesuffix('_db')}{side}_db"] = value
        return summary

    def _column(self, name: str, found: re.Match[str], side: str | None) -> Column:
        what, hz = found["what"], self._hz[found["band"]]
        place = f" in the {self.called} of {hz:g} Hz"
        hertz = f"{hz / 1000:g} kHz" if hz >= 1000 else f"{hz:g} Hz"
        label = f"{'Octave ' if self.before else ''}{hertz}"
        memory, timed = self._forgotten[hz]
        given = name, "dB", self.called.replace(" ", "_"), side, found["window"]
        both = higher(self._channels)
        if what == "lzeq":
            about = (
                f"The steady level with the same energy, of the {self.called} at {hertz}. {NORM}"
            )
            quantity = f"equivalent continuous sound pressure level{place}"
            words = f"{label}, average", f"LZeq {hertz}", about
            column = Meaning(quantity, "equivalent", *words).column(*given, both)
            return counting(column, float(memory), found["window"])
        quantity = f"sound pressure level, {TIMED[what[2]]}{place}"
        settle_s = float(timed[LEVELS.index(what[:3])])
        time, smoothed = TIMES[what[2]]
        about = f"Level of the {self.called} at {hertz}, {smoothed}. {NORM}"
        symbol = f"LZ{what[2].upper()}"
        if what.endswith("max"):
            words = f"{label}, highest, {time}", f"{symbol}max {hertz}", f"{HIGHEST} {about}"
            return counting(Meaning(quantity, "maximum", *words).column(*given, both), settle_s)
        words = f"{label}, {time}", f"{symbol} {hertz}", about
        column = Meaning(quantity, "instantaneous", *words).column(*given, both)
        return replace(column, settle_s=settle_s)


class OctaveReadings(ThirdOctaveReadings):
    """Levels in octaves: the higher of two channels in each band, and each of them.

    model: the `Octaves` with the bands; by default those from 8 Hz to 16 kHz
    """

    of_interval = ("octave_lzeq_*hz_db",)
    called, fraction, before = "octave", 1, "octave_"
    range_hz = (8.0, 16_000.0)
