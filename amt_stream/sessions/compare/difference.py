"""Comparison of two measurements: differences of readings, and their uncertainties."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import Moment
from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief
from amt_stream.dsp.channel_layout import Layout
from amt_stream.engine.microphone.offset import offset_words
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.rows import Rows
from amt_stream.meters.rows.column import FULL_SCALE, LONG_TERM
from amt_stream.offline.measure import MeasureSettings, measure
from amt_stream.offline.measured import Measured
from amt_stream.sessions.compare.reading_difference import Difference
from amt_stream.sessions.compare.repeatability import repeatability
from amt_stream.sessions.reading import ROWS_IN
from amt_stream.sessions.report.content import integrity, readings_by_name
from amt_stream.sessions.report.curves import is_followed
from amt_stream.sessions.results import Results, ResultsError, Wanted, read_results
from amt_stream.sessions.results.interval_table import IntervalTable, intervals_of
from amt_stream.sessions.results.parts import part_of, results_of_part

LEVELS, LOUDNESS = ("dB",), ("phon",)
UNITS = (*LEVELS, *LOUDNESS, *FULL_SCALE)
"""Units of readings that can be compared."""

RELATIVE, AUDIBILITY = ("difference", "adjustment"), "audibility"
"""Statistics and a quantity in dB that are not levels."""

Known = tuple[float, float]
"""Uncertainties in dB, k = 2: of the calibration, and of the microphone for this sound."""

SAME_KEYS = (
    *("full_scale_db_spl", "calibrated", "calibration_uncertainty_db"),
    *("date", "origin", "correction"),
)
"""Fields of a calibration in a header; if all are equal, it is the same calibration."""


class NotComparable(Refusal, ValueError):
    """Two measurements have no reading in common."""


@dataclass(frozen=True)
class Course:
    """The difference of a reading over time since the start of each: arrays (row,).

    low, high: bounds of the difference (k = 2), or None if unknown
    """

    name: str
    unit: str
    time_s: NDArray[np.float64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None

    @property
    def difference(self) -> NDArray[np.float64]:
        return self.b - self.a


@dataclass(frozen=True)
class IntervalPair:
    """An interval of both measurements, with the common readings."""

    names: Sequence[str]
    a: JsonMap
    b: JsonMap

    def difference(self, name: str) -> float | None:
        """B - A of a reading, or None."""
        a, b = self.a[name], self.b[name]
        return None if a is None or b is None else b - a

    def to_dict(self) -> JsonDict:
        keys = ("time_s", "local", "end_s", "measured_s", "partial", *self.names)
        differences = {name: self.difference(name) for name in self.names}
        a, b = ({key: row[key] for key in keys} for row in (self.a, self.b))
        return {"a": a, "b": b, "difference": differences}


def _keys(rows: Rows, clocks: bool) -> list[Any]:
    """Keys to match intervals: days since the first and time of day, or elapsed time."""
    if not clocks:
        return [*range(len(rows))]
    when = [datetime.fromisoformat(text) for text in rows["local"]]
    first = when[0].date()
    return [((one.date() - first).days, one.time(), one.fold) for one in when]


@dataclass(frozen=True)
class Comparison:
    """Two measurements, `b` compared with `a`.

    common: whether both have the same error of calibration
    same_place: whether both have the same error of the microphone
    why: the reason, as a sentence
    """

    a: Results
    b: Results
    common: bool
    same_place: bool
    why: str
    of_each: tuple[IntervalTable, IntervalTable] | None = None

    @property
    def intervals(self) -> list[IntervalPair]:
        """Intervals matched by time of day, or by time since the start if a clock is unknown."""
        if self.of_each is None:
            return []
        first, second = (table.rows for table in self.of_each)
        names = [name for name in self.of_each[0].names if name in self.of_each[1].names]
        clocks = all(row["local"] for rows in (first, second) for row in rows)
        theirs = dict(zip(_keys(second, clocks), second, strict=True))
        pairs = zip(_keys(first, clocks), first, strict=True)
        return [IntervalPair(names, row, theirs[key]) for key, row in pairs if key in theirs]

    def _of_layouts(self) -> list[str]:
        """That more than two channels are for different positions, if they are."""
        known = [one.header["source"].get("layout") for one in (self.a, self.b)]
        layouts = [Layout.from_dict(one) for one in known if one is not None]
        if len({*layouts}) < 2 or max(one.channels for one in layouts) <= 2:
            return []
        return [f"the channels are {layouts[0]} in A and {layouts[1]} in B"]

    def _of_sounds(self) -> list[str]:
        """What is wrong with a sound: its end, an offset, or that it is clipped."""
        words = []
        for side, results in (("A", self.a), ("B", self.b)):
            sound = results.header["source"].get("sound", {})
            if length := sound.get("length"):
                words.append(f"{side}: {length}")
            if offset := offset_words([one or 0.0 for one in sound.get("offset", ())]):
                words.append(f"{side} has an offset of {offset}, which is removed")
            if results.clipped:
                words.append(f"{side} is clipped: its levels and loudness are at least so high")
        return words

    def _of_missing(self) -> list[str]:
        """Readings that only one has a value of, though both have their columns."""
        first, second = (
            {name: one for name, one in readings_by_name(of).items() if one.number is not None}
            for of in (self.a, self.b)
        )
        words = []
        for side, results, own, theirs in (
            ("A", self.a, first, second),
            ("B", self.b, second, first),
        ):
            without = [
                one.symbol
                for name, one in theirs.items()
                if one.unit in UNITS and name in results.known and name not in own
            ]
            if without:
                words.append(
                    f"{side} has no value of {', '.join(without)}: its sound is silent or too "
                    "short, or was not measured"
                )
        return words or ([] if self.differences else ["no reading has a value in both"])

    @property
    def cut_off(self) -> bool:
        """Whether sound is missing at the end of one."""
        sounds = [one.header["source"].get("sound", {}) for one in (self.a, self.b)]
        return any("cut_off" in one for one in sounds)

    @property
    def notes(self) -> list[str]:
        """Other causes of differences, as sentences: settings, clipped sound, an edited log."""
        first, second = (
            {model["name"]: model for model in results.header["models"]}
            for results in (self.a, self.b)
        )
        found = []
        for name in first.keys() & second.keys():
            one, other = first[name], second[name]
            found += [
                f"{name} has {key} {_shown(one[key])} in A and {_shown(other.get(key))} in B"
                for key in one
                if one[key] != other.get(key)
            ]
        found += self._of_layouts() + self._of_sounds() + self._of_missing()
        doubts = [
            f"{side}: {name} {words}"
            for side, results in (("A", self.a), ("B", self.b))
            if results.proof is not None and not results.proof.whole
            for name, words in integrity(results)
        ]
        return [*sorted(found), *doubts]

    @property
    def differences(self) -> list[Difference]:
        """Differences of all common readings of the whole sound."""
        first, second = map(readings_by_name, (self.a, self.b))
        found = []
        for name, one in first.items():
            other = second.get(name)
            if other is None or one.unit not in UNITS or None in (one.number, other.number):
                continue
            a, b = float(one.number or 0.0), float(other.number or 0.0)
            sone = name.replace("_phon", "_sone")
            loud = [of.get(sone) for of in (first, second)] if sone != name else []
            times = _ratio(*(None if r is None else r.number for r in loud)) if loud else None
            unsure = self._uncertainty(name, one.unit, one.in_pascal, np.array(a), np.array(b))
            doubt = None if unsure is None else float(unsure)
            spread = self._repeatability(name, one.unit)
            if doubt is not None and spread is not None:
                doubt = math.hypot(doubt, spread)
            sides = (("A", one.measured), ("B", other.measured))
            words = "; ".join([one.words, *(f"{side}: {of}" for side, of in sides if of)])
            about = name, one.symbol, words, one.unit
            found.append(Difference(*about, a, b, doubt, times, spread, (one.sign, other.sign)))
        return found

    def _repeatability(self, name: str, unit: str) -> float | None:
        """The repeatability of the difference; the sounds of both are independent."""
        if unit in FULL_SCALE:
            return None
        spreads = [repeatability(results, name) for results in (self.a, self.b)]
        return None if None in spreads else math.hypot(*(s for s in spreads if s is not None))

    @property
    def repeats(self) -> str:
        """Whether the uncertainties include repeatability, as a sentence."""
        without = [one.symbol for one in self.differences if not one.repeats]
        words = "+- includes repeatability, from the spread of parts of each measurement"
        return f"{words}, but not for {', '.join(without)}" if without else words

    @property
    def names(self) -> list[str]:
        """Names of the common instantaneous readings."""
        return [
            name
            for name, column in self.a.columns.items()
            if column.statistic == "instantaneous"
            and column.unit in UNITS
            and name in self.a.rows.columns
            and name in self.b.rows.columns
        ]

    def course(self, name: str) -> Course:
        """The difference of one of `names` over time, at the times of rows of both."""
        first, second = (_at_times(results, name) for results in (self.a, self.b))
        times, here, there = np.intersect1d(first[0], second[0], return_indices=True)
        a, b = first[1][here], second[1][there]
        column = self.a.columns[name]
        unsure = self._uncertainty(name, column.unit, column.unit not in FULL_SCALE, a, b)
        difference = b - a
        edges = (None, None) if unsure is None else (difference - unsure, difference + unsure)
        return Course(name, column.unit, times / 1000.0, a, b, *edges)

    def _uncertainty(
        self, name: str, unit: str, in_pascal: bool, a: np.ndarray, b: np.ndarray
    ) -> np.ndarray | None:
        """The uncertainty of b - a by the law of propagation: separate and common parts."""
        if unit in FULL_SCALE or not in_pascal:
            return np.zeros_like(a)
        column = self.a.known.get(name)
        # Not an error of the level, but of other causes, makes these uncertain.
        if column is not None and (column.statistic in RELATIVE or AUDIBILITY in column.quantity):
            return None
        known = _known(self.a), _known(self.b)
        if self.common and unit in LEVELS:
            # A common error cancels even if its size is unknown.
            own = [0.0 if self.same_place else _microphone(results) for results in (self.a, self.b)]
            return np.full_like(a, math.hypot(*own))
        if known[0] is None or known[1] is None:
            return None
        slopes = [_slope(of, name, unit, values) for of, values in ((self.a, a), (self.b, b))]
        if slopes[0] is None or slopes[1] is None:
            return None
        parts: list[np.ndarray] = []
        for place, shared in enumerate((self.common, self.same_place)):
            mine, theirs = known[0][place] * slopes[0], known[1][place] * slopes[1]
            parts += [theirs - mine] if shared else [mine, theirs]
        squares: np.ndarray = np.sum([part**2 for part in parts], axis=0)
        return np.sqrt(squares)

    def to_dict(self) -> JsonDict:
        return {
            "a": self.a.name,
            "b": self.b.name,
            "common_calibration": self.common,
            "same_place": self.same_place,
            "why": self.why,
            "repeatability": self.repeats,
            "notes": self.notes,
            "uncertainty_k": 2,
            "readings": [one.to_dict() for one in self.differences],
            **({"intervals": [one.to_dict() for one in self.intervals]} if self.of_each else {}),
        }


Given = str | Path | Results | Measured

STEP_MS = 100
"""Time between the rows of a sound file."""


def compare(
    a: Given,
    b: Given,
    *,
    same_place: bool = False,
    independent: bool = False,
    models: str | Sequence[str] = ("moore2016", "spl"),
    calibration: float | Calibration | None = None,
    layout: Layout | str | None = None,
    begin: Moment | None = None,
    end: Moment | None = None,
    interval: int | None = None,
    zone: tzinfo | None = None,
    report: Callable[[int, float], object] = lambda place, part: None,
) -> Comparison:
    """Compare `b` with `a`: two logs, files of rows, sound files, or results.

    Errors that are common to both cancel, such as that of one calibration: completely for a level
    in dB, and for loudness in phon as far as both models rise equally with level, which their bands
    show.

    same_place: the same microphone was at the same place, so that its error is common too; this
        holds for sounds with similar spectra
    independent: treat the calibrations as independent, even if their descriptions are equal
    models, calibration, layout: for sound files, as in `measure`
    begin, end: compare only this part of each
    interval: length in seconds of intervals that are compared too
    zone: time zone; by default that of each measurement
    report: called now and then, with the place of a sound file, 0 for `a` or 1 for `b`, and the
        part of it that is measured, 0 to 1

    Raises NotComparable if there is no common reading, and errors of reading the files.
    """
    whole = begin is None and end is None
    wanted: Wanted = is_followed if whole and interval is None else lambda column: True
    measured: MeasureSettings = {"step_ms": STEP_MS, "layout": layout, "replace_invalid": None}
    first, second = (
        _results(one, models, calibration, wanted, measured, partial(report, place))
        for place, one in enumerate((a, b))
    )
    if not whole:
        first, second = (
            results_of_part(one, part_of(one, begin, end, zone)) for one in (first, second)
        )
    common, why = _common(first, second, independent)
    of_each = None
    if interval is not None:
        of_each = intervals_of(first, interval, zone), intervals_of(second, interval, zone)
    made = Comparison(first, second, common, same_place, why, of_each)
    if not made.names and not made.differences:
        raise NotComparable(
            f"{first.name} and {second.name} have no reading in common: measure both with the "
            "same models"
        )
    return made


def _results(
    given: Given,
    models: str | Sequence[str],
    calibration: float | Calibration | None,
    wanted: Wanted,
    settings: MeasureSettings,
    report: Callable[[float], object],
) -> Results:
    if isinstance(given, Results):
        return given
    if isinstance(given, Measured):
        return Results.of_measured(given)
    if not isinstance(given, str | Path):
        raise TypeError(
            f"{brief(repr(given))} cannot be compared: give a path, the return value of `measure`, "
            "or Results"
        )
    path = Path(given)
    if path.is_dir() or path.suffix in ROWS_IN:
        return read_results(path, wanted)
    if not path.is_file():
        raise ResultsError(f"{path} is not a file: give a log, or a file of rows or of sound")
    measured = measure(
        path,
        None,
        models,
        calibration,
        lambda done_s, whole_s: report(done_s / whole_s),
        **settings,
    )
    return Results.of_measured(measured)


def _shown(value: object) -> str:
    """The value of a setting, or the numbers of channels."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _common(a: Results, b: Results, independent: bool) -> tuple[bool, str]:
    """Whether both have the same calibration, and why."""
    first, second = (
        [{key: one.get(key) for key in SAME_KEYS} for one in results.header["calibration"]]
        for results in (a, b)
    )
    if not all(one["calibrated"] for one in [*first, *second]):
        if first != second or independent:
            return False, "not both are calibrated: the uncertainty of the difference is unknown"
        return True, (
            "neither is calibrated: differences of levels in dB hold if the gain was the same; the "
            "uncertainty of differences of loudness is unknown"
        )
    if independent:
        return False, "the calibrations are treated as independent: nothing cancels"
    # Channels of one calibration, as of one microphone, count as one.
    if first != second and any(one != first[0] for one in [*first, *second]):
        return False, "the calibrations differ: nothing cancels"
    if all(one["date"] is None for one in first):
        return True, "both have the same level, treated as one calibration: its error cancels"
    return True, "both have the same calibration: its error cancels"


def _known(results: Results) -> Known | None:
    """The largest uncertainties of all channels; None if those of one are unknown."""
    found = results.header["calibration"]
    if any(not c["calibrated"] or c.get("calibration_uncertainty_db") is None for c in found):
        return None
    calibration = max(float(c["calibration_uncertainty_db"]) for c in found)
    return calibration, _microphone(results)


def _microphone(results: Results) -> float:
    return max(float(c["microphone_uncertainty_db"]) for c in results.header["calibration"])


def _slope(results: Results, name: str, unit: str, values: np.ndarray) -> np.ndarray | None:
    """The slope of a reading per dB of level, at these values.

    For loudness it follows from the width of the model's band; None without a band.
    """
    if unit in LEVELS:
        return np.ones_like(values)
    column = results.known[name]
    output = "ltl" if column.of in LONG_TERM else "stl"
    columns = [f"{output}_phon", f"{output}_low_phon", f"{output}_high_phon"]
    wide_db = results.header["calibration"][0].get("uncertainty_db")
    if not wide_db or column.model == "gm2002" or not set(columns) <= set(results.rows.columns):
        return None
    phon, low, high = (results.rows[column] for column in columns)
    there = np.isfinite(phon) & np.isfinite(low) & np.isfinite(high)
    if not there.any():
        return None
    order = np.argsort(phon[there])
    slopes = (high - low)[there][order] / (2.0 * wide_db)
    return np.interp(values, phon[there][order], slopes)


def _at_times(results: Results, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Times in ms and readings, without settling and faults."""
    rows, there = results.rows, results.settled(name)
    since_s = rows["time_s"][there] - results.begin_s
    return np.rint(1000 * since_s).astype(np.int64), rows[name][there]


def _ratio(a: float | None, b: float | None) -> float | None:
    return b / a if a and b is not None else None
