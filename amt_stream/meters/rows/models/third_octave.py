"""Readings of octaves and third octaves, of each channel and of the higher one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.words import frequency_text
from amt_stream.dsp.design import band_name, nominal_midband, octave_midbands
from amt_stream.meters.accumulators import ThirdOctaveMeter
from amt_stream.meters.accumulators.third_octave import BAND, LEVELS, NAME, WHATS, forgotten_s
from amt_stream.meters.frames import Frames
from amt_stream.meters.names import NameForm, place_of, sides_of
from amt_stream.meters.rows.column import HIGHEST, TIMES, Column, Meaning, counting
from amt_stream.meters.rows.readings import MeteredReadings, Summary, by_side, by_sides, higher

NORM = "IEC 61260-1."
TIMED = {"f": "fast (F)", "s": "slow (S)"}


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
        self._form = NameForm(
            f"{self.before}{{what}}_{{band}}{{window}}{{side}}_db", what=WHATS, band=BAND
        )
        offered = [
            self._column({"what": what, "band": band, "side": side, "window": ""})
            for what in WHATS
            for band in self._hz
            for side in sides_of(channels)
        ]
        usual = [self._form.write(what="lzf", band=band) for band in self._hz]
        super().__init__(self.called.replace(" ", "_"), offered, usual)

    def named(self, name: str) -> Column | None:
        parts = self._form.read(name)
        if parts is None or parts["band"] not in self._hz:
            return None
        if (parts["side"] and self._channels < 2) or (parts["window"] and parts["what"] != "lzeq"):
            return None
        return self._column(parts)

    def renew(self) -> None:
        names = [
            NAME.write(
                what=c.of + ("max" if c.kind == "max" else ""),
                band=band_name(c.band_hz),
                window=c.window,
            )
            for c in self.columns
        ]
        columns = list(dict.fromkeys(names))
        places = [
            (place_of(column.side), columns.index(name))
            for column, name in zip(self.columns, names, strict=True)
        ]
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
            parts = NAME.read(name)
            if parts is None or parts["what"] in LEVELS:
                continue
            for side, value in by_side([reading[name] for reading in readings]):
                summary[self._form.write(**parts, side=side)] = value
        return summary

    def _column(self, parts: Mapping[str, str]) -> Column:
        what, hz, window = parts["what"], self._hz[parts["band"]], parts["window"]
        place = f" in the {self.called} of {hz:g} Hz"
        hertz = frequency_text(hz)
        label = f"{'Octave ' if self.before else ''}{hertz}"
        memory, timed = self._forgotten[hz]
        given = self._form.write(**parts), "dB", self.called.replace(" ", "_"), parts["side"]

        def column(of: str, kind: str, *words: str) -> Column:
            made = Meaning(*words).column(*given, window, higher(self._channels))
            return replace(made, band_hz=hz, of=of, kind=kind)

        if what == "lzeq":
            about = (
                f"The steady level with the same energy, of the {self.called} at {hertz}. {NORM}"
            )
            quantity = f"equivalent continuous sound pressure level{place}"
            words = quantity, "equivalent", f"{label}, average", f"LZeq {hertz}", about
            return counting(column(what, "eq", *words), float(memory), window)
        level, kind = what[:3], what[3:] or "now"
        quantity = f"sound pressure level, {TIMED[level[2]]}{place}"
        settle_s = float(timed[LEVELS.index(level)])
        time, smoothed = TIMES[level[2]]
        about = f"Level of the {self.called} at {hertz}, {smoothed}. {NORM}"
        symbol = f"LZ{level[2].upper()}"
        if kind == "max":
            about = f"{HIGHEST} {about}"
            words = quantity, "maximum", f"{label}, highest, {time}", f"{symbol}max {hertz}", about
            return counting(column(level, kind, *words), settle_s)
        words = quantity, "instantaneous", f"{label}, {time}", f"{symbol} {hertz}", about
        return replace(column(level, kind, *words), settle_s=settle_s)


class OctaveReadings(ThirdOctaveReadings):
    """Levels in octaves: the higher of two channels in each band, and each of them.

    model: the `Octaves` with the bands; by default those from 8 Hz to 16 kHz
    """

    of_interval = ("octave_lzeq_*hz_db",)
    called, fraction, before = "octave", 1, "octave_"
    range_hz = (8.0, 16_000.0)
