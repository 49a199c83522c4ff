"""Rows, events and intervals in a database, which other programs may read meanwhile."""

import contextlib
import hashlib
import json
import math
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from amt_stream.meters.frames import Event
from amt_stream.meters.rows import Rows
from amt_stream.sessions.chain import Entry
from amt_stream.sessions.files import SessionError, new_name, same_file
from amt_stream.sessions.folder import DATABASE, Folder
from amt_stream.sessions.log_parts import Headers, LoggedEvent, LogHour, MakeHeader

BUSY_S = 1.0
EVENT = ("kind", "sample", "time_s", "utc", "samples", "text", "microphone", "cause")
TABLES = ("rows", "events", "intervals")
MOST_ROWS = 1 << 62
BROKEN_WORDS = "its schema is damaged"
"""Replaces a message of SQLite that quotes damaged text, which Python cannot decode."""


class DatabaseTrouble(OSError):
    """An error of SQLite as an OSError."""


@contextlib.contextmanager
def as_trouble() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise DatabaseTrouble(None, str(error)) from error
    except UnicodeDecodeError as error:
        raise DatabaseTrouble(None, BROKEN_WORDS) from sqlite3.DatabaseError(str(error))


class Database:
    """A `Store` in SQLite, with a write-ahead log, synchronized with every write.

    The tables "rows", "events" and "intervals" have a column "run" besides their own. "headers" has
    the header of each run as JSON, valid from the row "first" on; a change of calibration or
    settings adds another one. Columns that earlier runs lack are added.
    """

    def __init__(self, folder: Folder, header: MakeHeader) -> None:
        self._folder, self._header = folder, header
        self._headers = Headers()
        self._hours = LogHour()
        self._steps: deque[Callable[[], None]] = deque()
        self._columns: dict[str, tuple[str, ...]] = {}
        self._hour = ""
        self._began = self._changed = False
        # Never reuse the numbers of a lost database.
        closed = _last_closed(folder.chain.entries)
        self._next = {table: last + 1 for table, last in closed.items()}
        self._connection: sqlite3.Connection | None = None
        try:
            self._open()
            self._close_what_is_open(closed)
        except OSError as error:
            self._let_go()
            raise SessionError(f"{self.path} cannot be written: {error.strerror}") from error
        except BaseException:
            self._let_go()
            raise

    @property
    def path(self) -> Path:
        return self._folder.path / DATABASE

    @property
    def there(self) -> bool:
        return self._connection is not None and same_file(self.path, self._inode)

    def write(
        self, rows: Sequence[Rows], events: Sequence[LoggedEvent], intervals: Rows | None = None
    ) -> None:
        if events:  # events first, so that a gap in the rows is never without its event
            self._steps.append(partial(self._put_events, [one.event for one in events]))
        for header, some in self._headers.pieces(rows, events):
            if header is not None:
                self._steps.append(partial(self._change, header))
            for begins, piece in self._hours.pieces(some):
                if begins and self._began:
                    self._steps.append(self._close_parts)
                self._began = True
                self._steps.append(partial(self._put_rows, piece, self._hours.name))
        if intervals is not None:
            self._steps.append(partial(self._put_intervals, intervals))
        self.flush()

    def flush(self) -> None:
        if not self._steps:
            return
        if not self.there:
            raise DatabaseTrouble(None, "it was deleted")
        with as_trouble():
            while self._steps:
                self._steps[0]()
                self._steps.popleft()

    def reopen(self) -> None:
        self._let_go()
        self._open()

    def close(self) -> None:
        self._steps.append(self._close_parts)
        try:
            self.flush()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _open(self) -> None:
        try:
            self._connect()
        except DatabaseTrouble as error:
            if not isinstance(error.__cause__, sqlite3.DatabaseError) or isinstance(
                error.__cause__, sqlite3.OperationalError
            ):
                raise
            # The damaged file is kept, so that it can be repaired.
            self._let_go()
            aside = new_name(self._folder.path, DATABASE, ".damaged")
            for ending in ("", "-wal", "-shm"):
                beside = self.path.with_name(DATABASE + ending)
                if beside.exists():
                    beside.rename(aside.with_name(aside.name + ending))
            self._folder.repaired.append(f"{DATABASE} was damaged ({error.strerror}): {aside.name}")
            self._connect()

    def _connect(self) -> None:
        with as_trouble():
            self._connection = sqlite3.connect(
                self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            execute = self._connection.execute
            execute("PRAGMA trusted_schema = OFF")
            refuse_other_tables(self._connection)
            execute("PRAGMA journal_mode = WAL")
            execute("PRAGMA synchronous = FULL")
            execute(
                "CREATE TABLE IF NOT EXISTS headers "
                "(run INTEGER, first INTEGER, header TEXT, PRIMARY KEY (run, first))"
            )
            if "first" not in table_columns(self._connection, "headers"):
                execute("ALTER TABLE headers ADD COLUMN first INTEGER")
            given = ", ".join(EVENT)
            execute(
                f"CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, run INTEGER, {given})"
            )
            there = table_columns(self._connection, "events")
            for name in (name for name in EVENT if name not in there):
                execute(f"ALTER TABLE events ADD COLUMN {name}")
            for table in ("rows", "intervals"):
                execute(f"CREATE TABLE IF NOT EXISTS {table} (id INTEGER PRIMARY KEY, run INTEGER)")
            for table in TABLES:
                last = execute(f"SELECT max(id) FROM {table}").fetchone()[0] or 0
                self._next[table] = max(self._next[table], last + 1)
        self._inode = self.path.stat()
        self._columns = {"events": EVENT}
        self._open_since = dict(self._next)
        # Of what is written, which may be edited on the disk before a part is closed.
        self._digests = {table: hashlib.sha256() for table in TABLES}
        self._digests["headers"] = _begun_headers(
            self._connection, self._next["rows"], self._folder.run
        )

    def _close_what_is_open(self, closed: dict[str, int]) -> None:
        """Close parts that an interrupted run left open, after the last closed rows."""
        run = self._folder.chain.last_run
        assert self._connection is not None
        with as_trouble():
            for table, end in closed.items():
                if self._next[table] == end + 1:
                    continue
                columns = table_columns(self._connection, table)
                first, until = end + 1, self._next[table] - 1
                digest = sha256_of_rows(self._connection, table, columns, first, until)
                piece = {"table": table, "columns": columns, "first": first, "last": until}
                piece |= hash_of_headers(self._connection, table, first, until)
                self._folder.chain.add(max(1, run), DATABASE, digest, **piece, recovered=True)

    def _put_rows(self, rows: Rows, hour: str) -> None:
        self._hour = hour
        if self._columns.get("rows", rows.columns) != rows.columns:
            self._close_parts()  # the hash of a part is of one list of columns
        if self._columns.get("rows") != rows.columns or self._changed:
            self._add_columns("rows", rows.columns)
            self._begin_header()
        self._insert_rows("rows", rows)

    def _put_intervals(self, intervals: Rows) -> None:
        if self._columns.get("intervals") != intervals.columns:
            self._add_columns("intervals", intervals.columns)
        self._insert_rows("intervals", intervals)

    def _insert_rows(self, table: str, rows: Rows) -> None:
        values = [(self._folder.run, *map(stored, row)) for row in rows.tuples()]
        self._insert(table, ("run", *rows.columns), values)

    def _change(self, header: MakeHeader) -> None:
        self._header, self._changed = header, True

    def _put_events(self, events: Sequence[Event]) -> None:
        run = self._folder.run
        values = [(run, *(stored(getattr(event, name)) for name in EVENT)) for event in events]
        self._insert("events", ("run", *EVENT), values)

    def _insert(
        self, table: str, names: Sequence[str], values: Sequence[tuple[object, ...]]
    ) -> None:
        """Insert in one transaction, with ids from here, so that the hash covers known rows."""
        first = self._next[table]
        numbered = [(first + at, *row) for at, row in enumerate(values)]
        digest = self._digests[table].copy()
        for row in numbered:
            digest.update(canonical_row(row))
        listed, places = ", ".join(map(quoted, ("id", *names))), ", ".join("?" * (1 + len(names)))
        with transaction(self._connection) as connection:
            connection.executemany(f"INSERT INTO {table} ({listed}) VALUES ({places})", numbered)
        self._digests[table] = digest
        self._next[table] += len(numbered)

    def _add_columns(self, table: str, names: tuple[str, ...]) -> None:
        with transaction(self._connection) as connection:
            there = table_columns(connection, table)
            for name in names:
                if name not in there:
                    connection.execute(f"ALTER TABLE {table} ADD COLUMN {quoted(name)}")
        self._columns[table] = names

    def _begin_header(self) -> None:
        """Begin another header for the next rows."""
        header = self._folder.run, self._next["rows"], json.dumps(self._header())
        with transaction(self._connection) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO headers (run, first, header) VALUES (?, ?, ?)", header
            )
        self._digests["headers"].update(canonical_row(header))
        self._changed = False

    def _close_parts(self) -> None:
        for table in TABLES:
            first, after = self._open_since[table], self._next[table]
            if after == first:
                continue
            names = self._columns[table]
            self._folder.chain.add(
                self._folder.run,
                DATABASE,
                self._digests[table].hexdigest(),
                table=table,
                hour=self._hour,
                columns=["id", "run", *names],
                first=first,
                last=after - 1,
                headers=self._digests["headers"].hexdigest() if table == "rows" else None,
            )
            self._open_since[table] = after
            self._digests[table] = hashlib.sha256()
            if table == "rows":
                self._digests["headers"] = hashlib.sha256()


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection | None) -> Iterator[sqlite3.Connection]:
    """Commit what is done to an open connection, or undo it after an error."""
    assert connection is not None
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _last_closed(entries: Iterable[Entry]) -> dict[str, int]:
    """The last row of each table that a chain has."""
    last = dict.fromkeys(TABLES, 0)
    for entry in entries:
        table, end = entry.get("table"), entry.get("last")
        # `verify` reports an edited entry.
        if table in TABLES and isinstance(end, int) and 0 <= end < MOST_ROWS:
            last[table] = max(last[table], end)
    return last


def stored(value: object) -> Any:
    """A value as SQLite stores and returns it."""
    if isinstance(value, bool):
        return int(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def canonical_row(row: Sequence[object]) -> bytes:
    """The canonical text of a row of the database."""
    return (json.dumps(list(row), separators=(",", ":"), default=repr) + "\n").encode()


def quoted(name: str) -> str:
    """The name of a column, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def refuse_other_tables(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError if a table of a log is a view or has triggers.

    A view may have endless rows, and a trigger may run foreign code.
    """
    names = ", ".join(f"'{name}'" for name in ("headers", *TABLES))
    for kind, name, root in connection.execute(
        f"SELECT type, name, rootpage FROM sqlite_master WHERE tbl_name COLLATE NOCASE IN ({names})"
    ):
        if kind != "index" and not (kind == "table" and root):  # a virtual table has no root
            what = "virtual table" if kind == "table" else kind
            raise sqlite3.DatabaseError(f"it has the {what} {name!r}, and a log has only tables")


def table_columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(table)})")]


def _digest_of(rows: Iterable[Sequence[object]]) -> "hashlib._Hash":
    """The hash of rows of the database, in order."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(canonical_row(row))
    return digest


def headers_in(
    connection: sqlite3.Connection, first: int, last: int
) -> Iterator[tuple[object, ...]]:
    """The headers that begin in a part of "rows", with their runs and first rows, in order."""
    asked = "SELECT run, first, header FROM headers WHERE first BETWEEN ? AND ? ORDER BY first, run"
    yield from connection.execute(asked, (first, last))


def _begun_headers(connection: sqlite3.Connection | None, first: int, run: int) -> "hashlib._Hash":
    """The hash of headers of runs that ended before their first row, at the begin of a part."""
    assert connection is not None
    with as_trouble():
        begun = headers_in(connection, first, MOST_ROWS)
        # That of this run is written again.
        return _digest_of(header for header in begun if header[0] != run)


def hash_of_headers(
    connection: sqlite3.Connection, table: str, first: int, last: int
) -> dict[str, str]:
    """The hash of the headers that begin in a part of "rows", as `headers` of its entry."""
    if table != "rows":
        return {}
    return {"headers": _digest_of(headers_in(connection, first, last)).hexdigest()}


def sha256_of_rows(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], first: int, last: int
) -> str:
    """The hash of the rows of a part, in order."""
    # With the table's name, as SQLite takes unknown quoted columns for text.
    listed = ", ".join(f"{quoted(table)}.{quoted(name)}" for name in columns)
    asked = f"SELECT {listed} FROM {quoted(table)} WHERE id BETWEEN ? AND ? ORDER BY id"
    return _digest_of(connection.execute(asked, (first, last))).hexdigest()
