"""A chain of hashes: each entry tells of a closed part, and holds the hash of the entry before."""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from amt_stream.core.json_types import JsonDict
from amt_stream.sessions.files import (
    LONGEST_LINE,
    GrowingFile,
    SessionError,
    as_session_error,
    held_elsewhere,
    set_aside,
)

CHAIN = "chain.jsonl"
BEGINNING = ""
"""What stands for the hash before the first entry."""

Entry = JsonDict


def canonical(value: object) -> str:
    """The one text of a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=True)


def hash_of(entry: Mapping[str, object]) -> str:
    """Of all that an entry says but this hash itself."""
    rest = {key: value for key, value in entry.items() if key != "hash"}
    return hashlib.sha256(canonical(rest).encode()).hexdigest()


def read_chain(path: Path) -> tuple[list[Entry], int]:
    """The entries, and how many bytes of the file they are: what follows is a torn last line.

    Raises SessionError for a line that is no entry.
    """
    entries: list[Entry] = []
    size = 0
    with as_session_error(path, "read"), path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            if not line.endswith(b"\n"):
                break
            try:
                entry = json.loads(line)
                whole = isinstance(entry, dict) and all(
                    isinstance(entry.get(key), kind) for key, kind in ENTRY.items()
                )
            except (ValueError, RecursionError):
                whole = False
            if not whole:
                if not file.read(1):  # a last line can be torn and end so all the same
                    break
                raise SessionError(f"{path}, line {len(entries) + 1} is no entry of a chain")
            entries.append(entry)
            size += len(line)
    return entries, size


ENTRY = {"n": int, "run": int, "part": str, "sha256": str, "before": str, "hash": str}
"""What every entry says; that of a part of a database also `table`, `first`, `last`, `columns`."""


def first_break(entries: Sequence[Entry]) -> str:
    """What is wrong with the first entry that does not follow from those before, or ""."""
    before, number = BEGINNING, 0
    for line, entry in enumerate(entries, 1):
        if entry["hash"] != hash_of(entry):
            return f"line {line} was edited"
        if entry["before"] != before or entry["n"] != number:
            return f"{entry['n'] - number} entries are missing before line {line}"
        before, number = entry["hash"], number + 1
    return ""


class HashChain:
    """The chain of a session that is written; it holds the session's lock.

    entries: those that were there at the start; of later ones the names alone are kept, `closed`

    Raises SessionError for a session that is written already, or whose chain cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / CHAIN
        self.repaired: Path | None = None
        self.entries: list[Entry] = []
        with as_session_error(self.path, "written"):
            new = not os.path.lexists(self.path)
            self._file = GrowingFile(self.path, None if new else 0)
        try:
            _lock(self._file, folder)
            if not new:
                self.entries, size = read_chain(self.path)
                with as_session_error(self.path, "written"):
                    if self.path.stat().st_size > size:
                        self._file.close()
                        self.repaired = set_aside(self.path, size)
                        self._file = GrowingFile(self.path, size if size else None)
                        _lock(self._file, folder)
                    self._file.size = size
        except BaseException:
            self.close()
            raise
        self.closed = {entry["part"] for entry in self.entries}
        self.last_run = max((entry["run"] for entry in self.entries), default=0)
        self._number = len(self.entries)
        self._before = self.entries[-1]["hash"] if self.entries else BEGINNING

    @property
    def there(self) -> bool:
        """Whether its file still has its name."""
        return self._file.there

    def add(self, run: int, part: str, sha256: str, **more: object) -> None:
        """Tell of a part that is closed. Raises OSError; it may be called again then."""
        entry: Entry = {"n": self._number, "run": run, "part": part, "sha256": sha256}
        entry |= {key: value for key, value in more.items() if value is not None}
        entry["before"] = self._before
        entry["hash"] = hash_of(entry)
        self._file.write((canonical(entry) + "\n").encode())
        self._before, self._number = entry["hash"], self._number + 1
        self.closed.add(part)
        self.last_run = max(self.last_run, run)

    def begin_again(self) -> None:
        """Go on in a new file, because the old one is gone; it tells how much is missing."""
        file = GrowingFile(self.path)
        self._file.close()
        self._file = file
        _lock(file, self.path.parent)

    def close(self) -> None:
        """Give the lock back."""
        with contextlib.suppress(OSError):
            self._file.close()


def _lock(file: GrowingFile, folder: Path) -> None:
    if held_elsewhere(file.fileno()):
        raise SessionError(
            f"{folder} is written by a meter that runs: stop it first, or give another folder"
        )


def is_locked(folder: Path) -> bool:
    """Whether a meter that runs writes this session."""
    try:
        import fcntl
    except ModuleNotFoundError:
        return False
    try:
        with (folder / CHAIN).open("rb") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
