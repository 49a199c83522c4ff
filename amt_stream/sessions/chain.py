"""A hash chain: each entry describes a closed part and has the hash of the entry before."""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from amt_stream.core.json_types import JsonDict
from amt_stream.core.words import counted
from amt_stream.engine.clock import ClockReading
from amt_stream.sessions import files

CHAIN = "chain.jsonl"
BEGINNING = ""
"""The previous hash of the first entry."""

Entry = JsonDict

MOST_RUNS = 1_000_000
"""Of a session; a larger number has not been counted, and a database may not hold it."""


def is_run(value: object) -> bool:
    """Whether a value from a file is the number of a run."""
    return type(value) is int and 0 <= value <= MOST_RUNS


def canonical(value: object) -> str:
    """The canonical text of a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=True)


def hash_of(entry: Mapping[str, object]) -> str:
    """The hash of an entry, without its hash field."""
    rest = {key: value for key, value in entry.items() if key != "hash"}
    return hashlib.sha256(canonical(rest).encode()).hexdigest()


def read_chain(path: Path) -> tuple[list[Entry], int]:
    """Read the entries and their size in bytes; what follows is an incomplete last line.

    Raises SessionError for an invalid line.
    """
    entries: list[Entry] = []
    size = 0
    with files.as_session_error(path, "read"), path.open("rb") as file:
        while line := file.readline(files.LONGEST_LINE):
            if not line.endswith(b"\n"):
                break
            try:
                entry = json.loads(line)
                whole = isinstance(entry, dict) and all(
                    isinstance(entry.get(key), kind) for key, kind in ENTRY.items()
                )
                whole = whole and is_run(entry["run"])
            except (ValueError, RecursionError):
                whole = False
            if not whole:
                if not file.read(1):  # an incomplete last line can end like this too
                    break
                raise files.SessionError(
                    f"{path}, line {len(entries) + 1} is not an entry of a chain"
                )
            entries.append(entry)
            size += len(line)
    return entries, size


ENTRY = {"n": int, "run": int, "part": str, "sha256": str, "before": str, "hash": str}
"""Fields of every entry; `at` has the clocks when it was written (`sessions.retention`).

Parts of a database also have `table`, `first`, `last` and `columns`.
"""

REMOVED = "removed"
"""Field of an entry that says that a part was removed from a log, and why."""


LONGEST_HEAD = 1 << 20


def head_of(entry: Entry) -> int:
    """Bytes of the header of a sound file, which are hashed last; 0 for other parts."""
    head = entry.get("head", 0)
    return head if isinstance(head, int) and 0 <= head < LONGEST_HEAD else 0


def present(entries: Sequence[Entry]) -> list[Entry]:
    """The entries of parts that have not been removed."""
    places: dict[str, int] = {}
    gone: set[int] = set()
    for place, entry in enumerate(entries):
        if REMOVED in entry:
            gone.update((place, places.get(entry["part"], place)))
        else:
            places[entry["part"]] = place
    return [entry for place, entry in enumerate(entries) if place not in gone]


def first_break(entries: Sequence[Entry]) -> str:
    """The first inconsistency of a chain, or ""."""
    before, number = BEGINNING, 0
    for line, entry in enumerate(entries, 1):
        if entry["hash"] != hash_of(entry):
            return f"line {line} was edited"
        if entry["before"] != before or entry["n"] != number:
            return f"{counted(entry['n'] - number, 'entry', 'entries')} missing before line {line}"
        before, number = entry["hash"], number + 1
    return ""


class HashChain:
    """The chain of a session that is being written; it holds the session's lock.

    entries: entries at the start; of later ones only the names are stored, in `closed`, which has
        the parts that have not been removed

    Raises SessionError if another process writes the session, or its chain cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / CHAIN
        self.repaired: Path | None = None
        self.entries: list[Entry] = []
        with files.as_session_error(self.path, "written"):
            new = not os.path.lexists(self.path)
            self._file = files.GrowingFile(self.path, None if new else 0)
        try:
            _lock(self._file, folder)
            if not new:
                self.entries, size = read_chain(self.path)
                with files.as_session_error(self.path, "written"):
                    if self.path.stat().st_size > size:
                        self._file.close()
                        self.repaired = files.set_aside(self.path, size)
                        self._file = files.GrowingFile(self.path, size if size else None)
                        _lock(self._file, folder)
                    self._file.size = size
        except BaseException:
            self.close()
            raise
        self.closed = {entry["part"] for entry in present(self.entries)}
        self.removed = {
            entry["part"]: entry
            for entry in self.entries
            if REMOVED in entry and entry["part"] not in self.closed
        }
        """The entries of parts that were removed before the start, by name."""
        self.last_run = max((entry["run"] for entry in self.entries), default=0)
        self._number = len(self.entries)
        self._before = self.entries[-1]["hash"] if self.entries else BEGINNING

    @property
    def there(self) -> bool:
        """Whether the file still exists under its name."""
        return self._file.there

    def add(self, run: int, part: str, sha256: str, **more: object) -> None:
        """Add a closed part. Raises OSError, and may then be called again."""
        entry: Entry = {"n": self._number, "run": run, "part": part, "sha256": sha256}
        entry |= {key: value for key, value in more.items() if value is not None}
        entry["at"] = ClockReading().state_dict()
        entry["before"] = self._before
        entry["hash"] = hash_of(entry)
        self._file.write((canonical(entry) + "\n").encode())
        self._before, self._number = entry["hash"], self._number + 1
        if REMOVED in more:
            self.closed.discard(part)
        else:
            self.closed.add(part)
        self.last_run = max(self.last_run, run)

    def begin_again(self) -> None:
        """Continue in a new file if the old one is gone; its entries show how many are missing."""
        file = files.GrowingFile(self.path)
        self._file.close()
        self._file = file
        _lock(file, self.path.parent)

    def close(self) -> None:
        """Release the lock."""
        with contextlib.suppress(OSError):
            self._file.close()


def _lock(file: files.GrowingFile, folder: Path) -> None:
    if files.held_elsewhere(file.fileno()):
        raise files.SessionError(
            f"a running meter writes {folder}: stop it first, or give another folder"
        )


def is_locked(folder: Path) -> bool:
    """Whether a running meter writes this session."""
    try:
        with (folder / CHAIN).open("rb") as file:
            return files.held_elsewhere(file.fileno(), shared=True)
    except OSError:
        return False
