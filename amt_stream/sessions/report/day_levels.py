"""Levels of day, evening and night over days: Lden and Ldn (2002/49/EC, ISO 1996-1)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import DAY_S, local_zone, offset_s, zone_text
from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonDict
from amt_stream.meters.rows import Column, reading_text
from amt_stream.meters.rows.column import AT_LEAST
from amt_stream.meters.rows.words import SIGNS
from amt_stream.sessions import Session
from amt_stream.sessions.chain import CHAIN
from amt_stream.sessions.manifest import NAME as MANIFEST
from amt_stream.sessions.reading import ROWS_IN
from amt_stream.sessions.results import Results, column_of, read_results
from amt_stream.sessions.results.parts import PartsOfRows
from amt_stream.sessions.results.pieces import Pieces, PiecesOfRows

HOURS_OF_DAY = 24
LEVELS, LAEQ = "spl", "laeq_db"
"""The model of A-weighted levels, and its level of an interval."""

RATING, RATED, UNRATED = "rating", "rating_db", "rating_laeq_db"
"""The model of rating levels, and its levels of an interval: with its adjustments and without."""

EVENING_DB, NIGHT_DB = 5.0, 10.0
SLACK_S = 0.02
"""Seconds that a piece may extend past the bound of a period, as bounds fall between frames."""

LONGEST_CUT_S = 60.0
"""Longest piece in seconds that is divided in proportion at a bound."""


class NoDayLevels(Refusal, ValueError):
    """Levels of day and night cannot be computed."""


@dataclass(frozen=True)
class DayPeriods:
    """When day, evening and night begin, in hours; without an evening the level is Ldn.

    source: regulation
    """

    name: str
    day: int
    evening: int | None
    night: int
    source: str = ""

    def __post_init__(self) -> None:
        order = [hour for hour in (self.day, self.evening, self.night) if hour is not None]
        in_order = sorted(set(order)) == order and order[-1] - order[0] < HOURS_OF_DAY
        if not in_order or not 0 <= order[0] < order[-1] <= HOURS_OF_DAY:
            raise NoDayLevels(
                f"the hours {','.join(map(str, order))} are invalid: give when day, evening and "
                "night begin, such as 7,19,23, or only day and night, such as 7,22"
            )

    @property
    def periods(self) -> dict[str, tuple[int, int]]:
        """Begin and end of each period in hours; the end is above 24 if it is on the next day."""
        evening = {} if self.evening is None else {"evening": (self.evening, self.night)}
        end = self.night if self.evening is None else self.evening
        night = self.night, HOURS_OF_DAY + self.day
        return {"day": (self.day, end), **evening, "night": night}

    @property
    def symbol(self) -> str:
        return "ldn" if self.evening is None else "lden"

    @property
    def words(self) -> str:
        parts = (
            f"{name} {begin:02}-{end % HOURS_OF_DAY:02}"
            for name, (begin, end) in self.periods.items()
        )
        return f"{', '.join(parts)}{f' ({self.source})' if self.source else ''}"

    def rating(self, levels: Mapping[str, float | None]) -> float | None:
        """Lden or Ldn of the periods' levels (2002/49/EC, Annex I); None if one is missing."""
        added = {"day": 0.0, "evening": EVENING_DB, "night": NIGHT_DB}
        total = 0.0
        for name, (begin, end) in self.periods.items():
            level = levels[name]
            if level is None:
                return None
            total += (end - begin) * 10 ** ((level + added[name]) / 10)
        return 10 * math.log10(total / HOURS_OF_DAY)


DIRECTIVE = "2002/49/EC, Annex I"
HOURS = {
    one.name: one
    for one in (
        DayPeriods("eu", 7, 19, 23, DIRECTIVE),
        DayPeriods("at", 6, 19, 22, "Austria, Bundes-Umgebungslärmschutzverordnung"),
        DayPeriods("de", 6, 18, 22, "Germany, 34. BImSchV"),
        DayPeriods("dk", 7, 19, 22, "Denmark, order on environmental noise"),
        DayPeriods("fi", 7, 19, 22, "Finland, decree 801/2004"),
        DayPeriods("fr", 6, 18, 22, "France, Code de l'environnement R572-4"),
        DayPeriods("it", 6, 20, 22, "Italy, D.Lgs. 194/2005"),
        DayPeriods("pl", 6, 18, 22, "Poland, Prawo ochrony środowiska, art. 112a"),
        DayPeriods("pt", 7, 20, 23, "Portugal, Decreto-Lei 146/2006"),
        DayPeriods("se", 6, 18, 22, "Sweden, SFS 2004:675"),
        DayPeriods("us", 7, None, 22, "US EPA 550/9-74-004"),
    )
}
"""Hours by country code; eu for the directive, us for Ldn of the United States."""


def hours_named(text: str) -> DayPeriods:
    """Read hours: a name of HOURS, or numbers such as 7,19,22. Raises NoDayLevels."""
    if text in HOURS:
        return HOURS[text]
    try:
        given = [int(part) for part in text.split(",")]
    except ValueError:
        given = []
    if len(given) == 2:
        return DayPeriods(text, given[0], None, given[1])
    if len(given) == 3:
        return DayPeriods(text, given[0], given[1], given[2])
    raise NoDayLevels(
        f"the hours {text!r} are invalid: give one of {', '.join(HOURS)}, or when day, evening and "
        "night begin, such as 7,19,22"
    )


@dataclass(frozen=True)
class Period:
    """Level and measured seconds of a period of one day, or of all days."""

    level_db: float | None
    measured_s: float
    whole_s: float

    @property
    def coverage(self) -> float:
        return self.measured_s / self.whole_s if self.whole_s else 0.0

    @property
    def percent(self) -> str:
        """The coverage as text; up to two frames may be missing at 100 %."""
        if self.whole_s - self.measured_s < 1.0:
            return "100 %"
        return f"{min(self.coverage, 0.999) * 100:.1f} %"


@dataclass(frozen=True)
class RatingLevels:
    """Levels of one day, from the begin of its day period, or of all days (`on` is None)."""

    on: date | None
    periods: Mapping[str, Period]
    rating_db: float | None

    def to_dict(self, symbol: str) -> JsonDict:
        """Data for JSON, with levels rounded to 0.001 dB."""
        data: dict[str, object] = {} if self.on is None else {"date": self.on.isoformat()}
        data[f"{symbol}_db"] = _rounded(self.rating_db)
        for name, one in self.periods.items():
            data[f"l{name}_db"] = _rounded(one.level_db)
            data[f"{name}_measured_s"] = round(one.measured_s, 3)
            data[f"{name}_coverage"] = round(one.coverage, 4)
        return data


@dataclass(frozen=True)
class DayLevels:
    """Levels of day, evening and night of measurements at one place.

    clipped: whether any of the sound was clipped, so that levels are at least so high
    days: levels of each day
    whole: levels of all days, weighted by the measured time
    how: description of the source of the energy
    rated: whether levels are rating levels, with adjustments for tones and impulses
    """

    hours: DayPeriods
    clock: str
    calibrated: bool
    clipped: bool
    days: Sequence[RatingLevels]
    whole: RatingLevels
    how: str
    rated: bool = False

    def to_dict(self) -> JsonDict:
        symbol = self.hours.symbol
        periods = {name: [b, e % HOURS_OF_DAY] for name, (b, e) in self.hours.periods.items()}
        return {
            "hours": {"name": self.hours.name, "source": self.hours.source, **periods},
            "clock": self.clock,
            "calibrated": self.calibrated,
            "clipped": self.clipped,
            "energy": self.how,
            "rated": self.rated,
            "whole": self.whole.to_dict(symbol),
            "days": [one.to_dict(symbol) for one in self.days],
        }


def day_levels(
    given: Iterable[Results],
    hours: DayPeriods = HOURS["eu"],
    zone: tzinfo | None = None,
    rated: bool = False,
) -> DayLevels:
    """Lday, Levening, Lnight and Lden, or Lday, Lnight and Ldn, of measurements at one place.

    The level of a period is the energy mean of all its measured sound, on all days; the rating adds
    5 dB to the evening and 10 dB to the night.

    zone: time zone; by default that of the first measurement, or of this computer
    rated: of rating levels, with the adjustments that each interval has

    Raises NoDayLevels if there is no A-weighted energy, or no interval with a rating level, or the
    time is unknown.
    """
    pieces, calibrated, clipped, by = [], True, False, zone
    for results in given:
        by = by or results.zone or local_zone()
        pieces.append(_pieces(results, hours, by, rated))
        calibrated &= results.calibrated
        clipped |= results.clipped
    if not pieces:
        raise NoDayLevels("no measurement: give a log, or a folder of logs")
    end, measured, power = (
        np.concatenate([getattr(one, name) for one in pieces])
        for name in ("utc_s", "measured_s", "power")
    )
    length = np.concatenate([one.end_s - one.begin_s for one in pieces])
    first_of, place = _periods(end - length / 2, hours, by)
    there = measured > 0
    if not there.any():
        unknown = ", or no rating level is known" if rated else ""
        raise NoDayLevels(f"no level: nothing was measured, or only digital silence{unknown}")
    days = [
        date.fromordinal(day)
        for day in range(int(first_of[there].min()), int(first_of[there].max()) + 1)
    ]
    names = [*hours.periods]
    of_days = []
    for on in days:
        own = there & (first_of == on.toordinal())
        of_days.append(
            {
                name: _period(own & (place == k), measured, power, _whole_s(on, hours, name, by))
                for k, name in enumerate(names)
            }
        )
    whole = {
        name: _period(
            there & (place == k), measured, power, sum(one[name].whole_s for one in of_days)
        )
        for k, name in enumerate(names)
    }
    by_day = [
        RatingLevels(on, one, _rating(hours, one)) for on, one in zip(days, of_days, strict=True)
    ]
    how = "; ".join(dict.fromkeys(one.how for one in pieces))
    of_all = RatingLevels(None, whole, _rating(hours, whole))
    return DayLevels(hours, zone_text(by), calibrated, clipped, by_day, of_all, how, rated)


def level_text(level_db: float | None, clipped: bool) -> str:
    """A level as text; clipped sound was louder."""
    return reading_text("laeq_db", level_db, SIGNS[AT_LEAST] if clipped else "")


def _rating(hours: DayPeriods, periods: Mapping[str, Period]) -> float | None:
    return hours.rating({name: one.level_db for name, one in periods.items()})


def _period(own: NDArray[np.bool_], measured: Any, power: Any, whole_s: float) -> Period:
    weight = measured[own]
    total = float(weight.sum())
    mean = float((power[own] * weight).sum()) / total if total else 0.0
    return Period(10 * math.log10(mean) if mean > 0 else None, total, whole_s)


def _pieces(results: Results, hours: DayPeriods, zone: tzinfo | None, rated: bool) -> Pieces:
    """The energy of one measurement, in pieces that each belong to one period."""
    made = PartsOfRows(results).pieces
    timeless = False
    for found in (_rated(made),) if rated else (made.best(), made.of_rows()):
        if found is None:
            continue
        if not np.isfinite(found.utc_s).all():
            timeless = True
            continue
        divided = _divided(found, hours, zone)
        if divided is not None:
            return divided
    if timeless:
        raise NoDayLevels(
            f"{results.name}: the time of the measurement is unknown, so day and night are too: "
            "measure the recording with --began"
        )
    if rated:
        raise NoDayLevels(
            f"{results.name} has no rating level of intervals that end with {hours.words}: measure "
            f"with --model {RATING} --interval 30min"
        )
    raise NoDayLevels(f"{results.name} {_lack(results, hours)}")


def _rated(made: PiecesOfRows) -> Pieces | None:
    """The rating levels of intervals; one whose level is not known, and not silence, is lost."""
    found, table = made.of_intervals(RATED), made.results.intervals
    if found is None or table is None:
        return None
    lost = np.isnan(table[RATED])
    if UNRATED in table.columns:
        lost &= np.isfinite(table[UNRATED]) | (table["measured_s"] < table["excluded_s"])
    return replace(found, measured_s=np.where(lost, 0.0, found.measured_s))


def _lack(results: Results, hours: DayPeriods) -> str:
    """What a measurement lacks for levels of day and night, and the remedy."""
    models = [str(one["name"]) for one in results.header["models"]]
    if not any(map(is_energy, results.known.values())):
        return (
            f"has no A-weighted level, as it was measured with {', '.join(models)} alone: measure "
            f"with --model {','.join([*models, LEVELS])}"
        )
    there = results.rows if results.intervals is None else results.intervals
    if not any(map(is_energy, map(column_of, results.header["columns"]))) and (
        LAEQ not in there.columns
    ):
        return "has no A-weighted level among its columns: leave --columns out, or add laeq_1s_db"
    return (
        f"has no A-weighted level in steps that end with {hours.words}: measure with --interval "
        "15min, or with rows of laeq_1s_db"
    )


def _divided(pieces: Pieces, hours: DayPeriods, zone: tzinfo | None) -> Pieces | None:
    """The pieces, cut at the bounds of periods; None if a piece is too long."""
    length = pieces.end_s - pieces.begin_s
    slack = np.minimum(SLACK_S, length / 4)
    day, place = _periods(pieces.utc_s - length + slack, hours, zone)
    days, places = _periods(pieces.utc_s - slack, hours, zone)
    across = np.flatnonzero((day != days) | (place != places))
    if not len(across):
        return pieces
    if length[across].max() > LONGEST_CUT_S:
        return None
    first = [begin for begin, _ in hours.periods.values()]
    bounds = np.array([_instant(date.fromordinal(days[k]), first[places[k]], zone) for k in across])
    begin_utc_s = (pieces.utc_s - length)[across]
    before = np.clip((bounds - begin_utc_s) / length[across], 0.0, 1.0)
    begin_s, measured_s = pieces.begin_s.copy(), pieces.measured_s.copy()
    middle_s = begin_s[across] + before * length[across]
    earlier = (
        *(begin_s[across], middle_s, bounds),
        *(measured_s[across] * before, pieces.power[across]),
    )
    begin_s[across], measured_s[across] = middle_s, measured_s[across] * (1.0 - before)
    later = begin_s, pieces.end_s, pieces.utc_s, measured_s, pieces.power
    order = np.argsort(np.concatenate([earlier[1], later[1]]), kind="stable")
    begin, end, utc, measured, power = (
        np.concatenate(both)[order] for both in zip(earlier, later, strict=True)
    )
    return Pieces(begin, end, utc, measured, power, pieces.how)


def _periods(
    utc_s: Any, hours: DayPeriods, zone: tzinfo | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The day (`date.toordinal`) and the index of the period of each moment."""
    quarters, of = np.unique(np.floor(utc_s / 900.0), return_inverse=True)
    offsets = np.array([offset_s(float(quarter) * 900.0, zone) for quarter in quarters])
    local_s = utc_s + offsets[of] - 3600.0 * hours.day
    epoch = date(1970, 1, 1).toordinal()
    day = epoch + np.floor(local_s / DAY_S).astype(np.int64)
    bounds = [3600.0 * (begin - hours.day) for begin, _ in hours.periods.values()]
    place = np.searchsorted(bounds, local_s % DAY_S, side="right") - 1
    return day, place


def _whole_s(on: date, hours: DayPeriods, name: str, zone: tzinfo | None) -> float:
    """Duration of a period on a day: with daylight saving a night may vary by an hour."""
    begin, end = (_instant(on, hour, zone) for hour in hours.periods[name])
    return end - begin


def _instant(on: date, hour: int, zone: tzinfo | None) -> float:
    """Unix time of an hour of a day in a time zone; hours past 24 are on the next day."""
    local = datetime(on.year, on.month, on.day) + timedelta(hours=hour)
    return (local.replace(tzinfo=zone) if zone else local).timestamp()


def measurements(path: Path, microphone: str | None = None) -> list[Results]:
    """Read all runs of a log, of a folder of logs, or a file of rows.

    Raises NoDayLevels for a folder without any, and errors of reading them.
    """
    if path.is_file() or path.suffix in ROWS_IN:
        return [read_results(path, is_energy, microphone=microphone, tables=True)]
    if (path / CHAIN).is_file():
        return [
            read_results(path, is_energy, run=run, microphone=microphone)
            for run in _ends(Session(path))
        ]
    logs = sorted(inner.parent for inner in path.glob(f"*/{CHAIN}"))
    every = (file for file in path.glob("*") if file.name != MANIFEST)
    files = sorted(file for file in every if file.suffix in ROWS_IN)
    if not logs and not files:
        raise NoDayLevels(f"{path} has no log: give the folder of one, or a folder of logs")
    return [one for inner in (*logs, *files) for one in measurements(inner, microphone)]


def _ends(session: Session) -> list[int]:
    """Runs of a log that no later run continues; reading one includes those before it."""
    restored = [one.get("restored") for one in session.descriptions.values()]
    before = {one.get("run") for one in restored if isinstance(one, dict)}
    return [run for run in session.runs if run not in before]


def is_energy(column: Column) -> bool:
    """Whether a column has A-weighted energy."""
    return column.of == "laeq" or column.name == "laf_db"


def _rounded(level: float | None) -> float | None:
    return None if level is None else round(level, 3)
