"""Readings of the STIPA test signal: STI, modulation transfer and levels of octaves."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.stipa_signal import MODULATIONS, OCTAVES
from amt_stream.meters.accumulators.stipa import (
    SETTLE_S,
    TOTAL,
    Reason,
    StipaMeter,
    StiResult,
    stipa_names,
)
from amt_stream.meters.frames import Fault, Frames
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.models.channel_readings import INSTANT, ChannelReadings, ChannelWords
from amt_stream.meters.rows.readings import CALIBRATED

MEMORY_S = 0.4
"""Of the filters, after a fault."""

METHOD = "By the direct method of IEC 60268-16 (STIPA)."
SPAN = {"": "of the last 25 s", TOTAL: "of all since the last reset"}
CODES = ", ".join(f"{one.value} {one.name.lower().replace('_', ' ')}" for one in Reason if one.name)


def _words(total: str) -> dict[str, ChannelWords]:
    """ChannelWords of the readings of the window, or of all since the last reset."""
    span, statistic = SPAN[total], "overall" if total else INSTANT
    ends = ", overall" if total else ""
    single = {
        "": (
            "speech transmission index",
            "Speech transmission index",
            "STI",
            f"0 is bad, 1 is excellent; {span}. {METHOD}",
        ),
        "_sd": (
            "standard deviation of the STI",
            "Deviation of the STI",
            "",
            f"What chance in the test signal leaves after this time; {span}.",
        ),
        "_s": (
            "time that the STI is of",
            "Time of the STI",
            "",
            f"Sound neither missing nor clipped; {span}. From 15 s on an STI can be valid.",
        ),
        "_valid": (
            "whether the STI is valid",
            "STI is valid",
            "",
            f"1 if there is no reason against it, else 0; {span}.",
        ),
        "_reasons": (
            "reasons why the STI is not valid",
            "Reasons against the STI",
            "",
            f"A sum of {CODES}; {span}.",
        ),
    }
    found = {}
    for part, (quantity, label, symbol, about) in single.items():
        in_seconds = part == "_s"
        found[f"sti{total}{part}"] = ChannelWords(
            f"sti{total}{{side}}_s" if in_seconds else f"sti{total}{part}{{side}}",
            "s" if in_seconds else "",
            quantity,
            statistic,
            label + ends,
            symbol,
            about,
            RENEWED_NOTE,
        )
    bands = {
        "mti": ("modulation transfer index", "MTI", "Mean transmission index of both modulations"),
        "m1": (
            "transfer of the slower modulation",
            "m1",
            "Depth of the slower modulation, of {0:g} Hz, relative to that of the signal",
        ),
        "m2": (
            "transfer of the faster modulation",
            "m2",
            "Depth of the faster modulation, of {1:g} Hz, relative to that of the signal",
        ),
        "leq": ("sound level", "L", "Level of the signal with the noise"),
    }
    for key, (quantity, symbol, about) in bands.items():
        unit, end = ("dB", "_db") if key == "leq" else ("", "")
        for octave, modulations in zip(OCTAVES, MODULATIONS, strict=True):
            hertz = f"{octave} Hz"
            found[f"{key}{total}_{octave}"] = ChannelWords(
                f"{key}{total}_{octave}{{side}}{end}",
                unit,
                f"{quantity} in the octave of {hertz}",
                statistic,
                f"{quantity[0].upper()}{quantity[1:]}, {hertz}{ends}",
                f"{symbol} {octave}",
                f"{about.format(*modulations)}, in the octave of {hertz}; {span}. {METHOD}",
                RENEWED_NOTE,
            )
    return found


RENEWED_NOTE = "renewed every 0.5 s"

NOW = stipa_names()
LEADS = dict.fromkeys(NOW, "sti") | dict.fromkeys(stipa_names(TOTAL), f"sti{TOTAL}")


class StipaReadings(ChannelReadings):
    """STI and its parts: of two channels those of the one with the higher STI, and of each."""

    now, leads, settles_s = NOW, LEADS, MEMORY_S
    unusual = tuple(name for name in stipa_names(TOTAL) if not name.startswith("sti"))
    interval = tuple(f"sti{TOTAL}{part}" for part in ("", "_sd", "_s", "_valid"))

    def __init__(self, channels: int) -> None:
        words = _words("") | _words(TOTAL)
        super().__init__("stipa", channels, words, (f"sti{TOTAL}", f"sti{TOTAL}_sd"))

    def _column(self, model: str, key: str, side: str) -> Column:
        column = super()._column(model, key, side)
        octave = key.rpartition("_")[2]
        return replace(column, band_hz=float(octave)) if octave.isdecimal() else column

    def _meter(self, keys: tuple[str, ...]) -> Any:
        return StipaMeter(keys)

    @property
    def overall(self) -> StiResult | None:
        """Of all since the last reset; of two channels the higher one."""
        found = [one for meter in self._meters if (one := meter.overall) is not None]
        return max(found, key=lambda one: one.sti, default=None)

    @property
    def lost_s(self) -> float:
        """How much of the sound since the last reset was missing or clipped."""
        return max(float(meter.reading()["excluded_s"]) for meter in self._meters)

    def take(self, frames: Frames) -> NDArray[np.float64]:
        counted = self.counted(frames, MEMORY_S) & (frames.time_s > SETTLE_S + 0.05)
        counted &= (frames.fault & Fault.CLIP) == 0
        inside = (frames.time_s > self.from_s) & (frames.time_s <= self.to_s)
        each = []
        for cells, meter in zip(frames.values.cells, self.meters, strict=True):
            meter.calibrated = self.level == CALIBRATED
            each.append(meter.update(cells.astype(np.float64), frames.time_s, counted, inside))
        return self.shown(np.stack(each))
