"""What a batch has done: a line for each part, so that an interrupted run goes on.

Lines of JSON, in a file beside the parts that only grows, each on the disk before the next is due:

    {"run": 1, "date": ..., "settings": {...}}     a run begins, and how it measures
    {"part": "a.csv", "state": "planned", "sound": {...}}   free to be written, and of which sound
    {"part": "a.csv", "state": "done", "bytes": 123, "summary": {...}}
    {"part": "a.csv", "state": "failed", "why": "..."}

The last line of a part holds. A part has its name once it is complete, and its line "done" after
that: one that is only planned may be there all the same, and is then measured again.
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
"""What reads a folder of Parquet as one table leaves out names that begin so."""


class ManifestError(RuntimeError):
    """A batch cannot be kept account of, or gone on with; the message says why in one sentence."""


@dataclass(frozen=True)
class BatchPart:
    """What is known of a part: its state, its sound, and the settings it was measured with.

    length: its bytes, once it is done
    """

    state: str
    sound: JsonMap
    settings: JsonMap
    length: int = -1
    summary: JsonMap | None = None


class Manifest:
    """The manifest of a folder: read at once, written from `begin` on, by one run at a time.

    Raises ManifestError for one that cannot be read, and what is none.
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
        """What was told of a part last; None where nothing was."""
        return self._parts.get(part)

    def begin(self, settings: JsonMap, planned: Mapping[str, JsonMap]) -> None:
        """A run begins that is to write these parts, of these sounds; nobody else may meanwhile."""
        try:
            self._open()
        except OSError as error:
            raise ManifestError(f"{self.path} cannot be written: {why(error)}") from error
        run = {"run": self._runs + 1, "date": utc_now(), "settings": settings}
        plan = ({"part": n, "state": "planned", "sound": of} for n, of in planned.items())
        self._tell([run, *plan])

    def done(self, part: str, summary: Mapping[str, object]) -> None:
        """A part is there, complete."""
        length = (self.folder / part).stat().st_size
        self._tell([{"part": part, "state": "done", "bytes": length, "summary": summary}])

    def failed(self, part: str, why: str) -> None:
        """A part could not be made."""
        self._tell([{"part": part, "state": "failed", "why": why}])

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        new = not os.path.lexists(self.path)
        self._file = file = GrowingFile(self.path, None if new else self._size)
        # Whoever held it since it was read has told more.
        length = os.fstat(file.fileno()).st_size
        if held_elsewhere(file.fileno()) or length > self._size + self._torn:
            self._file.close()
            self._file = None
            raise ManifestError(
                f"{self.folder} is written by another run: wait for it, or give another folder"
            )
        os.ftruncate(file.fileno(), self._size)

    def _tell(self, lines: Iterable[Mapping[str, object]]) -> None:
        assert self._file is not None
        try:
            self._file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        except OSError as error:
            raise ManifestError(f"{self.path} cannot be written: {why(error)}") from error

    def _read(self) -> None:
        """Hear all lines; what a kill has left of the last one is none."""
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
                            f"{self.path}, line {number} is none of a manifest: give another folder"
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
