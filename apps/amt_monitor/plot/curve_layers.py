"""Lines and filled areas in a plot."""

import math
from collections.abc import Iterable, Iterator
from itertools import repeat

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.functions import arrayToQPolygonF
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.base.theme import Role
from amt_monitor.plot.plot import Layer, Values, area_of, changed_area

NONE = np.empty((0, 2))
PIECE = 12
"""Segments of a line that are painted together: the time for a piece grows with their square, as
Qt searches the edges in each row of pixels.
"""


class CurveLayer(Layer):
    """A line through points, interrupted by NaN; its width is in pixels."""

    smooth = True

    def __init__(self, role: Role, dashed: bool = False, width: float = 1.5) -> None:
        self.role, self.dashed, self.width = role, dashed, width
        self.floored = False
        """Whether the area below it is filled too."""
        self.x, self.y = np.empty(0), np.empty(0)
        self.first = 0
        """The points before this one are not painted."""
        self.points: NDArray[np.float64] = NONE
        self._pieces: list[tuple[QtGui.QPolygonF, float]] = []

    def hold(self, x: Values, y: Values) -> None:
        """Take points that are placed later."""
        self.x, self.y = np.asarray(x, float), np.asarray(y, float)

    def set(self, x: Values, y: Values) -> None:
        """Replace the points; nothing is painted where the pixels stay the same."""
        if not len(x) and not len(self.x):
            return
        self.hold(x, y)
        points = self.plot.points(self.x, self.y)
        area = changed_area(self.points, points, 1 + math.ceil(self.width))
        if not area.isEmpty():
            self._set_points(points)
            if self.floored:
                area.setBottom(self.plot.inside.bottom())
            self.plot.update(area.intersected(self.plot.inside))

    def clear(self) -> None:
        self.set((), ())

    @property
    def is_empty(self) -> bool:
        return not len(self.points)

    def place(self) -> None:
        self._set_points(self.plot.points(self.x[self.first :], self.y[self.first :]))

    def paint(self, painter: QtGui.QPainter) -> None:
        pen = self.plot.pen(self.role, self.width, self.dashed)
        painter.setPen(pen)
        for piece, offset in self._pieces:
            if self.dashed:
                pen.setDashOffset(offset)
                painter.setPen(pen)
            painter.drawPolyline(piece)

    def _set_points(self, points: NDArray[np.float64]) -> None:
        self.points = points
        # A line of an exported picture stays whole, and Qt is quick with a thin one.
        most = len(points) if self.plot.kept or self.width <= 1.0 else PIECE
        self._pieces = []
        for first, end in runs(~np.isnan(points[:, 1])):
            part = points[first:end]
            self._pieces += zip(pieces(part, most), self._offsets(part, most), strict=False)

    def _offsets(self, points: NDArray[np.float64], most: int) -> Iterable[float]:
        """Where in the pattern of dashes each piece begins."""
        if not self.dashed:
            return repeat(0.0)
        steps = points[1:] - points[:-1]
        lengths = np.sqrt(np.einsum("ij,ij->i", steps, steps))  # three times as fast as hypot
        ends: list[float] = (lengths.cumsum() / self.width).tolist()
        return [0.0, *ends[most - 1 :: most]]


class FillLayer(Layer):
    """Areas, lightly filled; their edges are too faint to be antialiased."""

    def __init__(self, role: Role, opacity: float) -> None:
        self.role, self.opacity = role, opacity

    def paint(self, painter: QtGui.QPainter) -> None:
        color = self.plot.color(self.role)
        color.setAlphaF(self.opacity)
        painter.setPen(QtCore.Qt.PenStyle.NoPen)
        painter.setBrush(color)
        for area in self.areas():
            painter.drawPolygon(area)

    def areas(self) -> Iterable[QtGui.QPolygonF]:
        raise NotImplementedError


class FillBelowLayer(FillLayer):
    """The area from a curve down to the axis."""

    def __init__(self, curve: CurveLayer, opacity: float) -> None:
        super().__init__(curve.role, opacity)
        self._curve = curve
        curve.floored = True

    @property
    def is_empty(self) -> bool:
        return self._curve.is_empty

    def areas(self) -> Iterator[QtGui.QPolygonF]:
        points, floor = self._curve.points, self.plot.inside.bottom()
        for first, end in runs(~np.isnan(points[:, 1])):
            area = np.full((end - first + 2, 2), float(floor))
            area[1:-1] = points[first:end]
            area[0, 0], area[-1, 0] = area[1, 0], area[-2, 0]
            yield polygon(area)


class FillBetweenLayer(FillLayer):
    """The area between two lines."""

    def __init__(self, role: Role, opacity: float = 0.25) -> None:
        super().__init__(role, opacity)
        self.x = self.low = self.high = np.empty(0)
        self.first = 0
        """The points before this one are not painted."""
        self._points: NDArray[np.float64] = NONE

    def hold(self, x: Values, low: Values, high: Values) -> None:
        """Take lines that are placed later."""
        self.x, self.low, self.high = (np.asarray(v, float) for v in (x, low, high))

    def set(self, x: Values, low: Values, high: Values) -> None:
        """Replace the two lines; NaN leaves a gap."""
        if not len(x) and not len(self.x):
            return
        self.hold(x, low, high)
        before = self._points
        self.place()
        if not changed_area(before, self._points).isEmpty():
            # The other edge is near in time, but may be far in value.
            area = area_of(np.concatenate((before, self._points)))
            self.plot.update(area.intersected(self.plot.inside))

    def clear(self) -> None:
        self.set((), (), ())

    def place(self) -> None:
        x, *edges = (line[self.first :] for line in (self.x, self.low, self.high))
        self._points = np.concatenate([self.plot.points(x, edge) for edge in edges])

    @property
    def is_empty(self) -> bool:
        return not len(self._points)

    def areas(self) -> Iterator[QtGui.QPolygonF]:
        low, high = np.split(self._points, 2)
        for first, end in runs(~np.isnan(low[:, 1] + high[:, 1])):
            yield polygon(np.concatenate((low[first:end], high[first:end][::-1])))


def runs(known: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The first index of each run of True, and the index after it."""
    if known.all():
        return [(0, len(known))] if len(known) else []
    edges: list[int] = (np.flatnonzero(known[1:] != known[:-1]) + 1).tolist()
    edges = [0] * bool(known[0]) + edges + [len(known)] * bool(known[-1])
    return list(zip(edges[::2], edges[1::2], strict=True))


def pieces(points: NDArray[np.float64], most: int) -> list[QtGui.QPolygonF]:
    """A line in pieces of at most `most` segments."""
    line = polygon(points)
    return [line.mid(first, most + 1) for first in range(0, max(1, len(points) - 1), most)]


def polygon(points: NDArray[np.float64]) -> QtGui.QPolygonF:
    return arrayToQPolygonF(points[:, 0], points[:, 1])
