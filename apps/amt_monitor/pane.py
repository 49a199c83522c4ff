"""What the parts of the window have in common: colors, a title, and the mark of doubt."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyqtgraph as pg
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets


class Colors(NamedTuple):
    """Colors that the color-blind tell apart (Okabe & Ito 2008), on a light or a dark ground."""

    ground: str
    ink: str
    faint: str
    grid: str
    cool: str
    warm: str
    alarm: str


LIGHT = Colors("#ffffff", "#202020", "#767676", "#dcdcdc", "#0072b2", "#d55e00", "#b00020")
DARK = Colors("#161616", "#e8e8e8", "#9a9a9a", "#383838", "#56b4e9", "#e69f00", "#ff7b72")


def colors() -> Colors:
    """The set that fits the desktop's palette."""
    return DARK if QtWidgets.QApplication.palette().base().color().lightness() < 128 else LIGHT


class Badge(QtWidgets.QWidget):
    """Words on a hatched ground: hatching is seen where color is not."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("badge")
        self.text = ""
        self._alarm = False

    def show_words(self, words: Sequence[str], alarm: bool) -> None:
        text = " · ".join(words)
        if (text, alarm) != (self.text, self._alarm):
            self.text, self._alarm = text, alarm
            self.setAccessibleName(text)
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QtCore.QSize:
        metrics = self.fontMetrics()
        wide = metrics.horizontalAdvance(self.text) + 2 * metrics.height() if self.text else 0
        return QtCore.QSize(wide, metrics.height() + 4)

    def minimumSizeHint(self) -> QtCore.QSize:
        return self.sizeHint()

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        if not self.text:
            return
        color = QtGui.QColor(colors().alarm if self._alarm else colors().faint)
        painter = QtGui.QPainter(self)
        painter.fillRect(self.rect(), QtGui.QBrush(color, QtCore.Qt.BrushStyle.BDiagPattern))
        inset = self.fontMetrics().height() // 2
        painter.fillRect(self.rect().adjusted(inset, 0, -inset, 0), self.palette().base())
        painter.setPen(color)
        painter.drawText(self.rect(), QtCore.Qt.AlignmentFlag.AlignCenter, self.text)


class Pane(QtWidgets.QWidget):
    """A part of the window with a title and a badge.

    title, about: rich text of this program; whoever has them from elsewhere escapes them
    """

    def __init__(self, name: str, title: str, about: str = "") -> None:
        super().__init__()
        self.setObjectName(name)
        self.setBackgroundRole(QtGui.QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.badge = Badge()
        heading = QtWidgets.QLabel(f"<b>{title}</b>&nbsp; {about}")
        heading.setObjectName(f"{name}_title")
        self.head = QtWidgets.QHBoxLayout()
        self.head.addWidget(heading)
        self.head.addStretch(1)
        self.head.addWidget(self.badge)
        self.body = QtWidgets.QVBoxLayout(self)
        self.body.setContentsMargins(8, 4, 8, 4)
        self.body.setSpacing(2)
        self.body.addLayout(self.head)

    def mark(self, words: Sequence[str], alarm: bool) -> None:
        """Say why these readings are to be doubted; no words, no doubt."""
        self.badge.show_words(words, alarm)


class Plot(pg.PlotWidget):
    """A plot whose ranges only the program changes: fixed ranges are what keeps painting cheap."""

    def __init__(self, name: str) -> None:
        super().__init__(background=colors().ground)
        self.setObjectName(name)
        self.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        self.setMouseEnabled(False, False)
        self.setMenuEnabled(False)
        self.hideButtons()
        self.showAxis("top")
        for side in ("left", "bottom", "top"):
            axis = self.getAxis(side)
            axis.setPen(colors().faint)
            axis.setTextPen(colors().ink)
            axis.setStyle(hideOverlappingLabels=False)
        self.getAxis("left").setWidth(40)
        self.plotItem.setContentsMargins(0, 8, 24, 0)
        # The axes' own grid would be painted anew with every frame, at twice the cost of all else.
        self._grid = pg.PlotCurveItem(pen=thin_pen(colors().grid), connect="pairs")
        self._unit = pg.TextItem()
        for item in (self._grid, self._unit):
            self.addItem(item, ignoreBounds=True)

    def set_grid(self, x: Sequence[float], y: Sequence[float]) -> None:
        """Lines at `x` and `y`, whose first and last are the range that is shown."""
        self.setXRange(x[0], x[-1], padding=0)
        self.setYRange(y[0], y[-1], padding=0)
        across = [((x[0], v), (x[-1], v)) for v in y]
        up = [((v, y[0]), (v, y[-1])) for v in x]
        self._grid.setData(*np.array(across + up).reshape(-1, 2).T)
        self._unit.setPos(x[0], y[-1])

    @property
    def unit_text(self) -> str:
        return self._unit.toPlainText()

    def set_unit(self, unit: str, alarm: bool) -> None:
        """Name the unit of the readings in the plot, and that they are uncalibrated."""
        self._unit.setText(f"{unit}, uncalibrated" if alarm else unit)
        self._unit.setColor(colors().alarm if alarm else colors().ink)


def thin_pen(color: str, dashed: bool = False) -> QtGui.QPen:
    """One pixel wide whatever the scale: Qt draws wider lines fifteen times slower."""
    pen = QtGui.QPen(QtGui.QColor(color), 1)
    pen.setCosmetic(True)
    if dashed:
        pen.setStyle(QtCore.Qt.PenStyle.DashLine)
    return pen
