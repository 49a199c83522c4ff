"""The state of the log."""

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from amt_stream.sessions import SessionLog

if TYPE_CHECKING:
    from amt_stream.engine import Engine

LOOK_S = 2.0
RATE_S = 20.0
"""Seconds after which the rate of growth is known."""

UNITS = ("B", "kB", "MB", "GB", "TB")


def log_in(engine: "Engine | None") -> SessionLog | None:
    if engine is None:
        return None
    return next((sink for sink in engine.sinks if isinstance(sink, SessionLog)), None)


class LogStatus:
    """Name, size and remaining time of a log; its files are looked up every 2 s."""

    def __init__(self) -> None:
        self._log: SessionLog | None = None
        self._looked_at = self._first_at = 0.0
        self._first_bytes = self._bytes = self._free = 0

    def words(self, log: SessionLog | None) -> str:
        """As "Logging 00:12, 402 kB, 94 days left"; "not logged" without a log."""
        if log is None:
            self._log = None
            return "not logged"
        now = time.monotonic()
        if log is not self._log:
            self._log, self._first_at, self._looked_at = log, now, 0.0
            self._first_bytes = _size(log.path)
        if now - self._looked_at > LOOK_S:
            self._looked_at = now
            self._bytes = _size(log.path)
            try:
                self._free = shutil.disk_usage(log.path).free
            except OSError:
                self._free = 0
        seconds = int(now - self._first_at)
        clock = f"{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        clock = f"{seconds // 3600}:{clock}" if seconds >= 3600 else clock
        words = f"Logging {clock}, {_in_bytes(self._bytes)}"
        grown, passed = self._bytes - self._first_bytes, now - self._first_at
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


def _size(folder: Path) -> int:
    try:
        return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    except OSError:
        return 0
