"""Tables of text: as spreadsheets of any language save them, and in what forms CSV is written."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import brief, no_formula
from amt_stream.core.words import counted

SEPARATORS = "\t;,"
"""What separates cells; of two that are equally frequent in a line, the first one does."""

_QUOTED = re.compile(r'"[^"]*"')
_SEP = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""A first line that tells a spreadsheet the separator."""

_HARMLESS = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_ :.+-]*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?|[+-]?\d+,")


class TableError(Refusal, ValueError):
    """A text is not a table."""


@dataclass(frozen=True)
class CsvDialect:
    """A form of CSV.

    mark: begin with a byte order mark, by which Excel knows UTF-8
    """

    separator: str = ","
    decimal: str = "."
    mark: bool = False

    @property
    def begin(self) -> str:
        """What a file begins with."""
        return "\ufeff" if self.mark else ""

    def line(self, cells: Iterable[object]) -> str:
        """A line of a table: nothing for None and NaN, lower case for truth."""
        return self.separator.join(map(self.cell, cells)) + "\n"

    def cell(self, value: object) -> str:
        """A cell; text that a spreadsheet would run as a formula gets an apostrophe before it."""
        if value is None or value != value:
            return ""
        if isinstance(value, str):
            return value if _HARMLESS.fullmatch(value) else self._quoted(no_formula(value))
        if isinstance(value, bool):
            return str(value).lower()
        return str(value) if self.decimal == "." else str(value).replace(".", self.decimal)

    def _quoted(self, text: str) -> str:
        if self.separator not in text and '"' not in text:
            return text
        return '"{}"'.format(text.replace('"', '""'))


PLAIN = CsvDialect()
DIALECTS = {
    "plain": PLAIN,
    "excel": CsvDialect(mark=True),
    "excel-de": CsvDialect(";", ",", mark=True),
}
"""The forms of CSV by name, the default first."""


def separator_of(line: str) -> str:
    """The separator of the cells of a line: the most frequent one outside quotes."""
    bare = _QUOTED.sub("", line)
    return max(SEPARATORS, key=bare.count) if set(bare) & set(SEPARATORS) else ","


def decimal_number(text: str) -> float:
    """A number with a decimal point or comma. Raises ValueError."""
    bare = text.strip().replace("\u2212", "-")
    try:
        return float(bare.replace(",", ".") if _DECIMAL_COMMA.fullmatch(bare) else bare)
    except ValueError:
        raise ValueError(f"{brief(text.strip())!r} is not a number") from None


def whole_number(text: str) -> int:
    """A whole number, also as spreadsheets write it: 2.0. Raises ValueError."""
    value = decimal_number(text)
    if not value.is_integer():
        raise ValueError(f"{brief(text.strip())!r} is not a whole number")
    return int(value)


Line = tuple[int, Sequence[str]]
"""The number of a line, counted from 1, and its cells."""


def lines_in(text: str) -> Iterator[Line]:
    """Yield the lines of a table, without comments (#) and lines without content.

    Cells are separated by tabs, semicolons or commas, whichever the first line has; a line "sep=;"
    before it is obeyed. Raises TableError for quotes that do not end.
    """
    lines = ["\n" if line.startswith("#") else line for line in io.StringIO(text, newline=None)]
    first = next((k for k, line in enumerate(lines) if line.strip(SEPARATORS + " \n")), 0)
    named = _SEP.fullmatch(lines[first].strip()) if lines else None
    separator = named[1] if named else separator_of(lines[first]) if lines else ","
    skipped = first + bool(named)
    reader = csv.reader(lines[skipped:], delimiter=separator, strict=True)
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                yield skipped + reader.line_num, cells
    except csv.Error as error:
        where = skipped + reader.line_num
        raise TableError(
            f"line {where} has a quote or a character out of place: {error}"
        ) from error


def records_in(lines: Iterable[Line]) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The names of the columns, and each further line by number with its cells by name.

    Names are in lower case. Empty columns at the end are left out. Raises TableError for a line
    with more cells, or fewer, than there are names.
    """
    given = iter(lines)
    _, heads = next(given, (0, ()))
    names = [name.strip().lower() for name in heads]
    while names and not names[-1]:
        names.pop()
    records = []
    for place, cells in given:
        own = [cell.strip() for cell in cells]
        while len(own) > len(names) and not own[-1]:
            own.pop()
        if len(own) != len(names):
            cells, columns = counted(len(own), "cell"), counted(len(names), "column")
            remedy = "give an empty cell for what is missing"
            if len(own) > len(names):
                remedy = "separate cells by semicolons or tabs if numbers have decimal commas"
            raise TableError(f"line {place} has {cells} for {columns}: {remedy}")
        records.append((place, dict(zip(names, own, strict=True))))
    return names, records
