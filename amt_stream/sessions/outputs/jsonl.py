"""Rows as JSON lines, between a header and a summary."""

import json
from collections.abc import Mapping
from typing import TextIO

from amt_stream.meters.rows import Rows


class JsonLinesWriter:
    """Writes a line {"header": {...}}, an object per row, and a last line {"summary": {...}}.

    `pandas.read_json(lines=True)` reads it; rows are the objects with a `time_s`.
    """

    def __init__(self, stream: TextIO, header: Mapping[str, object]) -> None:
        self._stream = stream
        self._write({"header": header})

    def write(self, rows: Rows) -> None:
        for row in rows:
            self._write(row)

    def finish(self, summary: Mapping[str, object]) -> None:
        self._write({"summary": summary})

    def _write(self, value: Mapping[str, object]) -> None:
        self._stream.write(json.dumps(value) + "\n")
