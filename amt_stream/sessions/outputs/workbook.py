"""A table of intervals as a workbook of Excel, and back."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import json_object
from amt_stream.core.workbooks import LONGEST_CELL, read_workbook, write_workbook
from amt_stream.meters.rows import Rows

ROWS, HEADER = "intervals", "header"
"""Names of the sheets."""

TIMES = ("utc", "local")


class WorkbookWriter:
    """Writes rows in one sheet, and the header, a line of JSON for each key, in another.

    Numbers are numbers, and `utc` and `local` are times without a zone, as Excel has none.

    stream: text stream over a binary one, such as an open file; only the binary one is used

    Raises TableError at the end for more rows than a sheet has.
    """

    def __init__(self, stream: TextIO, header: JsonMap) -> None:
        self._stream, self._header = stream.buffer, header
        self._lines: list[Sequence[object]] = []

    def write(self, rows: Rows) -> None:
        if not self._lines:
            self._lines.append(rows.columns)
        self._lines += cells_of_rows(rows)

    def finish(self, summary: JsonMap) -> None:
        """Write the workbook, which has no summary."""
        header = [[key, *_in_cells(json.dumps(value))] for key, value in self._header.items()]
        write_workbook(self._stream, {ROWS: self._lines, HEADER: [["key", "JSON"], *header]})


def cells_of_rows(rows: Iterable[JsonMap]) -> Iterator[list[object]]:
    """Yield the cells of each row for a workbook."""
    for row in rows:
        yield [_time(value) if name in TIMES else value for name, value in row.items()]


def _time(value: Any) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value).replace(tzinfo=None)


def _in_cells(text: str) -> list[str]:
    return [text[k : k + LONGEST_CELL] for k in range(0, len(text), LONGEST_CELL)]


def header_in(path: Path) -> JsonDict:
    """The header of a workbook of `WorkbookWriter`; empty without one. Raises TableError."""
    pairs = (
        f"{json.dumps(str(row[0]))}: {''.join(str(cell) for cell in row[1:] if cell is not None)}"
        for row in read_workbook(path, HEADER)
        if row and row[0] != "key"
    )
    return json_object(f"{{{', '.join(pairs)}}}")


def rows_in_workbook(path: Path) -> Iterator[JsonDict]:
    """Yield the rows of a workbook of `WorkbookWriter`. Raises TableError."""
    rows = read_workbook(path, ROWS)
    names = [str(name) for name in next(rows, ())]
    for row in rows:
        yield {name: _value(name, cell) for name, cell in zip(names, row, strict=False)}


def _value(name: str, cell: object) -> object:
    if name == "fault":
        return cell or ""
    if isinstance(cell, datetime):
        text = cell.isoformat(timespec="milliseconds")
        return f"{text}Z" if name == "utc" else text
    return float(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell
