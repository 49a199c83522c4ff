"""Short-term and long-term loudness over the last minute."""

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.envelope import Columns, Envelope, stretches
from amt_monitor.pane import Pane, Plot, thin_pen
from amt_monitor.theme import theme
from amt_stream.rows import FAULT_WORDS
from amt_stream.scales import sone_to_phon

SECONDS = 60.0
COLUMN_S, JOINED, RECENT = 0.1, 5, 10
TIMES = range(-60, 1, 10)
NAMES_S, NAME_PIXELS = 3.0, 16
SCALES = {"phon": range(0, 121, 20), "sone": range(0, 41, 10)}
Stretch = tuple[int, float, float, str]


class HistoryPane(Pane):
    """Both curves as they are, unsmoothed; each shows the range of every 100 ms."""

    def __init__(self) -> None:
        super().__init__("history", "Loudness", "last 60 s")
        self.envelope = Envelope(("stl", "ltl"), SECONDS, COLUMN_S)
        self.scale = QtWidgets.QComboBox()
        self.scale.setObjectName("scale")
        for unit, ticks in SCALES.items():
            self.scale.addItem(f"0 to {ticks[-1]} {unit}", unit)
        self.scale.currentIndexChanged.connect(self._rescale)
        self.head.insertWidget(1, self.scale)
        self.plot = Plot("history_plot")
        self.plot.hideAxis("top")
        self.plot.getAxis("bottom").setTicks([[(t, f"{t} s") for t in TIMES]])
        self.marks = _Marks()
        self.plot.addItem(self.marks, ignoreBounds=True)
        self.curves, self._names = [], []
        for name, color in (("STL", theme.colors.stl), ("LTL", theme.colors.ltl)):
            curve = pg.PlotCurveItem(pen=thin_pen(color), connect="finite")
            label = pg.TextItem(name, color=color, anchor=(0, 0.5))
            self.plot.addItem(curve, ignoreBounds=True)
            self.plot.addItem(label, ignoreBounds=True)
            self.curves.append(curve)
            self._names.append(label)
        self.body.addWidget(self.plot, 1)
        self._uncalibrated = False
        self._rescale()

    @property
    def unit(self) -> str:
        return self.scale.currentData()

    def mark(self, words: Sequence[str], uncalibrated: bool) -> None:
        super().mark(words, uncalibrated)
        if uncalibrated != self._uncalibrated:
            self._uncalibrated = uncalibrated
            self._rescale()

    def draw(self) -> None:
        columns, top = self.envelope.columns(), SCALES[self.unit][-1]
        age = columns.start_s - self.envelope.now_s
        x = np.repeat(age + 0.5 * COLUMN_S, 2)
        x[-1] = min(x[-1], 0.0)
        y = np.stack((columns.low, columns.high), axis=-1).reshape(len(self.curves), -1)
        if self.unit == "phon":
            y = sone_to_phon(y, "iso532-3")
        for curve, values in zip(self.curves, y, strict=True):
            curve.setData(x, values)
        self.marks.set_stretches(_marked(columns, age))
        stl, ltl = (0.0 if np.isnan(v) else min(v, top) for v in y[:, -1])
        apart = NAME_PIXELS * self.plot.getViewBox().viewPixelSize()[1]
        middle, half = (stl + ltl) / 2, max(abs(stl - ltl), apart) / 2
        upper, lower = middle + half, middle - half
        places = (upper, lower) if stl > ltl else (lower, upper)
        for label, value in zip(self._names, places, strict=True):
            label.setPos(0.2, min(max(value, apart / 2), top - apart / 2))

    def recent_fault(self) -> int:
        """Faults of the last second or so: a short one must be seen beside the numbers too."""
        return int(np.bitwise_or.reduce(self.envelope.columns().fault[-RECENT:]))

    def _rescale(self) -> None:
        ticks = SCALES[self.unit]
        self.plot.set_grid([*TIMES, NAMES_S], ticks)
        self.plot.getAxis("left").setTicks([[(v, str(v)) for v in ticks]])
        self.plot.set_unit(self.unit, self._uncalibrated)
        if self.envelope.now_s:
            self.draw()


def _marked(columns: Columns, age: np.ndarray) -> list[Stretch]:
    """Lane, beginning, end and word of everything that is marked."""
    lanes = [(columns.settling, "settling")]
    if columns.fault.any():
        lanes += [(columns.fault & bit > 0, word) for bit, word in FAULT_WORDS.items()]
    return [
        (lane, age[first], age[last] + COLUMN_S, word)
        for lane, (marked, word) in enumerate(lanes)
        for first, last in stretches(marked, JOINED)
    ]


class _Marks(pg.GraphicsObject):
    """Hatched bands with a word in each: what happened to the readings, and when."""

    def __init__(self) -> None:
        super().__init__()
        self._stretches: list[Stretch] = []

    def set_stretches(self, stretches: list[Stretch]) -> None:
        if stretches != self._stretches:
            self._stretches = stretches
            self.update()

    @property
    def words(self) -> list[str]:
        return [word for *_, word in self._stretches]

    def boundingRect(self) -> QtCore.QRectF:
        return QtCore.QRectF(self.viewRect())

    def viewTransformChanged(self) -> None:
        super().viewTransformChanged()
        self.prepareGeometryChange()

    def paint(self, painter: QtGui.QPainter, *_: object) -> None:
        view, to_screen = self.viewRect(), painter.transform()
        painter.resetTransform()
        height = painter.fontMetrics().height()
        free: dict[int, float] = {}
        for lane, start, end, word in self._stretches:
            area = QtCore.QRectF(start, view.top(), end - start, view.height())
            box = to_screen.mapRect(area.intersected(view))
            box.setWidth(max(box.width(), 2.0))
            color = QtGui.QColor(theme.colors.ink if lane else theme.colors.second)
            pattern = QtCore.Qt.BrushStyle
            hatch = pattern.FDiagPattern if lane else pattern.BDiagPattern
            color.setAlphaF(0.5)
            painter.fillRect(box, QtGui.QBrush(color, hatch))
            if box.left() >= free.get(lane, box.left()):
                color.setAlphaF(1.0)
                wide = painter.fontMetrics().horizontalAdvance(word) + 8
                tag = QtCore.QRectF(box.left(), box.top() + 2 + lane * (height + 2), wide, height)
                painter.fillRect(tag, QtGui.QColor(theme.colors.paper))
                painter.setPen(color)
                painter.drawText(tag, QtCore.Qt.AlignmentFlag.AlignCenter, word)
                free[lane] = tag.right()
