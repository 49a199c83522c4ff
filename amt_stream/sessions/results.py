"""What was measured, read back from where it was kept: a log, or a file of rows."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, require_file, small_text, why
from amt_stream.core.formats import header_path
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief, json_object
from amt_stream.meters.accumulators.window import window_s
from amt_stream.meters.frames import COUNTING, Event, Fault, undone_with
from amt_stream.meters.limits import KEYS as LIMIT_KEYS
from amt_stream.meters.limits import STATE, STATES, UNCALIBRATED, UNKNOWN, LimitError, limit_of
from amt_stream.meters.rows import AFTER, BEFORE, FAULT_NAMES, Rows
from amt_stream.meters.rows.block import MICROPHONE
from amt_stream.meters.rows.joined import EQUIVALENT
from amt_stream.meters.rows.limit_monitor import SAME_TIME_S, VERDICTS, LimitMonitor
from amt_stream.sessions import Session, SessionError
from amt_stream.sessions.files import LONGEST_LINE, as_session_error
from amt_stream.sessions.folder import PARQUET, SUMMARY
from amt_stream.sessions.parquet import refuse_no_parquet
from amt_stream.sessions.reading import LONGEST_S, ROWS_IN
from amt_stream.sessions.verify import Verdict, verify

if TYPE_CHECKING:
    from amt_stream.offline.measure import Measured

AT_ONCE = 4096
"""Rows that are dicts at a time."""

GAPS = ("gap", "dropped", "lost")
"""Events that say why something is missing."""

MARK = "mark"
"""Kind of the event with which somebody has marked a moment."""

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
"""What is needed of a header, and of which kind it has to be."""

LIMIT = {"name": str, "column": str}
STOOD = LIMIT | {"exceeded": (bool, type(None)), "whole": bool, "times": NUMBER, "red_s": NUMBER}
STOOD |= {"worst": MAYBE, "worst_s": MAYBE, "verdict": str}
COVERED = {"from_s": NUMBER}
SETTINGS = {"header": dict, "source": dict, "versions": dict}
"""Of a log's description what is read here, where it is there."""

YEARS = np.array(["1900", "2500"], "datetime64[Y]")
LARGEST = 1e12
"""What is beyond these, and LONGEST_S, was not measured."""

NO_ROW = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)
"""What reading raises of rows that were edited."""

Wanted = Callable[[JsonMap], bool]
"""Whether a column is to be read, by what the header tells of it."""


class ResultsError(Refusal, RuntimeError):
    """Nothing that was measured can be read there; the message says why in one sentence."""


@dataclass(frozen=True)
class FaultySpan:
    """A part of the sound in which something was wrong: the word of a fault, seconds, the cause."""

    fault: str
    begin_s: float
    end_s: float
    text: str = ""


@dataclass(frozen=True)
class Results:
    """What one measurement has given.

    name: of the folder or file, or of the sound
    header: what goes before the rows
    rows: of the columns that were wanted, and those before and after the readings
    last: the last row by name, all columns of it
    summary: what is told of the whole sound; empty where it came to a sudden end, or still goes on
    events: what happened meanwhile, as a log tells it
    settings: how it was measured, as a log tells it
    intervals: the table of intervals that a log keeps, if it does
    part: from when to when it was cut out of a longer measurement, in seconds of its sound
    proof: what `verify` found of the log's folder before it was read; None of anything else
    uncounted: parts of the time, in seconds, whose rows a run that was restored did not count: what
        came after the snapshot that it goes on from
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

    @classmethod
    def of_measured(cls, measured: "Measured", name: str = "") -> "Results":
        """What `measure` gave."""
        header, rows = measured.header, measured.rows
        (last,) = rows.where(slice(-1, None))
        name = name or header["source"]["name"]
        intervals = measured.intervals
        return cls(name, header, rows, last, measured.summary, intervals=intervals)

    @property
    def step_s(self) -> float:
        """From row to row."""
        return float(self.header["step_ms"]) / 1000

    @property
    def begin_s(self) -> float:
        """Where it begins, in seconds of sound: 0, unless it is a part."""
        return 0.0 if self.part is None else self.part[0]

    @property
    def duration_s(self) -> float:
        """Until the last row."""
        return float(self.rows["time_s"][-1])

    @property
    def start_utc(self) -> np.datetime64 | None:
        """When time 0 was; None where that is not known, as of a file."""
        known = ~np.isnat(self.rows["utc"])
        if not known.any():
            return None
        first = int(np.argmax(known))
        since = np.timedelta64(round(1000 * float(self.rows["time_s"][first])), "ms")
        return np.datetime64(self.rows["utc"][first] - since)

    @property
    def zone(self) -> tzinfo | None:
        """Of the clock where it was measured, as a log tells it.

        With the rules of its place where those are known, as when summer time ends, and give the
        offset that the log has; else that offset.
        """
        try:
            began = datetime.fromisoformat(str(self.settings.get("began_local")))
        except ValueError:
            return None
        try:
            place = ZoneInfo(str(self.settings.get("zone")))
        except (ValueError, OSError, ZoneInfoNotFoundError):
            return began.tzinfo
        return place if began.astimezone(place).utcoffset() == began.utcoffset() else began.tzinfo

    @property
    def calibrated(self) -> bool:
        """Whether the level was known all the time."""
        return bool(self.rows["calibrated"].all())

    @property
    def columns(self) -> dict[str, JsonMap]:
        """What the header tells of each reading, by name."""
        return {str(one["name"]): one for one in self.header["columns"]}

    @property
    def marks(self) -> list[Event]:
        """Moments that somebody has marked."""
        return [event for event in self.events if event.kind == MARK]

    @property
    def stretches(self) -> list[FaultySpan]:
        """What was wrong with the sound, in its order; faults of rows side by side are one."""
        found: list[FaultySpan] = []
        for bit, word in FAULT_NAMES.items():
            marked = np.flatnonzero(self.rows["fault"] & bit)
            parts = np.split(marked, np.flatnonzero(np.diff(marked) > 1) + 1)
            found += [self._stretch(bit, word, part) for part in parts if len(part)]
        return sorted(found, key=lambda one: (one.begin_s, one.fault))

    def _stretch(self, bit: Fault, word: str, rows: Any) -> FaultySpan:
        """Of rows that follow one another; each tells of what was since the one before."""
        time_s, first = self.rows["time_s"], int(rows[0])
        begin_s = float(time_s[first - 1]) if first else 0.0
        end_s = float(time_s[rows[-1]])
        own = [
            event
            for event in self.events
            if begin_s - self.step_s <= event.time_s <= end_s
            if (event.kind in GAPS if bit == Fault.GAP else event.kind == word)
        ]
        missing = [event for event in own if event.kind == GAPS[0] and event.samples]
        if missing and bit == Fault.GAP:  # a log knows it to the sample
            begin_s, last = missing[0].time_s, missing[-1]
            end_s = last.time_s + last.samples / self.header["source"]["fs"]
        text = next((event.text for event in own if event.text), "")
        return FaultySpan(word, begin_s, end_s, text)

    @property
    def limits(self) -> list[JsonMap]:
        """How each limit was kept, as a summary tells it, and judged from the rows without one."""
        if "limits" in self.summary:
            return [*self.summary["limits"]]
        given = self.header.get("limits", ())
        return [self._stood(one) for one in given if STATE + one["name"] in self.rows.columns]

    def _stood(self, told: Mapping[str, object]) -> JsonMap:
        """What the judge of a limit makes of these rows, and of what was to be counted."""
        limit = limit_of(told)
        column = self.columns.get(limit.column, {})
        adds_up = str(column.get("statistic", "")).startswith(EQUIVALENT)
        monitor = LimitMonitor(limit, self.step_s, window_s_of(column), adds_up)
        time_s, values, states = (self.rows[n] for n in ("time_s", limit.column, limit.state))
        known, clipped = states != STATES[UNCALIBRATED], states == STATES[UNKNOWN]
        there = np.ones(len(time_s), np.bool_)
        for from_s, to_s in self.uncounted:
            there &= (time_s <= from_s) | (time_s > to_s)
        rows = [column[there].tolist() for column in (time_s, values, known, clipped)]
        done = 0
        for kind, at_s in _counting(self.events, self.uncounted):
            until = bisect_right(rows[0], at_s + SAME_TIME_S)
            monitor.update(zip(*(row[done:until] for row in rows), strict=True))
            done = max(done, until)
            if kind == "readings_reset":
                monitor.reset(at_s)
            else:
                monitor.pause(kind == "paused", at_s)
        monitor.update(zip(*(row[done:] for row in rows), strict=True))
        return monitor.stood.to_dict()


def _counting(
    events: Iterable[Event], uncounted: Sequence[tuple[float, float]]
) -> list[tuple[str, float]]:
    """What events tell of what was counted: the kind and the time of each pause and reset.

    A reset that was undone has not been, nor one before it that could still be undone then.

    uncounted: parts of the time that a run which was restored knows nothing of
    """
    found: list[tuple[str, float]] = []
    resets: list[tuple[str, float]] = []
    for event in events:
        kind, at_s = event.kind, event.time_s
        if kind not in COUNTING or any(from_s < at_s <= to_s for from_s, to_s in uncounted):
            continue
        if kind == "reset_undone":
            found = [one for one in found if one not in resets]
            resets = []
            continue
        found.append((kind, at_s))
        if kind == "readings_reset":
            resets = resets if resets and undone_with(resets[-1][1], at_s) else []
            resets.append(found[-1])
    return found


def window_s_of(column: Mapping[str, object]) -> float:
    """The window of a rolling column, by what a header tells of it; 0 of any other."""
    _, _, window = str(column.get("statistic", "")).partition("last ")
    return window_s(window) if window else 0.0


def read_results(
    path: str | Path,
    wanted: Wanted = lambda column: True,
    *,
    run: int | None = None,
    microphone: str | None = None,
) -> Results:
    """What a log's folder holds, or a file of rows as `analyze` and `meter` write it.

    run: of a log with several runs, by default the last; what it went on from comes before it
    microphone: the name of one of several that were heard, each by itself

    Raises ResultsError, or SessionError, for what cannot be read, or holds no row.
    """
    path = Path(path)
    if path.is_dir():
        found: _Kept = _Log(path, run)
    elif run is not None:
        raise ResultsError(f"{path} is no log, so that there is no run {run}: leave it out")
    else:
        found = _File(path)
    header, summary = found.header, found.summary
    if fault := _fault(header, summary):
        raise ResultsError(f"{path} has no header or summary as rows have them: {fault}")
    if not header.get("statistics"):
        raise ResultsError(
            f"{path} has a row for each cell of a spectrum: give results of a model with readings"
        )
    interval = header.get("interval", {})
    if isinstance(interval, dict) and interval and "columns" not in interval:
        raise ResultsError(
            f"{path} holds a table of intervals and no rows: give the log, or a file of rows"
        )
    _refuse_microphone(path, header["source"].get("microphones", {}), microphone)
    limited = {one["column"] for one in header.get("limits", ())}
    names = [
        one["name"]
        for one in header["columns"]
        if wanted(one) or one["name"] in limited or one["name"].startswith(STATE)
    ]
    names = [*BEFORE, *names, *AFTER]
    try:
        rows, last = _narrowed(found.rows(), names, microphone)
    except NO_ROW as error:
        words = f"{type(error).__name__}: {brief(error)}"
        raise ResultsError(f"{path} has rows that are none ({words})") from error
    if not len(rows):
        raise ResultsError(f"{path} holds no row yet")
    if fault := _fault_of_rows(rows):
        raise ResultsError(f"{path} has rows that are none: {fault}")
    name, events = path.name, found.events
    if microphone:
        name = f"{name}, {microphone}"
        header = _header_of(header, microphone)
        summary = summary.get("microphones", {}).get(microphone, {})
        events = [event for event in events if event.microphone in ("", microphone)]
    intervals = _intervals(path, found.intervals(), microphone)
    about = found.settings, found.proof, found.uncounted, intervals
    return Results(name, header, rows, last, summary, events, *about)


def _intervals(path: Path, given: Iterable[JsonDict], microphone: str | None) -> Rows | None:
    """The table of intervals as it was kept; None where there is none."""
    own = [one for one in given if microphone in (None, one.get(MICROPHONE))]
    try:
        table = Rows.of(own) if own else None
        for name in ("time_s", "end_s", "measured_s"):
            if table is not None and not (np.abs(table[name]) <= LARGEST).all():
                raise ValueError(f"{name} is no time")
    except NO_ROW as error:
        raise ResultsError(f"{path} has intervals that are none ({brief(error)})") from error
    return table


def _fault_of_rows(rows: Rows) -> str:
    """What of them no meter has measured, in a sentence, or ""."""
    time_s, utc = rows["time_s"], rows["utc"]
    wrong = ~((time_s >= 0) & (time_s <= LONGEST_S))
    if wrong.any():
        return f"time_s is {time_s[wrong][0]} in row {int(np.argmax(wrong)) + 1}"
    wrong = ~np.isnat(utc) & ~((utc >= YEARS[0]) & (utc < YEARS[1]))
    if wrong.any():
        return f"utc is {utc[wrong][0]} in row {int(np.argmax(wrong)) + 1}"
    for name in rows.columns:
        column = rows[name]
        if column.dtype.kind == "f":
            wrong = np.isfinite(column) & (np.abs(column) > LARGEST)
        elif column.dtype.kind == "O":
            wrong = np.array([not isinstance(value, str) for value in column])
        else:
            continue
        if wrong.any():
            return f"{name} is {brief(column[wrong][0])} in row {int(np.argmax(wrong)) + 1}"
    return ""


def _fault(header: JsonMap, summary: JsonMap) -> str:
    """What of them is not as it has to be, or ""."""
    if not isinstance(summary, dict):
        return "the summary is no object"
    fault = _fault_of(header)
    if not fault and header.get("limits", []) != []:
        fault = _fault_of(header["limits"], [LIMIT], "limits ") or _refused_limit(header["limits"])
    for one in () if fault else header["statistics"].values():
        fault = fault or _fault_of(one, COVERED, "statistics ")
    named = header["source"].get("microphones", {}) if not fault else {}
    if not isinstance(named, dict) or (named and (fault := _fault_of([*named.values()], [[int]]))):
        fault = fault or "the microphones of its source are none"
    named = summary.get("microphones")
    every = [summary, *(named.values() if isinstance(named, dict) else ())]
    if not fault and not all(isinstance(one, dict) for one in every):
        fault = "the summary of a microphone is no object"
    for one in every:
        if not fault and one.get("limits", []) != []:
            fault = _fault_of(one["limits"], [STOOD], "summary limits ")
            fault = fault or _refused_limit(one["limits"])
        for stood in () if fault else one.get("limits", ()):
            at_s = stood["worst_s"]
            if stood["verdict"] not in VERDICTS:
                fault = f"summary limits verdict is {brief(stood['verdict'])}"
            window = [stood.get(key, 0.0) for key in ("heard_s", "window_s", "projection")]
            if not all(type(part) in NUMBER and math.isfinite(part) for part in window):
                fault = "summary limits tell of no window"
            if stood["worst"] is not None and (at_s is None or not math.isfinite(at_s)):
                fault = "summary limits worst_s is no time"
    return fault


def _refused_limit(limits: Sequence[Mapping[str, object]]) -> str:
    try:
        for one in limits:
            limit_of({key: one[key] for key in LIMIT_KEYS if key in one})
    except LimitError as refusal:
        return str(refusal)
    return ""


def _fault_of(told: object, form: object = HEADER, where: str = "") -> str:
    """What of a header is not as `form` has it, or "": a dict or list of forms, or a type."""
    if isinstance(form, dict):
        if not isinstance(told, dict):
            return f"{where or 'it'} is no object"
        missing = next((key for key in form if key not in told), None)
        if missing is not None:
            return f"{where}{missing} is missing"
        parts = ((f"{where}{key} ", told[key], form[key]) for key in form)
    elif isinstance(form, list):
        if not isinstance(told, list) or not told:
            return f"{where}is no list, or empty"
        parts = ((where, one, form[0]) for one in told)
    else:
        kinds = form if isinstance(form, tuple) else (form,)
        fits = bool in kinds if isinstance(told, bool) else isinstance(told, kinds)
        return "" if fits else f"{where}is {brief(repr(told))}"
    return next((fault for at, one, of in parts if (fault := _fault_of(one, of, at))), "")


def _refuse_microphone(path: Path, there: Mapping[str, object], microphone: str | None) -> None:
    if there and microphone not in there:
        raise ResultsError(f"{path} has several microphones: choose one of {', '.join(there)}")
    if microphone and not there:
        raise ResultsError(
            f"{path} has no microphone called {microphone!r}: one alone was heard, leave that out"
        )


def _header_of(header: JsonMap, microphone: str) -> JsonDict:
    """The header as it would be if this microphone were the only one."""
    own = header["source"]["microphones"][microphone]
    source = {key: value for key, value in header["source"].items() if key != "microphones"}
    calibration = [one for one in header["calibration"] if one["channel"] in own]
    return {**header, "source": source | {"channels": own}, "calibration": calibration}


def _narrowed(
    given: Iterator[JsonDict], names: Sequence[str], microphone: str | None
) -> tuple[Rows, JsonDict]:
    """These columns of rows, and the whole last row."""
    parts: list[Rows] = []
    last: JsonDict = {}
    own = (one for one in given if microphone is None or one[MICROPHONE] == microphone)
    while some := [*islice(own, AT_ONCE)]:
        last = some[-1]
        parts.append(Rows.of([{name: one[name] for name in names} for one in some]))
    return Rows.concatenated(parts, names), last


class _Log:
    """A session's folder: one run, and those that it went on from."""

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
                    f"{path} does not say how run {self._run} was measured: its {key} is no object"
                )
        self.header: JsonMap = self.settings.get("header", {})

    @property
    def _runs(self) -> list[int]:
        found = [self._run]
        while isinstance(restored := self._session.descriptions[found[0]].get("restored"), dict):
            before = restored.get("run")
            if before not in self._session.runs or before >= found[0]:
                raise SessionError(f"{self._session.path}: run {found[0]} goes on from no run")
            found.insert(0, before)
        return found

    def rows(self) -> Iterator[JsonDict]:
        for run in self._runs:
            yield from self._session.rows(run)

    def intervals(self) -> Iterator[JsonDict]:
        found: list[JsonDict] = []
        for run in self._runs:
            own = self._session.intervals(run)
            if own and found:  # an interval that a run left off goes on in the run that restores it
                found = [one for one in found if one["end_s"] <= own[0]["time_s"]]
            found += own
        return iter(found)

    @property
    def summary(self) -> JsonMap:
        for path in self._session.files(self._run, SUMMARY):
            if not path.is_file():
                continue  # the chain tells of it: `verify` says that it is missing
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
                # A file is heard again from the snapshot on; of a microphone that part is a gap.
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
                f"{path} holds no results: give the folder of a log, or a file of rows ({endings})"
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
        found = {}
        with self._path.open(encoding="utf-8", errors="replace") as file:
            while (line := file.readline(LONGEST_LINE)).startswith("# "):
                key, _, value = line[2:].partition(": ")
                found.update(json_object(f'{{"{key}": {value}}}'))
        return found or self._beside_csv()

    def _beside_csv(self) -> JsonMap:
        """Of a file that begins with the names of its columns."""
        beside = header_path(self._path)
        try:
            header = json_object(small_text(beside)).get("header", {})
        except (NotThatFile, UnicodeDecodeError):
            return {}
        return header if isinstance(header, dict) else {}

    def _of_jsonl(self) -> JsonMap:
        with self._path.open("rb") as file:
            header = json_object(file.readline(LONGEST_LINE)).get("header", {})
            file.seek(max(0, file.seek(0, 2) - LONGEST_LINE))
            last = file.read().splitlines()[-1:]
            self.summary = json_object(last[0]).get("summary", {}) if last else {}
        return header if isinstance(header, dict) else {}

    def _of_parquet(self) -> JsonMap:
        refuse_no_parquet()
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        try:
            with ParquetFile(self._path) as file:
                told = file.schema_arrow.metadata or {}
                beside = file.metadata.metadata or {}
        except ArrowException as error:
            raise ResultsError(f"{self._path} cannot be read: {brief(error)}") from error
        self.summary = json_object(beside.get(b"summary", b"{}"))
        return json_object(told.get(b"header", b"{}"))


_HEADERS = {".csv": _File._of_csv, ".jsonl": _File._of_jsonl, PARQUET: _File._of_parquet}

_Kept = _Log | _File
