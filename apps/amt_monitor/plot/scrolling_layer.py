"""Layers over time as an image that moves left; only new columns are painted."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.plot.curve_layers import CurveLayer, FillBetweenLayer
from amt_monitor.plot.plot import Layer, Plot

Lined = CurveLayer | FillBetweenLayer
Lines = tuple[NDArray[np.float64], ...]
REACH = 4
"""Pixels that the paint of a point reaches at most."""
WHOLE = 0.01
"""Pixels from a whole number up to which an image moves; beyond them it is painted anew."""


class ScrollingLayer(Layer):
    """Layers over time, painted once each: with the axis of a `TimePlot` they move by whole pixels.

    parts: in the order in which they are painted
    """

    smooth = True

    def __init__(self, parts: Sequence[Layer]) -> None:
        self.parts = list(parts)
        self._lined: list[Lined] = []
        self._level = self._first = 0
        self._x, self._lines = np.empty(0), np.empty((0, 0))
        self._image: QtGui.QPixmap | None = None
        self._moved = self._stale = 0
        """Since it was painted: how far it has moved, and from where on it is stale, in pixels of
        the screen."""

    def join(self, plot: Plot) -> None:
        super().join(plot)
        for part in self.parts:
            part.join(plot)

    @property
    def is_empty(self) -> bool:
        return not len(self._x)

    def show(
        self, level: int, first: int, x: NDArray[np.float64], lined: Sequence[tuple[Lined, Lines]]
    ) -> None:
        """Show lines through cells of time at `x`; `first` is the number of the first cell."""
        lines = np.array([line for _, some in lined for line in some])
        new = self._new_from(level, first, x, lines)
        self._level, self._first, self._x, self._lines = level, first, x, lines
        self._lined = [layer for layer, _ in lined]
        for layer, some in lined:
            layer.hold(x, *some)
        if new is None:
            self._image = None
        elif new < len(x):
            before = float(self._places(x[max(0, new - 1)])) - REACH
            self._stale = min(self._stale, math.floor(before * self.plot.devicePixelRatioF()))
        elif not self._moved:
            return
        self.plot.update(self.plot.inside)

    def _new_from(
        self, level: int, first: int, x: NDArray[np.float64], lines: NDArray[np.float64]
    ) -> int | None:
        """Move the painted pixels; gives the first new cell, or None if all are new."""
        gone = first - self._first
        old = self._lines[:, gone:] if 0 <= gone < len(self._x) else np.empty((0, 0))
        count = old.shape[1]
        if level != self._level or len(lines) != len(old) or not 0 < count <= len(x):
            return None
        far = float(self._places(self._x[gone]) - self._places(x[0]))
        moved = far * self.plot.devicePixelRatioF()
        if moved < 0 or abs(moved - round(moved)) > WHOLE:
            return None
        self._moved += round(moved)
        self._stale -= round(moved)
        same = (lines[:, :count] == old) | (np.isnan(lines[:, :count]) & np.isnan(old))
        differ = np.flatnonzero(~same.all(axis=0))
        return int(differ[0]) if len(differ) else count

    def _places(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Exact pixels along the axis."""
        axis, inside = self.plot.x, self.plot.inside
        return inside.left() + (x - axis.low) * ((inside.width() - 1) / (axis.high - axis.low))

    def place(self) -> None:
        self._image = None
        if self.plot.kept:
            self._place_from(0)

    def _place_from(self, first: int) -> None:
        for layer in self._lined:
            layer.first = first
            layer.place()

    def paint(self, painter: QtGui.QPainter) -> None:
        if self.plot.kept:
            self.plot.paint_layers(painter, self.parts)
        else:
            painter.drawPixmap(0, 0, self._brought_up())

    def _brought_up(self) -> QtGui.QPixmap:
        """The image with all that is new."""
        ratio, image = self.plot.devicePixelRatioF(), self._image
        if image is None or image.devicePixelRatio() != ratio:
            image = self._image = QtGui.QPixmap(self.plot.size() * ratio)
            image.setDevicePixelRatio(ratio)
            image.fill(QtCore.Qt.GlobalColor.transparent)
            self._stale = 0
        elif self._moved:
            image.scroll(-self._moved, 0, image.rect())
        if self._stale < image.width():
            self._paint_from(image, max(0, self._stale))
        self._moved, self._stale = 0, image.width()
        return image

    def _paint_from(self, image: QtGui.QPixmap, left: int) -> None:
        """Paint all that is at `left`, in pixels of the screen, and right of it."""
        ratio, modes = image.devicePixelRatio(), QtGui.QPainter.CompositionMode
        before = self._places(self._x) < left / ratio - REACH
        self._place_from(max(0, int(np.count_nonzero(before)) - 1))
        strip = QtCore.QRect(left, 0, image.width() - left, image.height())
        painter = QtGui.QPainter(image)
        # A clip in whole pixels of the screen leaves the pixels beside it as they are.
        painter.scale(1 / ratio, 1 / ratio)
        painter.setClipRect(strip)
        painter.setCompositionMode(modes.CompositionMode_Source)
        painter.fillRect(strip, QtCore.Qt.GlobalColor.transparent)
        painter.setCompositionMode(modes.CompositionMode_SourceOver)
        painter.scale(ratio, ratio)
        self.plot.paint_layers(painter, self.parts)
        painter.end()
