"""The layers of the history plot: curves, faults, limits, markers, maxima."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from amt_monitor.counted_time import pauses
from amt_monitor.curve_layers import CurveLayer, FillBelowLayer, FillBetweenLayer
from amt_monitor.history_pyramid import FACTOR, PyramidCells
from amt_monitor.history_traces import DECIBELS, GrowingScale, HistoryTrace, symbol_of, unit_of
from amt_monitor.line_layers import (
    CursorLayer,
    MarkerLayer,
    Threshold,
    ThresholdLayer,
)
from amt_monitor.plot import LegendEntry
from amt_monitor.reading_history import CAME, SETTLING, ReadingHistory
from amt_monitor.scrolling_layer import Lined, Lines, ScrollingLayer
from amt_monitor.time_plot import TimePlot
from amt_monitor.time_span_layer import TimeSpan, TimeSpanLayer, runs_of_true
from amt_stream.meters.frames import Event, Fault
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import FAULT_WORDS

PER_PIXEL = 1.5
"""At most so many cells."""

JOINED_PIXELS = 4
WIDTHS, WIDTH = {"ltl": 2.5, "stl": 1.25}, 1.5
"""Pixels: the slow curve is wider, to be told from the fast one without color."""
FILLED = 0.12

NEAR_S = 1.0
BELOW = "below range"
NO_ROW, PAUSED = "no readings", "not counted"
GAPS = NO_ROW, FAULT_WORDS[Fault.GAP]
"""What is hatched; other spans are marked in the lane alone."""
RESETS = {"readings_reset": "reset", "reset_undone": "reset undone"}
"""Kinds of events and their words in the plot."""


class HistoryLayers:
    """Draws columns of the history, all of one unit, into a plot.

    A curve follows the mean of each cell of time; its range is lightly filled. A cell is one row
    where there is room for each, with the least and the greatest of its time in a running
    measurement.
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
        floors = [FillBelowLayer(one, FILLED) for one in self.curves if one.role == "stl"]
        # The wide curve is on top of the narrow one, whose ends stay visible beside it.
        curves = sorted(self.curves, key=lambda one: one.width)
        areas = *floors, *self.bands, *self.ranges
        # Dashes that move with the sound would not be those that are painted with it.
        self.scrolling = ScrollingLayer([*areas, *(one for one in curves if not one.dashed)])
        dashed = (one for one in curves if one.dashed)
        lines = self.thresholds, self.notes, self.cursor
        self.plot.set_layers([self.scrolling, *dashed, self.marks, *lines])
        self.plot.legend = [LegendEntry(one.role, one.dashed, one.caption) for one in traces]
        self.scale = GrowingScale(self.unit)
        self._drawn = ()

    def hold(self, held: bool) -> None:
        """Hold the newest row on the screen; zooming shows nothing newer until `hold(False)`."""
        if not held:
            self._held_at = None
        elif self._held_at is None:
            self._held_at = self.history.newest

    def lose(self, lost: bool) -> None:
        """Go on into a gap while the microphone is lost: rows come when it is back."""
        self._lost_at = (self._lost_at or time.monotonic()) if lost else None

    def draw(self, again: bool) -> bool:
        """Draw what is new; returns whether anything was drawn."""
        history, plot = self.history, self.plot
        if history.newest < 0 or not self.traces:
            return False
        newest = history.newest if self._held_at is None else self._held_at
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
        cells = history.cells([trace.name for trace in self.traces], level, first, last + 1)
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
        band = history.cells(edges, level, first, last + 1) if there else None
        nothing = np.full(len(x), np.nan)
        ranged = level > 0 or history.has_ranges
        lined: list[tuple[Lined, Lines]] = []
        for i, curve in enumerate(self.curves):
            if curve.dashed:
                curve.set(x, cells.mean[i])
            else:
                lined.append((curve, (cells.mean[i],)))
            within = (cells.low[i], cells.high[i]) if ranged else (nothing, nothing)
            around = (nothing, nothing) if band is None else (band.low[2 * i], band.high[2 * i + 1])
            lined += (self.ranges[i], within), (self.bands[i], around)
        self.scrolling.show(level, first, x, lined)
        self.marks.set(self._marked(cells, times, rows * history.step_s))
        self._note()

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

    def _marked(self, cells: PyramidCells, times: np.ndarray, cell_s: float) -> list[TimeSpan]:
        marks, reference = cells.marks, self.plot.reference_s
        faults = int(np.bitwise_or.reduce(marks)) if len(marks) else 0
        lanes = [(marks & SETTLING > 0, "settling")]
        lanes += [(marks & int(bit) > 0, word) for bit, word in FAULT_WORDS.items() if faults & bit]
        begun = (times > self.history.first_s) & (times < self.plot.now_s)
        lanes.append((begun & (marks & CAME == 0), NO_ROW))
        paused = np.zeros(len(times), bool)
        for start_s, end_s in pauses(self.events):
            paused |= (times >= start_s) & (times <= min(end_s, self.plot.now_s))
        lanes.append((paused, PAUSED))
        with np.errstate(invalid="ignore"):
            seen = ~np.isnan(cells.high).all(axis=0)
            below = seen & ~(cells.high >= self.plot.y.low).any(axis=0)
        lanes.append((below & (marks & SETTLING == 0) & (self.unit in DECIBELS), BELOW))
        joined = max(2, round(JOINED_PIXELS * self.plot.span_s / cell_s / self.plot.width()))
        return [
            TimeSpan(
                lane,
                float(times[start] - cell_s / 2 - reference),
                float(times[end] + cell_s / 2 - reference),
                word,
                word in GAPS,
            )
            for lane, (marked, word) in enumerate(lanes)
            for start, end in runs_of_true(marked, joined)
        ]

    def read_at(self, time_s: float) -> dict[str, tuple[float, float]]:
        """Minimum and maximum of each curve in the cell at a time."""
        cell = max(0, round(time_s / self.history.step_s)) // FACTOR**self._level
        names = [trace.name for trace in self.traces]
        cells = self.history.cells(names, self._level, cell, cell + 1)
        pairs = zip(cells.low[:, 0].tolist(), cells.high[:, 0].tolist(), strict=True)
        return dict(zip(names, pairs, strict=True))

    def happened(self, time_s: float) -> list[str]:
        """The faults at a time, in words, with the texts of their events."""
        x = time_s - self.plot.reference_s
        within = [one for one in self.marks.items if one.start <= x <= one.end]
        near = max(NEAR_S, 3 * self.plot.span_s / max(1, self.plot.width()))
        first = min([x, *(one.start for one in within)]) - near + self.plot.reference_s
        last = max([x, *(one.end for one in within)]) + near + self.plot.reference_s
        texts = [event.text for event in self.events if first <= event.time_s <= last]
        return list(dict.fromkeys([*(one.word for one in within), *filter(None, texts)]))


def thresholds_of(limits: Sequence[Limit]) -> list[Threshold]:
    """The lines of limits in a plot."""
    found = []
    for limit in limits:
        name = f"{symbol_of(limit.column)} {limit.threshold_words}"
        found.append(Threshold(limit.threshold, name))
        if limit.amber is not None:
            found.append(Threshold(limit.amber, f"{limit.amber:g}", "amber"))
    return found
