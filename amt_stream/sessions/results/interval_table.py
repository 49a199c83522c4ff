"""Tables of intervals of a measurement, from its log or its rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo

from amt_stream.core.clock import SAME_S, Interval, local_text, zone_text
from amt_stream.core.json_types import JsonDict
from amt_stream.meters.rows import Rows
from amt_stream.meters.rows.block import FAULT_TEXTS, utc_text
from amt_stream.meters.rows.column import EQUIVALENT
from amt_stream.meters.rows.intervals import CLOCK_S
from amt_stream.sessions.results.parts import PartsOfRows
from amt_stream.sessions.results.results import Results, ResultsError
from amt_stream.sessions.results.sound_clock import SoundClock


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
    parts = PartsOfRows(results)
    models = results.models.values()
    wanted = [c.name for one in models for n in one.of_interval for c in one.matching(n)]
    # Equivalent levels are averaged by measured time.
    timed = next(
        (c.model for c in map(results.known.get, wanted) if c and c.statistic == EQUIVALENT), ""
    )
    by = zone or results.zone
    time_s = results.rows["time_s"]
    clock, interval = results.clock, Interval(seconds, by)
    if clock is None:
        clock, interval = SoundClock(time_s, time_s), Interval(seconds)
    found = []
    for begin_s, until_s, utc, whole in _spans(clock, interval, results.begin_s, time_s[-1]):
        row: JsonDict = {
            "time_s": round(begin_s, 6),
            "utc": None if results.clock is None else utc_text(utc),
            "local": None if results.clock is None else local_text(utc, by),
            "end_s": round(until_s, 6),
            "measured_s": round(parts.measured_s(begin_s, until_s, timed), 6),
            "paused_s": round(parts.spans.paused_s(begin_s, until_s), 6),
            "partial": not whole,
            **parts.values(wanted, begin_s, until_s),
            "fault": FAULT_TEXTS[parts.fault(begin_s, until_s)],
        }
        row["excluded_s"] = max(0.0, until_s - begin_s - row["measured_s"] - row["paused_s"])
        found.append(row)
    names = tuple(n for n in wanted if any(row.get(n) is not None for row in found))
    if not names:
        raise ResultsError(f"{results.name} has no intervals: its rows have no level or loudness")
    rows = Rows.of(
        [{k: v for k, v in row.items() if k not in wanted or k in names} for row in found]
    )
    sources = dict.fromkeys(parts.how[name] for name in names if name in parts.how)
    return IntervalTable(rows, names, f"from rows: {', '.join(sources)}")


def _spans(
    clock: SoundClock, interval: Interval, begin_s: float, end_s: float
) -> Iterator[tuple[float, float, float, bool]]:
    """Begin, end, UTC of the begin, and whether it is a whole interval of the clock.

    An interval also ends where the clock was set, as it does when it is counted live.
    """
    utc = clock.utc(begin_s, after=True)
    while begin_s < end_s - SAME_S:
        next_utc, most_s = interval.end(utc), min(clock.next_set(begin_s), end_s)
        until_s = clock.until(next_utc, begin_s)
        whole = abs(interval.begin(utc) - utc) < CLOCK_S and until_s <= most_s + SAME_S
        until_s = min(until_s, most_s)
        if until_s > begin_s + SAME_S:
            yield begin_s, until_s, utc, whole
        # The sound drifts against the clock: an interval begins where the one before it ends.
        utc = next_utc if until_s < most_s - SAME_S else clock.utc(until_s, after=True)
        begin_s = until_s


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
