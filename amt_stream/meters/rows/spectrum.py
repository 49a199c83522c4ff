"""Readings of a narrow-band spectrum: the strongest line, now and over time."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.spectrum import COLUMNS, Line, SpectrumMeter, strongest_line
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows.column import HIGHEST, Column, Meaning, counting
from amt_stream.meters.rows.readings import (
    MeteredReadings,
    Summary,
    fully_heard,
    place_of,
    sides_of,
)

NAME = re.compile(r"spectrum_(?P<what>peak|max)(?P<side>_left|_right)?_(?P<unit>hz|db)")
UNITS = {"hz": "Hz", "db": "dB"}
QUANTITIES = {
    "hz": "frequency of the strongest line of the spectrum",
    "db": "level of the strongest line of the spectrum, fast (F)",
}
STRONGER = ", of the channel where it is stronger"
STATISTICS = {"peak": "instantaneous", "max": "maximum"}
LINE = (
    "The strongest line of the spectrum from 20 Hz to 20 kHz, between the bins of a Fourier "
    "transform too: Hann window of 0.2 s, with a time constant of 125 ms (F)."
)
WORDS = {
    "peak": ("Strongest line", LINE),
    "max": ("Strongest line so far", f"{HIGHEST} {LINE}"),
}
ORDER = [f"{what}_{unit}" for what in STATISTICS for unit in UNITS]


class SpectrumReadings(MeteredReadings):
    """The strongest instantaneous line, and its maximum over time.

    For two channels, the higher line of both, and that of each.

    model: the `NarrowBandSpectrum` with the bins; by default those of 48 kHz
    """

    headlines = of_interval = ("spectrum_max_hz", "spectrum_max_db")

    def __init__(self, channels: int, model: Any = None) -> None:
        self._bin_hz = 48_000 / 8192 if model is None else float(model.bin_hz)
        self._frame_rate = 25.0 if model is None else float(model.frame_rate)
        # The window, and 16 time constants of F: 1 % remains of a power 50 dB higher.
        self._settle_s = round(1 / self._bin_hz + 2.0, 2)
        self._sides = sides_of(channels)
        names = [f"spectrum_{w}{s}_{u}" for w in STATISTICS for s in self._sides for u in UNITS]
        offered = [_column(name, channels, self._settle_s) for name in names]
        super().__init__("spectrum", offered, [f"spectrum_{name}" for name in ORDER])

    def renew(self) -> None:
        found = [NAME.fullmatch(column.name) for column in self.columns]
        places = [
            (place_of(one["side"]), ORDER.index(f"{one['what']}_{one['unit']}"))
            for one in found
            if one is not None
        ]
        self._places = np.array(places, np.int64).reshape(-1, 2).T
        self._meters = [SpectrumMeter(self._frame_rate) for _ in self._sides]

    def take(self, frames: Frames) -> NDArray[np.float64]:
        counted, there = self.counted(frames, self._settle_s), fully_heard(frames)
        channels = []
        lines = _by_sides(strongest_line(frames.values.level_db, self._bin_hz))
        for meter, line in zip(self.meters, lines, strict=True):
            hz, level_db = (np.where(there, values, np.nan) for values in line)
            channels.append(np.stack([hz, level_db, *meter.update(hz, level_db, counted)]))
        return np.stack(channels)[*self._places].T

    def tail(self, frames: Frames) -> None:
        shares = self.shares(frames, self.counted(frames, self._settle_s))
        lines = _by_sides(strongest_line(frames.values.level_db, self._bin_hz))
        for meter, line in zip(self.meters, lines, strict=True):
            meter.tail(*line, shares, frames.part)

    def summary(self) -> Summary:
        readings = zip(self._sides, (meter.reading() for meter in self._meters), strict=True)
        return {
            f"spectrum_max{side}_{name.removeprefix('max_')}": reading[name]
            for side, reading in readings
            for name in COLUMNS
        }


def _by_sides(lines: Line) -> list[Line]:
    """Lines (channel, n) of one channel; for two, the higher ones and then those of each."""
    each = [Line(*of) for of in zip(*lines, strict=True)]
    if len(each) == 1:
        return each
    left, right = each
    from_right = (right.level_db > left.level_db) | np.isnan(left.level_db)
    return [
        Line(*(np.where(from_right, high, low) for low, high in zip(left, right, strict=True))),
        *each,
    ]


def _column(name: str, channels: int, settle_s: float) -> Column:
    found = NAME.fullmatch(name)
    assert found is not None
    what, unit = found["what"], found["unit"]
    label, about = WORDS[what]
    meaning = Meaning(QUANTITIES[unit], STATISTICS[what], label, "", about)
    both = STRONGER * (channels == 2)
    column = meaning.column(name, UNITS[unit], "spectrum", found["side"], None, both)
    if what == "max":
        return counting(column, settle_s)
    return replace(column, settle_s=settle_s)
