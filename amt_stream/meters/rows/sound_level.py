"""Readings of sound level, of each channel and of the higher one."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators import SoundLevelMeter
from amt_stream.meters.accumulators.dose import DOSE, Dose
from amt_stream.meters.accumulators.forecast import EXPOSURE, LEVEL, forecasts
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.accumulators.level_memory import SHORTEST_S, LevelMemory
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.meters.accumulators.sound_level import (
    DIFFERENCES,
    FORGOTTEN,
    FRAME_S,
    INTERVALS_S,
    LEVELS,
    MEMORY_S,
    RISE_S,
    WEIGHTINGS,
)
from amt_stream.meters.audience import PLACE, Audience
from amt_stream.meters.frames import Frames
from amt_stream.meters.names import WINDOW
from amt_stream.meters.rows.block import all_of
from amt_stream.meters.rows.column import (
    EXCEEDED,
    HIGHEST,
    RENEWED,
    TIMES,
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
    fully_heard,
    higher,
    place_of,
    sides_of,
)

NAME = re.compile(
    rf"(?P<what>(?P<difference>l(?:c|ai|aft[35])eq_minus_laeq)"
    rf"|l(?:[acz](?:[fsi](?:max|min)?|i?eq|e|peak)|aft[35]eq"
    rf"|(?P<level>[acz][fsi])?(?P<percent>\d\d?))"
    rf"(?:_(?P<window>{WINDOW}))?)(?P<place>{PLACE})?(?P<side>_left|_right)?_(?P<unit>db)"
)
ASKED = re.compile(
    rf"(?P<what>(?P<day>{EXPOSURE})|(?P<dose>{DOSE.pattern})"
    rf"|(?P<of>{LEVEL})(?P<far>{PLACE})?_(?P<ahead>allowed|until)_(?P<limit>\d+(?:p\d+)?))"
    rf"(?P<place>{PLACE})?(?P<side>_left|_right)?_(?P<unit>db|s|percent)"
)
"""Columns that exist only if they are chosen."""

UNITS = {"dose": "percent", "until": "s"}
"""Units of these columns; all others are in dB."""

AHEAD = {
    "allowed": "highest steady level that keeps {of} within {limit} dB from now on",
    "until": "time until {of} is above {limit} dB if the level of the last 10 s goes on",
}
AHEAD_RENEWED = "renewed every second of sound, held between"
AHEAD_WORDS = {
    "allowed": (
        "Still allowed",
        "The highest steady level that keeps {of} within {limit} dB from now on.",
    ),
    "until": (
        "Time to the limit",
        "How long until {of} is above {limit} dB if the level of the last 10 s goes on.",
    ),
}
OF_DAY = "The exposure of all that was counted, as if it were spread over a working day of 8 hours."
DOSED = {
    "dose": (
        "noise dose",
        "Noise dose",
        "dose",
        "The share of a working day's allowed noise that all that was counted makes.",
    ),
    "twa": (
        "time-weighted average of eight hours",
        "Average of 8 hours",
        "TWA",
        "The steady level of eight hours that makes the same noise dose.",
    ),
}
SPL = "IEC 61672-1."
IMPULSIVE = "How impulsive the sound is: the difference of "
DIFFERENCE_WORDS = {
    "lceq": (
        "Average levels, C less A",
        "How much low-frequency sound there is: the difference of two equivalent levels.",
    ),
    "laie": ("Average levels, impulse less A", f"{IMPULSIVE}two equivalent levels."),
    "laft": (
        "Highest in {seconds} s less average",
        f"{IMPULSIVE}the average of the highest levels in each {{seconds}} s and of the "
        "equivalent level.",
    ),
}
WORDS = {
    "eq": (
        "equivalent continuous {} sound pressure level",
        "equivalent",
        "Average level{}",
        "eq",
        "The steady level with the same energy (equivalent continuous sound level), {}.",
    ),
    "ieq": (
        "{} sound level, impulse (I)",
        "equivalent",
        "Average level{}, impulse",
        "Ieq",
        f"The mean power of the sound level I as a level, {{}}, {TIMES['i'][1]}.",
    ),
    "e": (
        "{} sound exposure level",
        "exposure",
        "Sound exposure level{}",
        "E",
        "The level of one second with the energy of all that was counted, {}.",
    ),
    "peak": (
        "{} peak sound pressure level",
        "maximum",
        "Peak level{}",
        "peak",
        "The highest instantaneous sound pressure, {}, as a level.",
    ),
}
"""Quantity, statistic, label, symbol and sentence of what has no time weighting of its own."""

EXTREMES = {
    "": ("instantaneous", "Level", ""),
    "max": ("maximum", "Highest level", f"{HIGHEST} "),
    "min": ("minimum", "Lowest level", "The lowest value of all that was counted. "),
}
TIMED = {"f": "fast (F)", "s": "slow (S)", "i": "impulse (I)"}
USUAL = ("laeq_1s", "laeq", "lcpeak", "lafmax", "l10", "l50", "l90")
OF_AUDIENCE = ("laf", "laeq", "lcpeak")
"""Levels that are usual in the audience too, if there is a correction for it."""

IN_AUDIENCE = (
    " In the audience: the level at the microphone and the correction for the way from there."
)


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
        names.insert(names.index("lcpeak"), EXPOSURE)
        offered = [_column(f"{name}{side}_db", channels) for name in names for side in sides]
        far = [] if audience is None else [f"{name}{PLACE}" for name in OF_AUDIENCE]
        offered += [self._in_place(f"{name}{side}_db") for name in far for side in sides]
        usual = [f"{name}_db" for name in LEVELS[:7]]
        usual += [f"laf{side}_db" for side in sides[1:]]
        usual += [f"{name}_db" for name in (*USUAL, *far)]
        super().__init__("spl", offered, usual)

    def named(self, name: str) -> Column | None:
        found = _parsed(name)
        if found is None or (found["side"] and self._channels < 2):
            return None
        if _is_far(found):
            return None if self._audience is None else self._in_place(name)
        if found.re is ASKED:
            return _column(name, self._channels)
        rolls = found["window"] and re.fullmatch(rf"l[acz]eq_{WINDOW}", found["what"])
        return _column(name, self._channels) if found["percent"] or rolls else None

    def _in_place(self, name: str) -> Column:
        """The column of a level in the audience, with its correction."""
        column, found = _column(name, self._channels), _parsed(name)
        assert found is not None
        correction = f"the level at the microphone {self._correction(found):+g} dB"
        if found.re is ASKED and found["ahead"] == "until":
            return column
        return replace(column, note="; ".join(filter(None, (column.note, correction))))

    def _correction(self, found: re.Match[str]) -> float:
        """What a column in the audience is above that at the microphone, in dB."""
        return self._audience.of(found["what"]) if self._audience and _is_far(found) else 0.0

    def renew(self) -> None:
        parts: list[tuple[int, int]] = []
        names, columns = list(LEVELS), []
        more_db = []
        for column in self.columns:
            found = _parsed(column.name)
            assert found is not None
            what, correction = found["what"], self._correction(found)
            if found.re is ASKED and found["far"]:
                # What is left to a limit there is left to a lower or higher one here.
                limit_db = float(found["limit"].replace("p", ".")) - correction
                ahead = dict(
                    zip(("allowed", "until"), forecasts(found["of"], limit_db), strict=True)
                )
                what = ahead[found["ahead"]].rpartition("_")[0]
            more_db.append(0.0 if found["unit"] == "s" else correction)
            if what not in names:
                names.append(what)
                columns.append(f"{what}_{found['unit']}")
            parts.append((place_of(found["side"]), names.index(what)))
        self._more_db = np.array(more_db)
        # Indices of each column: side and level.
        self._places = np.array(parts, np.int64).reshape(-1, 2).T
        self._lower = [(k, lower) for k, name in enumerate(names) if (lower := _lower(name))]
        self._meters = [SoundLevelMeter(columns) for _ in range(self._channels)]

    def remember(self) -> None:
        for meter in self._meters:
            meter.memory = LevelMemory(len(WEIGHTINGS), FRAME_S)

    def earlier(self, column: Column) -> Earlier:
        found, memory = _parsed(column.name), self._meters[0].memory
        assert found is not None
        asked, window_s = found.re is ASKED, column.window_s
        remembered = window_s >= SHORTEST_S and memory is not None
        if remembered and not asked and not found["percent"]:
            return Earlier(heard_s=memory.heard_s(window_s), holes=memory.missed(window_s))
        # Doses, and percentiles of other levels than A-weighted F, are counted only if chosen.
        asks = found["dose"] if asked else found["percent"] and _level_of(found) != LEVELS[0]
        return Earlier() if asks and not self.has(column) else super().earlier(column)

    def take(self, frames: Frames) -> NDArray[np.float64]:
        counted = self.counted(frames, MEMORY_S)
        power, there = frames.values.power, fully_heard(frames)
        now = level_db(power if all_of(there) else np.where(there, power, np.nan))
        channels = []
        for meter, levels, *values in zip(self.meters, now, *frames.values, strict=True):
            given = *values, counted, frames.since_s, frames.begin_s
            channels.append(np.concatenate([levels, meter.update(*given)]))
        found = by_sides(channels)
        if len(channels) > 1:
            for place, lower in self._lower:
                found[0, place] = lower(*(channel[place] for channel in channels))
        return found[*self._places].T + self._more_db

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
            meter.tail(*values, counted, shares, frames.since_s, frames.part)

    def summary(self) -> Summary:
        readings = [meter.reading() for meter in self._meters]
        summary: Summary = {}
        for name in readings[0]:
            stem, _, unit = name.rpartition("_")
            if unit == "s" or stem in LEVELS:
                continue
            for side, value in by_side([reading[name] for reading in readings]):
                summary[f"{stem}{side}_{unit}"] = value
        for column, more_db in zip(self.columns, self._more_db.tolist(), strict=True):
            value = summary.get(column.name.replace(PLACE, "", 1))
            if PLACE in column.name and value is not None:
                summary[column.name] = value + more_db
        return summary


def _parsed(name: str) -> re.Match[str] | None:
    """A name parsed to its parts, or None."""
    found = NAME.fullmatch(name) or ASKED.fullmatch(name)
    if found is not None and found.re is ASKED:
        kind = found["ahead"] or found["what"].partition("_")[0]
        if found["unit"] != UNITS.get(kind, "db"):
            return None
    if found is not None and found["place"] and not _has_audience(found):
        return None
    return found


def _is_far(found: re.Match[str]) -> bool:
    """Whether a column is of the audience."""
    return bool(found["place"] or (found.re is ASKED and found["far"]))


def _has_audience(found: re.Match[str]) -> bool:
    """Whether a column may be of the audience: levels A and C may, differences and doses not."""
    if found.re is ASKED:
        return found["day"] is not None
    level = not (found["difference"] or found["percent"])
    return level and re.fullmatch(r"l[ac][a-z]+(?:_\d+\w+)?", found["what"]) is not None


def _lower(what: str) -> np.ufunc | None:
    """The function for the lower of both channels, for columns where that is decisive, or None."""
    if "_allowed_" in what:
        return np.minimum
    return np.fmin if "_until_" in what else None


@lru_cache(maxsize=2048)
def _column(name: str, channels: int) -> Column:
    found = _parsed(name)
    assert found is not None
    asked = found.re is ASKED
    meaning = _asked(found) if asked else _meaning(found)
    unit = "dB" if found["unit"] == "db" else found["unit"]
    window = None if asked else found["window"]
    if _is_far(found):
        meaning = meaning._replace(
            quantity=f"{meaning.quantity}, in the audience",
            label=f"{meaning.label}, in the audience",
            about=f"{meaning.about}{IN_AUDIENCE}",
        )
    column = meaning.column(name, unit, "spl", found["side"], window, higher(channels))
    if _is_far(found) and column.symbol:
        column = replace(column, symbol=f"{column.symbol} audience")
    if asked:
        of = found["of"] or EXPOSURE
        return counting(column, MEMORY_S, of.partition("_")[2] if of != EXPOSURE else None)
    level = "laf" if found["percent"] else found["what"][:3]
    if level in LEVELS:
        column = rising(column, float(RISE_S[LEVELS.index(level)]))
    if found["what"] in LEVELS:
        return replace(column, settle_s=_forgotten_s(found["what"]))
    of = _level_of(found) if found["percent"] else level
    settle_s = _forgotten_s(of) if of in LEVELS else MEMORY_S
    return counting(column, settle_s, found["window"])


def _forgotten_s(level: str) -> float:
    return round(float(FORGOTTEN[LEVELS.index(level)]) * FRAME_S, 2)


def _asked(found: re.Match[str]) -> Meaning:
    """The meaning of a column that exists only if it is chosen."""
    if found["ahead"]:
        limit = found["limit"].replace("p", ".")
        quantity = AHEAD[found["ahead"]].format(of=found["of"], limit=limit)
        name, _, rest = found["of"].partition("_")
        of = f"{'LEX' if name == 'lex' else _written(name)},{rest}"
        label, about = AHEAD_WORDS[found["ahead"]]
        about = about.format(of=of, limit=limit)
        return Meaning(quantity, "forecast", label, "", about, AHEAD_RENEWED)
    if found["day"]:
        quantity = "noise exposure level of eight hours (LEX,8h)"
        return Meaning(quantity, "exposure", "Noise exposure, 8 hours", "LEX,8h", OF_DAY)
    dose = Dose.named(found["dose"])
    above = f", threshold {dose.threshold_db:g} dB" if dose.threshold_db else ""
    quantity, *words = DOSED[found["dose"].partition("_")[0]]
    rules = f"criterion {dose.criterion_db:g} dB, exchange {dose.exchange_db:g} dB{above}"
    return Meaning(f"{quantity}, {rules}", "exposure", *words)


def _level_of(found: re.Match[str]) -> str:
    """The level of a percentile, by default A-weighted F."""
    return f"l{found['level'] or 'af'}"


def _meaning(found: re.Match[str]) -> Meaning:
    """The meaning of a level by name, such as `laf` or `l10`."""
    name, percent = found["what"].partition("_")[0], found["percent"]
    if found["difference"]:
        one = _written(name)
        label, about = DIFFERENCE_WORDS[name[:4]]
        label, about = (text.format(seconds=name[4:5]) for text in (label, about))
        quantity = f"{one} less LAeq, a difference of levels"
        return Meaning(quantity, "difference", label, f"{one} - LAeq", about)
    if name.startswith("laft"):
        quantity = f"{_written(name)}: the highest A-weighted level F in each {name[4]} s"
        about = (
            f"The mean power of the highest level in each {name[4]} s as a level (DIN 45641). "
            f"{_smoothed('laf')}"
        )
        label = f"Average of the highest in {name[4]} s"
        return Meaning(quantity, "equivalent", label, _written(name), about)
    level = _level_of(found) if percent else name
    weighted = f"{level[1].upper()}-weighted"
    after = "" if level[1] == "a" else f" {level[1].upper()}"
    if name[2:] in WORDS and not percent:
        quantity, statistic, label, symbol, about = WORDS[name[2:]]
        symbol = f"L{name[1].upper()}{symbol}"
        quantity, about = quantity.format(weighted), f"{about.format(weighted)} {SPL}"
        return Meaning(quantity, statistic, label.format(after), symbol, about)
    quantity = f"{weighted} sound level, {TIMED[level[2]]}"
    time, about = TIMES[level[2]][0], _smoothed(level)
    if percent:
        after = f"{after}, {time}" if found["level"] else ""
        label, about = f"Exceeded {percent} % of time{after}", f"{EXCEEDED} {about}"
        statistic = f"exceeded {int(percent)} % of the time"
        symbol, about = f"{level.upper()}{percent}", about.format(percent=percent)
        return Meaning(quantity, statistic, label, symbol, about, RENEWED)
    statistic, label, before = EXTREMES[name[3:]]
    symbol = f"{name[:3].upper()}{name[3:]}"
    return Meaning(quantity, statistic, f"{label}{after}, {time}", symbol, f"{before}{about}")


def _smoothed(level: str) -> str:
    return f"Sound level, {level[1].upper()}-weighted, {TIMES[level[2]][1]}. {SPL}"


def _written(name: str) -> str:
    """The symbol of standards: LCeq for `lceq`, LAFT5 for `laft5eq`."""
    if name.startswith("laft"):
        return name.removesuffix("eq").upper()
    return name.removesuffix("eq").upper() + "eq"
