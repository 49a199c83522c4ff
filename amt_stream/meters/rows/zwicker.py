"""Readings of Zwicker's loudness and sharpness, of each channel and of the higher one."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.scales import zwicker_phon
from amt_stream.meters.accumulators import ZwickerMeter
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.meters.accumulators.window import WINDOW
from amt_stream.meters.accumulators.zwicker import RISE_S
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows.annoyance import annoyance_column
from amt_stream.meters.rows.column import (
    EXCEEDED,
    HIGHEST,
    QUANTITIES,
    RENEWED,
    Column,
    Meaning,
    counting,
    rising,
)
from amt_stream.meters.rows.readings import (
    Earlier,
    MeteredReadings,
    Summary,
    by_side,
    by_sides,
    higher,
    place_of,
    sides_of,
)
from amt_stream.meters.rows.sharpness import STATISTICS, STEMS, Sharpnesses, sharpness_column

NAME = re.compile(
    rf"zwicker_n(?P<statistic>max|(?P<percent>\d\d?)(?:_(?P<window>{WINDOW}))?)?"
    r"(?P<side>_left|_right)?_(?P<unit>sone|phon)"
)

METHOD = "By the method of ISO 532-1 for sounds that vary in time."

SETTLE_S = 1.5
"""Seconds after a fault until a loudness level that has fallen by 50 dB is within 0.05 phon: 0.7 s,
of a tone of 25 Hz, whose filter rings, 1.2 s."""


class ZwickerReadings(MeteredReadings):
    """Zwicker's loudness: the higher one of two channels, and each of them.

    Sharpness is computed and in the summary only if it has a column.
    """

    kept = (*MeteredReadings.kept, "_sharpness")

    rise_s: ClassVar[Mapping[str, float]] = {"loudness": RISE_S, "sharpness": RISE_S}

    headlines = ("zwicker_nmax_sone", "zwicker_n5_sone", "zwicker_n5_phon", "zwicker_n50_sone")
    of_interval = (*headlines, "zwicker_n10_sone", "zwicker_n90_sone")

    def __init__(self, channels: int) -> None:
        self._channels = channels
        sides = sides_of(channels)
        statistics = ["", "max", *map(str, PERCENTS)]
        names = [
            f"zwicker_n{what}{side}_{unit}"
            for what in statistics
            for side in sides
            for unit in QUANTITIES
        ]
        usual = [*names[: 2 * len(sides)], "zwicker_nmax_sone", "zwicker_n5_sone"]
        names += [f"{s}{what}{side}_acum" for s in STEMS for what in STATISTICS for side in sides]
        offered = [column for column in map(self.named, names) if column is not None]
        super().__init__("zwicker", offered, usual)

    def named(self, name: str) -> Column | None:
        found = NAME.fullmatch(name)
        if found is None:
            sharpness = sharpness_column(name, self._channels, SETTLE_S)
            return sharpness or annoyance_column(name, self._channels)
        if found["side"] and self._channels < 2:
            return None
        return _column(name, self._channels)

    def renew(self) -> None:
        # Loudness itself is first.
        names, parts, others = [""], [], {}
        for place, column in enumerate(self.columns):
            found = NAME.fullmatch(column.name)
            if column.needs:
                continue
            if found is None:
                others[column.name] = place
                continue
            statistic = found["statistic"] or ""
            if statistic not in names:
                names.append(statistic)
            parts.append((place, place_of(found["side"]), names.index(statistic)))
        # Columns of loudness with their indices: side and statistic.
        self._columns_of_n, *self._places = np.array(parts, np.int64).reshape(-1, 3).T
        self._in_phon = np.array([self.columns[k].unit == "phon" for k, *_ in parts], np.bool_)
        columns = [f"n{statistic}_sone" for statistic in names[1:]]
        self._meters = [ZwickerMeter(columns) for _ in range(self._channels)]
        self._others, self._sharpness = others, Sharpnesses(list(others), self._channels)

    def earlier(self, column: Column) -> Earlier:
        counted = column.needs or NAME.fullmatch(column.name) or self._sharpness.has(column.name)
        return super().earlier(column) if counted or self.has(column) else Earlier()

    def reset(self) -> None:
        super().reset()
        self._sharpness.reset()

    def take(self, frames: Frames) -> NDArray[np.float64]:
        counted = self.counted(frames, SETTLE_S)
        channels = []
        for meter, sone in zip(self.meters, frames.values.n, strict=True):
            channels.append(
                np.concatenate([sone[None], meter.update(frames.time_s, sone, counted)])
            )
        loudness = by_sides(channels)[*self._places]
        loudness[self._in_phon] = zwicker_phon(loudness[self._in_phon])
        if len(loudness) == len(self.columns):
            return loudness.T
        # Annoyance, which needs other models too, is of `JoinedRows`.
        found = np.full((len(frames), len(self.columns)), np.nan)
        found[:, self._columns_of_n] = loudness.T
        self._sharpness.pause(self.paused)
        sharpness = self._sharpness.take(frames.time_s, frames.values.core, counted)
        for name, place in self._others.items():
            found[:, place] = sharpness[name]
        return found

    def tail(self, frames: Frames) -> None:
        counted = self.counted(frames, SETTLE_S)
        for meter, sone in zip(self.meters, frames.values.n, strict=True):
            meter.tail(frames.time_s, np.where(counted, sone, np.nan))
        self._sharpness.pause(self.paused)
        self._sharpness.tail(frames.time_s, frames.values.core, counted)

    def skip(self, count: int) -> None:
        super().skip(count)
        self._sharpness.pause(self.paused)
        self._sharpness.skip(count)

    def summary(self) -> Summary:
        summary: Summary = {}
        readings = [meter.reading() for meter in self._meters]
        for name in readings[0]:
            if not name.endswith("_sone"):
                continue
            for side, value in by_side([reading[name] for reading in readings]):
                stem = f"zwicker_{name.removesuffix('_sone')}{side}"
                summary[f"{stem}_sone"] = value
                summary[f"{stem}_phon"] = None if value is None else float(zwicker_phon(value))
        return summary | self._sharpness.summary()


def _column(name: str, channels: int) -> Column:
    found = NAME.fullmatch(name)
    assert found is not None
    unit, percent = found["unit"], found["percent"]
    if found["statistic"] == "max":
        words = "maximum", "Highest loudness", "Nmax", f"{HIGHEST} {METHOD}"
    elif percent:
        about = f"{EXCEEDED.format(percent=percent)} {METHOD}"
        label = f"Exceeded {percent} % of time"
        words = f"exceeded {percent} % of the time", label, f"N{percent}", about
    else:
        about = f"How loud the sound is at this moment: low-passes of 3.5 ms and 70 ms. {METHOD}"
        words = "instantaneous", QUANTITIES[unit].capitalize(), "N", about
    meaning = Meaning(QUANTITIES[unit], *words, RENEWED if percent else "")
    given = name, unit, "zwicker", found["side"], found["window"], higher(channels)
    column = rising(replace(meaning.column(*given), settle_s=SETTLE_S), RISE_S)
    return counting(column, SETTLE_S, found["window"]) if found["statistic"] else column
