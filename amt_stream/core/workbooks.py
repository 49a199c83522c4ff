"""Workbooks of Excel (.xlsx): sheets of numbers, truth, texts and times."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from amt_stream.core.importing import install
from amt_stream.core.safe_text import brief, plain
from amt_stream.core.tables import TableError

XLSX = ".xlsx"
SIGNATURE = b"PK\x03\x04"
"""The first bytes of a workbook."""

OLD_SIGNATURE = b"\xd0\xcf\x11\xe0"
"""The first bytes of a workbook of Excel 97 to 2003 (.xls)."""

LONGEST_CELL = 32_767
"""Characters in a cell."""

MOST_ROWS = 1_048_576
TIME_FORMAT = "yyyy-mm-dd hh:mm:ss.000"


def refuse_no_excel() -> None:
    """Raise TableError if openpyxl is not installed."""
    if find_spec("openpyxl") is None:
        raise TableError(
            f"xlsx needs openpyxl, which is not installed: {install('excel')}, or choose CSV"
        )


def write_workbook(stream: BinaryIO, sheets: Mapping[str, Iterable[Sequence[object]]]) -> None:
    """Write sheets by name, each a sequence of rows; times have no zone, None is an empty cell.

    Text is never a formula. Raises TableError for more rows than a sheet has.
    """
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        sheet.freeze_panes = "A2"
        for count, row in enumerate(rows):
            if count >= MOST_ROWS:
                raise TableError(f"xlsx has {MOST_ROWS} rows at most: choose CSV or Parquet")
            sheet.append([_cell(sheet, value) for value in row])
    book.save(stream)


def _cell(sheet: Any, value: object) -> Any:
    from openpyxl.cell import WriteOnlyCell

    if isinstance(value, str):
        cell = WriteOnlyCell(sheet, plain(value)[:LONGEST_CELL])
        cell.data_type = "s"  # otherwise a text that begins with = would be a formula
        return cell
    cell = WriteOnlyCell(sheet, None if isinstance(value, float) and math.isnan(value) else value)
    if isinstance(value, datetime):
        cell.number_format = TIME_FORMAT
    return cell


def read_workbook(path: Path, sheet: str | None = None) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a sheet, by default of the first one. Raises TableError."""
    refuse_no_excel()
    from openpyxl import load_workbook

    try:
        with closing(load_workbook(path, read_only=True, data_only=True)) as book:
            names = book.sheetnames
            if not names or (sheet is not None and sheet not in names):
                raise TableError(f"has no sheet {sheet or ''}: there are {brief(', '.join(names))}")
            yield from book[sheet or names[0]].iter_rows(values_only=True)
    except TableError:
        raise
    except Exception as error:  # a damaged workbook: openpyxl, zipfile, zlib and XML raise any
        raise TableError(f"cannot be read: {brief(error)}") from error
