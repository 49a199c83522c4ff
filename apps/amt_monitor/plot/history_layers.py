"""The layers of the history plot: curves, faults, limits, markers, maxima."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from amt_monitor.base.theme import Role
from amt_monitor.plot.curve_layers import CurveLayer, FillBelowLayer, FillBetweenLayer
from amt_monitor.plot.history_traces import DECIBELS, GrowingScale, HistoryTrace, symbol_of, unit_of
from amt_monitor.plot.line_layers import CursorLayer, MarkerLayer, Threshold, ThresholdLayer
from amt_monitor.plot.plot import LegendEntry
from amt_monitor.plot.scrolling_layer import Lined, Lines, ScrollingLayer
from amt_monitor.plot.time_plot import TimePlot
from amt_monitor.plot.time_span_layer import TimeSpan, TimeSpanLayer, runs_of_true
from amt_stream.meters.frames import Event, Fault
from amt_stream.meters.limits import Limit
from amt_stream.meters.state_signs import SIGNS
from amt_stream.sessions.counted_time import pauses
from amt_stream.views.history_pyramid import FACTOR, PyramidCells
from amt_stream.views.history_states import (
    BELOW,
    GAP,
    OF_FAULT,
    OFF,
    PAUSED,
    SETTLING,
    SILENT,
    STARTING,
    PlotState,
)
from amt_stream.views.reading_history import CAME, ReadingHistory

PER_PIXEL = 1.5
"""At most so many cells."""

JOINED_PIXELS, SETTLED_PIXELS = 4, 12
"""Spans of a state that are closer are one; settling joins across longer intervals."""
WIDTHS, WIDTH = {"ltl": 2.5, "stl": 1.25}, 1.5
"""Widths in pixels: the slow curve is wider, so that it differs without color too."""
FILLED = 0.12

GREY: Role = "second"
THIN = 1.0
"""The color and the width of a curve while it settles."""

NEAR_S = 1.0
UNRELATED = "mark", "readings_reset", "reset_undone", "sound_begin", "sound_end"
"""Kinds of events that are no cause of a state."""
RESETS = {"readings_reset": "reset", "reset_undone": "reset undone"}
"""Kinds of events and their words in the plot."""


class HistoryLayers:
    """Draws columns of the history, all of one unit, into a plot.

    A curve follows the mean of each cell of time; its range is lightly filled. A cell is one row
    where there is room for each, with the least and the greatest of its time in a running
    measurement. While a reading is settling after a fault, its curve is thin and grey; its rise
    from silence is not drawn.
    """

    def __init__(self, plot: TimePlot, history: ReadingHistory) -> None:
        self.plot, self.history = plot, history
        self.traces: list[HistoryTrace] = []
        self.events: tuple[Event, ...] = ()
        self.limits: tuple[Limit, ...] = ()
        self.scale = GrowingScale()
        self.marks, self.thresholds = TimeSpanLayer(), ThresholdLayer()
        self.notes, self.cursor = MarkerLayer(), CursorLayer()
        self.bands: list[FillBetweenLayer] = []
        self.ranges: list[FillBetweenLayer] = []
        self.curves: list[CurveLayer] = []
        self.settling: list[CurveLayer] = []
        self.scrolling = ScrollingLayer(())
        self._level = 0
        self._held_at: int | None = None
        self._lost_at: float | None = None
        self._drawn: tuple[Any, ...] = ()

    @property
    def unit(self) -> str:
        return self.traces[0].unit if self.traces else ""

    def show(self, traces: Sequence[HistoryTrace]) -> None:
        self.traces = list(traces)
        self.bands = [FillBetweenLayer(trace.role, 0.12) for trace in traces]
        self.ranges = [FillBetweenLayer(trace.role, 0.35) for trace in traces]
        self.curves = [
            CurveLayer(trace.role, trace.dashed, WIDTHS.get(trace.role, WIDTH)) for trace in traces
        ]
        self.settling = [CurveLayer(GREY, width=THIN) for _ in traces]
        floors = [FillBelowLayer(one, FILLED) for one in self.curves if one.role == "stl"]
        # The wide curve is on top of the narrow one, whose ends stay visible beside it.
        curves = sorted(self.curves, key=lambda one: one.width)
        areas = *floors, *self.bands, *self.ranges
        # Dashes that move with the sound would not be those that are painted with it.
        solid = (one for one in curves if not one.dashed)
        self.scrolling = ScrollingLayer([*areas, *self.settling, *solid])
        dashed = (one for one in curves if one.dashed)
        lines = self.thresholds, self.notes, self.cursor
        self.plot.set_layers([self.scrolling, *dashed, self.marks, *lines])
        self.scale = GrowingScale(self.unit)
        self._drawn = ()

    def hold(self, held: bool) -> None:
        """Hold the newest row on the screen; zooming shows nothing newer until `hold(False)`."""
        if not held:
            self._held_at = None
        elif self._held_at is None:
            self._held_at = self.history.pyramid.newest

    def lose(self, lost: bool) -> None:
        """Go on into a gap while the microphone is lost: rows come when it is back."""
        self._lost_at = (self._lost_at or time.monotonic()) if lost else None

    def draw(self, again: bool) -> bool:
        """Draw what is new; returns whether anything was drawn."""
        history, plot = self.history, self.plot
        if history.pyramid.newest < 0 or not self.traces:
            return False
        newest = history.pyramid.newest if self._held_at is None else self._held_at
        if self._lost_at is not None and self._held_at is None:
            newest += int((time.monotonic() - self._lost_at) / history.step_s)
        plot.begin_s, plot.now_s = history.begin_s, round(newest * history.step_s, 6)
        level = history.level_for(plot.from_s, plot.end_s, int(PER_PIXEL * plot.inside.width()))
        rows = FACTOR**level
        last = newest // rows if plot.follows else int(plot.end_s / history.step_s) // rows + 1
        first = int(last - plot.span_s / (rows * history.step_s)) - 1
        # A growing cell is drawn four times in all.
        grown = history.count // max(1, rows // 4)
        looked_at = grown, level, first, last, plot.inside.size(), self.events, self.limits
        if looked_at == self._drawn and not again:
            return False
        self._drawn, self._level = looked_at, level
        names = [trace.name for trace in self.traces]
        cells = history.cells(names, level, first, last + 1, risen=True)
        self._paint(cells, level, first, last)
        return True

    def _paint(self, cells: PyramidCells, level: int, first: int, last: int) -> None:
        history, plot, rows = self.history, self.plot, FACTOR**level
        times = (np.arange(first, last + 1) * rows + (rows - 1) / 2) * history.step_s
        edges = [edge for trace in self.traces for edge in history.bounds_of(trace.name)]
        there = len(edges) == 2 * len(self.traces)
        limits = [limit.threshold for limit in self._own_limits]
        seen = times >= plot.from_s - rows * history.step_s
        levels = np.concatenate((cells.low[:, seen].ravel(), cells.high[:, seen].ravel(), limits))
        plot.set_time(((last + 1) * rows - 1) * history.step_s, self.scale.axis(levels, plot.now_s))
        x = times - plot.reference_s
        band = history.cells(edges, level, first, last + 1, risen=True) if there else None
        nothing = np.full(len(x), np.nan)
        ranged = level > 0 or history.pyramid.has_ranges
        lined: list[tuple[Lined, Lines]] = []
        unsettled = [history.settling_in(cells, trace.name) for trace in self.traces]
        again = times + rows * history.step_s / 2 >= history.disturbed_s
        for i, (curve, settling) in enumerate(
            zip(self.curves, np.array(unsettled) & again, strict=True)
        ):
            low, mean, high = (np.where(settling, np.nan, part[i]) for part in cells[:3])
            if curve.dashed:
                curve.set(x, mean)
            else:
                lined.append((curve, (mean,)))
            lined.append((self.settling[i], (reaching(settling, cells.mean[i]),)))
            within = (low, high) if ranged else (nothing, nothing)
            around = (nothing, nothing) if band is None else (band.low[2 * i], band.high[2 * i + 1])
            lined += (self.ranges[i], within), (self.bands[i], around)
        self.scrolling.show(level, first, x, lined)
        settling = np.logical_or.reduce(unsettled)
        self.marks.set(self._marked(cells, times, rows * history.step_s, settling))
        self._write_legend()
        self._note()

    def _write_legend(self) -> None:
        """The curves and the states of an export."""
        traces = [LegendEntry(one.role, one.dashed, one.caption) for one in self.traces]
        states = dict.fromkeys(span.state for span in self.marks.items if span.state.sign)
        signs = [
            LegendEntry(SIGNS[one.sign].color, False, one.word, one.sign)  # type: ignore[arg-type]
            for one in states
        ]
        self.plot.legend = [*traces, *signs]

    def _note(self) -> None:
        reference = self.plot.reference_s
        self.thresholds.set(thresholds_of(self._own_limits))
        notes = {event: event.text for event in self.events if event.kind == "mark"}
        notes |= {event: RESETS[event.kind] for event in self.events if event.kind in RESETS}
        moments = sorted((event.time_s - reference, text) for event, text in notes.items())
        self.notes.set(moments)

    @property
    def _own_limits(self) -> list[Limit]:
        return [limit for limit in self.limits if unit_of(limit.column) == self.unit]

    def _marked(
        self, cells: PyramidCells, times: np.ndarray, cell_s: float, settling: np.ndarray
    ) -> list[TimeSpan]:
        """The spans of each state, the worst ones last."""
        by_state = self._cells_of(cells, times, settling)
        broken = np.logical_or.reduce([marked for one, marked in by_state if one.missing])
        cells_per_pixel = self.plot.span_s / cell_s / self.plot.width()
        joined, settled = (
            max(2, round(pixels * cells_per_pixel)) for pixels in (JOINED_PIXELS, SETTLED_PIXELS)
        )
        spans, edge = [], cell_s / 2 + self.plot.reference_s
        for state, marked in by_state:
            if state in (STARTING, SETTLING):
                # Gaps, which are painted over it, do not divide it.
                runs = [_within(run, marked) for run in runs_of_true(marked | broken, settled)]
            else:
                runs = list(runs_of_true(marked, joined))
            spans += [
                TimeSpan(state, float(times[first] - edge), float(times[last] + cell_s - edge))
                for first, last in filter(None, runs)
            ]
        return spans

    def _cells_of(
        self, cells: PyramidCells, times: np.ndarray, settling: np.ndarray
    ) -> list[tuple[PlotState, np.ndarray]]:
        """In which cells each state holds, the worst state last."""
        marks = cells.marks
        begun = (times > self.history.first_s) & (times < self.plot.now_s)
        paused = np.zeros(len(times), bool)
        for start_s, end_s in pauses(self.events):
            paused |= (times >= start_s) & (times <= min(end_s, self.plot.now_s))
        with np.errstate(invalid="ignore"):
            seen = ~np.isnan(cells.high).all(axis=0)
            below = seen & ~(cells.high >= self.plot.y.low).any(axis=0)
        faults = int(np.bitwise_or.reduce(marks)) if len(marks) else 0

        def has(fault: Fault) -> np.ndarray:
            return marks & np.uint64(fault) > 0

        states: list[tuple[PlotState, np.ndarray]] = []
        if self.unit in DECIBELS:
            states.append((BELOW, np.asarray(below)))
        again = times >= self.history.disturbed_s
        states += [(STARTING, settling & ~again), (SETTLING, settling & again), (PAUSED, paused)]
        states += [(one, has(bit)) for bit, one in reversed(OF_FAULT.items()) if faults & bit]
        states.append((GAP, begun & (marks & np.uint64(CAME) == 0) | has(Fault.GAP)))
        if faults & Fault.SILENT:
            states.append((SILENT, has(Fault.SILENT)))
        if faults & Fault.OFF:
            # Of the models, only those count whose readings are drawn.
            states.append((OFF, has(Fault.OFF) & np.isnan(cells.mean).any(axis=0)))
        return states

    def read_at(self, time_s: float) -> dict[str, tuple[float, float]]:
        """Minimum and maximum of each curve in the cell at a time."""
        cell = max(0, round(time_s / self.history.step_s)) // FACTOR**self._level
        names = [trace.name for trace in self.traces]
        cells = self.history.cells(names, self._level, cell, cell + 1)
        pairs = zip(cells.low[:, 0].tolist(), cells.high[:, 0].tolist(), strict=True)
        return dict(zip(names, pairs, strict=True))

    def happened(self, time_s: float) -> list[str]:
        """The states at a time, in words, with the texts of their events."""
        spans, reference = self.marks.at(time_s - self.plot.reference_s), self.plot.reference_s
        words = dict.fromkeys(span.state.word for span in spans)
        near = max(NEAR_S, 3 * self.plot.span_s / max(1, self.plot.width()))
        first = min([time_s, *(span.start + reference for span in spans)]) - near
        last = max([time_s, *(span.end + reference for span in spans)]) + near
        texts = (event.text for event in self.events if first <= event.time_s <= last)
        return list(dict.fromkeys([*words, *filter(None, texts)]))

    def story(self, time_s: float) -> list[tuple[PlotState, float, float, list[Event]]]:
        """Each state at a time, from when to when it held, and its events."""
        reference, cell_s = self.plot.reference_s, self.history.step_s * FACTOR**self._level
        # A block may end one row later than what happened before it.
        early_s = cell_s + self.history.step_s
        times = [
            (span.state, span.start + reference, span.end + reference)
            for span in self.marks.at(time_s - reference)
        ]
        return [
            (
                *(state, start_s, end_s),
                [
                    event
                    for event in self.events
                    if event.text
                    and event.kind not in UNRELATED
                    and start_s - early_s <= event.time_s <= end_s
                ],
            )
            for state, start_s, end_s in times
        ]


def _within(run: tuple[int, int], marked: np.ndarray) -> tuple[int, int] | None:
    """The part of a run from the first to the last cell that is marked."""
    places = np.flatnonzero(marked[run[0] : run[1] + 1]) + run[0]
    return (int(places[0]), int(places[-1])) if len(places) else None


def reaching(marked: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The marked values, and those beside them, so that a line reaches its neighbor."""
    reached = marked.copy()
    reached[1:] |= marked[:-1]
    reached[:-1] |= marked[1:]
    return np.where(reached, values, np.nan)


def thresholds_of(limits: Sequence[Limit]) -> list[Threshold]:
    """The lines of limits in a plot."""
    found = []
    for limit in limits:
        name = f"{symbol_of(limit.column)} {limit.threshold_words}"
        found.append(Threshold(limit.threshold, name))
        if limit.amber is not None:
            found.append(Threshold(limit.amber, f"{limit.amber:g}", "amber"))
    return found
