"""Tables of intervals of a measurement, from its log or its rows."""

from dataclasses import dataclass
from datetime import tzinfo

import numpy as np

from amt_stream.core.clock import SAME_S, Interval, local_text, zone_text
from amt_stream.core.json_types import JsonDict
from amt_stream.meters.rows import Rows
from amt_stream.meters.rows.block import FAULT_TEXTS, unix_s, utc_text
from amt_stream.meters.rows.column import EQUIVALENT
from amt_stream.sessions.results.parts import PartsOfRows
from amt_stream.sessions.results.results import Results, ResultsError


@dataclass(frozen=True)
class IntervalTable:
    """Statistics of each interval of a measurement.

    rows: rows of the table of intervals
    names: names of its readings
    how: description of the source
    """

    rows: Rows
    names: tuple[str, ...]
    how: str


def intervals_of(results: Results, seconds: int, zone: tzinfo | None = None) -> IntervalTable:
    """The table of intervals of a measurement, from its log or made from its rows.

    zone: time zone; by default that of the measurement. If its time is unknown, intervals are of
        elapsed time

    Raises ResultsError if the rows have no suitable reading.
    """
    kept = _kept(results, seconds, zone)
    if kept is not None:
        return kept
    parts, start = PartsOfRows(results), results.start_utc
    models = results.models.values()
    wanted = [c.name for one in models for n in one.of_interval for c in one.matching(n)]
    # Equivalent levels are averaged by measured time.
    timed = next(
        (c.model for c in map(results.known.get, wanted) if c and c.statistic == EQUIVALENT), ""
    )
    by = zone or results.zone
    epoch = 0.0 if start is None else float(unix_s(start))
    clock = Interval(seconds) if start is None else Interval(seconds, by)
    time_s, utc_s = results.rows["time_s"], unix_s(results.rows["utc"])
    found = []
    begin_s, end_s = results.begin_s, results.duration_s
    while begin_s < end_s - SAME_S:
        utc = epoch + begin_s
        if start is not None:  # as clock and sample count drift apart
            utc = float(utc_s[place := np.searchsorted(time_s, begin_s - SAME_S)])
            utc += begin_s - float(time_s[place])
        until_s = begin_s + clock.end(utc) - utc
        whole = abs(clock.begin(utc) - utc) < 0.002 and until_s <= end_s + SAME_S
        until_s = min(until_s, end_s)
        row: JsonDict = {
            "time_s": round(begin_s, 6),
            "utc": None if start is None else utc_text(utc),
            "local": None if start is None else local_text(utc, by),
            "end_s": round(until_s, 6),
            "measured_s": round(parts.measured_s(begin_s, until_s, timed), 6),
            "paused_s": round(parts.spans.paused_s(begin_s, until_s), 6),
            "partial": not whole,
            **parts.values(wanted, begin_s, until_s),
            "fault": FAULT_TEXTS[parts.fault(begin_s, until_s)],
        }
        row["excluded_s"] = max(0.0, until_s - begin_s - row["measured_s"] - row["paused_s"])
        found.append(row)
        begin_s = until_s
    names = tuple(n for n in wanted if any(row.get(n) is not None for row in found))
    if not names:
        raise ResultsError(f"{results.name} has no intervals: its rows have no level or loudness")
    rows = Rows.of(
        [{k: v for k, v in row.items() if k not in wanted or k in names} for row in found]
    )
    sources = dict.fromkeys(parts.how[name] for name in names if name in parts.how)
    return IntervalTable(rows, names, f"from rows: {', '.join(sources)}")


def _kept(results: Results, seconds: int, zone: tzinfo | None) -> IntervalTable | None:
    interval = results.header.get("interval")
    if (
        results.intervals is None
        or not isinstance(interval, dict)
        or interval.get("seconds") != seconds
    ):
        return None
    if zone is not None and zone_text(zone) != interval.get("clock"):
        return None
    columns = interval.get("columns", ())
    names = tuple(str(one["name"]) for one in columns if one["model"])
    words = "counted during the measurement, every frame"
    return IntervalTable(results.intervals, names, words)
