"""Labeled lines in a plot: limits, markers, maxima, cursor."""

from collections.abc import Sequence
from typing import NamedTuple

from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.base.theme import Colors, Role
from amt_monitor.plot.plot import ItemLayer, Layer


class Threshold(NamedTuple):
    """The value of a limit, and its label."""

    value: float
    text: str
    role: Role = "red"


class ThresholdLayer(ItemLayer[Threshold]):
    """Dashed horizontal lines."""

    def paint(self, painter: QtGui.QPainter) -> None:
        points = self.plot.points([0.0] * len(self.items), [t.value for t in self.items])
        paint_thresholds(
            painter, self.items, points[:, 1].tolist(), self.plot.inside, self.plot.colors
        )


def paint_thresholds(
    painter: QtGui.QPainter,
    thresholds: Sequence[Threshold],
    heights: Sequence[float],
    inside: QtCore.QRect,
    colors: Colors,
    thick: float = 1.0,
) -> None:
    """Dashed lines at these heights, each with its label on it."""
    metrics, dashed = painter.fontMetrics(), QtCore.Qt.PenStyle.DashLine
    inks = [QtGui.QColor(getattr(colors, one.role)) for one in thresholds]
    for y, ink in zip(heights, inks, strict=True):
        pen = QtGui.QPen(ink, thick, dashed)
        pen.setCosmetic(thick <= 1.0)
        painter.setPen(pen)
        painter.drawLine(QtCore.QLineF(inside.left(), y, inside.right(), y))
    sizes = [(metrics.horizontalAdvance(one.text) + 6, metrics.height()) for one in thresholds]
    rooms = rooms_at_lines(heights, sizes, inside)
    for room, one, ink in zip(rooms, thresholds, inks, strict=True):
        painter.setPen(ink)
        painter.fillRect(room, QtGui.QColor(colors.paper))
        painter.drawText(room, QtCore.Qt.AlignmentFlag.AlignCenter, one.text)


def rooms_at_lines(
    heights: Sequence[float], sizes: Sequence[tuple[int, int]], inside: QtCore.QRect
) -> list[QtCore.QRectF]:
    """The rectangle of each label: on its line at the left, where the oldest values are.

    A label that would cover another one moves to the right of it.
    """
    rooms: list[QtCore.QRectF] = []
    for y, (wide, high) in zip(heights, sizes, strict=True):
        top = min(max(inside.top() + 1.0, y - high / 2), inside.bottom() - high)
        room = QtCore.QRectF(inside.left() + 4, top, wide, high)
        while (other := next(filter(room.intersects, rooms), None)) is not None:
            room.moveLeft(other.right() + 1)
        rooms.append(room)
    return rooms


class MarkerLayer(ItemLayer[tuple[float, str]]):
    """Labeled vertical lines."""

    def __init__(self, role: Role = "accent") -> None:
        self.role = role

    def paint(self, painter: QtGui.QPainter) -> None:
        inside, metrics = self.plot.inside, painter.fontMetrics()
        painter.setPen(self.plot.pen(self.role))
        free = float(inside.left())
        for x, text in self.items:
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


APART = 4
"""Pixels between the label of a maximum and its neighbors."""


class LabelledMaximum(NamedTuple):
    """The maximum of a curve."""

    x: float
    y: float
    text: str
    role: Role


class MaximumLayer(ItemLayer[LabelledMaximum]):
    """Triangles above maxima, with their values."""

    def paint(self, painter: QtGui.QPainter) -> None:
        metrics = painter.fontMetrics()
        points = self.plot.points([one.x for one in self.items], [one.y for one in self.items])
        marks = [QtCore.QRectF(at - 4, up - 10, 8, 7) for at, up in points.tolist()]
        sizes = [(metrics.horizontalAdvance(one.text), metrics.height()) for one in self.items]
        rooms = rooms_beside(marks, sizes, self.plot.inside)
        for one, mark, room in zip(self.items, marks, rooms, strict=True):
            color = QtGui.QColor(getattr(self.plot.colors, one.role))
            painter.setPen(color)
            painter.setBrush(color)
            foot = QtCore.QPointF(mark.center().x(), mark.bottom())
            painter.drawPolygon(QtGui.QPolygonF([foot, mark.topLeft(), mark.topRight()]))
            painter.drawText(room, QtCore.Qt.AlignmentFlag.AlignCenter, one.text)


def rooms_beside(
    marks: Sequence[QtCore.QRectF], sizes: Sequence[tuple[int, int]], inside: QtCore.QRect
) -> list[QtCore.QRectF]:
    """The rectangle of each label: near its mark, over no mark and no other label."""
    rooms: list[QtCore.QRectF] = []
    for mark, (wide, high) in zip(marks, sizes, strict=True):
        taken = [*marks, *rooms]
        lefts = [one.right() + APART for one in taken]
        lefts += [one.left() - APART - wide for one in taken]
        top, middle = max(float(inside.top()), mark.bottom() - 2 - high), mark.center().x()
        near = sorted(lefts, key=lambda left: abs(left + wide / 2 - middle))
        within = [left for left in near if inside.left() <= left <= inside.right() - wide]
        found = (QtCore.QRectF(left, top, wide, high) for left in within)
        free = (room for room in found if not any(map(room.intersects, taken)))
        rooms.append(next(free, QtCore.QRectF(mark.right() + APART, top, wide, high)))
    return rooms


class CursorLayer(Layer):
    """A vertical line at the mouse."""

    def __init__(self) -> None:
        self.x: float | None = None

    def set(self, x: float | None) -> None:
        if x != self.x:
            self._update()
            self.x = x
            self._update()

    def _update(self) -> None:
        if self.x is not None:
            at = round(self.plot.points([self.x], [0.0])[0, 0])
            inside = self.plot.inside
            self.plot.update(QtCore.QRect(at - 2, inside.top(), 5, inside.height()))

    def paint(self, painter: QtGui.QPainter) -> None:
        if self.x is not None:
            at, inside = self.plot.points([self.x], [0.0])[0, 0], self.plot.inside
            painter.setPen(self.plot.pen("ink"))
            painter.drawLine(QtCore.QLineF(at, inside.top(), at, inside.bottom()))
