"""Summaries of sound files as a table with a line per sound."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TextIO

from amt_stream.cli.messages import Mistake
from amt_stream.cli.table import marked
from amt_stream.core.safe_text import brief
from amt_stream.core.tables import CsvDialect
from amt_stream.sessions.outputs.workbook import cells_of_rows

Cell = str | float | bool | None

ABOUT = ("name", "channels", "duration_s", "calibrated")
"""Keys of a summary that begin its line of the table."""

REMARKS = "remarks"
"""The last column of the table, if there is anything to say of a sound."""

INTERVAL_ABOUT = ("name", "channels")
"""Keys of a summary that begin each line of the intervals of several sounds."""

NO_READINGS = (*ABOUT, "schema", "fs", "replaced_samples")


def write_table(
    summaries: Sequence[Mapping[str, object]],
    columns: str | Sequence[str] | None,
    stream: TextIO,
    dialect: CsvDialect,
) -> None:
    """Write the table of whole sounds as CSV. Raises as `table_of_sounds` does."""
    marked(stream, dialect).write(dialect.begin)
    stream.writelines(map(dialect.line, table_of_sounds(summaries, columns)))


def table_of_sounds(
    summaries: Sequence[Mapping[str, object]], columns: str | Sequence[str] | None
) -> list[list[Cell]]:
    """The names of readings of whole sounds, and the readings of each; None where it has none.

    columns: names or patterns of the readings, in a text separated by commas; None takes all

    The last column has what is wrong with a sound, if anything is wrong with one of them. Raises
    Mistake if no reading of any sound has such a name.
    """
    names = dict.fromkeys(name for one in summaries for name in statistics_in(one))
    typed = columns.split(",") if isinstance(columns, str) else columns or "*"
    chosen = [name for name in names if any(fnmatchcase(name, one.strip()) for one in typed)]
    if summaries and not chosen:
        raise Mistake(
            f"--columns {','.join(typed)}: no reading of a whole sound has such a name: give one "
            f"of {brief(', '.join(names))}"
        )
    heads = [*ABOUT, *chosen]
    lines = [[_cell(one.get(name)) for name in heads] for one in summaries]
    remarks = [_remarks(one) for one in summaries]
    if any(remarks):
        heads.append(REMARKS)
        lines = [[*line, words] for line, words in zip(lines, remarks, strict=True)]
    return [[*heads], *lines]


def _remarks(summary: Mapping[str, Any]) -> str:
    """What is wrong with a sound, in words or ""."""
    times = (one.get("clipped_s") or 0.0 for one in summary.get("statistics", {}).values())
    clipped_s = max(times, default=0.0)
    clipped = f"clipped for {clipped_s:.3g} s" if clipped_s else ""
    length = summary.get("sound", {}).get("length", "")
    return "; ".join(filter(None, (clipped, length)))


def sheets_of(
    summaries: Sequence[Mapping[str, Any]], columns: str | Sequence[str] | None
) -> dict[str, list[Sequence[object]]]:
    """The sheets of a workbook: the table of whole sounds, and the intervals of all, if any.

    Raises as `table_of_sounds` does.
    """
    sheets: dict[str, list[Sequence[object]]] = {"sounds": [*table_of_sounds(summaries, columns)]}
    lines: list[Sequence[object]] = []
    for one in summaries:
        if rows := one.get("intervals"):
            about = [_cell(one[name]) for name in INTERVAL_ABOUT]
            lines = lines or [[*INTERVAL_ABOUT, *rows[0]]]
            lines += ([*about, *cells] for cells in cells_of_rows(rows))
    return sheets | ({"intervals": lines} if lines else {})


def statistics_in(summary: Mapping[str, object]) -> list[str]:
    """The names of the readings of a summary, with or without a value."""
    return [
        name
        for name, value in summary.items()
        if name not in NO_READINGS and (value is None or isinstance(value, int | float))
    ]


def _cell(value: Any) -> Cell:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return " ".join(map(str, value)) if is_list else value
