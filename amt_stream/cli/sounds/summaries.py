"""Summaries of sound files as a table with a line per sound."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TextIO

from amt_stream.cli.messages import Mistake
from amt_stream.cli.table import marked
from amt_stream.core.json_types import JsonMap
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
    summaries: Sequence[Mapping[str, object]], stream: TextIO, dialect: CsvDialect
) -> None:
    """Write the table of whole sounds as CSV."""
    marked(stream, dialect).write(dialect.begin)
    stream.writelines(map(dialect.line, table_of_sounds(summaries)))


def table_of_sounds(summaries: Sequence[Mapping[str, object]]) -> list[list[Cell]]:
    """The names of readings of whole sounds, and the readings of each; None where it has none.

    The last column has what is wrong with a sound, if anything is wrong with one of them.
    """
    names = dict.fromkeys(name for one in summaries for name in statistics_in(one))
    heads = [*ABOUT, *names]
    lines = [[_cell(one.get(name)) for name in heads] for one in summaries]
    remarks = [_remarks(one) for one in summaries]
    if any(remarks):
        heads.append(REMARKS)
        lines = [[*line, words] for line, words in zip(lines, remarks, strict=True)]
    return [[*heads], *lines]


def with_chosen(summary: JsonMap, columns: str | Sequence[str]) -> JsonMap:
    """The summary with only those of its readings that the names or patterns choose."""
    names = statistics_in(summary)
    left_out = {*names}.difference(_chosen(names, columns))
    return {key: value for key, value in summary.items() if key not in left_out}


def refuse_none_chosen(names: Sequence[str], columns: str | Sequence[str]) -> None:
    """Raise Mistake if the names or patterns choose none of all readings."""
    if not _chosen(names, columns):
        typed = columns if isinstance(columns, str) else ",".join(columns)
        raise Mistake(
            f"--columns {typed}: no reading of a whole sound has such a name: give one of "
            f"{brief(', '.join(names))}"
        )


def _chosen(names: Sequence[str], columns: str | Sequence[str]) -> list[str]:
    typed = columns.split(",") if isinstance(columns, str) else columns
    return [name for name in names if any(fnmatchcase(name, one.strip()) for one in typed)]


def _remarks(summary: Mapping[str, Any]) -> str:
    """What is wrong with a sound, in words or ""."""
    times = (one.get("clipped_s") or 0.0 for one in summary.get("statistics", {}).values())
    clipped_s = max(times, default=0.0)
    clipped = f"clipped for {clipped_s:.3g} s" if clipped_s else ""
    length = summary.get("sound", {}).get("length", "")
    return "; ".join(filter(None, (clipped, length)))


def sheets_of(summaries: Sequence[Mapping[str, Any]]) -> dict[str, list[Sequence[object]]]:
    """The sheets of a workbook: the table of whole sounds, and the intervals of all, if any."""
    sheets: dict[str, list[Sequence[object]]] = {"sounds": [*table_of_sounds(summaries)]}
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
