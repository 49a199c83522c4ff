"""Removal of old parts of a log, by age and by size.

The age is the time that is known to have passed, whatever date the computer shows.
"""

import math
import os
import re
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from amt_stream.core.clock import DAY_S
from amt_stream.core.files import why
from amt_stream.core.json_types import JsonMap
from amt_stream.core.safe_text import sentence
from amt_stream.core.saved_state import Unfitting
from amt_stream.core.words import counted
from amt_stream.engine.clock import ClockReading
from amt_stream.sessions.chain import CHAIN, REMOVED, Entry, read_chain
from amt_stream.sessions.files import SessionError
from amt_stream.sessions.folder import Folder, is_ours

HOURLY = re.compile(r"(rows|events|intervals|sound)-(\d{8}T\d\d)Z")
MOST_AT_ONCE = 100
"""Each removal is on the disk before the next, so more would hold up the rows."""

HOUR_S = 3600.0
DOUBT_S = DAY_S
"""A date that is further ahead of the time that is known to have passed is reported."""

OFF_S = 7 * DAY_S
"""The longest time for which the computer may have been off, and its date still counts."""

FIRST_UTC = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""No date before this one is right: the program did not exist yet."""


class Age(NamedTuple):
    """The age of a part in seconds since it was closed.

    known_s: what is known to have passed
    shown_s: what the dates of the computer show; NaN if the earlier date cannot be right
    """

    known_s: float
    shown_s: float


class ClosedPart(NamedTuple):
    """A part that is there: its name, its bytes according to the chain, and its age."""

    name: str
    size: int
    age: Age

    @property
    def stem(self) -> str:
        """What its files have in common: a sound file goes with the lines beside it."""
        return self.name.partition(".")[0]


@dataclass(frozen=True)
class Retention:
    """How much of a log is kept: days of parts, and bytes of all its files; None for all.

    every_s: time between looks; the first one is that late too
    """

    days: float | None = None
    size: int | None = None
    every_s: float = 600.0

    @property
    def keep_s(self) -> float:
        """The age from which parts are removed."""
        return math.inf if self.days is None else self.days * DAY_S

    @property
    def _days_text(self) -> str:
        return "1 day" if self.days == 1 else f"{self.days:g} days"

    def due(self, closed: Sequence[ClosedPart], others: int) -> dict[str, str]:
        """The parts to remove, each with the reason.

        By age the oldest that are due, with those that were closed within an hour after them. By
        size the oldest sound, and once there is none the oldest others. The chain decides what is
        oldest, as names follow the date of the computer, which may be wrong.

        closed: in the order of the chain
        others: bytes of the other files
        """
        hourly = [part for part in closed if HOURLY.match(part.name)]
        too_old = [part for part in hourly if part.age.known_s >= self.keep_s]
        begun_s = max((part.age.known_s for part in too_old), default=0.0) - HOUR_S
        old = {part.stem for part in too_old if part.age.known_s > begun_s}
        reasons = {
            part.name: f"older than {self._days_text}" for part in hourly if part.stem in old
        }
        if self.size is None:
            return reasons
        total = others + sum(part.size for part in closed if part.name not in reasons)
        for stem in sorted(dict.fromkeys(part.stem for part in hourly), key=_is_no_sound):
            if total <= self.size:
                break
            large = [part for part in hourly if part.stem == stem and part.name not in reasons]
            reasons |= {part.name: f"more than {size_text(self.size)}" for part in large}
            total -= sum(part.size for part in large)
        return reasons

    def wait_s(self, closed: Sequence[ClosedPart]) -> float:
        """Seconds until the next part is due by its age."""
        oldest_s = max(
            (part.age.known_s for part in closed if HOURLY.match(part.name)), default=0.0
        )
        return self.keep_s - oldest_s

    def doubt(self, closed: Sequence[ClosedPart]) -> str:
        """Why files stay that are older according to the date of the computer; "" if none are."""
        ahead = [
            part.age.shown_s - part.age.known_s
            for part in closed
            if HOURLY.match(part.name) and part.age.known_s < self.keep_s <= part.age.shown_s
        ]
        if max(ahead, default=0.0) <= DOUBT_S:
            return ""
        days = counted(round(max(ahead) / DAY_S), "day")
        return (
            f"files of the log older than {self._days_text} stay: this computer's date is {days} "
            "ahead of the time that is known to have passed since they were closed; check the date"
        )


class Removed(NamedTuple):
    """What was removed and left, as text or "" for nothing; whether more is due at once; a doubt.

    doubt: why files stay that seem old, or ""
    """

    text: str
    more: bool
    doubt: str


class PartRemover:
    """Removes parts of a log that are closed, unchanged in size, and due.

    The chain first gets an entry with the reason, so that `verify` knows of each removal.

    note: why files stay that are due or seem old, or "" [any-thread]
    """

    def __init__(self, folder: Folder, retention: Retention) -> None:
        self._folder, self._retention = folder, retention
        self._strange: set[str] = set()
        self._doubt = self.note = ""
        self._at = time.monotonic() + retention.every_s
        self._next_s = self._date_s = -math.inf
        """When the next part is due by `boot_s`, and `utc` minus `boot_s` at the last look."""

    def remove_in_turn(self) -> str:
        """Remove what is due if the last look was long ago, and return that as text, or ""."""
        if time.monotonic() < self._at:
            return ""
        try:
            removed = self.remove()
        except (OSError, SessionError) as error:
            words = f"old files of the log in {self._folder.path} cannot be removed"
            removed = Removed("", False, f"{words}: {sentence(why(error))}")
        self.note = removed.doubt
        self._at = time.monotonic() + (0.0 if removed.more else self._retention.every_s)
        return removed.text

    def remove(self) -> Removed:
        """Remove what is due, in steps. Raises OSError and SessionError."""
        now, sizes = ClockReading(), _sizes(self._folder.path)
        if not self._is_time(now, sum(sizes.values())):
            return Removed("", False, self._doubt)
        closed = self._closed(sizes, now)
        others = sum(size for name, size in sizes.items() if name not in self._folder.closed)
        due = self._retention.due([part for part, _ in closed], others)
        entries = {part.name: entry for part, entry in closed if part.name in due}
        gone, strange = self._remove(due, sizes, entries)
        words = []
        if gone:
            freed = size_text(sum(sizes[name] for name in gone))
            reasons = ", ".join(dict.fromkeys(due[name] for name in gone))
            last = f"{counted(len(gone), 'file')} ({freed}), the last one {gone[-1]}"
            words.append(f"removed from the log: {last}: {reasons}")
        words += [f"not removed, as it has changed since it was closed: {name}" for name in strange]
        left = [part for part, _ in closed if part.name not in {*gone, *strange}]
        self._doubt = self._retention.doubt(left)
        self._date_s = now.utc - now.boot_s
        self._next_s = now.boot_s + self._retention.wait_s(left)
        return Removed("; ".join(words), len(due) > MOST_AT_ONCE, self._doubt)

    def _is_time(self, now: ClockReading, total: int) -> bool:
        """Whether anything may have changed; a long chain takes seconds to read."""
        large = self._retention.size is not None and total > self._retention.size
        is_set = abs(now.utc - now.boot_s - self._date_s) > HOUR_S
        return large or is_set or now.boot_s >= self._next_s

    def _closed(
        self, sizes: Mapping[str, int], now: ClockReading
    ) -> list[tuple[ClosedPart, Entry]]:
        """The closed parts that are there and not strange, in the order of the chain."""
        entries = read_chain(self._folder.path / CHAIN)[0]
        latest: dict[str, tuple[ClosedPart, Entry]] = {}
        for entry, age in zip(entries, ages(entries, now), strict=True):
            latest.pop(entry["part"], None)
            if REMOVED not in entry:
                latest[entry["part"]] = ClosedPart(entry["part"], _bytes_of(entry), age), entry
        names = sizes.keys() & self._folder.closed - self._strange
        return [latest[name] for name in latest if name in names]

    def _remove(
        self, due: Mapping[str, str], sizes: Mapping[str, int], entries: Mapping[str, Entry]
    ) -> tuple[list[str], list[str]]:
        """Remove some of the parts; gives their names, and those that have changed."""
        gone, strange = [], []
        for name, reason in [*due.items()][:MOST_AT_ONCE]:
            entry = entries[name]
            if _bytes_of(entry) != sizes[name]:
                strange.append(name)
                continue
            more = {"bytes": sizes[name], "head": entry.get("head"), REMOVED: reason}
            self._folder.chain.add(entry["run"], name, entry["sha256"], **more)
            (self._folder.path / name).unlink()
            gone.append(name)
        self._strange.update(strange)
        return gone, strange


def reading_in(entry: JsonMap) -> ClockReading | None:
    """The clocks when an entry of a chain was written; None if it does not say."""
    found = entry.get("at")
    if not isinstance(found, Mapping):
        return None
    reading = ClockReading()
    try:
        reading.load_state_dict(found)
    except Unfitting:
        return None
    return reading if math.isfinite(reading.utc) and math.isfinite(reading.boot_s) else None


def known_s(before: ClockReading | None, after: ClockReading | None) -> float:
    """Seconds that are known to have passed between two moments.

    While the computer runs, a clock that nobody can set measures them. While it is off only the
    date can tell, so a long time, which a clock that was reset would show too, does not count.
    """
    if before is None or after is None:
        return 0.0
    passed_s = before.until(after) or 0.0
    return passed_s if before.same_boot(after) or passed_s <= OFF_S else 0.0


def ages(entries: Iterable[JsonMap], now: ClockReading) -> list[Age]:
    """The age of each entry of a whole chain, in order."""
    readings = [*(reading_in(entry) for entry in entries), now]
    found, total_s = [], 0.0
    for before, after in zip(readings[-2::-1], readings[:0:-1], strict=True):
        total_s += known_s(before, after)
        dated = before is not None and before.utc >= FIRST_UTC
        found.append(Age(total_s, now.utc - before.utc if before and dated else math.nan))
    return found[::-1]


def _bytes_of(entry: Entry) -> int:
    """The bytes of a part; -1, which no file has, if the chain does not say."""
    size = entry.get("bytes", -1)
    return size if isinstance(size, int) else -1


def _is_no_sound(stem: str) -> bool:
    return not stem.startswith("sound")


def _sizes(path: Path) -> dict[str, int]:
    """The size of each regular file of a session by its name; links are left out."""
    sizes = {}
    with os.scandir(path) as files:
        for file in files:
            about = file.stat(follow_symlinks=False)
            if is_ours(file.name) and stat.S_ISREG(about.st_mode):
                sizes[file.name] = about.st_size
    return sizes


def size_text(size: int) -> str:
    """A number of bytes as short text: 1.5 GB."""
    for power, unit in ((12, "TB"), (9, "GB"), (6, "MB")):
        if size >= 10**power:
            return f"{size / 10**power:.3g} {unit}"
    return f"{size / 1000:.3g} kB"
