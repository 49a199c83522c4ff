"""The manifest of a batch: a line for each part, so that an interrupted run can continue.

JSON lines in an append-only file beside the parts, each on the disk before the next one:

    {"run": 1, "date": ..., "settings": {...}}     a run begins, with its settings
    {"part": "a.csv", "state": "planned", "sound": {...}}   will be written, from this sound
    {"part": "a.csv", "state": "done", "bytes": 123, "summary": {...}}
    {"part": "a.csv", "state": "failed", "why": "..."}

The last line of a part is valid. A part gets its name once it is complete, and then its line
"done"; a part that exists and is only planned is measured again.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from amt_stream.core.files import why
from amt_stream.core.json_types import JsonMap
from amt_stream.meters.calibration import utc_now
from amt_stream.sessions.files import GrowingFile, held_elsewhere

NAME = "_manifest.jsonl"
"""Readers of a folder of Parquet files ignore names with this prefix."""


class ManifestError(RuntimeError):
    """A manifest cannot be read or written, or its batch cannot be continued."""


@dataclass(frozen=True)
class BatchPart:
    """A part: its state, its sound, and its settings.

    length: size in bytes, once it is done
    """

    state: str
    sound: JsonMap
    settings: JsonMap
    length: int = -1
    summary: JsonMap | None = None


class Manifest:
    """The manifest of a folder, read immediately and written from `begin` on, by one run at a time.

    Raises ManifestError if it cannot be read or is invalid.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / NAME
        self._parts: dict[str, BatchPart] = {}
        self._runs = self._size = self._torn = 0
        self._settings: Mapping[str, object] = {}
        self._file: GrowingFile | None = None
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def known(self, part: str) -> BatchPart | None:
        """The last entry of a part, or None."""
        return self._parts.get(part)

    def begin(self, settings: JsonMap, planned: Mapping[str, JsonMap]) -> None:
        """Lock the manifest and begin a run that writes these parts from these sounds."""
        try:
            self._open()
        except OSError as error:
            raise ManifestError(f"{self.path} cannot be written: {why(error)}") from error
        run = {"run": self._runs + 1, "date": utc_now(), "settings": settings}
        plan = ({"part": n, "state": "planned", "sound": of} for n, of in planned.items())
        self._tell([run, *plan])

    def done(self, part: str, summary: Mapping[str, object]) -> None:
        length = (self.folder / part).stat().st_size
        self._tell([{"part": part, "state": "done", "bytes": length, "summary": summary}])

    def failed(self, part: str, why: str) -> None:
        self._tell([{"part": part, "state": "failed", "why": why}])

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        new = not os.path.lexists(self.path)
        self._file = file = GrowingFile(self.path, None if new else self._size)
        # Another run may have added lines since it was read.
        length = os.fstat(file.fileno()).st_size
        if held_elsewhere(file.fileno()) or length > self._size + self._torn:
            self._file.close()
            self._file = None
            raise ManifestError(
                f"another run writes {self.folder}: wait for it, or give another folder"
            )
        os.ftruncate(file.fileno(), self._size)

    def _tell(self, lines: Iterable[Mapping[str, object]]) -> None:
        assert self._file is not None
        try:
            self._file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        except OSError as error:
            raise ManifestError(f"{self.path} cannot be written: {why(error)}") from error

    def _read(self) -> None:
        """Read all lines, except an incomplete last one."""
        try:
            with self.path.open("rb") as stream:
                for number, line in enumerate(stream, 1):
                    try:
                        self._hear(json.loads(line))
                    except (ValueError, KeyError, TypeError, RecursionError) as error:
                        self._torn = len(line)
                        if not stream.read(1):
                            return
                        raise ManifestError(
                            f"{self.path}, line {number} is not of a manifest: give another folder"
                        ) from error
                    self._size += len(line)
        except FileNotFoundError:
            return
        except OSError as error:
            raise ManifestError(f"{self.path} cannot be read: {why(error)}") from error

    def _hear(self, line: Any) -> None:
        if "run" in line:
            self._runs, self._settings = int(line["run"]), dict(line["settings"])
            return
        name, state = line["part"], line["state"]
        if state == "planned":
            self._parts[name] = BatchPart(state, dict(line["sound"]), self._settings)
        else:
            known, summary = self._parts[name], line.get("summary")
            length = line.get("bytes", -1)
            self._parts[name] = replace(known, state=state, length=length, summary=summary)
