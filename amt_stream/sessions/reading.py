"""A session as it is read, while it is written or later."""

import csv
import json
import math
import os
import sqlite3
from collections.abc import Callable, Generator, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import brief
from amt_stream.meters.frames import Chunk, Event, Fault
from amt_stream.meters.rows.block import MICROPHONE
from amt_stream.sessions.chain import CHAIN, read_chain
from amt_stream.sessions.database import (
    BROKEN_WORDS,
    EVENT,
    quoted,
    refuse_other_tables,
    table_columns,
)
from amt_stream.sessions.files import LONGEST_LINE, SessionError, as_session_error
from amt_stream.sessions.folder import DATABASE, PARQUET, PART, read_descriptions, require_files
from amt_stream.sessions.parquet import rows_in

WORDS = ("utc", "local", "fault", "settling_columns")
MOST_SAMPLES = (1 << 63) - 1
"""What counts samples is of 64 bits."""

LONGEST_S = 1e9
"""No measurement goes on for longer."""

UNREAD = KeyError, OverflowError, TypeError, ValueError
"""What a number or a name that is none raises where it is read."""

TRUTHS = ("settling", "calibrated", "partial")


class Session:
    """What a session holds, run by run, counted from 1.

    `descriptions` tell how each run measured; `entries` are those of the chain, which closed parts
    have. Nothing is checked here: that does `verify`.

    Raises SessionError for what is no session, and for what cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise SessionError(f"{self.path} is no session: there is no such folder")
        if not (self.path / CHAIN).is_file():
            raise SessionError(f"{self.path} is no session: there is no {CHAIN} in it")
        require_files(self.path)
        self.entries = read_chain(self.path / CHAIN)[0]

    @cached_property
    def descriptions(self) -> dict[int, JsonDict]:
        return {one["run"]: one for one in read_descriptions(self.path)}

    @property
    def runs(self) -> tuple[int, ...]:
        return tuple(self.descriptions)

    def files(self, run: int, what: str) -> list[Path]:
        """Parts of a run in their order: "rows", "events" or "sound", those still open last."""
        last = max(self.runs)
        closed = {entry["part"]: entry["run"] for entry in self.entries}
        names = [name for name, of_run in closed.items() if of_run == run and _is(name, what)]
        if run == last:
            names += self.open_parts(what)
        return [self.path / name for name in names]

    def open_parts(self, what: str = "") -> list[str]:
        """Names of parts that no entry of the chain tells of, the oldest first."""
        closed = {entry["part"] for entry in self.entries}
        names = [name for name in os.listdir(self.path) if _is(name, what)]  # noqa: PTH208
        return sorted((name for name in names if name not in closed), key=self._age)

    def _age(self, name: str) -> tuple[str, int, str]:
        stem, _, number = name.partition(".")[0].partition("Z-")
        return stem.rstrip("Z"), int(number) if number.isdigit() else 1, name

    def rows(self, run: int | None = None) -> Generator[JsonDict]:
        """The rows of a run, of the last one by default, each as a dict by column."""
        yield from self._table("rows", max(self.runs) if run is None else run)

    def intervals(self, run: int | None = None) -> list[JsonDict]:
        """The table of intervals of a run, by default of the last one, as `rows`."""
        return [*self._table("intervals", max(self.runs) if run is None else run)]

    def _table(self, table: str, run: int) -> Generator[JsonDict]:
        if (self.path / DATABASE).exists():
            with told_of_database(self.path / DATABASE), opened(self.path) as connection:
                yield from _selected(connection, table, run)
        for path in self.files(run, table):
            with as_session_error(path, "read"):
                yield from ROWS_IN[path.suffix](path)

    def last_sample(self, since: int) -> int:
        """Where the last row stands of all runs from `since` on; -1 where there is none."""
        return max((self._last_of(run) for run in self.runs if run >= since), default=-1)

    def last_interval_s(self, since: int) -> float:
        """Where the last interval ends of all runs from `since` on, in seconds of sound."""
        ends = (row["end_s"] for run in self.runs if run >= since for row in self.intervals(run))
        return max((end for end in ends if isinstance(end, float)), default=-math.inf)

    def _last_of(self, run: int) -> int:
        last: Any = None
        if (self.path / DATABASE).exists():
            with told_of_database(self.path / DATABASE), opened(self.path) as connection:
                last = next(_selected(connection, "rows", run, "DESC"), None)
        for path in reversed(self.files(run, "rows")):
            with as_session_error(path, "read"):
                for row in ROWS_IN[path.suffix](path):
                    last = row
            if last is not None:
                break
        sample = -1 if last is None else last.get("sample")
        return sample if isinstance(sample, int) else -1

    def events(self, run: int | None = None) -> list[Event]:
        """What happened in a run, by default in the last one."""
        run = max(self.runs) if run is None else run
        found: list[dict[str, object]] = []
        if (self.path / DATABASE).exists():
            with told_of_database(self.path / DATABASE), opened(self.path) as connection:
                found += _selected(connection, "events", run)
        for path in self.files(run, "events"):
            with as_session_error(path, "read"):
                found += _json_lines(path)
        try:
            return [_event(one) for one in found]
        except UNREAD as error:
            raise SessionError(f"{self.path} has an event that is none: {brief(error)}") from error

    def sound(self, run: int | None = None) -> Iterator[Chunk]:
        """The sound of a run as the engine let it in, in chunks of a second at most.

        Of FLAC it is that of 24 bits. What is missing in a recording is `Chunk.missed`.
        """
        import soundfile

        run = max(self.runs) if run is None else run
        for path in self.files(run, "sound"):
            if path.suffix == ".jsonl":
                continue
            lines = path.with_suffix(".jsonl")
            if not lines.exists() or not lines.stat().st_size:
                continue  # it came to a sudden end before its first sound
            try:
                with as_session_error(path, "read"), soundfile.SoundFile(path) as file:
                    yield from _chunks(file, [*_json_lines(lines)])
            except (*UNREAD, soundfile.LibsndfileError) as error:
                raise SessionError(f"{path} cannot be read: {brief(error)}") from error


def _chunks(file: Any, lines: list[JsonDict]) -> Iterator[Chunk]:
    """Of one part: `lines` tell where its sound stands."""
    fs, frames = file.samplerate, file.frames
    places = [line for line in lines if "at" in line and 0 <= _count(line["at"]) <= frames]
    for place, end in zip(places, [*(_count(p["at"]) for p in places[1:]), frames], strict=True):
        at, sample, utc = _count(place["at"]), _count(place["sample"]), float(place["utc"])
        more = {name: _count(place[name]) for name in ("lost", "flags", "missed")}
        if min(more.values()) < 0 or more["flags"] > sum(Fault):
            raise ValueError(f"{brief(place)} tells of no sound")
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
    """A count of samples; raises ValueError, TypeError or OverflowError for what is none."""
    count = int(value)
    if abs(count) > MOST_SAMPLES:
        raise ValueError(f"more than {MOST_SAMPLES} samples are counted")
    return count


def _event(told: JsonDict) -> Event:
    kinds: tuple[Callable[[Any], Any], ...] = (str, _count, float, float, _count, str, str)
    given = {**told, "microphone": told.get("microphone") or ""}  # an older log has none
    values = (kind(given[name]) for kind, name in zip(kinds, EVENT, strict=True))
    event = Event(*values)
    if not abs(event.time_s) <= LONGEST_S:
        raise ValueError(f"its time_s is {event.time_s:g}")
    return event


class opened:
    """A database to be read, also where nothing may be written beside it."""

    def __init__(self, folder: Path) -> None:
        path = folder / DATABASE
        uri = path.absolute().as_uri()
        # Where nobody writes there is no log beside it, and none is to be made by reading.
        closed = not path.with_name(f"{DATABASE}-wal").exists()
        self.connection = self._connected(f"{uri}?immutable=1" if closed else f"{uri}?mode=ro")
        try:
            self._look()
        except sqlite3.OperationalError:
            self.connection.close()
            self.connection = self._connected(f"{uri}?immutable=1")

    def _connected(self, uri: str) -> sqlite3.Connection:
        # Rows that are given up half read are collected by any thread, which closes this.
        return sqlite3.connect(uri, uri=True, timeout=2.0, check_same_thread=False)

    def _look(self) -> None:
        self.connection.execute("PRAGMA trusted_schema = OFF")
        try:
            refuse_other_tables(self.connection)
        except UnicodeDecodeError as error:
            raise sqlite3.DatabaseError(BROKEN_WORDS) from error

    def __enter__(self) -> sqlite3.Connection:
        return self.connection

    def __exit__(self, *_: object) -> None:
        self.connection.close()


class told_of_database:
    """SessionError in place of what SQLite says."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise SessionError(f"{self._path} cannot be read: {error}") from error


def _selected(
    connection: sqlite3.Connection, table: str, run: int, order: str = "ASC"
) -> Iterator[JsonDict]:
    names = [name for name in table_columns(connection, table) if name not in ("id", "run")]
    if not names:
        return
    listed = ", ".join(f"{table}.{quoted(name)}" for name in names)
    for row in connection.execute(
        f"SELECT {listed} FROM {table} WHERE run = ? ORDER BY id {order}", (run,)
    ):
        found = dict(zip(names, row, strict=True))
        yield found | {name: bool(found[name]) for name in TRUTHS if name in found}


def _json_lines(path: Path) -> Iterator[JsonDict]:
    """The objects of a file of lines, up to one that is torn."""
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                return
            if isinstance(value, dict):
                yield value


def _json_rows(path: Path) -> Iterator[JsonDict]:
    return (row for row in _json_lines(path) if "time_s" in row)


def _csv_rows(path: Path) -> Iterator[JsonDict]:
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines = (line for line in file if not line.startswith("#") and line.endswith("\n"))
        for row in csv.DictReader(lines):
            if None in row or None in row.values():
                return
            yield {name: _value(name, text) for name, text in row.items()}


ROWS_IN = {".csv": _csv_rows, ".jsonl": _json_rows, PARQUET: rows_in}
"""What reads the rows of a part, by its ending."""


def _value(name: str, text: str) -> Any:
    if name in ("fault", "settling_columns", MICROPHONE):
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
