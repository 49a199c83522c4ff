"""Saving a measurement without a log as a session afterwards."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from amt_stream.core.json_types import JsonMap
from amt_stream.meters.frames import Event
from amt_stream.meters.rows import AFTER, BEFORE, Rows
from amt_stream.meters.rows.block import ALL
from amt_stream.sessions.chain import CHAIN
from amt_stream.sessions.database import Database
from amt_stream.sessions.files import SessionError
from amt_stream.sessions.folder import SUMMARY, Folder, description
from amt_stream.sessions.log_parts import LoggedEvent

AT_ONCE = 8192
"""Rows per transaction."""


def save_session(
    path: str | Path,
    rows: Rows,
    header: JsonMap,
    *,
    summary: JsonMap | None = None,
    events: Sequence[Event] = (),
    settings: JsonMap | None = None,
) -> Path:
    """Write the rows of a measurement as a session of one run, and return its folder.

    rows: `time_s`, `utc`, readings, `fault`, `settling`, `calibrated`
    header: header of these rows; it may have further columns, which are left out
    summary: summary of the whole sound
    settings: further settings that are needed to repeat the measurement

    Raises SessionError if the folder is not empty, or cannot be written.
    """
    path = Path(path)
    if (path / CHAIN).exists():
        raise SessionError(f"{path} is a session already: give a new folder")
    rows = whole_rows(rows, header)
    columns = [one for one in header["columns"] if one["name"] in rows.columns]
    stored = {**header, "columns": columns}
    folder = Folder(path)
    try:
        more = {**(settings or {}), "saved_afterwards": True}
        folder.describe(description("sqlite", stored, more))
        store = Database(folder, partial(dict, stored))
        try:
            _write(store, rows, events)
            store.close()
        except OSError as error:
            raise SessionError(f"{path} cannot be written: {error.strerror}") from error
        if summary is not None:
            whole = {"run": folder.run, "dropped": 0, "summary": dict(summary)}
            folder.add_whole(SUMMARY, json.dumps(whole, indent=1) + "\n")
    finally:
        folder.close()
    return path


def _write(store: Database, rows: Rows, events: Sequence[Event]) -> None:
    logged = [*map(LoggedEvent, events)]
    for begin in range(0, max(1, len(rows)), AT_ONCE):
        part = rows.where(slice(begin, begin + AT_ONCE))
        store.write([part] if len(part) else [], [] if begin else logged)


def whole_rows(rows: Rows, header: JsonMap) -> Rows:
    """Add the columns that every log has."""
    given = {name: rows[name] for name in rows.columns}
    given.setdefault("sample", np.rint(rows["time_s"] * header["source"]["fs"]).astype(np.int64))
    settling = np.where(rows["settling"], ALL, "").astype(object)
    given.setdefault("settling_columns", settling)
    given.setdefault("clipped_columns", np.full(len(settling), "", object))
    readings = [name for name in given if name not in (*BEFORE, *AFTER)]
    return Rows({name: given[name] for name in (*BEFORE, *readings, *AFTER)})
