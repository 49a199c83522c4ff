"""Summaries of sound files as a table with a line per sound."""

import csv
import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TextIO

from amt_stream.cli.messages import Mistake
from amt_stream.core.safe_text import brief

ABOUT = ("name", "channels", "duration_s", "calibrated")
"""Keys of a summary that begin its line of the table."""

NO_READINGS = (*ABOUT, "schema", "fs", "replaced_samples")


def write_table(
    summaries: Sequence[Mapping[str, object]], columns: str | Sequence[str] | None, stream: TextIO
) -> None:
    """Write readings of whole sounds as CSV; a cell is empty where a sound has no such reading.

    columns: names or patterns of the readings, in a text separated by commas; None takes all

    Raises Mistake if no reading of any sound has such a name.
    """
    names = dict.fromkeys(name for one in summaries for name in statistics_in(one))
    typed = columns.split(",") if isinstance(columns, str) else columns or "*"
    chosen = [name for name in names if any(fnmatchcase(name, one.strip()) for one in typed)]
    if summaries and not chosen:
        raise Mistake(
            f"--columns {','.join(typed)}: no reading of a whole sound has such a name: give one "
            f"of {brief(', '.join(names))}"
        )
    table = csv.writer(stream, lineterminator="\n")
    table.writerow([*ABOUT, *chosen])
    for one in summaries:
        table.writerow([*(cell_text(one.get(name)) for name in (*ABOUT, *chosen))])


def statistics_in(summary: Mapping[str, object]) -> list[str]:
    """The names of the readings of a summary, with or without a value."""
    return [
        name
        for name, value in summary.items()
        if name not in NO_READINGS and (value is None or isinstance(value, int | float))
    ]


def cell_text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return " ".join(map(str, value)) if isinstance(value, Sequence) else json.dumps(value)
