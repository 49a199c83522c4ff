"""Reading a session, even while it is being written."""

import csv
import json
import math
import os
import re
import sqlite3
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from amt_stream.core.files import encoding_of
from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import brief, sentence
from amt_stream.core.tables import PLAIN, TableError, separator_of
from amt_stream.core.workbooks import XLSX
from amt_stream.meters.frames import Chunk, Event, Fault
from amt_stream.meters.rows.block import MICROPHONE
from amt_stream.sessions import database
from amt_stream.sessions.chain import CHAIN, present, read_chain
from amt_stream.sessions.files import LONGEST_LINE, SessionError, as_session_error
from amt_stream.sessions.folder import DATABASE, PARQUET, PART, read_descriptions, require_files
from amt_stream.sessions.parquet import rows_in

NAMES = ("settling_columns", "clipped_columns")
"""Columns of names of readings."""

WORDS = ("utc", "local", "fault", *NAMES)
MOST_SAMPLES = (1 << 63) - 1
"""Largest count of samples, which has 64 bits."""

LONGEST_S = 1e9
"""Longest duration of a measurement."""

UNREAD = KeyError, OverflowError, TypeError, ValueError
"""Errors of reading invalid numbers or names."""

TRUTHS = ("settling", "calibrated", "partial")


class Session:
    """The content of a session by run, counted from 1.

    `descriptions` are the settings of each run; `entries` are those of the chain, one per closed
    part, and one per part that was removed since. Nothing is checked here; `verify` does that.

    Raises SessionError if it is not a session or cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise SessionError(f"{self.path} is not a session: there is no such folder")
        if not (self.path / CHAIN).is_file():
            raise SessionError(f"{self.path} is not a session: it has no {CHAIN}")
        require_files(self.path)
        self.entries = read_chain(self.path / CHAIN)[0]

    @cached_property
    def descriptions(self) -> dict[int, JsonDict]:
        return {one["run"]: one for one in read_descriptions(self.path)}

    @property
    def runs(self) -> tuple[int, ...]:
        return tuple(self.descriptions)

    def files(self, run: int, what: str) -> list[Path]:
        """Parts of a run in order, of "rows", "events" or "sound"; open ones last."""
        last = max(self.runs)
        closed = {entry["part"]: entry["run"] for entry in present(self.entries)}
        names = [name for name, of_run in closed.items() if of_run == run and _is(name, what)]
        if run == last:
            names += self.open_parts(what)
        return [self.path / name for name in names]

    def open_parts(self, what: str = "") -> list[str]:
        """Names of parts that are not in the chain, the oldest first."""
        closed = {entry["part"] for entry in present(self.entries)}
        names = [name for name in os.listdir(self.path) if _is(name, what)]  # noqa: PTH208
        return sorted((name for name in names if name not in closed), key=self._age)

    def _age(self, name: str) -> tuple[str, int, str]:
        stem, _, number = name.partition(".")[0].partition("Z-")
        return stem.rstrip("Z"), int(number) if number.isdigit() else 1, name

    def rows(self, run: int | None = None) -> Generator[JsonDict]:
        """Yield the rows of a run, by default of the last one, each as a dict by column."""
        yield from self._table("rows", max(self.runs) if run is None else run)

    def intervals(self, run: int | None = None) -> list[JsonDict]:
        """The table of intervals of a run, by default of the last one, as in `rows`."""
        return [*self._table("intervals", max(self.runs) if run is None else run)]

    def _table(self, table: str, run: int) -> Generator[JsonDict]:
        yield from self._of_database(table, run)
        for path in self.files(run, table):
            with as_session_error(path, "read"):
                yield from ROWS_IN[path.suffix](path)

    def _of_database(self, table: str, run: int, order: str = "ASC") -> Generator[JsonDict]:
        """Yield the rows of a table of the database, if there is one."""
        path = self.path / DATABASE
        if path.exists():
            try:
                with opened(self.path) as connection:
                    yield from _selected(connection, table, run, order)
            except sqlite3.Error as error:
                raise SessionError(f"{path} cannot be read: {sentence(error)}") from error

    def last_sample(self, since: int) -> int:
        """Sample of the last row of all runs from `since` on; -1 if there is none."""
        return max((self._last_of(run) for run in self.runs if run >= since), default=-1)

    def last_interval_s(self, since: int) -> float:
        """End of the last interval of all runs from `since` on, in seconds of sound."""
        ends = (row["end_s"] for run in self.runs if run >= since for row in self.intervals(run))
        return max((end for end in ends if isinstance(end, float)), default=-math.inf)

    def _last_of(self, run: int) -> int:
        with closing(self._of_database("rows", run, "DESC")) as found:
            last: Any = next(found, None)
        for path in reversed(self.files(run, "rows")):
            with as_session_error(path, "read"):
                for row in ROWS_IN[path.suffix](path):
                    last = row
            if last is not None:
                break
        sample = -1 if last is None else last.get("sample")
        return sample if isinstance(sample, int) else -1

    def events(self, run: int | None = None) -> list[Event]:
        """Events of a run, by default of the last one."""
        run = max(self.runs) if run is None else run
        found = [*self._of_database("events", run)]
        for path in self.files(run, "events"):
            with as_session_error(path, "read"):
                found += _json_lines(path)
        try:
            return [_event(one) for one in found]
        except UNREAD as error:
            raise SessionError(f"{self.path} has an invalid event: {brief(error)}") from error

    def sound(self, run: int | None = None) -> Iterator[Chunk]:
        """Yield the sound of a run as the engine received it, in chunks of at most 1 s.

        Sound from FLAC has 24 bits. `Chunk.missed` counts samples missing from the recording.
        """
        import soundfile

        run = max(self.runs) if run is None else run
        for path in self.files(run, "sound"):
            if path.suffix == ".jsonl":
                continue
            lines = path.with_suffix(".jsonl")
            if not lines.exists() or not lines.stat().st_size:
                continue  # interrupted before its first sound
            try:
                with as_session_error(path, "read"), soundfile.SoundFile(path) as file:
                    yield from _chunks(file, [*_json_lines(lines)])
            except (*UNREAD, soundfile.LibsndfileError) as error:
                raise SessionError(f"{path} cannot be read: {brief(error)}") from error


def _chunks(file: Any, lines: list[JsonDict]) -> Iterator[Chunk]:
    """Yield the chunks of a part; `lines` have the positions of its sound."""
    fs, frames = file.samplerate, file.frames
    places = [line for line in lines if "at" in line and 0 <= _count(line["at"]) <= frames]
    for place, end in zip(places, [*(_count(p["at"]) for p in places[1:]), frames], strict=True):
        at, sample, utc = _count(place["at"]), _count(place["sample"]), float(place["utc"])
        more = {name: _count(place[name]) for name in ("lost", "flags", "missed")}
        if min(more.values()) < 0 or more["flags"] > sum(Fault):
            raise ValueError(f"{brief(place)} has no sound")
        while True:
            file.seek(at)
            samples = file.read(min(fs, max(0, end - at)), dtype="float32", always_2d=True)
            yield Chunk(samples, sample, utc, **more)
            at, sample, utc, more = at + len(samples), sample + len(samples), utc + 1.0, {}
            if at >= end or not len(samples):
                break


def _is(name: str, what: str) -> bool:
    return PART.fullmatch(name) is not None and name.startswith(what)


def _count(value: Any) -> int:
    """Check a count of samples. Raises ValueError, TypeError or OverflowError."""
    count = int(value)
    if abs(count) > MOST_SAMPLES:
        raise ValueError(f"more than {MOST_SAMPLES} samples are counted")
    return count


def _event(data: JsonDict) -> Event:
    kinds: tuple[Callable[[Any], Any], ...] = (str, _count, float, float, _count, str, str, str)
    # Older logs lack these.
    given = {**data, **{name: data.get(name) or "" for name in ("microphone", "cause")}}
    values = (kind(given[name]) for kind, name in zip(kinds, database.EVENT, strict=True))
    event = Event(*values)
    if not abs(event.time_s) <= LONGEST_S:
        raise ValueError(f"its time_s is {event.time_s:g}")
    return event


class opened:
    """A database open for reading, even in a read-only folder."""

    def __init__(self, folder: Path) -> None:
        path = folder / DATABASE
        uri = path.absolute().as_uri()
        # Without a writer there is no write-ahead log, and reading must not make one.
        closed = not path.with_name(f"{DATABASE}-wal").exists()
        self.connection = self._connected(f"{uri}?immutable=1" if closed else f"{uri}?mode=ro")
        try:
            self._look()
        except sqlite3.OperationalError:
            self.connection.close()
            self.connection = self._connected(f"{uri}?immutable=1")
        except BaseException:
            self.connection.close()
            raise

    def _connected(self, uri: str) -> sqlite3.Connection:
        # Any thread may collect an unfinished generator of rows, which closes this.
        return sqlite3.connect(uri, uri=True, timeout=2.0, check_same_thread=False)

    def _look(self) -> None:
        self.connection.execute("PRAGMA trusted_schema = OFF")
        try:
            database.refuse_other_tables(self.connection)
        except UnicodeDecodeError as error:
            raise sqlite3.DatabaseError(database.BROKEN_WORDS) from error

    def __enter__(self) -> sqlite3.Connection:
        return self.connection

    def __exit__(self, *_: object) -> None:
        self.connection.close()


def _selected(
    connection: sqlite3.Connection, table: str, run: int, order: str
) -> Iterator[JsonDict]:
    names = [
        name for name in database.table_columns(connection, table) if name not in ("id", "run")
    ]
    if not names:
        return
    listed = ", ".join(f"{table}.{database.quoted(name)}" for name in names)
    for row in connection.execute(
        f"SELECT {listed} FROM {table} WHERE run = ? ORDER BY id {order}", (run,)
    ):
        found = dict(zip(names, row, strict=True))
        yield found | {name: bool(found[name]) for name in TRUTHS if name in found}


def opened_text(path: Path) -> TextIO:
    """Open a text in UTF-8, or in UTF-16 with a byte order mark, as PowerShell writes it."""
    with path.open("rb") as file:
        encoding = encoding_of(file.read(4))
    return path.open(encoding=encoding, errors="replace", newline="")


def _lines(path: Path) -> Generator[bytes]:
    with path.open("rb") as file:
        if encoding_of(file.read(4)) == "utf-16":
            with opened_text(path) as text:
                while line := text.readline(LONGEST_LINE):
                    yield line.encode()
            return
        file.seek(0)
        while content := file.readline(LONGEST_LINE):
            yield content


def first_and_last(path: Path) -> tuple[bytes, bytes]:
    """The first and the last line of a text, without reading what is between them."""
    with path.open("rb") as file:
        encoding = encoding_of(file.read(4))
        file.seek(0)
        if encoding == "utf-16":  # its lines have no end in bytes
            lines = deque(_lines(path), maxlen=1)
            return next(_lines(path), b""), next(iter(lines), b"")
        first = file.readline(LONGEST_LINE)
        file.seek(max(0, file.seek(0, 2) - LONGEST_LINE))
        return first, next(reversed(file.read().splitlines()), b"")


def _json_lines(path: Path) -> Iterator[JsonDict]:
    """Yield the objects of a file of JSON lines, up to an incomplete one."""
    with closing(_lines(path)) as lines:
        for line in lines:
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                return
            if isinstance(value, dict):
                yield value


def _json_rows(path: Path) -> Iterator[JsonDict]:
    return (row for row in _json_lines(path) if "time_s" in row)


def _csv_rows(path: Path) -> Iterator[JsonDict]:
    with opened_text(path) as file:
        lines = (line for line in file if not line.startswith("#") and line.endswith("\n"))
        head = next(lines, "")
        separator = separator_of(head)
        names = next(csv.reader([head], delimiter=separator), [])
        for cells in csv.reader(lines, delimiter=separator):
            if not cells:
                continue
            if len(cells) != len(names):
                return
            if separator != PLAIN.separator:
                cells = [_DECIMAL.sub(r"\1.\2", cell) for cell in cells]
            yield {name: _value(name, text) for name, text in zip(names, cells, strict=True)}


_DECIMAL = re.compile(r"^(-?\d+),(\d+(?:e[+-]?\d+)?)$")
"""A number with a decimal comma."""


def _workbook_rows(path: Path) -> Iterator[JsonDict]:
    from amt_stream.sessions.outputs.workbook import rows_in_workbook

    try:
        yield from rows_in_workbook(path)
    except TableError as error:
        raise SessionError(f"{path} {error}") from error


ROWS_IN = {".csv": _csv_rows, ".jsonl": _json_rows, PARQUET: rows_in, XLSX: _workbook_rows}
"""Readers of rows by the ending of a part."""


def _value(name: str, text: str) -> Any:
    if name in ("fault", *NAMES, MICROPHONE):
        return text
    if not text:
        return None
    if name in WORDS:
        return text
    if name in TRUTHS:
        return text == "true"
    try:
        return int(text) if name == "sample" else float(text)
    except ValueError:
        return text
