"""Closed parts of a log as Parquet; an open Parquet file could not be read."""

import json
import os
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from amt_stream.core.files import sync_folder
from amt_stream.core.importing import install
from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import sentence
from amt_stream.meters.rows import Rows
from amt_stream.meters.rows.block import python_values
from amt_stream.sessions.files import GrowingFile, SessionError, give_name, sha256_of
from amt_stream.sessions.folder import PARQUET, Folder
from amt_stream.sessions.log_parts import MakeHeader, TextParts
from amt_stream.sessions.outputs import ParquetWriter

AT_ONCE = 1024
"""Rows per batch, one or two megabytes of Python objects."""


def refuse_no_parquet() -> None:
    """Raise SessionError if pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise SessionError(
            f"parquet needs pyarrow, which is not installed: {install('data')}, or choose another "
            "format"
        )


class ParquetParts(TextParts):
    """A `Store` of hourly Parquet files; the current hour is JSON lines, which are crash-safe.

    Raises SessionError without pyarrow.
    """

    def __init__(self, folder: Folder, header: MakeHeader) -> None:
        refuse_no_parquet()
        super().__init__(folder, "jsonl", header)

    def _new(self, what: str, *endings: str) -> GrowingFile:
        return super()._new(what, *endings, *(() if what == "events" else (PARQUET,)))

    def _close_part(self, file: GrowingFile) -> None:
        if file is self._files.get("events") or not file.size:
            super()._close_part(file)
            return
        path = file.path.with_suffix(PARQUET)
        if not path.exists():  # else only the steps after it failed
            _write(file.path, path)
        if path.name not in self._folder.closed:
            size = path.stat().st_size
            self._folder.chain.add(self._folder.run, path.name, sha256_of(path), bytes=size)
        file.path.unlink(missing_ok=True)
        file.close()


def _write(text: Path, path: Path) -> None:
    """Convert a part of JSON lines to Parquet. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with text.open(encoding="utf-8") as lines, draft.open("w", encoding="utf-8") as file:
            writer = ParquetWriter(file, json.loads(next(lines))["header"])
            rows = map(json.loads, lines)
            while some := [*islice(rows, AT_ONCE)]:
                writer.write(Rows.of(some))
            writer.finish({})
            file.buffer.flush()
            os.fsync(file.fileno())
        give_name(draft, path)
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def rows_in(path: Path) -> Iterator[JsonDict]:
    """The rows of a part, in the form of JSON lines. Raises SessionError if it is damaged."""
    refuse_no_parquet()
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            names = [name for name in file.schema_arrow.names if name not in ("file", "channels")]
            for batch in file.iter_batches(AT_ONCE, columns=names):
                columns = [_values(name, batch[name]) for name in names]
                yield from (
                    dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)
                )
    except (ArrowException, KeyError, ValueError, OSError) as error:
        raise SessionError(f"{path} cannot be read: {sentence(str(error).strip())}") from error


def _values(name: str, column: Any) -> list[Any]:
    if name == "utc":
        return python_values(name, column.to_numpy(zero_copy_only=False))
    values: list[Any] = column.to_pylist()
    return values
