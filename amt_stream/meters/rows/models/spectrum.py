"""Readings of a narrow-band spectrum: the strongest line, now and over time."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.spectrum import Line, SpectrumMeter, strongest_line
from amt_stream.meters.frames import Frames
from amt_stream.meters.names import NameForm, place_of, sides_of
from amt_stream.meters.rows.column import HIGHEST, Column, Meaning, counting
from amt_stream.meters.rows.readings import MeteredReadings, Summary, fully_heard

UNITS = {"hz": "Hz", "db": "dB"}
QUANTITIES = {
    "hz": "frequency of the strongest line of the spectrum",
    "db": "level of the strongest line of the spectrum, fast (F)",
}
STRONGER = ", of the channel where it is stronger"
STATISTICS = {"peak": "instantaneous", "max": "maximum"}
NAME = NameForm("spectrum_{what}{side}_{unit}", what=STATISTICS, unit=UNITS)
LINE = (
    "The strongest line of the spectrum from 20 Hz to 20 kHz, between the bins of a Fourier "
    "transform too: Hann window of 0.2 s, with a time constant of 125 ms (F)."
)
WORDS = {"peak": ("Strongest line", LINE), "max": ("Strongest line so far", f"{HIGHEST} {LINE}")}
ORDER = [(kind, unit) for kind in ("now", "max") for unit in UNITS.values()]


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
        offered = [
            _column(channels, self._settle_s, what=what, side=side, unit=unit)
            for what in STATISTICS
            for side in self._sides
            for unit in UNITS
        ]
        super().__init__("spectrum", offered, [c.name for c in offered if not c.side])

    def renew(self) -> None:
        places = [(place_of(c.side), ORDER.index((c.kind, c.unit))) for c in self.columns]
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
            NAME.write(what="max", side=side, unit=unit): reading[f"max_{unit}"]
            for side, reading in readings
            for unit in UNITS
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


def _column(channels: int, settle_s: float, what: str, side: str, unit: str) -> Column:
    label, about = WORDS[what]
    meaning = Meaning(QUANTITIES[unit], STATISTICS[what], label, "", about)
    both = STRONGER * (channels == 2)
    name = NAME.write(what=what, side=side, unit=unit)
    column = meaning.column(name, UNITS[unit], "spectrum", side, "", both)
    if what == "max":
        return counting(replace(column, of="line", kind="max"), settle_s)
    return replace(column, of="line", kind="now", settle_s=settle_s)
