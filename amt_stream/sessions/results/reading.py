"""Reading results from a log or a file of rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from amt_stream.core.clock import DAY_S
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief
from amt_stream.meters.frames import IMPULSE_COUNTING
from amt_stream.meters.limits import LimitError, limit_of
from amt_stream.meters.names import limit_in
from amt_stream.meters.rows import AFTER, BEFORE, Column, Rows
from amt_stream.meters.rows.block import MICROPHONE
from amt_stream.meters.rows.intervals import AFTER as AFTER_INTERVALS
from amt_stream.meters.rows.limited import until_of
from amt_stream.sessions.results.checks import LARGEST, Invalid, check, check_rows
from amt_stream.sessions.results.left_out import BEGAN, PROMINENCE, with_impulses_left_out
from amt_stream.sessions.results.results import Results, ResultsError, column_of
from amt_stream.sessions.results.stores import NO_ROW, FileOfRows, Log, Store

AT_ONCE = 4096
"""Rows per batch of dicts."""

Wanted = Callable[[Column], bool]
"""Whether to read a column."""


def read_results(
    path: str | Path,
    wanted: Wanted = lambda column: True,
    *,
    run: int | None = None,
    microphone: str | None = None,
    tables: bool = False,
) -> Results:
    """Read a log, or a file of rows of `analyze` or `meter`.

    run: run of a log, by default the last; the runs that it continues are included
    microphone: name of one of several microphones
    tables: whether a file may have a table of intervals instead of rows

    Raises ResultsError or SessionError if it cannot be read or has no row.
    """
    path = Path(path)
    if path.is_dir():
        store: Store = Log(path, run)
    elif run is not None:
        raise ResultsError(f"{path} is not a log and has no run {run}: leave it out")
    else:
        store = FileOfRows(path)
    header, summary = store.header, store.summary
    try:
        check(header, summary)
    except (Invalid, LimitError) as fault:
        raise ResultsError(f"{path} has an invalid header or summary: {fault}") from fault
    if not header.get("statistics"):
        raise ResultsError(
            f"{path} has a row for each cell of a spectrum: choose a model with readings"
        )
    interval = header.get("interval", {})
    is_table = isinstance(interval, dict) and interval and "columns" not in interval
    if is_table and not tables:
        raise ResultsError(
            f"{path} has a table of intervals and no rows: give the log, or a file of rows"
        )
    _refuse_microphone(path, header["source"].get("microphones", {}), microphone)
    if is_table:
        return _results_of_table(path, store, microphone)
    limits = [limit_of(one) for one in header.get("limits", ())]
    limited = {name for one in limits for name in (one.column, until_of(one))}
    names = [
        one.name
        for one in map(column_of, header["columns"])
        if wanted(one) or one.name in limited or limit_in(one.name)
    ]
    name, events = path.name, store.events
    if any(event.kind in IMPULSE_COUNTING for event in events):
        there = {one["name"] for one in header["columns"]}
        names += [name for name in (BEGAN, PROMINENCE) if name in there - {*names}]
    names = [*BEFORE, *names, *AFTER]
    try:
        rows, last = _narrowed(store.rows(), names, microphone)
        check_rows(rows)
    except Invalid as fault:
        raise ResultsError(f"{path} has invalid rows: {fault}") from fault
    except NO_ROW as error:
        words = f"{type(error).__name__}: {brief(error)}"
        raise ResultsError(f"{path} has invalid rows ({words})") from error
    if not len(rows):
        raise ResultsError(f"{path} has no row yet")
    if microphone:
        name = f"{name}, {microphone}"
        header = _header_of(header, microphone)
        summary = summary.get("microphones", {}).get(microphone, {})
        events = [event for event in events if event.microphone in ("", microphone)]
    intervals = _intervals(path, store.intervals(), microphone)
    if intervals is not None:
        combine = next((one["combine"] for one in header["models"] if "combine" in one), "sum")
        intervals = with_impulses_left_out(intervals, rows, events, combine)
    about = store.settings, store.proof, store.uncounted, intervals
    return Results(name, header, rows, last, summary, events, *about)


def _results_of_table(path: Path, store: Store, microphone: str | None) -> Results:
    """The results in a file with a table of intervals: no rows, only these."""
    header = store.header
    names = [*(one["name"] for one in header["columns"]), *AFTER_INTERVALS]
    names += [MICROPHONE] if microphone else []
    try:
        seconds = header["interval"]["seconds"]
        lines = [{name: row[name] for name in names} for row in store.rows()]
        if not 1 <= seconds <= DAY_S:
            raise ValueError(f"an interval of {brief(seconds)} s")
    except NO_ROW as error:
        words = f"{type(error).__name__}: {brief(error)}"
        raise ResultsError(f"{path} has an invalid table of intervals ({words})") from error
    table = _intervals(path, lines, microphone)
    if table is None:
        raise ResultsError(f"{path} has no interval yet")
    name = f"{path.name}, {microphone}" if microphone else path.name
    rows = Rows.concatenated([], [*BEFORE, *AFTER])
    return Results(name, header, rows, last={}, intervals=table)


def _intervals(path: Path, given: Iterable[JsonDict], microphone: str | None) -> Rows | None:
    """The stored table of intervals, or None."""
    own = [one for one in given if microphone in (None, one.get(MICROPHONE))]
    try:
        table = Rows.of(own) if own else None
        for name in ("time_s", "end_s", "measured_s"):
            if table is not None and not (np.abs(table[name]) <= LARGEST).all():
                raise ValueError(f"{name} is not a time")
    except NO_ROW as error:
        raise ResultsError(f"{path} has invalid intervals ({brief(error)})") from error
    return table


def _refuse_microphone(path: Path, there: Mapping[str, object], microphone: str | None) -> None:
    if there and microphone not in there:
        raise ResultsError(f"{path} has several microphones: choose one of {', '.join(there)}")
    if microphone and not there:
        raise ResultsError(
            f"{path} has no microphone called {microphone!r}: there was only one, leave that out"
        )


def _header_of(header: JsonMap, microphone: str) -> JsonDict:
    """The header of one microphone, as if it were the only one."""
    own = header["source"]["microphones"][microphone]
    source = {key: value for key, value in header["source"].items() if key != "microphones"}
    calibration = [one for one in header["calibration"] if one["channel"] in own]
    return {**header, "source": source | {"channels": own}, "calibration": calibration}


def _narrowed(
    given: Iterator[JsonDict], names: Sequence[str], microphone: str | None
) -> tuple[Rows, JsonDict]:
    """The chosen columns of rows, and the whole last row."""
    parts: list[Rows] = []
    last: JsonDict = {}
    own = (one for one in given if microphone is None or one[MICROPHONE] == microphone)
    while some := [*islice(own, AT_ONCE)]:
        last = some[-1]
        parts.append(Rows.of([{name: one[name] for name in names} for one in some]))
    return Rows.concatenated(parts, names), last
