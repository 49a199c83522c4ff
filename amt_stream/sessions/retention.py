"""Removal of old parts of a log, by age and by size."""

import os
import re
import stat
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from amt_stream.core.clock import DAY_S
from amt_stream.core.words import counted
from amt_stream.sessions.chain import CHAIN, REMOVED, present, read_chain
from amt_stream.sessions.folder import Folder, is_ours
from amt_stream.sessions.log_parts import LONGEST_PART_S

HOURLY = re.compile(r"(rows|events|intervals|sound)-(\d{8}T\d\d)Z")
MOST_AT_ONCE = 100
"""Each removal is on the disk before the next, so more would hold up the rows."""


@dataclass(frozen=True)
class Retention:
    """How much of a log is kept: days of parts, and bytes of all its files; None for all.

    every_s: time between looks. The first one is that late too, so that a computer that starts with
        a wrong clock has set it by then
    """

    days: float | None = None
    size: int | None = None
    every_s: float = 600.0

    def due(self, closed: Mapping[str, int], others: int, now: float) -> dict[str, str]:
        """The parts to remove, each with the reason.

        By age all that are older. By size the oldest sound, and once there is none the oldest
        others; a sound file goes together with the lines beside it.

        closed: bytes of each closed part by its name
        others: bytes of the other files
        now: Unix time
        """
        found: dict[str, str] = {}
        total = others + sum(closed.values())
        stems: dict[str, list[str]] = defaultdict(list)
        for name in closed:
            if HOURLY.match(name):
                stems[name.partition(".")[0]].append(name)
        for stem in sorted(stems, key=_first_to_go):
            reason = ""
            if self.days is not None and _begin_s(stem) + LONGEST_PART_S + self.days * DAY_S <= now:
                reason = f"older than {self.days:g} {'day' if self.days == 1 else 'days'}"
            elif self.size is not None and total > self.size:
                reason = f"more than {size_text(self.size)}"
            if reason:
                found |= dict.fromkeys(sorted(stems[stem]), reason)
                total -= sum(closed[name] for name in stems[stem])
        return found


class Removed(NamedTuple):
    """What was removed and left, as text or "" for nothing, and whether more is due at once."""

    text: str
    more: bool


class PartRemover:
    """Removes parts of a log that are closed, unchanged in size, and due.

    The chain first gets an entry with the reason, so that `verify` knows of each removal.
    """

    def __init__(self, folder: Folder, retention: Retention) -> None:
        self._folder, self._retention = folder, retention
        self._strange: set[str] = set()

    def remove(self, now: float) -> Removed:
        """Remove what is due at a Unix time, in steps. Raises OSError and SessionError."""
        path = self._folder.path
        sizes = _sizes(path)
        closed = {name: size for name, size in sizes.items() if name in self._folder.closed}
        others = sum(size for name, size in sizes.items() if name not in closed)
        due = self._retention.due(closed, others, now)
        due = {name: reason for name, reason in due.items() if name not in self._strange}
        if not due:
            return Removed("", False)
        entries = {entry["part"]: entry for entry in present(read_chain(path / CHAIN)[0])}
        done, strange = [], []
        for name, reason in [*due.items()][:MOST_AT_ONCE]:
            # The chain may have been deleted, and begun again without this part.
            entry = entries.get(name)
            if entry is None or entry.get("bytes") != closed[name]:
                strange.append(name)
                continue
            more = {"bytes": closed[name], "head": entry.get("head"), REMOVED: reason}
            self._folder.chain.add(entry["run"], name, entry["sha256"], **more)
            (path / name).unlink()
            done.append(name)
        self._strange.update(strange)
        words = []
        if done:
            freed = size_text(sum(closed[name] for name in done))
            why = ", ".join(dict.fromkeys(due[name] for name in done))
            last = f"{counted(len(done), 'file')} ({freed}), the last one {done[-1]}"
            words.append(f"removed from the log: {last}: {why}")
        words += [f"not removed, as it has changed since it was closed: {name}" for name in strange]
        return Removed("; ".join(words), len(due) > MOST_AT_ONCE)


def _first_to_go(stem: str) -> tuple[bool, str, int, str]:
    """Sort key of parts without their ending: sound first, then by hour and number."""
    hour, number = _parsed(stem)
    return not stem.startswith("sound"), hour, number, stem


def _parsed(stem: str) -> tuple[str, int]:
    """The hour of a part, and its number within the hour."""
    found = HOURLY.match(stem)
    assert found is not None
    number = stem[found.end() :].removeprefix("-")
    return found[2], int(number or 1)


def _begin_s(stem: str) -> float:
    """Unix time of the hour of a part; a date that there is not counts as the newest."""
    try:
        return datetime.strptime(_parsed(stem)[0], "%Y%m%dT%H").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return float("inf")


def _sizes(path: Path) -> dict[str, int]:
    """The size of each regular file of a session by its name; links are left out."""
    found = {}
    with os.scandir(path) as files:
        for file in files:
            about = file.stat(follow_symlinks=False)
            if is_ours(file.name) and stat.S_ISREG(about.st_mode):
                found[file.name] = about.st_size
    return found


def size_text(size: int) -> str:
    """A number of bytes as short text: 1.5 GB."""
    for power, unit in ((12, "TB"), (9, "GB"), (6, "MB")):
        if size >= 10**power:
            return f"{size / 10**power:.3g} {unit}"
    return f"{size / 1000:.3g} kB"
