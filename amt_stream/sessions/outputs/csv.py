"""Rows as CSV, with their header in comments or beside them."""

import json
import math
from collections.abc import Mapping
from datetime import tzinfo
from typing import TextIO

import numpy as np

from amt_stream.core.clock import local_time
from amt_stream.meters.rows import Rows
from amt_stream.meters.rows.block import unix_s

LOCAL_TIME = "local_time"
"""The column after `utc` with the local time in a form that spreadsheets read."""


class CsvWriter:
    """Writes lines "# key: JSON value", the names of the columns, then a line per row.

    Missing values are empty; the decimal sign is a point. `pandas.read_csv(comment="#")` reads it.

    beside: stream for the header as one line {"header": {...}}, so that the column names come first
    local: add `local_time` in `zone`; None is that of this computer
    """

    def __init__(
        self,
        stream: TextIO,
        header: Mapping[str, object],
        *,
        beside: TextIO | None = None,
        local: bool = False,
        zone: tzinfo | None = None,
    ) -> None:
        self._stream, self._local, self._zone = stream, local, zone
        self._header: Mapping[str, object] | None = header
        if beside is not None:
            beside.write(json.dumps({"header": header}) + "\n")
            beside.flush()
            self._header = {}

    def write(self, rows: Rows) -> None:
        if self._local:
            rows = self._with_local_time(rows)
        if self._header is not None:
            for key, value in self._header.items():
                self._stream.write(f"# {key}: {json.dumps(value)}\n")
            self._stream.write(",".join(rows.columns) + "\n")
            self._header = None
        self._stream.writelines(",".join(map(_cell, row)) + "\n" for row in rows.tuples())

    def finish(self, summary: Mapping[str, object]) -> None:
        """End the table, which has no summary."""

    def _with_local_time(self, rows: Rows) -> Rows:
        texts = np.array([*map(self._clock_of, unix_s(rows["utc"]).tolist())], dtype=object)
        columns = {name: rows[name] for name in rows.columns}
        place = rows.columns.index("utc") + 1
        ordered = [*columns.items()]
        return Rows(dict([*ordered[:place], (LOCAL_TIME, texts), *ordered[place:]]))

    def _clock_of(self, utc_s: float) -> str | None:
        if math.isnan(utc_s):
            return None
        when = local_time(utc_s, self._zone).replace(tzinfo=None)
        return when.isoformat(" ", "milliseconds")


def _cell(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
