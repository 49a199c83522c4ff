"""Rows as comma-separated values, after comment lines that say what they are."""

import json
from collections.abc import Mapping
from typing import Any, TextIO

from amt_stream.rows import Rows


class CsvWriter:
    """Lines "# key: JSON value", the names of the columns, then a line a row.

    Decimal points always; what has no value is empty. `pandas.read_csv(comment="#")` reads it.
    """

    def __init__(self, stream: TextIO, header: Mapping[str, Any]) -> None:
        self._stream = stream
        self._header: Mapping[str, Any] | None = header

    def write(self, rows: Rows) -> None:
        if self._header is not None:
            for key, value in self._header.items():
                self._stream.write(f"# {key}: {json.dumps(value)}\n")
            self._stream.write(",".join(rows.columns) + "\n")
            self._header = None
        self._stream.writelines(",".join(map(_cell, row)) + "\n" for row in rows.tuples())

    def finish(self, summary: Mapping[str, Any]) -> None:
        """The end; a table has no place for a summary."""


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
