"""Results of a measurement: rows, summary, events and faults."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import SAME_TIME_S, zone_of
from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonMap
from amt_stream.core.since_reset import SinceReset
from amt_stream.meters import catalog
from amt_stream.meters.accumulators.limit_state import STATES, UNCALIBRATED
from amt_stream.meters.frames import COUNTING, UNHEARD, Event, Fault
from amt_stream.meters.limits import limit_of
from amt_stream.meters.names import state_column
from amt_stream.meters.rows import FAULT_NAMES, Column, Readings, Rows, column_named, readings_of
from amt_stream.meters.rows.block import is_named, unix_s
from amt_stream.meters.rows.column import AT_LEAST, EQUIVALENT
from amt_stream.meters.rows.limit_monitor import LimitMonitor
from amt_stream.meters.rows.limited import until_of
from amt_stream.sessions.counted_time import counted_from
from amt_stream.sessions.results.sound_clock import SoundClock
from amt_stream.sessions.verify import Verdict

if TYPE_CHECKING:
    from amt_stream.offline.measured import Measured

GAPS = ("gap", "dropped", "lost")
"""Kinds of events that explain a gap."""

KINDS: dict[Fault | None, tuple[str, ...]] = {Fault.GAP: GAPS, Fault.SILENT: ("gap", "silent")}
"""Kinds of events that explain a fault, unless it is the one of the fault's name."""

UNCALIBRATED_SOUND = "uncalibrated"
"""The word for stretches of a measurement whose calibration did not hold there."""

EXCLUDED = "excluded"
"""The word for stretches of a measurement that its user excludes."""

MARK = "mark"
"""The kind of events for marks."""


class ResultsError(Refusal, RuntimeError):
    """Results cannot be read."""


def _together(marks: NDArray[Any]) -> list[NDArray[np.intp]]:
    """The places of marked rows, adjacent ones together."""
    marked = np.flatnonzero(marks)
    parts = np.split(marked, np.flatnonzero(np.diff(marked) > 1) + 1)
    return [part for part in parts if len(part)]


@dataclass(frozen=True)
class FaultySpan:
    """A part of the sound with a fault: its word, its time in seconds, its cause."""

    fault: str
    begin_s: float
    end_s: float
    text: str = ""


@dataclass(frozen=True)
class Results:
    """The results of one measurement.

    name: name of the folder or file, or of the sound
    header: header of the rows
    rows: rows with the chosen columns, and those before and after the readings; none of a file
        that only has a table of intervals
    last: all columns of the last row, by name
    summary: summary of the whole sound; empty if the measurement was interrupted or is running
    events: events of a log
    settings: settings of a log
    intervals: table of intervals of a log, if any
    part: begin and end in seconds, if this is a part of a longer measurement
    proof: result of `verify` before a log was read; None otherwise
    uncounted: times in seconds whose rows a restored run did not count, as they came after the
        snapshot that it continues
    excluded: spans that the user excludes from statistics and limits, in order
    """

    name: str
    header: JsonMap
    rows: Rows
    last: JsonMap
    summary: JsonMap = field(default_factory=dict)
    events: Sequence[Event] = ()
    settings: JsonMap = field(default_factory=dict)
    proof: Verdict | None = None
    uncounted: Sequence[tuple[float, float]] = ()
    intervals: Rows | None = None
    part: tuple[float, float] | None = None
    excluded: Sequence[FaultySpan] = ()

    @classmethod
    def of_measured(cls, measured: "Measured", name: str = "") -> "Results":
        """Results from the return value of `measure`."""
        header, rows = measured.header, measured.rows
        (last,) = rows.where(slice(-1, None))
        name = name or header["source"]["name"]
        intervals = measured.intervals
        return cls(name, header, rows, last, measured.summary, intervals=intervals)

    @property
    def step_s(self) -> float:
        """Seconds between rows."""
        return float(self.header["step_ms"]) / 1000

    @property
    def begin_s(self) -> float:
        """Begin in seconds of sound: 0 unless it is a part."""
        return 0.0 if self.part is None else self.part[0]

    @property
    def duration_s(self) -> float:
        """Time of the last row in seconds."""
        return float(self.rows["time_s"][-1])

    @cached_property
    def clock(self) -> SoundClock | None:
        """UTC of the sound; None if unknown, as for a file."""
        utc_s = unix_s(self.rows["utc"])
        known = np.isfinite(utc_s)
        return SoundClock(self.rows["time_s"][known], utc_s[known]) if known.any() else None

    @property
    def zone(self) -> tzinfo | None:
        """Time zone of the measurement, from a log or the header of a file.

        It is the named zone, with its rules of daylight saving, if that is known and has the offset
        in the log; else a fixed offset.
        """
        try:
            began = datetime.fromisoformat(str(self.settings.get("began_local")))
        except ValueError:
            return zone_of(self.header.get("zone")) if not self.settings else None
        place = zone_of(self.settings.get("zone"))
        same = place is not None and began.astimezone(place).utcoffset() == began.utcoffset()
        return place if same else began.tzinfo

    @property
    def calibrated(self) -> bool:
        """Whether readings are calibrated: uncalibrated sound counts only if there is no other."""
        tables = [self.rows] if self.intervals is None else [self.rows, self.intervals]
        flags = np.concatenate([table["calibrated"] for table in tables])
        return not len(flags) or bool(flags.any())

    @property
    def clipped(self) -> bool:
        """Whether any of the sound was clipped."""
        tables = [self.rows] if self.intervals is None else [self.rows, self.intervals]
        return any(bool((table["fault"] & Fault.CLIP).any()) for table in tables)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The columns of the readings, by name."""
        return {one["name"]: column_of(one) for one in self.header["columns"]}

    @cached_property
    def models(self) -> dict[str, Readings]:
        """All readings that its models offer, by model; those of unknown models are left out."""
        names = [one["name"] for one in self.header["models"]]
        known = [name for name in names if name in catalog.entries()]
        channels = len(self.header["source"]["channels"])
        heard = {one["name"]: len(one.get("channels", ())) for one in self.header["models"]}
        return readings_of(known, {name: heard[name] or channels for name in known}, band=True)

    @cached_property
    def known(self) -> dict[str, Column]:
        """`columns`, and the others that its models offer, by name."""
        return {c.name: c for one in self.models.values() for c in one.offered} | self.columns

    def source_of(self, statistic: Column) -> str:
        """The name of the instantaneous column behind a statistic; "" if the rows lack it."""
        for name, one in self.columns.items():
            same = (one.quantity, one.unit) == (statistic.quantity, statistic.unit)
            if same and one.statistic == "instantaneous" and name in self.rows.columns:
                return name
        return ""

    def settled(self, name: str) -> NDArray[np.bool_]:
        """At which rows a column has a reading that is not settling, nor after an excluded span."""
        calm = ~self.named_in("settling_columns", name)
        memory_s = self.columns[name].settle_s or 0.0
        for one in self.excluded:
            after_s = self.rows["time_s"] - one.end_s
            calm &= (after_s <= 0) | (after_s > memory_s)
        there: NDArray[np.bool_] = calm & np.isfinite(self.rows[name])
        return there

    def named_in(self, marks: str, name: str) -> NDArray[np.bool_]:
        """At which rows a column of marks, such as "settling_columns", names a reading."""
        texts = self.rows[marks]
        named = {text: is_named(name, text) for text in set(texts)}
        there: NDArray[np.bool_] = np.array([named[text] for text in texts], np.bool_)
        return there

    @property
    def reset_s(self) -> float:
        """When readings were last reset, if that was not undone; 0 without a reset."""
        return counted_from(self.events)

    @property
    def marks(self) -> list[Event]:
        return [event for event in self.events if event.kind == MARK]

    @property
    def stretches(self) -> list[FaultySpan]:
        """Faults of the sound in order; those of adjacent rows are merged.

        Sound that does not count because its calibration did not hold is one of them.
        """
        fault, spans = self.rows["fault"], list[FaultySpan]()
        for bit, word in FAULT_NAMES.items():
            # A device that gave exact zeros has a gap, which is no other one.
            mine = fault & bit & ~np.where(fault & Fault.SILENT, np.uint8(Fault.GAP), np.uint8(0))
            spans += [self._stretch(bit, word, part) for part in _together(mine)]
        if self.calibrated:
            doubtful = _together(~self.rows["calibrated"])
            spans += [self._stretch(None, UNCALIBRATED_SOUND, part) for part in doubtful]
        spans += self.excluded
        return sorted(spans, key=lambda one: (one.begin_s, one.fault))

    def _stretch(self, bit: Fault | None, word: str, rows: Any) -> FaultySpan:
        """The span of adjacent rows, each of which covers the time since the one before."""
        time_s, first = self.rows["time_s"], int(rows[0])
        begin_s = float(time_s[first - 1]) if first else 0.0
        end_s = float(time_s[rows[-1]])
        own = [
            event
            for event in self.events
            if begin_s - self.step_s <= event.time_s <= end_s
            if event.kind in KINDS.get(bit, (word,))
        ]
        missing = [event for event in own if event.kind == GAPS[0] and event.samples]
        if missing:  # a log has it to the sample
            begin_s, last = missing[0].time_s, missing[-1]
            end_s = last.time_s + last.samples / self.header["source"]["fs"]
        text = next((event.text for event in own if event.text), "")
        return FaultySpan(word, begin_s, end_s, text)

    @property
    def limits(self) -> list[JsonMap]:
        """The result of each limit, from the summary, or from the rows without one."""
        if "limits" in self.summary:
            return [*self.summary["limits"]]
        given = self.header.get("limits", ())
        return [self._stood(one) for one in given if state_column(one["name"]) in self.rows.columns]

    def _stood(self, data: Mapping[str, object]) -> JsonMap:
        """The result of a limit from these rows, for the counted times."""
        limit = limit_of(data)
        column = self.columns[limit.column]
        adds_up, rises = column.statistic.startswith(EQUIVALENT), column.if_clipped == AT_LEAST
        window_s, counted = column.window_s, column.counted
        monitor = LimitMonitor(limit, self.step_s, window_s, adds_up, counted, rises)
        time_s, values, states = (self.rows[n] for n in ("time_s", limit.column, limit.state))
        known, fault = states != STATES[UNCALIBRATED], self.rows["fault"]
        heard = (fault & UNHEARD == 0) & ~_is_off(fault, values)
        clipped = self.named_in("clipped_columns", limit.column)
        there = states != ""  # a limit may have come later
        for from_s, to_s in self.uncounted:
            there &= (time_s <= from_s) | (time_s > to_s)
        if len(time_s) and not there[0]:
            monitor.begin_late(float(time_s[np.argmax(there)]) - self.step_s)
        of_rows = [time_s, values, known, clipped, heard]
        of_rows += [self.rows[name] for name in [until_of(limit)] if name in self.rows.columns]
        rows = [column[there].tolist() for column in of_rows]
        done = 0
        # A level of the moment still remembers an excluded span after its end.
        memory_s = column.settle_s or 0.0 if column.statistic == "instantaneous" else 0.0
        spans = [(one.begin_s, one.end_s + memory_s) for one in self.excluded]
        for kind, at_s in _paused_too(_counting(self.events, self.uncounted), spans):
            until = bisect_right(rows[0], at_s + SAME_TIME_S)
            monitor.update(zip(*(row[done:until] for row in rows), strict=True))
            done = max(done, until)
            if kind == "readings_reset":
                monitor.reset(at_s)
            else:
                monitor.pause(kind == "paused", at_s)
        monitor.update(zip(*(row[done:] for row in rows), strict=True))
        cut_off = "cut_off" in self.summary.get("sound", ())
        return replace(monitor.stood, cut_off=cut_off).to_dict()


def _is_off(fault: NDArray[np.uint8], values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """At which rows the model of a column was switched off, for a part of the time at least.

    fault: which says that some model was
    values: of the column, NaN while that is off, and before its first value
    """
    none = np.isnan(values)
    has_begun = np.logical_or.accumulate(~none)
    off: NDArray[np.bool_] = (fault & Fault.OFF) > 0
    off &= has_begun & (none | np.append(False, none[:-1]))
    return off


def merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans without overlap, in order."""
    joined: list[tuple[float, float]] = []
    for begin_s, end_s in sorted(spans):
        if joined and begin_s <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end_s)
        else:
            joined.append((begin_s, end_s))
    return joined


def _paused_too(
    turns: list[tuple[str, float]], spans: list[tuple[float, float]]
) -> list[tuple[str, float]]:
    """Pauses and resets with further pauses, which may overlap them."""
    if not spans:
        return turns
    both, since_s, pauses = list[tuple[str, float]](), math.nan, [*spans]
    for kind, at_s in (*turns, ("continued", math.inf)):
        if kind == "paused" and math.isnan(since_s):
            since_s = at_s
        elif kind == "continued" and not math.isnan(since_s):
            pauses.append((since_s, at_s))
            since_s = math.nan
        elif kind == "readings_reset":
            both.append((kind, at_s))
    for begin_s, end_s in merged(pauses):
        both += [("paused", begin_s), ("continued", end_s)]
    return sorted(both, key=lambda turn: turn[1])


def _counting(
    events: Iterable[Event], uncounted: Sequence[tuple[float, float]]
) -> list[tuple[str, float]]:
    """Kind and time of each pause and reset, from events.

    A reset that was undone is left out, as are resets that were undone with it.

    uncounted: times that a restored run does not know
    """
    counting = SinceReset[list[tuple[str, float]]]([])
    for event in events:
        kind, at_s = event.kind, event.time_s
        if kind not in COUNTING or any(from_s < at_s <= to_s for from_s, to_s in uncounted):
            continue
        if kind == "reset_undone":
            counting.undo()
        elif kind == "readings_reset":
            counting.reset(at_s, [*counting.now, (kind, at_s)])
        else:
            for turns in counting.states:
                turns.append((kind, at_s))
    return counting.now


def column_of(data: JsonMap) -> Column:
    """The column of a header's entry, whose model may be unknown here."""
    entry = {key: data[key] for key in ("name", "unit", "quantity", "model", "statistic")}
    known = column_named(data["name"])
    return Column(**entry) if known is None else replace(known, **entry)
