"""Input level of each ear."""

import numpy as np
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.pane import Pane, colors

LOW_DB, HIGH_DB = 20.0, 130.0
SILENCE_DB = -99.9


class LevelPane(Pane):
    """Bars and numbers in dB SPL, left and right, of the latest block of input."""

    def __init__(self) -> None:
        super().__init__("levels", "Input", "dB SPL")
        self._bars = [_Bar(ear) for ear in ("left", "right")]
        for bar in self._bars:
            self.body.addWidget(bar, 1)
        self.setMinimumWidth(240)

    def draw(self, level_db: np.ndarray) -> None:
        """Move the bars to a level for each ear."""
        for bar, level in zip(self._bars, level_db, strict=True):
            bar.set_level(float(level))

    def show_numbers(self, level_db: np.ndarray, alarm: bool) -> None:
        for bar, level in zip(self._bars, level_db, strict=True):
            bar.text = "silence" if level <= SILENCE_DB else f"{level:.1f}"
            bar.alarm = alarm
            bar.update()

    def texts(self) -> tuple[str, ...]:
        return tuple(bar.text for bar in self._bars)


class _Bar(QtWidgets.QWidget):
    def __init__(self, ear: str) -> None:
        super().__init__()
        self.setObjectName(f"level_{ear}")
        self.ear, self.text, self.alarm = ear, "-", False
        self._level = LOW_DB

    def set_level(self, level_db: float) -> None:
        if round(level_db, 1) != round(self._level, 1):
            self._level = level_db
            self.update()

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        tints, align = colors(), QtCore.Qt.AlignmentFlag
        painter = QtGui.QPainter(self)
        line = self.fontMetrics().height()
        head = QtCore.QRect(0, 0, self.width(), line)
        painter.setPen(self.palette().windowText().color())
        painter.drawText(head, align.AlignLeft, self.ear)
        if self.alarm:
            painter.setPen(QtGui.QColor(tints.alarm))
        painter.drawText(head, align.AlignRight, self.text)
        groove = QtCore.QRect(0, line + 1, self.width() - 1, max(6, self.height() - 2 * line - 4))
        painter.fillRect(groove, QtGui.QColor(tints.ground))
        color = QtGui.QColor(tints.cool if self.ear == "left" else tints.warm)
        pattern = QtCore.Qt.BrushStyle
        brush = QtGui.QBrush(color, pattern.BDiagPattern if self.alarm else pattern.SolidPattern)
        bar = QtCore.QRect(groove)
        bar.setWidth(round(self._place(self._level) * groove.width()))
        painter.fillRect(bar, brush)
        painter.setPen(QtGui.QColor(tints.faint))
        painter.drawRect(groove)
        for level in range(20, 131, 20):
            x = round(self._place(level) * groove.width())
            painter.drawLine(x, groove.bottom() - 3, x, groove.bottom())
            label = QtCore.QRect(x - 20, groove.bottom() + 1, 40, line)
            if level == LOW_DB:
                label.moveLeft(0)
            side = align.AlignLeft if level == LOW_DB else align.AlignHCenter
            painter.drawText(label, side, str(level))

    @staticmethod
    def _place(level_db: float) -> float:
        return min(1.0, max(0.0, (level_db - LOW_DB) / (HIGH_DB - LOW_DB)))
