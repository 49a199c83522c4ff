"""Lines across a plot, each with its name: limits, markers, maxima, and the cursor."""

from collections.abc import Sequence
from typing import NamedTuple

from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.plot import Layer
from amt_monitor.theme import Role


class Threshold(NamedTuple):
    """A value that is not to be passed, in words too."""

    value: float
    text: str
    role: Role = "red"


class Thresholds(Layer):
    """Dashed lines from left to right."""

    def __init__(self) -> None:
        self.thresholds: tuple[Threshold, ...] = ()

    def set(self, thresholds: Sequence[Threshold]) -> None:
        if tuple(thresholds) != self.thresholds:
            self.thresholds = tuple(thresholds)
            self.plot.update(self.plot.inside)

    def paint(self, painter: QtGui.QPainter) -> None:
        inside, metrics = self.plot.inside, painter.fontMetrics()
        for value, text, role in self.thresholds:
            ((_, y),) = self.plot.points([0.0], [value]).tolist()
            painter.setPen(self.plot.pen(role, dashed=True))
            painter.drawLine(QtCore.QLineF(inside.left(), y, inside.right(), y))
            wide, line = metrics.horizontalAdvance(text) + 6, metrics.height()
            tag = QtCore.QRectF(inside.right() - wide, y - line - 1, wide, line)
            painter.fillRect(tag, QtGui.QColor(self.plot.colors.paper))
            painter.drawText(tag, QtCore.Qt.AlignmentFlag.AlignCenter, text)


class Markers(Layer):
    """Moments with a note each, on lines from top to bottom."""

    def __init__(self, role: Role = "accent") -> None:
        self.role = role
        self.markers: tuple[tuple[float, str], ...] = ()

    def set(self, markers: Sequence[tuple[float, str]]) -> None:
        if tuple(markers) != self.markers:
            self.markers = tuple(markers)
            self.plot.update(self.plot.inside)

    def paint(self, painter: QtGui.QPainter) -> None:
        inside, metrics = self.plot.inside, painter.fontMetrics()
        painter.setPen(self.plot.pen(self.role))
        free = float(inside.left())
        for x, text in self.markers:
            ((at, _),) = self.plot.points([x], [0.0]).tolist()
            painter.drawLine(QtCore.QLineF(at, inside.top(), at, inside.bottom()))
            wide = metrics.horizontalAdvance(text)
            left = at + 3 if at + 3 + wide <= inside.right() else at - 3 - wide
            if left >= free:
                high = metrics.height()
                tag = QtCore.QRectF(left, inside.bottom() - high - 1, wide, high)
                painter.fillRect(tag, QtGui.QColor(self.plot.colors.paper))
                painter.drawText(tag, QtCore.Qt.AlignmentFlag.AlignCenter, text)
                free = left + wide + 3


APART = 6
"""Pixels between the values of maxima beside each other."""


class Maximum(NamedTuple):
    """Where a curve is highest."""

    x: float
    y: float
    text: str
    role: Role


class Maxima(Layer):
    """Small triangles above what is highest, with its value."""

    def __init__(self) -> None:
        self.maxima: tuple[Maximum, ...] = ()

    def set(self, maxima: Sequence[Maximum]) -> None:
        if tuple(maxima) != self.maxima:
            self.maxima = tuple(maxima)
            self.plot.update(self.plot.inside)

    def paint(self, painter: QtGui.QPainter) -> None:
        inside, metrics = self.plot.inside, painter.fontMetrics()
        line, taken = metrics.height(), QtCore.QRectF()
        for x, y, text, role in self.maxima:
            ((at, up),) = self.plot.points([x], [y]).tolist()
            color = QtGui.QColor(getattr(self.plot.colors, role))
            painter.setPen(color)
            painter.setBrush(color)
            corners = [QtCore.QPointF(at + dx, up - 3 - dy) for dx, dy in ((0, 0), (-4, 7), (4, 7))]
            painter.drawPolygon(QtGui.QPolygonF(corners))
            wide = metrics.horizontalAdvance(text)
            left = at + 7 if at + 7 + wide < inside.right() else at - 7 - wide
            room = QtCore.QRectF(left, max(inside.top(), up - 5 - line), wide, line)
            if room.intersects(taken):
                # Beside the others: below them is the curve.
                fits = taken.right() + APART + wide < inside.right()
                room.moveLeft(taken.right() + APART if fits else taken.left() - APART - wide)
                room.moveTop(taken.top())
            taken = taken.united(room).united(QtCore.QRectF(at - 5, up - 10, 10, 8))
            painter.drawText(room, QtCore.Qt.AlignmentFlag.AlignCenter, text)


class Cursor(Layer):
    """One line from top to bottom, where somebody points."""

    def __init__(self) -> None:
        self.x: float | None = None

    def set(self, x: float | None) -> None:
        if x != self.x:
            self._look()
            self.x = x
            self._look()

    def _look(self) -> None:
        if self.x is not None:
            at = round(self.plot.points([self.x], [0.0])[0, 0])
            inside = self.plot.inside
            self.plot.update(QtCore.QRect(at - 2, inside.top(), 5, inside.height()))

    def paint(self, painter: QtGui.QPainter) -> None:
        if self.x is not None:
            at, inside = self.plot.points([self.x], [0.0])[0, 0], self.plot.inside
            painter.setPen(self.plot.pen("ink"))
            painter.drawLine(QtCore.QLineF(at, inside.top(), at, inside.bottom()))
