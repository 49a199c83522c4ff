"""A plot with a cursor."""

import numpy as np
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.plot.plot import Plot


class CursorPlot(Plot):
    """The cursor follows the mouse; the arrow keys move it, Escape removes it.

    cursor: place along the axes, or None
    steps: of the arrow keys along the axes; without one, the keys are left to others
    """

    pointed = QtCore.Signal()

    def __init__(self, name: str, steps: tuple[float, float], key: bool = False) -> None:
        super().__init__(name, key=key)
        self.setMouseTracking(True)
        self.setFocusPolicy(QtCore.Qt.FocusPolicy.StrongFocus)
        self.cursor: tuple[float, float] | None = None
        x, y = steps
        keys = QtCore.Qt.Key
        moves = {
            keys.Key_Left: (-x, 0.0),
            keys.Key_Right: (x, 0.0),
            keys.Key_Up: (0.0, y),
            keys.Key_Down: (0.0, -y),
        }
        self._moves = {key: move for key, move in moves.items() if any(move)}

    @property
    def start(self) -> tuple[float, float]:
        """Where the arrow keys begin."""
        return (self.x.low + self.x.high) / 2, (self.y.low + self.y.high) / 2

    def point(self, cursor: tuple[float, float] | None) -> None:
        """Put the cursor at a place; None removes it."""
        if cursor is not None:
            x, y = cursor
            top = np.nextafter(self.y.high, self.y.low)
            cursor = min(max(x, self.x.low), self.x.high), min(max(y, self.y.low), top)
        if cursor != self.cursor:
            self.cursor = cursor
            self.pointed.emit()

    def mouseMoveEvent(self, event: QtGui.QMouseEvent) -> None:
        self.point(self.values(event.position()))

    def leaveEvent(self, event: QtCore.QEvent) -> None:
        self.point(None)

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        key = QtCore.Qt.Key(event.key())
        if (move := self._moves.get(key)) is not None:
            x, y = self.start if self.cursor is None else self.cursor
            self.point((x + move[0], y + move[1]))
        elif key == QtCore.Qt.Key.Key_Escape and self.cursor is not None:
            self.point(None)
        else:
            super().keyPressEvent(event)
