"""Bars in a plot."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.base.theme import Role
from amt_monitor.plot.plot import Layer, area_of

WIDTH = 0.8


class BarLayer(Layer):
    """Bars at 0, 1, 2 and so on along the axis."""

    def __init__(self, role: Role, opacity: float = 1.0) -> None:
        self.role, self.opacity = role, opacity
        self.heights = self.held = np.empty(0)
        self._lined = False
        self._corners: NDArray[np.float64] = np.empty((0, 3, 2))

    def set(self, heights: ArrayLike, held: ArrayLike | None = None) -> None:
        """Move the bars and the lines of their maxima; only what has moved is painted."""
        self.heights, before = np.asarray(heights, float), self._corners
        self.held = self.heights if held is None else np.asarray(held, float)
        again = self._lined != (held is not None)
        self._lined = held is not None
        self.place()
        moved = slice(None)
        if before.shape == self._corners.shape and not again:
            changed = np.flatnonzero((before != self._corners).any(axis=(1, 2)))
            if not len(changed):
                return
            moved = slice(int(changed[0]), int(changed[-1]) + 1)
        both = np.concatenate((before[moved], self._corners[moved])).reshape(-1, 2)
        self.plot.update(area_of(both).intersected(self.plot.inside))

    def place(self) -> None:
        middle, ground = np.arange(len(self.heights)), np.full(len(self.heights), self.plot.y.low)
        above = self.plot.points(middle - WIDTH / 2, self.heights)
        below = self.plot.points(middle + WIDTH / 2, ground)
        held = self.plot.points(middle, self.held)
        self._corners = np.stack((above, below, held), axis=1)

    def paint(self, painter: QtGui.QPainter) -> None:
        color = self.plot.color(self.role)
        color.setAlphaF(self.opacity)
        ink = QtGui.QColor(self.plot.colors.ink)
        for (left, top), (right, bottom), (_, held) in self._corners.tolist():
            painter.fillRect(QtCore.QRectF(left, top, right - left, bottom - top), color)
            if self._lined and held < bottom:
                painter.fillRect(QtCore.QRectF(left, held - 1, right - left, 2), ink)
