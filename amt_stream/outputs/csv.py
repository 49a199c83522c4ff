"""Rows as comma-separated values, after comment lines that say what they are."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from amt_stream.rows.row import COLUMNS, Row


class CsvWriter:
    """Lines "# key: value", the column names, then a line a row; decimal points always.

    What has no value is empty.
    """

    def __init__(
        self, stream: TextIO, about: Mapping[str, Any], columns: Sequence[str] = COLUMNS
    ) -> None:
        self._stream = stream
        for key, value in about.items():
            text = str(value)
            stream.write(f"# {key}: {text if text.isprintable() else repr(text)}\n")
        stream.write(",".join(columns) + "\n")

    def write(self, rows: Iterable[Row]) -> None:
        self._stream.writelines(",".join(map(_cell, row)) + "\n" for row in rows)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
