"""The headers of rows in files, and those of a log, which may change while it is written."""

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief, json_object, sentence
from amt_stream.sessions.files import LONGEST_LINE, SessionError, as_session_error
from amt_stream.sessions.folder import DATABASE, PARQUET
from amt_stream.sessions.parquet import refuse_no_parquet
from amt_stream.sessions.reading import ROWS_IN, Session, first_and_last, opened, opened_text


class HeaderFrom(NamedTuple):
    """A header, and the sample of the first row that it is of."""

    sample: int
    header: JsonDict


def headers_of(session: Session, run: int) -> list[HeaderFrom]:
    """The headers of the rows of a run, in order. Raises SessionError if one cannot be read."""
    found = _of_database(session.path, run)
    for path in session.files(run, "rows"):
        with as_session_error(path, "read"):
            first = next(ROWS_IN[path.suffix](path), None)
            header = {} if first is None else _READERS[path.suffix](path)
        try:
            found += [] if first is None else [HeaderFrom(int(first["sample"]), header)]
        except (LookupError, TypeError, ValueError) as error:
            raise SessionError(f"{path} has an invalid row: it has no sample") from error
    return found


def latest_header(session: Session, runs: Iterable[int], header: JsonMap) -> JsonMap:
    """The last header of runs, with the columns of all their headers.

    header: that of the begin of the last run
    """
    found = [header, *(one.header for run in runs for one in headers_of(session, run))]
    columns = {one["name"]: one for each in found for one in each["columns"]}
    return {**found[-1], "columns": [*columns.values()]}


def _of_database(folder: Path, run: int) -> list[HeaderFrom]:
    path = folder / DATABASE
    if not path.exists():
        return []
    asked = (
        "SELECT rows.sample, headers.header FROM headers JOIN rows ON rows.id = headers.first "
        "WHERE headers.run = ? ORDER BY headers.first"
    )
    try:
        with opened(folder) as connection:
            found = connection.execute(asked, (run,)).fetchall()
        return [HeaderFrom(int(sample), json_object(header)) for sample, header in found]
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise SessionError(f"{path} cannot be read: {sentence(error)}") from error


def csv_header(path: Path) -> JsonDict:
    """The header of a CSV file, from its comments; empty without them."""
    found: JsonDict = {}
    with opened_text(path) as file:
        while (line := file.readline(LONGEST_LINE)).startswith("# "):
            key, _, value = line[2:].partition(": ")
            found.update(json_object(f'{{"{key}": {value}}}'))
    return found


def jsonl_header(path: Path) -> JsonDict:
    """The header of a file of JSON lines; empty without one."""
    header = json_object(first_and_last(path)[0]).get("header", {})
    return header if isinstance(header, dict) else {}


def parquet_header(path: Path) -> tuple[JsonDict, JsonDict]:
    """The header and the summary of a Parquet file. Raises SessionError."""
    refuse_no_parquet()
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            metadata = file.schema_arrow.metadata or {}
            beside = file.metadata.metadata or {}
    except ArrowException as error:
        raise SessionError(f"{path} cannot be read: {brief(error)}") from error
    header = json_object(metadata.get(b"header", b"{}"))
    return header, json_object(beside.get(b"summary", b"{}"))


_READERS: dict[str, Callable[[Path], JsonDict]] = {
    ".csv": csv_header,
    ".jsonl": jsonl_header,
    PARQUET: lambda path: parquet_header(path)[0],
}
