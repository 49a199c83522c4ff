"""Readings of sound level, of each channel and of the higher one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters import level_names
from amt_stream.meters.accumulators import SoundLevelMeter, loops
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.accumulators.level_memory import SHORTEST_S, LevelMemory
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.meters.accumulators.sound_level import (
    DIFFERENCES,
    INTERVALS_S,
    LEVELS,
    MEMORY_S,
    RISE_S,
)
from amt_stream.meters.audience import Audience
from amt_stream.meters.frames import Frames
from amt_stream.meters.names import place_of, sides_of
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.models.level_columns import level_column
from amt_stream.meters.rows.readings import (
    Earlier,
    MeteredReadings,
    Summary,
    by_side,
    by_sides,
    fully_heard,
)

LOWER = {"allowed": np.minimum, "until": np.fmin}
"""Of two channels, the lower value of these is decisive."""

USUAL = ("laeq_1s", "laeq", "lcpeak", "lafmax", "l10", "l50", "l90")
OF_AUDIENCE = ("laf", "laeq", "lcpeak")
"""Levels that are usual in the audience too, if there is a correction for it."""


class SoundLevelReadings(MeteredReadings):
    """Sound levels: the higher one of two channels, and each of them.

    A level rises with its time constant and settles after a fault (`SoundLevelMeter`); equivalent
    levels, exposure and peak do not.
    """

    headlines = ("laeq_db", "lafmax_db", "lcpeak_db", "l10_db", "l50_db", "l90_db")
    of_interval = ("laeq_db", "lafmax_db", "lafmin_db", "l10_db", "l50_db", "l90_db", "lcpeak_db")
    rise_s: ClassVar[Mapping[str, float]] = {
        level[-1].upper(): float(RISE_S[LEVELS.index(level)]) for level in ("laf", "las")
    }

    def __init__(self, channels: int, audience: Audience | None = None) -> None:
        self._channels, self._audience = channels, audience
        sides = sides_of(channels)
        names = [
            *LEVELS,
            *("laeq_1s", "laeq", "lceq", "lzeq", "lae", "lcpeak", "lapeak", "lzpeak"),
            *("laieq", "lcieq", "lzieq", *(f"laft{seconds}eq" for seconds in INTERVALS_S)),
            *(name.removesuffix("_db") for name in DIFFERENCES),
            *(f"{level}max" for level in LEVELS),
            *(f"{level}min" for level in LEVELS),
            *(f"l{p}" for p in PERCENTS),
            *(f"{level}{p}" for level in LEVELS[1:] for p in PERCENTS),
        ]
        names.insert(names.index("lcpeak"), level_names.EXPOSURE)
        offered = [self._column(_of_side(f"{name}_db", side)) for name in names for side in sides]
        far = () if audience is None else OF_AUDIENCE
        in_place = [f"{name}_audience_db" for name in far]
        offered += [self._column(_of_side(name, side)) for name in in_place for side in sides]
        usual = [f"{name}_db" for name in LEVELS[:7]]
        usual += [_of_side("laf_db", side) for side in sides[1:]]
        usual += [*(f"{name}_db" for name in USUAL), *in_place]
        super().__init__("spl", offered, usual)

    def named(self, name: str) -> Column | None:
        one = level_names.read_level(name)
        if one is None or (one.part("side") and self._channels < 2):
            return None
        if one.part("place") and self._audience is None:
            return None
        return self._column(name)

    def _column(self, name: str) -> Column:
        """A column, with its correction if it is of the audience."""
        column, one = level_column(name, self._channels), _read(name)
        if not one.part("place") or one.kind == "until":
            return column
        correction = f"the level at the microphone {self._correction(one):+g} dB"
        return replace(column, note="; ".join(filter(None, (column.note, correction))))

    def _correction(self, one: level_names.LevelName) -> float:
        """What a column in the audience is above that at the microphone, in dB."""
        if self._audience is None or not one.part("place"):
            return 0.0
        level = one.level_ahead if one.kind in level_names.AHEAD else one
        return self._audience.of(level.weighting)

    def renew(self) -> None:
        more_db, names = [], []
        for column in self.columns:
            one = _read(column.name)
            name, correction = one.plain, self._correction(one)
            if one.kind in level_names.AHEAD and correction:
                # A limit in the audience is this limit less the correction at the microphone.
                limit_db = float(one.part("limit").replace("p", ".")) - correction
                ahead = level_names.forecasts(one.part("of"), limit_db)
                name = ahead[level_names.AHEAD.index(one.kind)]
            more_db.append(0.0 if one.kind == "until" else correction)
            names.append(name)
        now = {f"{level}_db" for level in LEVELS}
        columns = [name for name in dict.fromkeys(names) if name not in now]
        self._meters = [SoundLevelMeter(columns) for _ in range(self._channels)]
        self._more_db = np.array(more_db, np.float64)
        # Indices of each column: side, and place in the tables of the meters.
        rows = [self._meters[0].places[name] for name in names]
        parts = [(place_of(c.side), row) for c, row in zip(self.columns, rows, strict=True)]
        self._places = np.array(parts, np.int64).reshape(-1, 2).T.copy()
        # Columns and their places for which the lower of the two channels decides.
        self._lower = [
            (k, rows[k], LOWER[column.kind])
            for k, column in enumerate(self.columns)
            if column.kind in LOWER and not column.side and self._channels == 2
        ]

    def remember(self) -> None:
        for meter in self._meters:
            meter.memory = LevelMemory(len(level_names.WEIGHTINGS))

    def earlier(self, column: Column) -> Earlier:
        memory, window_s = self._meters[0].memory, column.window_s
        remembered = window_s >= SHORTEST_S and memory is not None
        if remembered and column.kind == "eq":
            return Earlier(heard_s=memory.heard_s(window_s), holes=memory.missed(window_s))
        # Doses, and percentiles of other levels than A-weighted F, are counted only if chosen.
        exceeds = column.kind == "exceeded" and column.of != LEVELS[0]
        asks = exceeds or column.kind in ("dose", "twa")
        return Earlier() if asks and not self.has(column) else super().earlier(column)

    def take(self, frames: Frames) -> NDArray[np.float64]:
        counted, there, meters = self.counted(frames, MEMORY_S), fully_heard(frames), self.meters
        count, rows = len(frames), meters[0].rows
        given = counted, there, frames.since_s, frames.begin_s
        powers = np.empty((len(meters), meters[0].told, count))
        for out, meter, *values in zip(powers, meters, *frames.values, strict=True):
            meter.measure(values, *given, out)
        channels = np.empty((len(meters), len(meters[0].places), count))
        channels[:, : len(rows)] = level_db(powers.take(rows, axis=1))
        for meter, *both in zip(meters, powers, channels, strict=True):
            meter.follow(*both)
        found = np.empty((count, len(self.columns)))
        loops.arrange(channels, *self._places, self._more_db, found)
        for column, place, lower in self._lower:
            found[:, column] = lower(*channels[:, place]) + self._more_db[column]
        return found

    def ranges(self, frames: Frames, taken: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.stack([taken, taken])
        side, what = self._places
        (levels,) = np.nonzero(what < len(LEVELS))
        for both, power in zip(found, (frames.values.lowest, frames.values.highest), strict=True):
            levels_db = by_sides([*level_db(np.where(fully_heard(frames), power, np.nan))])
            both[:, levels] = levels_db[side[levels], what[levels]].T + self._more_db[levels]
        return found

    def tail(self, frames: Frames) -> None:
        counted = self.counted(frames, MEMORY_S)
        shares = self.shares(frames, counted)
        for meter, *values in zip(self.meters, *frames.values, strict=True):
            meter.tail(values, counted, shares, frames.since_s, frames.part)

    def summary(self) -> Summary:
        readings = [meter.reading() for meter in self._meters]
        summary: Summary = {}
        for name in readings[0]:
            one = level_names.read_level(name)
            if one is None or one.kind in ("now", "until"):
                continue
            for side, value in by_side([reading[name] for reading in readings]):
                summary[one.with_parts(side=side)] = value
        for column, more_db in zip(self.columns, self._more_db.tolist(), strict=True):
            one = _read(column.name)
            value = summary.get(one.with_parts(place=""))
            if one.part("place") and value is not None:
                summary[column.name] = value + more_db
        return summary


def _read(name: str) -> level_names.LevelName:
    """What a name of a column of sound levels says."""
    one = level_names.read_level(name)
    assert one is not None
    return one


def _of_side(name: str, side: str) -> str:
    """The name of a level of one side."""
    return _read(name).with_parts(side=side)
