"""Rows as JSON lines, after one line that says what they are."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from amt_stream.rows.row import COLUMNS, Row


class JsonLinesWriter:
    """A line {"header": {...}}, then an object a row."""

    def __init__(
        self, stream: TextIO, about: Mapping[str, Any], columns: Sequence[str] = COLUMNS
    ) -> None:
        self._stream, self._columns = stream, tuple(columns)
        stream.write(json.dumps({"header": dict(about)}) + "\n")

    def write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._stream.write(json.dumps(dict(zip(self._columns, row, strict=True))) + "\n")
