"""Compares two measurements: both histories, their difference, and its uncertainty."""

from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path

import numpy as np
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base import widgets
from amt_monitor.base.background_task import BackgroundTask
from amt_monitor.base.message_bar import begun
from amt_monitor.base.theme import Colors, ThemedLabel
from amt_monitor.dialogs.report_dialog import save_page, writing
from amt_monitor.plot.curve_layers import CurveLayer, FillBetweenLayer
from amt_monitor.plot.history_traces import FIRST, GrowingScale, symbol_of, ticks_of
from amt_monitor.plot.line_layers import Threshold, ThresholdLayer
from amt_monitor.plot.plot import LegendEntry, PlotAxis
from amt_monitor.plot.time_plot import TimePlot
from amt_stream.core.safe_text import plain
from amt_stream.sessions.compare import Comparison, Course, Difference
from amt_stream.sessions.report.curves import summed_up
from amt_stream.sessions.results import Results

AIR = 0.08
"""Margin above and below a difference, relative to its range."""

SMALLEST = 1.0
HEADS = ("Reading", "A", "B", "B - A", "Unit", "±", "Verdict")


class ComparisonDialog(QtWidgets.QDialog):
    """Shows how much louder B is than A, in total and over time [main-thread].

    independent: whether the two calibrations are independent
    """

    def __init__(
        self,
        a: Results,
        b: Results,
        parent: QtWidgets.QWidget | None = None,
        *,
        independent: bool = False,
    ) -> None:
        super().__init__(parent)
        from amt_stream.sessions.compare import compare

        self.setObjectName("compare_window")
        self.setWindowTitle(f"{plain(b.name)} against {plain(a.name)} - amt-stream")
        self.setWindowFlag(QtCore.Qt.WindowType.WindowMaximizeButtonHint, True)
        self.resize(1000, 580)
        self.setMinimumSize(760, 480)
        self._results = a, b
        self.comparison = compare(a, b, independent=independent)
        self._course: Course | None = None
        self._build()
        self._compare()
        if self.comparison.names:
            wanted = next(
                (n for n in FIRST if n in self.comparison.names), self.comparison.names[0]
            )
            self.choice.setCurrentIndex(self.comparison.names.index(wanted))
        self._choose()

    def _build(self) -> None:
        a, b = self._results
        names = ThemedLabel(partial(_names, plain(a.name), plain(b.name)))
        names.setObjectName("names")
        self.place = QtWidgets.QCheckBox("Same &microphone and position, similar spectra")
        self.place.setObjectName("same_place")
        self.place.setChecked(self.comparison.same_place)
        self.place.setToolTip("The error of the microphone is then the same in both, and cancels")
        self.place.toggled.connect(self._compare)
        self.why = widgets.plain_label("why", wrap=True, role="second")
        self.table = widgets.read_only_table("differences of readings", HEADS)
        self.table.setObjectName("differences")
        left = QtWidgets.QWidget()
        widgets.add_all(QtWidgets.QVBoxLayout(left), names, self.table, self.place, self.why)
        split = QtWidgets.QSplitter()
        split.addWidget(left)
        split.addWidget(self._pictures())
        split.setSizes([430, 570])
        box = widgets.DialogButtons(self)
        box.add("save", "&Save as a page...", self._save)
        self._background = BackgroundTask(
            self, lambda path: self._tell(f"Written: {path}"), self._refused
        )
        whole = QtWidgets.QVBoxLayout(self)
        whole.addWidget(split, 1)
        whole.addWidget(box)

    def _save(self) -> None:
        stem = f"{self.comparison.b.name}-against-{self.comparison.a.name}"
        save_page(self, stem, self.write, self._refused)

    def write(self, path: Path) -> None:
        from amt_stream.sessions.compare import comparison_page

        self._background.run(writing(path, comparison_page(self.comparison)))

    def _refused(self, why: str) -> None:
        self._tell(f"Not written: {why}")

    def _tell(self, words: str) -> None:
        self.why.setText(plain(words))

    def _pictures(self) -> QtWidgets.QWidget:
        columns = self.comparison.a.columns
        names = [
            (f"{symbol_of(name)}, {columns[name].unit}", name) for name in self.comparison.names
        ]
        self.choice = widgets.combo_box("reading to draw", names, self._choose)
        self.choice.setObjectName("choice")
        self.both, self.apart = TimePlot("both_plot"), TimePlot("difference_plot")
        self.both.setAccessibleName("both against time")
        self.apart.setAccessibleName("their difference against time")
        self._a, self._b = CurveLayer("accent"), CurveLayer("right", dashed=True)
        self._doubt, self._difference = FillBetweenLayer("ltl", 0.2), CurveLayer("ltl")
        self._zero = ThresholdLayer()
        self.both.set_layers([self._a, self._b])
        self.apart.set_layers([self._zero, self._doubt, self._difference])
        self.both.legend = [LegendEntry("accent", False, "A"), LegendEntry("right", True, "B")]
        for plot, other in ((self.both, self.apart), (self.apart, self.both)):
            plot.viewed.connect(lambda p=plot, o=other: self._follow(p, o))
        right = QtWidgets.QWidget()
        column = QtWidgets.QVBoxLayout(right)
        column.addWidget(self.choice)
        column.addWidget(self.both, 3)
        column.addWidget(self.apart, 2)
        return right

    def _compare(self) -> None:
        self.comparison = Comparison(
            self.comparison.a,
            self.comparison.b,
            self.comparison.common,
            self.place.isChecked(),
            self.comparison.why,
        )
        notes = map(plain, self.comparison.notes)
        self.why.setText(
            begun("; ".join([f"{self.comparison.why} (k = 2)", self.comparison.repeats, *notes]))
        )
        rows = self.comparison.differences
        self.table.setRowCount(len(rows))
        for at, one in enumerate(rows):
            for place, text in enumerate(cells_of(one)):
                about, right = f"{one.words}\n{one.verdict}".strip(), place in (1, 2, 3, 5)
                self.table.setItem(at, place, widgets.table_cell(text, about, right))
        self.table.resizeColumnsToContents()
        self._choose()

    def _choose(self) -> None:
        name = self.choice.currentData()
        self._course = None if name is None else self.comparison.course(name)
        course = self._course
        if course is None or not len(course.time_s):
            return
        end_s = float(course.time_s[-1])
        for plot, unit in ((self.both, course.unit), (self.apart, f"{course.unit}, B - A")):
            plot.now_s = end_s
            plot.set_unit(unit, False)
        self.both.show_until(end_s - 1e-6, end_s)
        self._draw()

    def _follow(self, moved: TimePlot, other: TimePlot) -> None:
        end_s = None if moved.follows else moved.end_s
        other.show_until(end_s, moved.span_s)
        self._draw()

    def _draw(self) -> None:
        course = self._course
        if course is None or not len(course.time_s):
            return
        begin, end = self.both.from_s, self.both.end_s
        seen = (course.time_s >= begin) & (course.time_s <= end)
        if not seen.any():
            return
        parts = max(2, self.both.inside.width())
        time_s = course.time_s[seen]
        a, b = (summed_up(time_s, v[seen], parts) for v in (course.a, course.b))
        off = summed_up(time_s, course.difference[seen], parts)
        edges = [v for v in (course.low, course.high) if v is not None]
        doubt = [summed_up(time_s, v[seen], parts)[2] for v in edges]
        axis = GrowingScale(course.unit).axis(np.concatenate([a[1], a[3], b[1], b[3]]), 0.0)
        for plot, y in ((self.both, axis), (self.apart, _around_zero([off[2], *doubt]))):
            plot.set_time(end, y)
        x = a[0] - self.both.reference_s
        self._a.set(x, a[2])
        self._b.set(b[0] - self.both.reference_s, b[2])
        x = off[0] - self.apart.reference_s
        self._difference.set(x, off[2])
        self._doubt.set(*((x, doubt[0], doubt[1]) if doubt else ((), (), ())))
        self._zero.set([Threshold(0.0, "equal", "second")])

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        # The plots get their new sizes after this event.
        QtCore.QTimer.singleShot(0, self._draw)


def _around_zero(values: Sequence[np.ndarray]) -> PlotAxis:
    """A scale that contains 0, with a margin."""
    known = np.concatenate([*values, [0.0]])
    known = known[np.isfinite(known)]
    low, high = float(known.min()), float(known.max())
    wide = max(high - low, SMALLEST)
    low, high = low - AIR * wide, high + AIR * wide
    return PlotAxis(low, high, ticks_of(low, high))


def _names(a: str, b: str, colors: Colors) -> str:
    lines = (colors.accent, "&#9473;&#9473;", "A", a), (colors.right, "&#9477;&#9477;", "B", b)
    return "<br>".join(
        f"<span style='color:{color}'>{line}</span> {side}: {escape(name)}"
        for color, line, side, name in lines
    )


def cells_of(one: Difference) -> tuple[str, ...]:
    doubt = "?" if one.uncertainty is None else f"{one.uncertainty:.2f}"
    return (symbol_of(one.name), *one.numbers(2), one.unit, doubt, one.verdict.partition(":")[0])
