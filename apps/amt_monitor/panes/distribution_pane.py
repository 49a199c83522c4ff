"""The distribution of a level, and its exceedance curve."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pyqtgraph.Qt import QtWidgets

from amt_monitor.base.widgets import combo_box
from amt_monitor.panes.pane import Pane
from amt_monitor.plot.bar_layer import BarLayer
from amt_monitor.plot.curve_layers import CurveLayer
from amt_monitor.plot.history_traces import (
    DECIBELS,
    first_of,
    style_of,
    symbol_of,
    ticks_of,
    unit_of,
)
from amt_monitor.plot.line_layers import MarkerLayer
from amt_monitor.plot.plot import Plot, PlotAxis
from amt_stream.core.words import clock_text
from amt_stream.meters.frames import Event
from amt_stream.meters.names import NameForm
from amt_stream.meters.rows.captions import row_text
from amt_stream.views.distribution import Distribution
from amt_stream.views.reading_history import ReadingHistory
from amt_stream.views.view_state import ViewState

PERCENTS = tuple((float(v), f"{v} %") for v in range(0, 101, 20))
LEAST_CLASSES = 20


class DistributionPane(Pane):
    """Bars: how often each level occurred, relative to the most frequent one.

    Line: the part of the time in which a level was exceeded. Percentiles are marked where rows have
    them.
    """

    def __init__(self, history: ReadingHistory) -> None:
        super().__init__("distribution", "Distribution", "of rows, since the last reset")
        columns = [one for one in history.main_columns if unit_of(one.name) in DECIBELS]
        self.history = history
        names = [one.name for one in columns if one.statistic == "instantaneous"]
        items = [(f"{symbol_of(name)}, {unit_of(name)}", name) for name in names]
        self.column = combo_box("reading", items, self._choose)
        self.head.addWidget(self.column)
        self.plot = Plot("distribution_plot")
        self.plot.setAccessibleName("how often each level was read")
        self.bars, self.exceeded, self.percentiles = (
            BarLayer("second", opacity=0.4),
            CurveLayer("ink"),
            MarkerLayer(),
        )
        self.plot.set_layers((self.bars, self.exceeded, self.percentiles))
        self.counted = QtWidgets.QLabel(objectName="counted")
        self.body.addWidget(self.plot, 1)
        self.body.addWidget(self.counted)
        self._events: Sequence[Event] = ()
        self._found: Mapping[str, Any] = {}
        usual = first_of(columns)
        self.column.setCurrentIndex(max(0, self.column.findData(usual[0] if usual else None)))
        self._choose()

    @property
    def name(self) -> str:
        return self.column.currentData() or ""

    def read(self, view: ViewState) -> None:
        self.follow(view.events, view.values)

    def follow(self, events: Sequence[Event], found: Mapping[str, Any]) -> None:
        """Count new rows; `found` are the newest readings by name."""
        self._events, self._found = events, found
        if self.name and self.distribution.follow(events):
            self._draw()

    def restart(self) -> None:
        self._choose()

    def texts(self) -> tuple[str, ...]:
        return (self.counted.text(),)

    def _choose(self) -> None:
        self.distribution = Distribution(self.history, self.name)
        self.bars.role = style_of(self.name)[0] if self.name else "second"
        self.plot.update()
        self.follow(self._events, self._found)

    def _draw(self) -> None:
        first, counts = self.distribution.shown()
        if not len(counts):
            return
        room = max(LEAST_CLASSES, len(counts))
        low = first - (room - len(counts)) // 2
        ticks = [(value - low - 0.5, text) for value, text in ticks_of(low, low + room)]
        along = PlotAxis(-0.5, room - 0.5, ticks, caption=self.column.currentText())
        self.plot.set_axes(along, PlotAxis(0.0, 100.0, PERCENTS))
        heights = np.zeros(room)
        heights[first - low : first - low + len(counts)] = 100.0 * counts / counts.max()
        self.bars.set(heights)
        # Of a level at the edge between two classes.
        above = 100.0 * (1.0 - np.cumsum([0, *counts]) / counts.sum())
        self.exceeded.set(np.arange(len(above)) + (first - low - 0.5), above)
        self.percentiles.set(
            [
                (float(value) - low - 0.5, f"{caption} {row_text(name, self._found)}")
                for name, caption in percentiles_of(self.name, self._found)
                if (value := self._found[name]) is not None
            ]
        )
        self.counted.setText(f"{clock_text(round(self.distribution.counted_s))} counted")


MARKED = {
    "laf_db": ("L", NameForm("l{percent}_db")),
    "ltl_phon": ("N", NameForm("ltl_n{percent}_phon")),
    "gm2002_ltl_phon": ("N", NameForm("gm2002_ltl_n{percent}_phon")),
    "ecma_loudness_sone": ("N", NameForm("ecma_loudness_n{percent}_sone")),
}
"""The letter and the names of the percentiles that are marked in a distribution."""


def percentiles_of(name: str, found: Mapping[str, Any]) -> list[tuple[str, str]]:
    if name not in MARKED:
        return []
    letter, form = MARKED[name]
    percents = {one: int(parts["percent"]) for one in found if (parts := form.read(one))}
    order = sorted(percents, key=lambda one: percents[one], reverse=True)
    return [(one, f"{letter}{percents[one]}") for one in order]
