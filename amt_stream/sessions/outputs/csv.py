"""Rows as CSV, with their header in comments or beside them."""

import json
import math
from collections.abc import Mapping
from datetime import tzinfo
from typing import TextIO

import numpy as np

from amt_stream.core.clock import local_time
from amt_stream.core.safe_text import json_comment
from amt_stream.core.tables import PLAIN, CsvDialect
from amt_stream.meters.rows import Rows
from amt_stream.meters.rows.block import unix_s

LOCAL_TIME = "local_time"
"""The column after `utc` with the local time in a form that spreadsheets read."""


class CsvWriter:
    """Writes lines "# key: JSON value", the names of the columns, then a line per row.

    Missing values are empty. `pandas.read_csv(comment="#")` reads the plain dialect.

    beside: stream for the header as one line {"header": {...}}, so that the column names come first
    local: add `local_time` in `zone`; None is that of this computer
    dialect: separators, decimal sign and byte order mark
    """

    def __init__(
        self,
        stream: TextIO,
        header: Mapping[str, object],
        *,
        beside: TextIO | None = None,
        local: bool = False,
        zone: tzinfo | None = None,
        dialect: CsvDialect = PLAIN,
    ) -> None:
        self._stream, self._local, self._zone, self._dialect = stream, local, zone, dialect
        self._header: Mapping[str, object] | None = header
        if beside is not None:
            beside.write(json.dumps({"header": header}) + "\n")
            beside.flush()
            self._header = {}

    def write(self, rows: Rows) -> None:
        if self._local:
            rows = self._with_local_time(rows)
        if self._header is not None:
            self._stream.write(self._dialect.begin)
            for key, value in self._header.items():
                self._stream.write(f"# {key}: {json_comment(value)}\n")
            self._stream.write(self._dialect.line(rows.columns))
            self._header = None
        self._stream.writelines(map(self._dialect.line, rows.tuples()))

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
        return when.isoformat(" ", "milliseconds").replace(".", self._dialect.decimal)
