"""The state of the log."""

import shutil
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from amt_stream.sessions import SessionLog
from amt_stream.sessions.folder import DATABASE
from amt_stream.sessions.reading import opened
from amt_stream.sessions.snapshot import SNAPSHOT

if TYPE_CHECKING:
    from amt_stream.engine import Engine

LOOK_S = 2.0
RATE_S = 20.0
"""Seconds after which the rate of growth is known."""

TEMPORARY = ("-wal", "-shm", "-journal")
UNITS = ("B", "kB", "MB", "GB", "TB")


def log_in(engine: "Engine | None") -> SessionLog | None:
    if engine is None:
        return None
    return next((sink for sink in engine.sinks if isinstance(sink, SessionLog)), None)


class LogSize(NamedTuple):
    """Bytes of a log: of all that it keeps, and of the part that grows with time."""

    whole: int = 0
    growing: int = 0


class LogStatus:
    """Name, size and remaining time of a log; its files are looked up every 2 s."""

    def __init__(self) -> None:
        self._log: SessionLog | None = None
        self._looked_at = self._first_at = 0.0
        self._first = self._size = LogSize()
        self._free = 0
        self._ended_at: float | None = None

    def words(self, log: SessionLog | None) -> str:
        """As "Logging 00:12, 402 kB, 94 days left", or "Logged 00:12, 402 kB" once it has ended.

        "not logged" without a log.
        """
        if log is None:
            self._log = None
            return "not logged"
        now = time.monotonic()
        if log is not self._log:
            self._log, self._first_at, self._ended_at = log, now, None
            self._first = self._size = _size(log.path)
            self._looked_at = now
            self._free = _free(log.path)
        ends = log.is_closed and self._ended_at is None
        if ends:
            self._ended_at = now
        if ends or (self._ended_at is None and now - self._looked_at > LOOK_S):
            self._looked_at = now
            self._size, self._free = _size(log.path), _free(log.path)
        seconds = int((self._ended_at or now) - self._first_at)
        clock = f"{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        clock = f"{seconds // 3600}:{clock}" if seconds >= 3600 else clock
        size = _in_bytes(self._size.whole)
        if self._ended_at is not None:
            return f"Logged {clock}, {size}"
        words = f"Logging {clock}, {size}"
        grown, passed = self._size.growing - self._first.growing, self._looked_at - self._first_at
        if passed > RATE_S and grown > 0:
            words += f", {in_days(self._free / (grown / passed))} left"
        return words


def _in_bytes(count: float) -> str:
    for unit in UNITS[:-1]:
        if count < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 9.95 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} {UNITS[-1]}"


def in_days(seconds: float) -> str:
    """A long time, rounded."""
    for unit, length in (("years", 365 * 86400.0), ("days", 86400.0), ("h", 3600.0)):
        if seconds >= 2 * length:
            return f"{min(seconds / length, 100):.0f}{'+' if seconds > 100 * length else ''} {unit}"
    return f"{seconds / 60:.0f} min"


def _free(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def _size(folder: Path) -> LogSize:
    """A database counts with the pages that are still in its write-ahead log, which is temporary.

    A snapshot does not grow: it is written again each second.
    """
    try:
        sizes = {one.name: one.stat().st_size for one in folder.rglob("*") if one.is_file()}
        if DATABASE in sizes:
            with opened(folder) as database:
                (count,), (size,) = (
                    database.execute(f"PRAGMA {name}").fetchone()
                    for name in ("page_count", "page_size")
                )
            sizes[DATABASE] = count * size
    except (OSError, sqlite3.Error):
        return LogSize()
    kept = {name: size for name, size in sizes.items() if not name.endswith(TEMPORARY)}
    return LogSize(sum(kept.values()), sum(s for name, s in kept.items() if SNAPSHOT not in name))
