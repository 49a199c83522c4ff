"""Readings of sound level, of each channel and of the louder one."""

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from amt_stream.frames import Frames
from amt_stream.metering import SoundLevelMeter
from amt_stream.metering.percentiles import PERCENTS
from amt_stream.metering.rolling import level_db
from amt_stream.metering.sound_level import (
    FORGOTTEN,
    FRAME_S,
    LEVELS,
    LOWEST,
    MEMORY_S,
    SETTLED,
)
from amt_stream.metering.window import WINDOW
from amt_stream.rows.column import RENEWED, Column, counting
from amt_stream.rows.readings import SIDES, Readings, Summary, by_side, heard, higher, of_side

NAME = re.compile(
    rf"(?P<what>l(?:[acz](?:f|s|i|eq|e|peak)(?:max|min)?|(?P<percent>\d\d?))"
    rf"(?:_(?P<window>{WINDOW}))?)(?P<side>_left|_right)?_db"
)
TIMED = {"f": "fast (F)", "s": "slow (S)", "i": "impulse (I)"}
USUAL = ("laeq_1s", "laeq", "lcpeak", "lafmax", "l10", "l50", "l90")


class SoundLevelReadings(Readings):
    """Sound levels: the higher of two channels, which stands for both, and each of them.

    A level that rises with a time constant is in no statistic for the first five of these, of F for
    0.63 s and of S for 5 s, and after a fault for longer (`SoundLevelMeter`); equivalent levels,
    exposure and peak count from the beginning. With `cover(0.0)` the sound truly comes after
    silence, and all levels count.
    """

    kept = (*Readings.kept, "_meters")

    headlines = ("laeq_db", "lafmax_db", "lcpeak_db", "l10_db", "l50_db", "l90_db")
    short_s = FRAME_S * float(SETTLED[LEVELS.index("laf"), 0])

    def __init__(self, channels: int) -> None:
        self._channels = channels
        sides = ["", *(f"_{side}" for side in SIDES)] if channels == 2 else [""]
        names = [
            *LEVELS,
            *("laeq_1s", "laeq", "lceq", "lzeq", "lae", "lcpeak"),
            *(f"{level}max" for level in LEVELS),
            *(f"{level}min" for level in LEVELS[:LOWEST]),
            *(f"l{p}" for p in PERCENTS),
        ]
        offered = [_column(f"{name}{side}_db", channels) for name in names for side in sides]
        usual = [f"{name}_db" for name in LEVELS]
        usual += [f"laf{side}_db" for side in sides[1:]]
        usual += [f"{name}_db" for name in USUAL]
        super().__init__("spl", offered, usual)

    @property
    def burst(self) -> bool:
        """Whether the sound comes after silence, so that its levels are right from the first on."""
        return self.from_s is not None and self.from_s <= 0

    @property
    def without(self) -> str:
        rise = "" if self.burst else ", and of time-weighted levels their first 5 time constants"
        return super().without + rise

    def named(self, name: str) -> Column | None:
        found = NAME.fullmatch(name)
        if found is None or (found["side"] and self._channels < 2):
            return None
        windowed = found["percent"] or re.fullmatch(r"l[acz]eq", found["what"].partition("_")[0])
        if not windowed or not (found["percent"] or found["window"]):
            return None
        return _column(name, self._channels)

    def renew(self) -> None:
        self._parts = []
        wanted: dict[str, None] = {}
        for column in self.columns:
            found = NAME.fullmatch(column.name)
            assert found is not None
            if found["what"] not in LEVELS:
                wanted[f"{found['what']}_db"] = None
            self._parts.append((found["what"], found["side"]))
        self._meters = [SoundLevelMeter(list(wanted), self.burst) for _ in range(self._channels)]

    def reset(self) -> None:
        for meter in self._meters:
            meter.reset()

    def take(self, frames: Frames) -> NDArray[np.float64]:
        counted = self.counted(frames, MEMORY_S)
        now = level_db(np.where(heard(frames), frames.values.power, np.nan))
        each = {level: [channel[k] for channel in now] for k, level in enumerate(LEVELS)}
        for meter, *values in zip(self._meters, *frames.values, strict=True):
            meter.paused = self.paused
            told = meter.update(*values, counted, frames.since_s)
            for name, column in zip(meter.columns, told, strict=True):
                each.setdefault(name.removesuffix("_db"), []).append(column)
        found = [of_side(each[what], side) for what, side in self._parts]
        return self.stacked(found, frames)

    def skip(self, count: int) -> None:
        for meter in self._meters:
            meter.paused = self.paused
            meter.skip(count)

    def summary(self) -> Summary:
        readings = [meter.reading() for meter in self._meters]
        told: Summary = {}
        for name in readings[0]:
            stem = name.removesuffix("_db")
            if name.endswith("_s") or stem in LEVELS:
                continue
            for side, value in by_side([reading[name] for reading in readings]):
                told[f"{stem}{side}_db"] = value
        return told

    def counted_s(self) -> Summary:
        reading = self._meters[0].reading()
        return {name: reading[name] for name in ("measured_s", "excluded_s")}


def _column(name: str, channels: int) -> Column:
    found = NAME.fullmatch(name)
    assert found is not None
    quantity, statistic, note = _meaning(found["what"].partition("_")[0])
    if found["window"]:
        statistic = f"{statistic}, last {found['window']}"
    side = found["side"]
    quantity += f", {side[1:]} channel" if side else higher(channels)
    column = Column(name, "dB", quantity, "spl", statistic, note)
    if found["what"] in LEVELS:
        return replace(column, settle_s=_forgotten_s(found["what"]))
    settle_s = _forgotten_s("laf") if found["percent"] else MEMORY_S
    return counting(column, settle_s, found["window"])


def _forgotten_s(level: str) -> float:
    return round(float(FORGOTTEN[LEVELS.index(level), 0]) * FRAME_S, 2)


def _meaning(name: str) -> tuple[str, str, str]:
    """Quantity, statistic and note of a level by its name, as of `laf` or `l10`."""
    if name[1:].isdigit():
        return "A-weighted sound level, fast (F)", f"exceeded {name[1:]} % of the time", RENEWED
    weighted = f"{name[1].upper()}-weighted"
    if name[2:] == "eq":
        return f"equivalent continuous {weighted} sound pressure level", "equivalent", ""
    if name[2:] == "e":
        return f"{weighted} sound exposure level", "exposure", ""
    if name[2:] == "peak":
        return f"{weighted} peak sound pressure level", "maximum", ""
    statistic = {"max": "maximum", "min": "minimum"}.get(name[3:], "instantaneous")
    return f"{weighted} sound level, {TIMED[name[2]]}", statistic, ""
