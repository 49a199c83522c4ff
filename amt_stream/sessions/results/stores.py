"""Where results are stored: a run of a log, or a file of rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType

from amt_stream.core.files import NotThatFile, require_file, small_text, why
from amt_stream.core.formats import header_path
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief, json_object
from amt_stream.core.tables import TableError
from amt_stream.core.values import Number
from amt_stream.core.workbooks import XLSX
from amt_stream.meters.frames import LEFT_OUT_S, LIMITS, Event, impulse_event
from amt_stream.meters.names import limit_in
from amt_stream.sessions import Session, SessionError
from amt_stream.sessions.files import as_session_error
from amt_stream.sessions.folder import PARQUET, SUMMARY
from amt_stream.sessions.headers import csv_header, jsonl_header, latest_header, parquet_header
from amt_stream.sessions.reading import ROWS_IN, first_and_last
from amt_stream.sessions.results.checks import LARGEST
from amt_stream.sessions.results.results import GAPS, ResultsError
from amt_stream.sessions.verify import verify

SETTINGS = {"header": dict, "source": dict, "versions": dict}
"""Fields of a log's description that are used here, if present."""

NO_ROW = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)
"""Errors of reading edited rows."""


class Log:
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
            self._absent = {name: "" if limit_in(name) else None for name in names}
        except NO_ROW as error:
            raise ResultsError(f"{path} has an invalid header ({brief(error)})") from error

    @property
    def _runs(self) -> list[int]:
        runs = [self._run]
        while isinstance(restored := self._session.descriptions[runs[0]].get("restored"), dict):
            before = restored.get("run")
            if before not in self._session.runs or before >= runs[0]:
                raise SessionError(f"{self._session.path}: run {runs[0]} continues no run")
            runs.insert(0, before)
        return runs

    def rows(self) -> Iterator[JsonDict]:
        for run in self._runs:
            for row in self._session.rows(run):
                there = {name: value for name, value in row.items() if value is not None}
                yield {**row, **self._absent, **there} if self._absent else row

    def intervals(self) -> Iterator[JsonDict]:
        intervals: list[JsonDict] = []
        for run in self._runs:
            own = self._session.intervals(run)
            # An interval of an interrupted run continues in the run that restores it.
            if own and intervals:
                intervals = [one for one in intervals if one["end_s"] <= own[0]["time_s"]]
            intervals += own
        return iter(intervals)

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


class FileOfRows:
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

    @property
    def events(self) -> Sequence[Event]:
        """That impulses were left out."""
        times = self.header.get(LEFT_OUT_S)
        known = filter(Number(0, LARGEST).allows, times if isinstance(times, list) else ())
        return [impulse_event(False, time_s) for time_s in known]

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
    ".csv": FileOfRows._of_csv,
    ".jsonl": FileOfRows._of_jsonl,
    PARQUET: FileOfRows._of_parquet,
    XLSX: FileOfRows._of_workbook,
}

Store = Log | FileOfRows
