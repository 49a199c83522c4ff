"""Statistics of a part of a measurement from its rows: levels, maxima, percentiles, energy."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import SAME_S, Moment, NoSuchTime, local_text
from amt_stream.meters.frames import UNHEARD, Fault
from amt_stream.meters.rows import Column
from amt_stream.meters.rows.column import EQUIVALENT
from amt_stream.sessions.results.pieces import PiecesOfRows
from amt_stream.sessions.results.results import Results, ResultsError
from amt_stream.sessions.results.sound_clock import SoundClock
from amt_stream.sessions.results.spans import Numbers, UncountedSpans


class PartsOfRows:
    """Statistics of parts of a measurement, as far as its rows have them.

    A row covers the time since the row before.

    spans: times that do not count
    pieces: of equivalent levels
    how: the source of each statistic computed
    counted: which rows are of sound that counts
    """

    def __init__(self, results: Results) -> None:
        self.results, self.rows = results, results.rows
        self.time_s: Numbers = results.rows["time_s"]
        self.spans = UncountedSpans(results)
        self.pieces = PiecesOfRows(results, self.spans)
        self.how: dict[str, str] = {}
        self.counted = ((self.rows["fault"] & UNHEARD) == 0) & (self.time_s > 0)
        if results.calibrated:
            self.counted &= self.rows["calibrated"]
        for begin_s, end_s in self.spans.pauses:
            self.counted &= (self.time_s <= begin_s) | (self.time_s > end_s)
        # A row is of the time since the one before: none that reaches into an excluded span counts.
        before_s = np.concatenate([[0.0], self.time_s[:-1]])
        self.counted &= ~self.spans.is_excluded(before_s, self.time_s)

    def measured_s(self, begin_s: float, end_s: float, model: str = "") -> float:
        """Duration of sound that was present and counted, up to the last row.

        model: by this one, which may have been switched off
        """
        spans = np.array([begin_s]), np.array([min(end_s, self.results.duration_s)])
        return float(self.spans.counted_s(*spans, model, rest=True)[0])

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

    def fault(self, begin_s: float, end_s: float) -> int:
        """Faults of the sound, bits of `Fault`."""
        there = (self.time_s > begin_s + SAME_S) & (self.time_s <= end_s + SAME_S)
        return int(np.bitwise_or.reduce(self.rows["fault"][there], initial=0))

    def _within(self, begin_s: float, end_s: float) -> NDArray[np.bool_]:
        inside = (self.time_s > begin_s + SAME_S) & (self.time_s <= end_s + SAME_S)
        there: NDArray[np.bool_] = inside & self.counted
        return there

    def values(self, names: Iterable[str], begin_s: float, end_s: float) -> dict[str, float | None]:
        """Statistics by name, None if the rows do not have them."""
        return {
            name: self._value(name, begin_s, end_s) for name in names if name in self.results.known
        }

    def _value(self, name: str, begin_s: float, end_s: float) -> float | None:
        statistic = self.results.known[name].statistic
        if statistic == EQUIVALENT:
            pieces = self.pieces.of(name)
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

    def instantaneous(self, name: str) -> Numbers | None:
        """The settled instantaneous values behind a statistic, NaN for others; None without any."""
        other = self.results.source_of(self.results.known[name])
        if not other:
            return None
        return np.where(self.counted & self.results.settled(other), self.rows[other], np.nan)

    def _extreme_of_kept(
        self, name: str, highest: bool, begin_s: float, end_s: float
    ) -> float | None:
        """The extreme outside excluded spans; None if one of them may hide a greater one."""
        found = [self._extreme(name, highest, a, b) for a, b in self.spans.kept(begin_s, end_s)]
        known = [one for one in found if one is not None]
        if not known:
            return None
        extreme = max(known) if highest else min(known)
        if len(known) == len(found):
            return extreme
        if name not in self.rows.columns:
            return None
        # An excluded span cannot hide more than the extreme of the whole sound.
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
    by = zone or results.zone
    first_s, last_s = float(results.rows["time_s"][0]), results.duration_s
    try:
        begin_s = first_s if begin is None else time_of(results, begin, by, first_s)
        end_s = last_s if end is None else time_of(results, end, by, begin_s)
    except NoSuchTime as refusal:
        raise ResultsError(f"{results.name}: {refusal}") from refusal
    for name, given, time_s in (("--from", begin, begin_s), ("--to", end, end_s)):
        if given is not None and not first_s - SAME_S <= time_s <= last_s + SAME_S:
            span = _span(first_s, last_s, results.clock, by)
            raise ResultsError(f"{results.name} is {span}: {name} {given.text} is outside")
    if not end_s > begin_s:
        raise ResultsError(f"{results.name}: --to is not after --from")
    return Part(begin_s, end_s)


def time_of(results: Results, moment: Moment, zone: tzinfo | None, from_s: float) -> float:
    """The time of sound that a user means; the arguments are those of `Moment.time_s`."""
    if results.clock is None:
        return moment.time_s(None, zone, from_s)
    return results.clock.time_s(moment, zone, from_s)


def _span(begin_s: float, end_s: float, clock: SoundClock | None, zone: tzinfo | None) -> str:
    if clock is None:
        return f"from {begin_s:g} s to {end_s:g} s"
    begin, end = (local_text(round(clock.utc(t)), zone) for t in (begin_s, end_s))
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
