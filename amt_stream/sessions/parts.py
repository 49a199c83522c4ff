"""Statistics of a part of a measurement from its rows: levels, maxima, percentiles, energy."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import SAME_S, Interval, Moment, NoSuchTime, local_text, zone_text
from amt_stream.core.json_types import JsonDict
from amt_stream.meters import catalog
from amt_stream.meters.frames import UNHEARD, Fault
from amt_stream.meters.rows import Column, Rows
from amt_stream.meters.rows.block import FAULT_TEXTS, unix_s, utc_text
from amt_stream.meters.rows.column import EQUIVALENT
from amt_stream.sessions.results import (
    UNCALIBRATED_SOUND,
    FaultySpan,
    Results,
    ResultsError,
    merged,
)

LEFT_OUT = "gap", "silent", UNCALIBRATED_SOUND
FINEST_S = 1.0
"""The longest window of levels that are taken before differences of an accumulated one."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Pieces:
    """Mean powers re (20 uPa)^2 of consecutive pieces of sound (n,).

    begin_s, end_s: bounds in seconds of sound
    measured_s: measured duration
    utc_s: Unix time of the end, NaN if unknown
    how: description of the source
    """

    begin_s: Numbers
    end_s: Numbers
    utc_s: Numbers
    measured_s: Numbers
    power: Numbers
    how: str

    def level_db(self, begin_s: float, end_s: float) -> float | None:
        """The equivalent level between two times; pieces across a bound count in proportion."""
        overlap = np.minimum(self.end_s, end_s) - np.maximum(self.begin_s, begin_s)
        share = np.clip(overlap, 0.0, None) / np.maximum(self.end_s - self.begin_s, SAME_S)
        weight = share * self.measured_s
        if not weight.sum() > 0:
            return None
        mean = float((self.power * weight).sum() / weight.sum())
        return 10 * math.log10(mean) if mean > 0 else None


class PartsOfRows:
    """Statistics of parts of a measurement, as far as its rows have them.

    A row covers the time since the row before. `how` describes the source of each statistic
    computed.
    """

    def __init__(self, results: Results) -> None:
        self.results, self.rows = results, results.rows
        self.time_s: Numbers = results.rows["time_s"]
        self.how: dict[str, str] = {}
        self._counted = ((self.rows["fault"] & UNHEARD) == 0) & (self.time_s > 0)
        if results.calibrated:
            self._counted &= self.rows["calibrated"]
        for begin_s, end_s in self.pauses:
            self._counted &= (self.time_s <= begin_s) | (self.time_s > end_s)
        # A row is of the time since the one before: none that reaches into an excluded span counts.
        before_s = np.concatenate([[0.0], self.time_s[:-1]])
        self._counted &= ~self._is_excluded(before_s, self.time_s)

    def _is_excluded(self, begin_s: Numbers, end_s: Numbers) -> NDArray[np.bool_]:
        """Which pieces of time reach into an excluded span."""
        found = np.zeros(len(end_s), np.bool_)
        for one in self.results.excluded:
            found |= (end_s > one.begin_s + SAME_S) & (begin_s < one.end_s - SAME_S)
        return found

    def kept(self, begin_s: float, end_s: float) -> list[tuple[float, float]]:
        """What excluded spans leave between two times."""
        found, at_s = [], begin_s
        for one in self.results.excluded:
            found.append((at_s, min(one.begin_s, end_s)))
            at_s = max(at_s, one.end_s)
        return [(a, b) for a, b in (*found, (at_s, end_s)) if b > a + SAME_S]

    @cached_property
    def pauses(self) -> list[tuple[float, float]]:
        """Begin and end of each pause."""
        found: list[tuple[float, float]] = []
        since: float | None = None
        for event in sorted(self.results.events, key=lambda event: event.time_s):
            if event.kind == "paused" and since is None:
                since = event.time_s
            elif event.kind == "continued" and since is not None:
                found.append((since, event.time_s))
                since = None
        return found if since is None else [*found, (since, math.inf)]

    def gaps_of(self, model: str) -> list[tuple[float, float]]:
        """Begin and end of each gap in the sound, and of what is not calibrated.

        A model of the digital signal needs no calibration.
        """
        left_out = LEFT_OUT if not model or catalog.is_in_pascal(model) else LEFT_OUT[:-1]
        return [(one.begin_s, one.end_s) for one in self._stretches if one.fault in left_out]

    @cached_property
    def _stretches(self) -> list[FaultySpan]:
        return self.results.stretches

    def off_of(self, model: str) -> list[tuple[float, float]]:
        """Begin and end of each time in which a model was switched off."""
        if model not in self._off:
            self._off[model] = self._off_spans(model)
        return self._off[model]

    @cached_property
    def _off(self) -> dict[str, list[tuple[float, float]]]:
        return {}

    def _off_spans(self, model: str) -> list[tuple[float, float]]:
        columns = self.results.columns.items()
        names = [n for n, one in columns if one.model == model and n in self.rows.columns]
        numbers = [self.rows[name] for name in names if self.rows[name].dtype.kind == "f"]
        off = (self.rows["fault"] & Fault.OFF) > 0
        if not (numbers and off.any()):
            return []
        # It has no values; other models go on.
        off &= np.isnan(numbers).all(axis=0)
        before_s = np.concatenate([[0.0], self.time_s[:-1]])
        edges = np.flatnonzero(np.diff(off, prepend=False, append=False)).tolist()
        return [
            (float(before_s[first]), float(self.time_s[end - 1]))
            for first, end in zip(edges[::2], edges[1::2], strict=True)
        ]

    def measured_s(self, begin_s: float, end_s: float, model: str = "") -> float:
        """Duration of sound that was present and counted, up to the last row.

        model: by this one, which may have been switched off
        """
        spans = np.array([begin_s]), np.array([min(end_s, self.results.duration_s)])
        return float(self._counted_s(*spans, model, rest=True)[0])

    def measured_of(self, statistic: Column, begin_s: float, end_s: float) -> float | None:
        """Duration in which the reading behind a statistic counted; None if no row has it.

        At the start a reading counts while it settles and is not shown yet, and after a fault it
        does not.
        """
        other = self.results.source_of(statistic)
        if not other:
            return None
        counts = np.isfinite(self.rows[other]) & ~self._unsettled(other) | ~self._disturbed
        return float(np.count_nonzero(counts & self._within(begin_s, end_s))) * self.results.step_s

    def above(
        self, statistic: Column, highest: float, begin_s: float, end_s: float
    ) -> tuple[float, float] | None:
        """What the reading behind a maximum reached above it while it settled after a fault.

        Returns that value, and the seconds above the maximum; None if there are none.
        """
        other = self.results.source_of(statistic)
        if not other:
            return None
        there = self._within(begin_s, end_s) & self._unsettled(other)
        values = self.rows[other][there & (self.rows[other] > highest)]
        return (float(values.max()), len(values) * self.results.step_s) if len(values) else None

    def _unsettled(self, name: str) -> NDArray[np.bool_]:
        """At which rows a reading settles after a fault, and does not count."""
        return self._disturbed & self.results.named_in("settling_columns", name)

    @cached_property
    def _disturbed(self) -> NDArray[np.bool_]:
        """At which rows there was a fault already."""
        disturbed = (self.rows["fault"] & (UNHEARD | Fault.OFF)) > 0
        so_far: NDArray[np.bool_] = np.logical_or.accumulate(disturbed)
        return so_far

    def paused_s(self, begin_s: float, end_s: float) -> float:
        """Duration of pauses."""
        return sum(max(0.0, min(end_s, b) - max(begin_s, a)) for a, b in self.pauses)

    def _counted_s(
        self, begin_s: Numbers, end_s: Numbers, model: str, rest: bool = False
    ) -> Numbers:
        """Seconds of sound in each piece that were present and counted by a model.

        rest: without excluded spans, which were counted when they were measured
        """
        found = end_s - begin_s
        excluded = [(one.begin_s, one.end_s) for one in self.results.excluded] if rest else []
        for a, b in merged([*self.gaps_of(model), *self.pauses, *self.off_of(model), *excluded]):
            found = found - np.clip(np.minimum(end_s, b) - np.maximum(begin_s, a), 0.0, None)
        return np.clip(found, 0.0, None)

    def fault(self, begin_s: float, end_s: float) -> int:
        """Faults of the sound, bits of `Fault`."""
        there = (self.time_s > begin_s + SAME_S) & (self.time_s <= end_s + SAME_S)
        return int(np.bitwise_or.reduce(self.rows["fault"][there], initial=0))

    def _within(self, begin_s: float, end_s: float) -> NDArray[np.bool_]:
        inside = (self.time_s > begin_s + SAME_S) & (self.time_s <= end_s + SAME_S)
        return inside & self._counted

    def values(self, names: Iterable[str], begin_s: float, end_s: float) -> dict[str, float | None]:
        """Statistics by name, None if the rows do not have them."""
        return {
            name: self._value(name, begin_s, end_s) for name in names if name in self.results.known
        }

    def _value(self, name: str, begin_s: float, end_s: float) -> float | None:
        statistic = self.results.known[name].statistic
        if statistic == EQUIVALENT:
            pieces = self.pieces_of(name)
            if pieces is not None:
                self.how[name] = pieces.how
            return None if pieces is None else pieces.level_db(begin_s, end_s)
        if statistic in ("maximum", "minimum"):
            return self._extreme_of_kept(name, statistic == "maximum", begin_s, end_s)
        if statistic.startswith("exceeded ") and statistic.endswith(" % of the time"):
            now = self._instantaneous(name, begin_s, end_s)
            percent = float(statistic.split()[1])
            return None if now is None else float(np.percentile(now, 100.0 - percent))
        return None

    def _instantaneous(self, name: str, begin_s: float, end_s: float) -> Numbers | None:
        """The settled instantaneous values behind a statistic, or None."""
        other = self.results.source_of(self.results.known[name])
        if not other:
            return None
        self.how[name] = f"{other} every {1000 * self.results.step_s:g} ms"
        inside = self._within(begin_s, end_s) & self.results.settled(other)
        return self.rows[other][inside] if inside.any() else None

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which rows are of sound that counts."""
        return self._counted

    def instantaneous(self, name: str) -> Numbers | None:
        """The settled instantaneous values behind a statistic, NaN for others; None without any."""
        other = self.results.source_of(self.results.known[name])
        if not other:
            return None
        return np.where(self._counted & self.results.settled(other), self.rows[other], np.nan)

    def _extreme_of_kept(
        self, name: str, highest: bool, begin_s: float, end_s: float
    ) -> float | None:
        """The extreme of what excluded spans leave; None where one may hide a greater one."""
        found = [self._extreme(name, highest, a, b) for a, b in self.kept(begin_s, end_s)]
        known = [one for one in found if one is not None]
        if not known:
            return None
        extreme = max(known) if highest else min(known)
        if len(known) == len(found):
            return extreme
        if name not in self.rows.columns:
            return None
        # What an excluded span hides is no more than the extreme of everything.
        everything = _last_known(self.rows[name][self.time_s <= end_s + SAME_S])
        return extreme if extreme == everything else None

    def _extreme(self, name: str, highest: bool, begin_s: float, end_s: float) -> float | None:
        """The extreme of instantaneous values, or the accumulated one if it changed here."""
        inside = self._within(begin_s, end_s)
        if name in self.rows.columns and inside.any():
            places = np.flatnonzero(inside)
            so_far = self.rows[name]
            last, before = (_last_known(so_far[part]) for part in (places, slice(places[0])))
            # A change since the begin happened in this part.
            changed = math.isnan(before) or (last > before if highest else last < before)
            if math.isfinite(last) and changed:
                self.how[name] = name
                return last
        now = self._instantaneous(name, begin_s, end_s)
        return None if now is None else float(now.max() if highest else now.min())

    def pieces(self) -> Pieces | None:
        """A-weighted mean powers from the best source; None without one."""
        return self._of_intervals() or self.pieces_of_rows()

    def pieces_of_rows(self) -> Pieces | None:
        """A-weighted mean powers from the rows, ignoring a table of intervals."""
        return self.pieces_of("laeq_db") if "laeq_db" in self.results.known else None

    def _of_intervals(self) -> Pieces | None:
        table = self.results.intervals
        if table is None or not len(table) or "laeq_db" not in table.columns:
            return None
        seconds = self.results.header["interval"]["seconds"]
        utc_s = unix_s(table["utc"]) + table["end_s"] - table["time_s"]
        power = _power(table["laeq_db"])
        spans = table["time_s"], table["end_s"], utc_s, table["measured_s"], power
        whose = "the log's own" if len(self.rows) else "a table of"
        return Pieces(*spans, f"{whose} intervals of {seconds} s")

    def pieces_of(self, name: str) -> Pieces | None:
        """Pieces of an equivalent level; those that reach into an excluded span measure 0 s."""
        if name not in self._made:
            made = self._make_pieces(name)
            if made is not None:
                excluded = self._is_excluded(made.begin_s, made.end_s)
                made = replace(made, measured_s=np.where(excluded, 0.0, made.measured_s))
            self._made[name] = made
        return self._made[name]

    @cached_property
    def _made(self) -> dict[str, Pieces | None]:
        return {}

    def _make_pieces(self, name: str) -> Pieces | None:
        quantity, step_s = self.results.known[name].quantity, self.results.step_s
        windows = {
            column.window_s: other
            for other, column in self.results.columns.items()
            if column.quantity == quantity and column.statistic.startswith(EQUIVALENT)
            if other in self.rows.columns
        }
        counting = windows.pop(0.0, None)
        whole = [w for w in windows if w >= step_s and math.isclose(w / step_s, round(w / step_s))]
        # An excluded span must not reach far into what is beside it.
        fine = [w for w in whole if w <= FINEST_S] if self.results.excluded and counting else whole
        if fine:
            window = min(fine)
            each = round(window / step_s)
            steps = np.rint(self.time_s / step_s).astype(np.int64)
            places = np.flatnonzero((steps % each == 0) & (steps > 0))
            return self._windows(windows[window], places, window, windows[window])
        if counting is not None:
            return self._differences(counting)
        if windows and not self.results.excluded:
            window = max(windows)
            how = f"{windows[window]}, of {window:g} s every {step_s:g} s"
            return self._windows(windows[window], np.flatnonzero(self.time_s > 0), step_s, how)
        if name != "laeq_db" or "laf_db" not in self.rows.columns:
            return None
        how = f"laf_db every {1000 * step_s:g} ms"
        return self._windows("laf_db", np.flatnonzero(self.time_s > 0), step_s, how)

    def _windows(self, name: str, places: NDArray[np.int64], window_s: float, how: str) -> Pieces:
        values = self.rows[name][places]
        places, values = places[np.isfinite(values)], values[np.isfinite(values)]
        end_s = self.time_s[places]
        begin_s = np.maximum(end_s - window_s, 0.0)
        utc_s = unix_s(self.rows["utc"][places])
        heard_s = self._counted_s(begin_s, end_s, self.results.known[name].model)
        return Pieces(begin_s, end_s, utc_s, heard_s, _power(values), how)

    def _differences(self, name: str) -> Pieces:
        """Pieces of an accumulated level: the energy added since the row before."""
        values = self.rows[name]
        places = np.flatnonzero(np.isfinite(values) & (self.time_s > 0))
        end_s, utc_s = self.time_s[places], unix_s(self.rows["utc"][places])
        begin_s = np.concatenate(
            [[min(one["from_s"] for one in self.results.header["statistics"].values())], end_s[:-1]]
        )[: len(end_s)]
        heard_s = self._counted_s(begin_s, end_s, self.results.known[name].model)
        total_s = np.concatenate([[0.0], np.cumsum(heard_s)])
        # The begin of the accumulation: the start, or the last reset.
        resets = np.array(
            [0.0, *(e.time_s for e in self.results.events if e.kind == "readings_reset")]
        )
        since = np.searchsorted(resets, end_s, side="left") - 1
        counted_s = total_s[1:] - total_s[np.searchsorted(end_s, resets)[since]]
        energy = _power(values[places]) * counted_s
        begins = np.diff(since, prepend=-1) > 0
        came = np.where(begins, energy, np.diff(energy, prepend=0.0))
        power = np.clip(came, 0.0, None) / np.maximum(heard_s, SAME_S)
        how = f"changes of {name} from row to row"
        return Pieces(begin_s, end_s, utc_s, heard_s, np.where(heard_s > 0, power, 0.0), how)


def _power(level_db: NDArray[np.floating]) -> Numbers:
    return np.where(np.isfinite(level_db), 10.0 ** (np.nan_to_num(level_db) / 10.0), 0.0)


def _last_known(values: Numbers) -> float:
    """The last value that is known, as a model that is off has none; NaN without any."""
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else math.nan


@dataclass(frozen=True)
class Part:
    """A part of a measurement, in seconds of sound."""

    begin_s: float
    end_s: float


def part_of(
    results: Results, begin: Moment | None, end: Moment | None, zone: tzinfo | None = None
) -> Part:
    """The part between two moments, in `zone`, by default that of the measurement.

    Raises ResultsError if it is not in the measurement.
    """
    start = results.start_utc
    start_s = None if start is None else float(unix_s(start))
    by = zone or results.zone
    first_s, last_s = float(results.rows["time_s"][0]), results.duration_s
    try:
        begin_s = first_s if begin is None else begin.time_s(start_s, by, first_s)
        end_s = last_s if end is None else end.time_s(start_s, by, begin_s)
    except NoSuchTime as refusal:
        raise ResultsError(f"{results.name}: {refusal}") from refusal
    for name, given, time_s in (("--from", begin, begin_s), ("--to", end, end_s)):
        if given is not None and not first_s - SAME_S <= time_s <= last_s + SAME_S:
            span = _span(first_s, last_s, start_s, by)
            raise ResultsError(f"{results.name} is {span}: {name} {given.text} is outside")
    if not end_s > begin_s:
        raise ResultsError(f"{results.name}: --to is not after --from")
    return Part(begin_s, end_s)


def _span(begin_s: float, end_s: float, start_s: float | None, zone: tzinfo | None) -> str:
    if start_s is None:
        return f"from {begin_s:g} s to {end_s:g} s"
    begin, end = (local_text(round(start_s + t), zone) for t in (begin_s, end_s))
    return f"from {begin} to {end}"


def results_of_part(results: Results, part: Part) -> Results:
    """The results of a part: its rows, and a summary as far as the rows allow."""
    parts = PartsOfRows(results)
    values = parts.values(results.known, part.begin_s, part.end_s)
    inside = (results.rows["time_s"] > part.begin_s - SAME_S) & (
        results.rows["time_s"] <= part.end_s + SAME_S
    )
    rows = results.rows.where(inside)
    if not len(rows):
        raise ResultsError(f"{results.name} has no row from {part.begin_s:g} s to {part.end_s:g} s")
    (last,) = rows.where(slice(-1, None))
    events = [e for e in results.events if part.begin_s <= e.time_s <= part.end_s]
    statistics = {
        name: statistic | {"from_s": part.begin_s, "to_s": part.end_s}
        for name, statistic in results.header["statistics"].items()
    }
    return replace(
        results,
        rows=rows,
        last=last,
        header={**results.header, "statistics": statistics},
        summary={name: value for name, value in values.items() if value is not None},
        events=events,
        intervals=None,
        part=(part.begin_s, part.end_s),
    )


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
            "paused_s": round(parts.paused_s(begin_s, until_s), 6),
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
