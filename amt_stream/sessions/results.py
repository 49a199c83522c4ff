"""Results of a measurement, read from a log or a file of rows."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import DAY_S, zone_of
from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, require_file, small_text, why
from amt_stream.core.formats import header_path
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief, json_object
from amt_stream.core.tables import TableError
from amt_stream.core.workbooks import XLSX
from amt_stream.dsp.channel_layout import Layout, LayoutError
from amt_stream.meters import catalog
from amt_stream.meters.frames import COUNTING, LIMITS, SAME_TIME_S, UNHEARD, Event, Fault
from amt_stream.meters.limits import KEYS as LIMIT_KEYS
from amt_stream.meters.limits import STATE, STATES, UNCALIBRATED, LimitError, limit_of
from amt_stream.meters.rows import (
    AFTER,
    BEFORE,
    FAULT_NAMES,
    Column,
    Readings,
    Rows,
    column_named,
    readings_of,
)
from amt_stream.meters.rows.block import MICROPHONE, is_named
from amt_stream.meters.rows.column import AT_LEAST, EQUIVALENT
from amt_stream.meters.rows.intervals import AFTER as AFTER_INTERVALS
from amt_stream.meters.rows.limit_monitor import VERDICTS, LimitMonitor
from amt_stream.meters.rows.limited import until_of
from amt_stream.meters.since_reset import SinceReset
from amt_stream.meters.source_description import SourceDescription
from amt_stream.sessions import Session, SessionError
from amt_stream.sessions.files import as_session_error
from amt_stream.sessions.folder import PARQUET, SUMMARY
from amt_stream.sessions.headers import csv_header, jsonl_header, latest_header, parquet_header
from amt_stream.sessions.reading import LONGEST_S, ROWS_IN, first_and_last
from amt_stream.sessions.verify import Verdict, verify

if TYPE_CHECKING:
    from amt_stream.offline.measure import Measured

AT_ONCE = 4096
"""Rows per batch of dicts."""

GAPS = ("gap", "dropped", "lost")
"""Kinds of events that explain a gap."""

KINDS: dict[Fault | None, tuple[str, ...]] = {Fault.GAP: GAPS, Fault.SILENT: ("gap", "silent")}
"""Kinds of events that explain a fault, unless it is the one of the fault's name."""

UNCALIBRATED_SOUND = "uncalibrated"
"""The word for stretches of a measurement whose calibration did not hold there."""

EXCLUDED = "excluded"
"""The word for stretches of a measurement that its user excludes."""

MARK = "mark"
"""The kind of events for marks."""

NUMBER = (int, float)
MAYBE = (*NUMBER, type(None))
HEADER: JsonDict = {
    "models": [{"name": str}],
    "source": {"name": str, "fs": NUMBER, "channels": [int]},
    "calibration": [
        {
            "channel": int,
            "full_scale_db_spl": NUMBER,
            "calibrated": bool,
            "uncertainty_db": MAYBE,
            "calibration_uncertainty_db": MAYBE,
            "microphone_uncertainty_db": NUMBER,
        }
    ],
    "columns": [{"name": str, "unit": str, "quantity": str, "model": str, "statistic": str}],
    "step_ms": NUMBER,
    "statistics": dict,
}
"""Required fields of a header, and their types."""

LIMIT = {"name": str, "column": str}
STOOD = LIMIT | {"exceeded": (bool, type(None)), "whole": bool, "times": NUMBER, "red_s": NUMBER}
STOOD |= {"worst": MAYBE, "worst_s": MAYBE, "verdict": str}
COVERED = {"from_s": NUMBER}
SETTINGS = {"header": dict, "source": dict, "versions": dict}
"""Fields of a log's description that are used here, if present."""

YEARS = np.array(["1900", "2500"], "datetime64[Y]")
LARGEST = 1e12
"""Values beyond these, and times beyond LONGEST_S, cannot be measured ones."""

NO_ROW = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)
"""Errors of reading edited rows."""

Wanted = Callable[[Column], bool]
"""Whether to read a column."""


class ResultsError(Refusal, RuntimeError):
    """Results cannot be read."""


class Invalid(Exception):
    """A field of a header, a summary or a row has no value that was measured."""


def _together(marks: NDArray[Any]) -> list[NDArray[np.intp]]:
    """The places of marked rows, adjacent ones together."""
    marked = np.flatnonzero(marks)
    parts = np.split(marked, np.flatnonzero(np.diff(marked) > 1) + 1)
    return [part for part in parts if len(part)]


@dataclass(frozen=True)
class FaultySpan:
    """A part of the sound with a fault: its word, its time in seconds, its cause."""

    fault: str
    begin_s: float
    end_s: float
    text: str = ""


@dataclass(frozen=True)
class Results:
    """The results of one measurement.

    name: name of the folder or file, or of the sound
    header: header of the rows
    rows: rows with the chosen columns, and those before and after the readings; none of a file
        that only has a table of intervals
    last: all columns of the last row, by name
    summary: summary of the whole sound; empty if the measurement was interrupted or is running
    events: events of a log
    settings: settings of a log
    intervals: table of intervals of a log, if any
    part: begin and end in seconds, if this is a part of a longer measurement
    proof: result of `verify` before a log was read; None otherwise
    uncounted: times in seconds whose rows a restored run did not count, as they came after the
        snapshot that it continues
    excluded: spans that the user excludes from statistics and limits, in order
    """

    name: str
    header: JsonMap
    rows: Rows
    last: JsonMap
    summary: JsonMap = field(default_factory=dict)
    events: Sequence[Event] = ()
    settings: JsonMap = field(default_factory=dict)
    proof: Verdict | None = None
    uncounted: Sequence[tuple[float, float]] = ()
    intervals: Rows | None = None
    part: tuple[float, float] | None = None
    excluded: Sequence[FaultySpan] = ()

    @classmethod
    def of_measured(cls, measured: "Measured", name: str = "") -> "Results":
        """Results from the return value of `measure`."""
        header, rows = measured.header, measured.rows
        (last,) = rows.where(slice(-1, None))
        name = name or header["source"]["name"]
        intervals = measured.intervals
        return cls(name, header, rows, last, measured.summary, intervals=intervals)

    @property
    def step_s(self) -> float:
        """Seconds between rows."""
        return float(self.header["step_ms"]) / 1000

    @property
    def begin_s(self) -> float:
        """Begin in seconds of sound: 0 unless it is a part."""
        return 0.0 if self.part is None else self.part[0]

    @property
    def duration_s(self) -> float:
        """Time of the last row in seconds."""
        return float(self.rows["time_s"][-1])

    @property
    def start_utc(self) -> np.datetime64 | None:
        """UTC of time 0; None if unknown, as for a file."""
        known = ~np.isnat(self.rows["utc"])
        if not known.any():
            return None
        first = int(np.argmax(known))
        since = np.timedelta64(round(1000 * float(self.rows["time_s"][first])), "ms")
        return np.datetime64(self.rows["utc"][first] - since)

    @property
    def zone(self) -> tzinfo | None:
        """Time zone of the measurement, from a log or the header of a file.

        It is the named zone, with its rules of daylight saving, if that is known and has the offset
        in the log; else a fixed offset.
        """
        try:
            began = datetime.fromisoformat(str(self.settings.get("began_local")))
        except ValueError:
            return zone_of(self.header.get("zone")) if not self.settings else None
        place = zone_of(self.settings.get("zone"))
        same = place is not None and began.astimezone(place).utcoffset() == began.utcoffset()
        return place if same else began.tzinfo

    @property
    def calibrated(self) -> bool:
        """Whether readings are calibrated: uncalibrated sound counts only if there is no other."""
        tables = [self.rows] if self.intervals is None else [self.rows, self.intervals]
        flags = np.concatenate([table["calibrated"] for table in tables])
        return not len(flags) or bool(flags.any())

    @property
    def clipped(self) -> bool:
        """Whether any of the sound was clipped."""
        tables = [self.rows] if self.intervals is None else [self.rows, self.intervals]
        return any(bool((table["fault"] & Fault.CLIP).any()) for table in tables)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The columns of the readings, by name."""
        return {one["name"]: column_of(one) for one in self.header["columns"]}

    @cached_property
    def models(self) -> dict[str, Readings]:
        """All readings that its models offer, by model; those of unknown models are left out."""
        names = [one["name"] for one in self.header["models"]]
        known = [name for name in names if name in catalog.entries()]
        channels = len(self.header["source"]["channels"])
        heard = {one["name"]: len(one.get("channels", ())) for one in self.header["models"]}
        return readings_of(known, {name: heard[name] or channels for name in known}, band=True)

    @cached_property
    def known(self) -> dict[str, Column]:
        """`columns`, and the others that its models offer, by name."""
        return {c.name: c for one in self.models.values() for c in one.offered} | self.columns

    def source_of(self, statistic: Column) -> str:
        """The name of the instantaneous column behind a statistic; "" if the rows lack it."""
        for name, one in self.columns.items():
            same = (one.quantity, one.unit) == (statistic.quantity, statistic.unit)
            if same and one.statistic == "instantaneous" and name in self.rows.columns:
                return name
        return ""

    def settled(self, name: str) -> NDArray[np.bool_]:
        """At which rows a column has a reading that is not settling, nor after an excluded span."""
        calm = ~self.named_in("settling_columns", name)
        memory_s = self.columns[name].settle_s or 0.0
        for one in self.excluded:
            after_s = self.rows["time_s"] - one.end_s
            calm &= (after_s <= 0) | (after_s > memory_s)
        there: NDArray[np.bool_] = calm & np.isfinite(self.rows[name])
        return there

    def named_in(self, marks: str, name: str) -> NDArray[np.bool_]:
        """At which rows a column of marks, such as "settling_columns", names a reading."""
        texts = self.rows[marks]
        named = {text: is_named(name, text) for text in set(texts)}
        there: NDArray[np.bool_] = np.array([named[text] for text in texts], np.bool_)
        return there

    @property
    def reset_s(self) -> float:
        """When readings were last reset, if that was not undone; 0 without a reset."""
        times = (at_s for kind, at_s in _counting(self.events, ()) if kind == "readings_reset")
        return max(times, default=0.0)

    @property
    def marks(self) -> list[Event]:
        """Marks of the user."""
        return [event for event in self.events if event.kind == MARK]

    @property
    def stretches(self) -> list[FaultySpan]:
        """Faults of the sound in order; those of adjacent rows are merged.

        Sound that does not count because its calibration did not hold is one of them.
        """
        fault, found = self.rows["fault"], list[FaultySpan]()
        for bit, word in FAULT_NAMES.items():
            # A device that gave exact zeros has a gap, which is no other one.
            mine = fault & bit & ~np.where(fault & Fault.SILENT, np.uint8(Fault.GAP), np.uint8(0))
            found += [self._stretch(bit, word, part) for part in _together(mine)]
        if self.calibrated:
            doubtful = _together(~self.rows["calibrated"])
            found += [self._stretch(None, UNCALIBRATED_SOUND, part) for part in doubtful]
        found += self.excluded
        return sorted(found, key=lambda one: (one.begin_s, one.fault))

    def _stretch(self, bit: Fault | None, word: str, rows: Any) -> FaultySpan:
        """The span of adjacent rows, each of which covers the time since the one before."""
        time_s, first = self.rows["time_s"], int(rows[0])
        begin_s = float(time_s[first - 1]) if first else 0.0
        end_s = float(time_s[rows[-1]])
        own = [
            event
            for event in self.events
            if begin_s - self.step_s <= event.time_s <= end_s
            if event.kind in KINDS.get(bit, (word,))
        ]
        missing = [event for event in own if event.kind == GAPS[0] and event.samples]
        if missing:  # a log has it to the sample
            begin_s, last = missing[0].time_s, missing[-1]
            end_s = last.time_s + last.samples / self.header["source"]["fs"]
        text = next((event.text for event in own if event.text), "")
        return FaultySpan(word, begin_s, end_s, text)

    @property
    def limits(self) -> list[JsonMap]:
        """The result of each limit, from the summary, or from the rows without one."""
        if "limits" in self.summary:
            return [*self.summary["limits"]]
        given = self.header.get("limits", ())
        return [self._stood(one) for one in given if STATE + one["name"] in self.rows.columns]

    def _stood(self, data: Mapping[str, object]) -> JsonMap:
        """The result of a limit from these rows, for the counted times."""
        limit = limit_of(data)
        column = self.columns[limit.column]
        adds_up, rises = column.statistic.startswith(EQUIVALENT), column.if_clipped == AT_LEAST
        window_s, counted = column.window_s, column.counted
        monitor = LimitMonitor(limit, self.step_s, window_s, adds_up, counted, rises)
        time_s, values, states = (self.rows[n] for n in ("time_s", limit.column, limit.state))
        known, fault = states != STATES[UNCALIBRATED], self.rows["fault"]
        heard = (fault & UNHEARD == 0) & ~_is_off(fault, values)
        clipped = self.named_in("clipped_columns", limit.column)
        there = states != ""  # a limit may have come later
        for from_s, to_s in self.uncounted:
            there &= (time_s <= from_s) | (time_s > to_s)
        if len(time_s) and not there[0]:
            monitor.begin_late(float(time_s[np.argmax(there)]) - self.step_s)
        of_rows = [time_s, values, known, clipped, heard]
        of_rows += [self.rows[name] for name in [until_of(limit)] if name in self.rows.columns]
        rows = [column[there].tolist() for column in of_rows]
        done = 0
        # A level of the moment still remembers an excluded span after its end.
        memory_s = column.settle_s or 0.0 if column.statistic == "instantaneous" else 0.0
        spans = [(one.begin_s, one.end_s + memory_s) for one in self.excluded]
        for kind, at_s in _paused_too(_counting(self.events, self.uncounted), spans):
            until = bisect_right(rows[0], at_s + SAME_TIME_S)
            monitor.update(zip(*(row[done:until] for row in rows), strict=True))
            done = max(done, until)
            if kind == "readings_reset":
                monitor.reset(at_s)
            else:
                monitor.pause(kind == "paused", at_s)
        monitor.update(zip(*(row[done:] for row in rows), strict=True))
        return monitor.stood.to_dict()


def _is_off(fault: NDArray[np.uint8], values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """At which rows the model of a column was switched off, for a part of the time at least.

    fault: which says that some model was
    values: of the column, NaN while that is off, and before its first value
    """
    none = np.isnan(values)
    has_begun = np.logical_or.accumulate(~none)
    off: NDArray[np.bool_] = (fault & Fault.OFF) > 0
    off &= has_begun & (none | np.append(False, none[:-1]))
    return off


def merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans without overlap, in order."""
    found: list[tuple[float, float]] = []
    for begin_s, end_s in sorted(spans):
        if found and begin_s <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end_s)
        else:
            found.append((begin_s, end_s))
    return found


def _paused_too(
    turns: list[tuple[str, float]], spans: list[tuple[float, float]]
) -> list[tuple[str, float]]:
    """Pauses and resets with further pauses, which may overlap them."""
    if not spans:
        return turns
    found, since_s, pauses = list[tuple[str, float]](), math.nan, [*spans]
    for kind, at_s in (*turns, ("continued", math.inf)):
        if kind == "paused" and math.isnan(since_s):
            since_s = at_s
        elif kind == "continued" and not math.isnan(since_s):
            pauses.append((since_s, at_s))
            since_s = math.nan
        elif kind == "readings_reset":
            found.append((kind, at_s))
    for begin_s, end_s in merged(pauses):
        found += [("paused", begin_s), ("continued", end_s)]
    return sorted(found, key=lambda turn: turn[1])


def _counting(
    events: Iterable[Event], uncounted: Sequence[tuple[float, float]]
) -> list[tuple[str, float]]:
    """Kind and time of each pause and reset, from events.

    A reset that was undone is left out, as are resets that were undone with it.

    uncounted: times that a restored run does not know
    """
    found = SinceReset[list[tuple[str, float]]]([])
    for event in events:
        kind, at_s = event.kind, event.time_s
        if kind not in COUNTING or any(from_s < at_s <= to_s for from_s, to_s in uncounted):
            continue
        if kind == "reset_undone":
            found.undo()
        elif kind == "readings_reset":
            found.reset(at_s, [*found.now, (kind, at_s)])
        else:
            for turns in found.states:
                turns.append((kind, at_s))
    return found.now


def column_of(data: JsonMap) -> Column:
    """The column of a header's entry, whose model may be unknown here."""
    entry = {key: data[key] for key in ("name", "unit", "quantity", "model", "statistic")}
    known = column_named(data["name"])
    return Column(**entry) if known is None else replace(known, **entry)


def read_results(
    path: str | Path,
    wanted: Wanted = lambda column: True,
    *,
    run: int | None = None,
    microphone: str | None = None,
    tables: bool = False,
) -> Results:
    """Read a log, or a file of rows of `analyze` or `meter`.

    run: run of a log, by default the last; the runs that it continues are included
    microphone: name of one of several microphones
    tables: whether a file may have a table of intervals instead of rows

    Raises ResultsError or SessionError if it cannot be read or has no row.
    """
    path = Path(path)
    if path.is_dir():
        found: _Kept = _Log(path, run)
    elif run is not None:
        raise ResultsError(f"{path} is not a log and has no run {run}: leave it out")
    else:
        found = _File(path)
    header, summary = found.header, found.summary
    try:
        _check(header, summary)
    except (Invalid, LimitError) as fault:
        raise ResultsError(f"{path} has an invalid header or summary: {fault}") from fault
    if not header.get("statistics"):
        raise ResultsError(
            f"{path} has a row for each cell of a spectrum: choose a model with readings"
        )
    interval = header.get("interval", {})
    is_table = isinstance(interval, dict) and interval and "columns" not in interval
    if is_table and not tables:
        raise ResultsError(
            f"{path} has a table of intervals and no rows: give the log, or a file of rows"
        )
    _refuse_microphone(path, header["source"].get("microphones", {}), microphone)
    if is_table:
        return _results_of_table(path, found, microphone)
    limits = [limit_of(one) for one in header.get("limits", ())]
    limited = {name for one in limits for name in (one.column, until_of(one))}
    names = [
        one.name
        for one in map(column_of, header["columns"])
        if wanted(one) or one.name in limited or one.name.startswith(STATE)
    ]
    names = [*BEFORE, *names, *AFTER]
    try:
        rows, last = _narrowed(found.rows(), names, microphone)
        _check_rows(rows)
    except Invalid as fault:
        raise ResultsError(f"{path} has invalid rows: {fault}") from fault
    except NO_ROW as error:
        words = f"{type(error).__name__}: {brief(error)}"
        raise ResultsError(f"{path} has invalid rows ({words})") from error
    if not len(rows):
        raise ResultsError(f"{path} has no row yet")
    name, events = path.name, found.events
    if microphone:
        name = f"{name}, {microphone}"
        header = _header_of(header, microphone)
        summary = summary.get("microphones", {}).get(microphone, {})
        events = [event for event in events if event.microphone in ("", microphone)]
    intervals = _intervals(path, found.intervals(), microphone)
    about = found.settings, found.proof, found.uncounted, intervals
    return Results(name, header, rows, last, summary, events, *about)


def _results_of_table(path: Path, found: "_Kept", microphone: str | None) -> Results:
    """The results in a file with a table of intervals: no rows, only these."""
    header = found.header
    names = [*(one["name"] for one in header["columns"]), *AFTER_INTERVALS]
    names += [MICROPHONE] if microphone else []
    try:
        seconds = header["interval"]["seconds"]
        lines = [{name: row[name] for name in names} for row in found.rows()]
        if not 1 <= seconds <= DAY_S:
            raise ValueError(f"an interval of {brief(seconds)} s")
    except NO_ROW as error:
        words = f"{type(error).__name__}: {brief(error)}"
        raise ResultsError(f"{path} has an invalid table of intervals ({words})") from error
    table = _intervals(path, lines, microphone)
    if table is None:
        raise ResultsError(f"{path} has no interval yet")
    name = f"{path.name}, {microphone}" if microphone else path.name
    rows = Rows.concatenated([], [*BEFORE, *AFTER])
    return Results(name, header, rows, last={}, intervals=table)


def _intervals(path: Path, given: Iterable[JsonDict], microphone: str | None) -> Rows | None:
    """The stored table of intervals, or None."""
    own = [one for one in given if microphone in (None, one.get(MICROPHONE))]
    try:
        table = Rows.of(own) if own else None
        for name in ("time_s", "end_s", "measured_s"):
            if table is not None and not (np.abs(table[name]) <= LARGEST).all():
                raise ValueError(f"{name} is not a time")
    except NO_ROW as error:
        raise ResultsError(f"{path} has invalid intervals ({brief(error)})") from error
    return table


def _check_rows(rows: Rows) -> None:
    """Raise Invalid for the first value that cannot be measured."""
    for name in rows.columns:
        column = rows[name]
        if name == "time_s":
            wrong = ~((column >= 0) & (column <= LONGEST_S))
        elif name == "utc":
            wrong = ~np.isnat(column) & ~((column >= YEARS[0]) & (column < YEARS[1]))
        elif column.dtype.kind == "f":
            wrong = np.isfinite(column) & (np.abs(column) > LARGEST)
        elif column.dtype.kind == "O":
            wrong = np.array([not isinstance(value, str) for value in column])
        else:
            continue
        if wrong.any():
            raise Invalid(f"{name} is {brief(column[wrong][0])} in row {int(np.argmax(wrong)) + 1}")


def _check_source(source: JsonMap) -> None:
    try:
        SourceDescription.from_dict(source.get("sound", {}), len(source["channels"]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Invalid("the description of its sound is invalid") from error


def _check(header: JsonMap, summary: JsonMap) -> None:
    """Raise Invalid or LimitError for the first invalid field of header or summary."""
    if not isinstance(summary, dict):
        raise Invalid("the summary is not an object")
    if not isinstance(summary.get("sound", {}), dict):
        raise Invalid("the sound of its summary is not an object")
    _check_form(header, HEADER)
    _check_limits(header, LIMIT, "limits ")
    for one in header["statistics"].values():
        _check_form(one, COVERED, "statistics ")
    _check_channels(header)
    _check_source(header["source"])
    named = header["source"].get("microphones", {})
    if not isinstance(named, dict):
        raise Invalid("the microphones of its source are invalid")
    if named:
        _check_form([*named.values()], [[int]])
    named = summary.get("microphones")
    every = [summary, *(named.values() if isinstance(named, dict) else ())]
    if not all(isinstance(one, dict) for one in every):
        raise Invalid("the summary of a microphone is not an object")
    for one in every:
        _check_limits(one, STOOD, "summary limits ")
        for stood in one.get("limits", ()):
            at_s = stood["worst_s"]
            if stood["verdict"] not in VERDICTS:
                raise Invalid(f"summary limits verdict is {brief(stood['verdict'])}")
            window = [stood.get(key, 0.0) for key in ("heard_s", "window_s", "projection")]
            if not all(type(part) in NUMBER and math.isfinite(part) for part in window):
                raise Invalid("summary limits have no window")
            if stood["worst"] is not None and (at_s is None or not 0 <= at_s <= LONGEST_S):
                raise Invalid("summary limits worst_s is not a time")


def _check_channels(header: JsonMap) -> None:
    """Raise Invalid for a layout or for channels of a model that cannot be."""
    for model in header["models"]:
        _check_form(model.get("channels", [1]), [int], "the channels of a model ")
    layout = header["source"].get("layout")
    if layout is not None:
        _check_form(layout, {"positions": [str], "origin": str}, "layout ")
        try:
            Layout.from_dict(layout)
        except LayoutError as error:
            raise Invalid(f"layout: {error}") from error


def _check_limits(within: JsonMap, form: object, where: str) -> None:
    limits = within.get("limits", [])
    if limits != []:
        _check_form(limits, [form], where)
        for one in limits:
            limit_of({key: one[key] for key in LIMIT_KEYS if key in one})


def _check_form(data: object, form: object, where: str = "") -> None:
    """Raise Invalid for the first field that does not have the required form.

    form: a type, or a dict or list of forms
    """
    if isinstance(form, dict):
        if not isinstance(data, dict):
            raise Invalid(f"{where or 'it'} is not an object")
        missing = next((key for key in form if key not in data), None)
        if missing is not None:
            raise Invalid(f"{where}{missing} is missing")
        for key, of in form.items():
            _check_form(data[key], of, f"{where}{key} ")
    elif isinstance(form, list):
        if not isinstance(data, list) or not data:
            raise Invalid(f"{where}is not a list, or is empty")
        for one in data:
            _check_form(one, form[0], where)
    else:
        kinds = form if isinstance(form, tuple) else (form,)
        if not (bool in kinds if isinstance(data, bool) else isinstance(data, kinds)):
            raise Invalid(f"{where}is {brief(repr(data))}")


def _refuse_microphone(path: Path, there: Mapping[str, object], microphone: str | None) -> None:
    if there and microphone not in there:
        raise ResultsError(f"{path} has several microphones: choose one of {', '.join(there)}")
    if microphone and not there:
        raise ResultsError(
            f"{path} has no microphone called {microphone!r}: there was only one, leave that out"
        )


def _header_of(header: JsonMap, microphone: str) -> JsonDict:
    """The header of one microphone, as if it were the only one."""
    own = header["source"]["microphones"][microphone]
    source = {key: value for key, value in header["source"].items() if key != "microphones"}
    calibration = [one for one in header["calibration"] if one["channel"] in own]
    return {**header, "source": source | {"channels": own}, "calibration": calibration}


def _narrowed(
    given: Iterator[JsonDict], names: Sequence[str], microphone: str | None
) -> tuple[Rows, JsonDict]:
    """The chosen columns of rows, and the whole last row."""
    parts: list[Rows] = []
    last: JsonDict = {}
    own = (one for one in given if microphone is None or one[MICROPHONE] == microphone)
    while some := [*islice(own, AT_ONCE)]:
        last = some[-1]
        parts.append(Rows.of([{name: one[name] for name in names} for one in some]))
    return Rows.concatenated(parts, names), last


class _Log:
    """A run of a session, and the runs that it continues."""

    def __init__(self, path: Path, run: int | None) -> None:
        self.proof = verify(path)
        self._session = Session(path)
        runs = self._session.runs
        self._run = max(runs) if run is None else run
        if self._run not in runs:
            raise SessionError(f"{path} has no run {run}: there are {', '.join(map(str, runs))}")
        self.settings: JsonMap = self._session.descriptions[self._run]
        for key, kind in SETTINGS.items():
            if not isinstance(self.settings.get(key, {}), kind):
                raise ResultsError(
                    f"{path} has no settings of run {self._run}: its {key} is not an object"
                )
        self.header: JsonMap = self.settings.get("header", {})
        self._absent: JsonDict = {}
        """Of a log whose limits changed: what a row has that lacks a column."""
        if any(one.kind == LIMITS for one in self.events):
            self._follow_limits()

    def _follow_limits(self) -> None:
        path = self._session.path
        try:
            self.header = latest_header(self._session, self._runs, self.header)
            names = [one["name"] for one in self.header["columns"]]
            self._absent = {name: "" if name.startswith(STATE) else None for name in names}
        except NO_ROW as error:
            raise ResultsError(f"{path} has an invalid header ({brief(error)})") from error

    @property
    def _runs(self) -> list[int]:
        found = [self._run]
        while isinstance(restored := self._session.descriptions[found[0]].get("restored"), dict):
            before = restored.get("run")
            if before not in self._session.runs or before >= found[0]:
                raise SessionError(f"{self._session.path}: run {found[0]} continues no run")
            found.insert(0, before)
        return found

    def rows(self) -> Iterator[JsonDict]:
        for run in self._runs:
            for row in self._session.rows(run):
                there = {name: value for name, value in row.items() if value is not None}
                yield {**row, **self._absent, **there} if self._absent else row

    def intervals(self) -> Iterator[JsonDict]:
        found: list[JsonDict] = []
        for run in self._runs:
            own = self._session.intervals(run)
            # An interval of an interrupted run continues in the run that restores it.
            if own and found:
                found = [one for one in found if one["end_s"] <= own[0]["time_s"]]
            found += own
        return iter(found)

    @property
    def summary(self) -> JsonMap:
        for path in self._session.files(self._run, SUMMARY):
            if not path.is_file():
                continue  # it is in the chain: `verify` reports it as missing
            with as_session_error(path, "read"):
                text = path.read_text(encoding="utf-8", errors="replace")
            found: JsonMap = json_object(text).get("summary", {})
            return found
        return {}

    @property
    def events(self) -> Sequence[Event]:
        return [event for run in self._runs for event in self._session.events(run)]

    @property
    def uncounted(self) -> Sequence[tuple[float, float]]:
        fs, found = self.header["source"]["fs"], []
        for run in self._runs[1:]:
            sample = self._session.descriptions[run]["restored"].get("sample")
            for event in self._session.events(run):
                # A file is read again from the snapshot on; with a microphone that part is a gap.
                if event.kind == GAPS[0] and event.sample == sample:
                    found.append((event.sample / fs, (event.sample + event.samples) / fs))
        return found


class _File:
    """A file of rows."""

    events: Sequence[Event] = ()
    settings: JsonMap = MappingProxyType({})
    proof = None
    uncounted: Sequence[tuple[float, float]] = ()

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.suffix not in ROWS_IN:
            endings = ", ".join(ROWS_IN)
            raise ResultsError(
                f"{path} has no results: give the folder of a log, or a file of rows ({endings})"
            )
        self.summary: JsonMap = {}
        try:
            require_file(path)
            self.header: JsonMap = _HEADERS[path.suffix](self)
        except NotThatFile as error:
            raise ResultsError(f"{path} {error}") from error
        except OSError as error:
            raise ResultsError(f"{path} cannot be read: {why(error)}") from error

    def intervals(self) -> Iterator[JsonDict]:
        return iter(())

    def rows(self) -> Iterator[JsonDict]:
        return ROWS_IN[self._path.suffix](self._path)

    def _of_csv(self) -> JsonMap:
        return csv_header(self._path) or self._beside_csv()

    def _beside_csv(self) -> JsonMap:
        """The header of a CSV file that begins with the column names."""
        beside = header_path(self._path)
        try:
            header = json_object(small_text(beside)).get("header", {})
        except (NotThatFile, UnicodeDecodeError):
            return {}
        return header if isinstance(header, dict) else {}

    def _of_jsonl(self) -> JsonMap:
        self.summary = json_object(first_and_last(self._path)[1]).get("summary", {})
        return jsonl_header(self._path)

    def _of_parquet(self) -> JsonMap:
        header, self.summary = parquet_header(self._path)
        return header

    def _of_workbook(self) -> JsonMap:
        from amt_stream.sessions.outputs.workbook import header_in

        try:
            return header_in(self._path)
        except TableError as error:
            raise ResultsError(f"{self._path} {error}") from error


_HEADERS = {
    ".csv": _File._of_csv,
    ".jsonl": _File._of_jsonl,
    PARQUET: _File._of_parquet,
    XLSX: _File._of_workbook,
}

_Kept = _Log | _File
