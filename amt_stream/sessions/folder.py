"""The folder of a session: its files, its lock, and repairs after an interrupted run.

    session.json              settings of the first run; session-2.json of the second, ...
    rows.sqlite               rows, events and intervals; or for each hour in UTC:
    rows-20261122T14Z.csv     rows (or .jsonl, or .parquet once it is closed),
    events-20261122T14Z.jsonl events, if any, and
    intervals-20261122T14Z.csv intervals that ended in the hour, if chosen
    sound-20261122T14Z.flac   sound, if chosen (or .wav), and
    sound-20261122T14Z.jsonl  its position in the count of samples
    summary.json              summary of the first run, if it ended in order
    chain.jsonl               the hash of each closed part, chained to the one before
    snapshot.state            state of the last run, to continue it; not in the chain

A second run in the same folder, or a second part of the same hour, gets a number: `-2`.
"""

import contextlib
import errno
import json
import os
import platform
import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from amt_stream import __version__
from amt_stream.core.clock import zone_name, zone_of
from amt_stream.core.files import NotThatFile, require_file
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.meters.calibration import utc_now
from amt_stream.sessions.chain import CHAIN, HashChain, head_of, is_run
from amt_stream.sessions.files import (
    SessionError,
    as_session_error,
    new_name,
    set_aside,
    sha256_of,
    write_whole,
)

SCHEMA = 1
"""Version of the form of a description."""

DESCRIPTION, SUMMARY = "session", "summary"
PART = re.compile(
    r"(session|summary|(rows|events|intervals|sound)-\d{8}T\d\dZ)(-\d+)?\.(json|jsonl|csv|parquet|wav|flac)"
)
"""Names of parts."""

DATABASE = "rows.sqlite"
OURS = {CHAIN, *(DATABASE + ending for ending in ("", "-wal", "-shm", "-journal"))}
LARGEST_DESCRIPTION = 1 << 24


def refuse_no_session(path: Path) -> None:
    """Raise SessionError if a path exists and is not a session."""
    with as_session_error(path, "written"):
        if not os.path.lexists(path):
            return
        if not path.is_dir():
            raise SessionError(f"{path} is not a folder: give a new one, or that of a session")
        names = os.listdir(path)  # noqa: PTH208 (names, and there may be many)
    if names and CHAIN not in names:
        raise SessionError(
            f"{path} is not a session (it has {min(names)}): give a new folder, or that of a "
            "session"
        )
    linked = [name for name in names if is_ours(name) and (path / name).is_symlink()]
    if linked:
        raise SessionError(
            f"{path / min(linked)} is a link, and a session writes no file outside its folder: "
            "give another folder"
        )
    require_files(path)


def is_ours(name: str) -> bool:
    """Whether a name is that of a file of a session."""
    return name in OURS or PART.fullmatch(name) is not None


def require_files(folder: Path) -> None:
    """Raise SessionError if a session's file is not a regular file.

    Reading a named pipe, for example, would never end.
    """
    with as_session_error(folder, "read"):
        names = [name for name in os.listdir(folder) if is_ours(name)]  # noqa: PTH208
    for name in names:
        try:
            require_file(folder / name)
        except NotThatFile as error:
            raise SessionError(f"{folder / name} {error}: it is not a file of a session") from error


class Folder:
    """The folder of a session that is being written.

    `run` is the number of this run, counted from 1; `repaired` has sentences about repairs at the
    start.

    private: if it is new, only its owner may access it

    Raises SessionError if it is not a session, another process writes it, or it cannot be written.
    """

    def __init__(self, path: str | Path, private: bool = False) -> None:
        self.path = Path(path)
        self._mode = 0o700 if private else 0o755
        self.repaired: list[str] = []
        refuse_no_session(self.path)
        with as_session_error(self.path, "written"):
            self.path.mkdir(self._mode, parents=True, exist_ok=True)
            self._device = self.path.stat().st_dev
        self.chain = HashChain(self.path)
        self._description: str | None = None
        try:
            self._writable()
            with as_session_error(self.path, "written"):
                self._close_what_is_open()
        except BaseException:
            self.chain.close()
            raise
        self.run = 1 + self.chain.last_run

    def _writable(self) -> None:
        """Raise SessionError if no file can be made."""
        with as_session_error(self.path, "written"):
            probe = self.path / f".probe.{os.getpid()}"
            with probe.open("xb") as file:
                file.write(b"?")
            probe.unlink()

    @property
    def closed(self) -> set[str]:
        """Names of the parts in the chain that have not been removed."""
        return self.chain.closed

    def _close_what_is_open(self) -> None:
        """Repair and close parts that an interrupted run left open."""
        if self.chain.repaired is not None:
            self.repaired.append(
                f"an incomplete line of {CHAIN} was moved to {self.chain.repaired.name}"
            )
        names = os.listdir(self.path)  # noqa: PTH208
        for name in sorted(names, key=_place):
            path = self.path / name
            if DRAFT.fullmatch(name):
                path.unlink()
            if path.suffix == PARQUET:
                path.with_suffix(".jsonl").unlink(missing_ok=True)  # the source of the Parquet file
            if name in self.closed or not PART.fullmatch(name) or not path.is_file():
                continue
            removed = self.chain.removed.get(name)
            if removed is not None and sha256_of(path, head_of(removed)) == removed["sha256"]:
                path.unlink()  # its removal was interrupted
                continue
            size = whole_lines(path) if path.suffix in LINES else path.stat().st_size
            torn = path.stat().st_size - size
            if torn:
                aside = set_aside(path, size)
                self.repaired.append(
                    f"{torn} bytes of an incomplete last row of {name} were moved to {aside.name}"
                )
            elif not size:
                path.unlink()  # created, but not written yet
            if size:
                last = self.chain.last_run
                run = last + 1 if DESCRIBED.fullmatch(name) else max(1, last)
                self.chain.add(run, name, sha256_of(path), bytes=size, recovered=True)

    def describe(self, description: Mapping[str, object]) -> None:
        """Write the description of this run. Raises SessionError."""
        described = {"session": SCHEMA, "run": self.run, **description}
        self._description = json.dumps(described, indent=1) + "\n"
        with as_session_error(self.path, "written"):
            self.add_whole(DESCRIPTION, self._description)

    def add_whole(self, stem: str, text: str) -> None:
        """Write and close a part. Raises OSError."""
        path = new_name(self.path, stem, ".json")
        data = write_whole(path, text)
        self.chain.add(self.run, path.name, sha256_of(path), bytes=len(data))

    @property
    def there(self) -> bool:
        """Whether the path still names the opened folder."""
        return self.chain.there

    def restore(self) -> None:
        """Make the folder again if it was deleted. Raises OSError.

        If its disk is gone, the path is on another disk, and nothing is made.
        """
        if self.there:
            return
        if not self.path.exists():
            if self.path.parent.stat().st_dev != self._device:
                raise FileNotFoundError(errno.ENOENT, "its disk is gone", str(self.path))
            self.path.mkdir(self._mode)
        elif self.path.stat().st_dev != self._device or (self.path / CHAIN).exists():
            raise FileNotFoundError(errno.ENOENT, "something else is in its place", str(self.path))
        self.chain.begin_again()
        if self._description is not None:
            self.add_whole(DESCRIPTION, self._description)

    def close(self) -> None:
        """Release the lock."""
        self.chain.close()


LINES = (".csv", ".jsonl")
PARQUET = ".parquet"
DESCRIBED = re.compile(r"session(-\d+)?\.json")
DRAFT = re.compile(
    r"\.(probe|(session|summary)(-\d+)?\.json|(rows|intervals)-\d{8}T\d\dZ(-\d+)?\.parquet)\.\d+"
)


def _place(name: str) -> tuple[bool, bool, str]:
    """Sort key of names: descriptions first; Parquet before the text that it was made from."""
    return not DESCRIBED.fullmatch(name), not name.endswith(PARQUET), name


def whole_lines(path: Path) -> int:
    """Size in bytes of the complete lines of a part, up to the first incomplete one."""
    size = 0
    is_line = _is_json if path.suffix == ".jsonl" else _IsCsv()
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n") or not is_line(line):
                break
            size += len(line)
    return size


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


class _IsCsv:
    """Whether a line of CSV has as many cells as the line of names; cells have no commas."""

    def __init__(self) -> None:
        self._cells: int | None = None

    def __call__(self, line: bytes) -> bool:
        if b"\0" in line:
            return False
        if line.startswith(b"#"):
            return self._cells is None
        cells = line.count(b",")
        if self._cells is None:
            self._cells = cells
        return cells == self._cells


def read_descriptions(path: Path) -> list[JsonDict]:
    """Read the descriptions of all runs, in order. Raises SessionError."""
    found = []
    with as_session_error(path, "read"):
        names = [name for name in os.listdir(path) if DESCRIBED.fullmatch(name)]  # noqa: PTH208
        for name in names:
            with (path / name).open("rb") as file:
                data = file.read(LARGEST_DESCRIPTION)
            description: object = None
            with contextlib.suppress(ValueError, RecursionError):
                description = json.loads(data)
            if (
                not isinstance(description, dict)
                or description.get("session") != SCHEMA
                or not is_run(description.get("run"))
            ):
                raise SessionError(f"{path / name} does not describe a session")
            found.append(description)
    if not found:
        raise SessionError(f"{path} is not a session: it has no {DESCRIPTION}.json")
    return sorted(found, key=lambda description: int(description["run"]))


def description(
    format: str,
    header: JsonMap,
    settings: Mapping[str, object],
    restored: JsonMap | None = None,
    repaired: Sequence[str] = (),
) -> JsonDict:
    """The description of a run that begins now, with the local time, its offset and its zone."""
    zone = header.get("zone") or zone_name(None, time.time())
    return {
        "format": format,
        "began_utc": utc_now(),
        "began_local": datetime.now(UTC).astimezone(zone_of(zone)).isoformat(timespec="seconds"),
        "zone": zone,
        "restored": restored,
        "header": header,
        **settings,
        "versions": _versions(),
        "repaired": [*repaired],
    }


def _versions() -> dict[str, str]:
    """Versions of all packages that may affect the numbers."""
    found = {"amt_stream": __version__, "python": platform.python_version()}
    for name in ("torch", "numba", "numpy", "soundfile"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found | {"sqlite": sqlite3.sqlite_version, "platform": platform.platform()}
