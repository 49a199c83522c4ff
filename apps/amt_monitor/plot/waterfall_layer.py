"""An image whose columns move left, the newest at the right."""

import time
from functools import cache

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.plot.curve_layers import runs
from amt_monitor.plot.image_layers import STEPS, image_of, numbers_of, rectangle
from amt_monitor.plot.plot import KEY, KEY_LEFT, Layer, Ticks
from amt_monitor.plot.time_span_layer import paint_missing

TICK = 3
"""Pixels of the lines at the numbers of the color scale."""


class WaterfallLayer(Layer):
    """A moving image; each column covers the same time. Its cost does not depend on their number.

    Of several curves within a column the maximum is shown; columns without curves are hatched.
    It is painted only when visible. A scale at the right has all colors, that of the lowest value
    at the bottom, and numbers beside them.

    kinds: of curves, of which one is chosen; None stands for the maximum of all
    rows, columns: values of a column, and number of columns
    column_s: duration of a column
    """

    def __init__(self, kinds: int, rows: int, columns: int, column_s: float) -> None:
        self.column_s, self.low, self.high = column_s, 0.0, 1.0
        self.ticks: Ticks = ()
        """Numbers beside the scale; of those without room, the later ones are left out."""
        self.kind: int | None = None
        self._values = np.full((kinds, rows, columns), np.nan, np.float32)
        self.newest = -1
        """Number of the newest column; -1 without columns."""
        self._heard = self._first = -1
        """The columns of the newest and of the oldest curve."""
        self._lost: tuple[float, int] | None = None
        self._held: tuple[NDArray[np.float32], int] | None = None
        self._image: QtGui.QImage | None = None
        self._painted = -1

    def clear(self) -> None:
        self._values[:] = np.nan
        self.newest = self._heard = self._first = -1
        self._lost = None
        self.place()

    def hold(self, held: bool) -> None:
        """Freeze the newest column on the screen; new curves are still taken in."""
        if not held and self._held is not None:
            self._held = None
            self.place()
        elif held and self._held is None:
            self._held = self._values.copy(), self.newest

    def lose(self, lost: bool) -> None:
        """Go on into blank columns while the microphone is lost: curves come when it is back."""
        if not lost or self.newest < 0:
            self._lost = None
            return
        now = time.monotonic()
        began, newest = self._lost = self._lost or (now, self.newest)
        self._go_on_to(newest + int((now - began) / self.column_s))

    @property
    def until_s(self) -> float:
        """The time at the right edge: the end of the last complete column."""
        return max(0, self._looked_at[1]) * self.column_s

    @property
    def highest(self) -> float:
        """The highest of all values; NaN or minus infinity where there is none."""
        return float(np.fmax.reduce(self._looked_at[0], axis=None))

    @property
    def _looked_at(self) -> tuple[NDArray[np.float32], int]:
        return self._held or (self._values, self.newest)

    @property
    def shown(self) -> NDArray[np.float32]:
        """The values (row, column) of the chosen curve, in no order of time."""
        return self._shown(0, self._values.shape[-1])

    def set_colors(self, low: float, high: float, ticks: Ticks) -> None:
        if (low, high, ticks) != (self.low, self.high, self.ticks):
            self.low, self.high, self.ticks = low, high, ticks
            self.place()
            self.plot.update()

    def choose(self, kind: int | None) -> None:
        if kind != self.kind:
            self.kind = kind
            self.place()

    def show(self, time_s: float, values: NDArray[np.floating]) -> None:
        """Add values (kind, row), the first at the bottom, at an increasing time."""
        column = int(time_s / self.column_s)
        if column < self._heard:
            self.clear()
        self._heard = column
        self._first = column if self._first < 0 else self._first
        if column < self.newest:  # it was thought to be lost for longer than it was
            self._painted = min(self._painted, column)
        self._go_on_to(column)
        at = column % self._values.shape[-1]
        self._values[..., at] = np.fmax(self._values[..., at], values)

    def _go_on_to(self, column: int) -> None:
        """Make this column the newest, unless a later one is; what lies between is blank."""
        if column <= self.newest:
            return
        ring = self._values.shape[-1]
        for blank in range(max(self.newest + 1, column - ring + 1), column + 1):
            self._values[..., blank % ring] = np.nan
        self.newest = column
        if self._held is None:
            self.plot.update(self.plot.inside)

    def curve(self, time_s: float) -> NDArray[np.float32]:
        """The values (row,) at a time; NaN where there are none."""
        column, ring = int(time_s / self.column_s), self._values.shape[-1]
        newest = self._looked_at[1]
        if not max(0, newest - ring + 1) <= column <= newest:
            return np.full(self._values.shape[1], np.nan, np.float32)
        return self._shown(column % ring, 1)[:, 0].copy()

    def _shown(self, first: int, count: int) -> NDArray[np.float32]:
        values = self._looked_at[0][..., first : first + count]
        return np.asarray(np.fmax.reduce(values) if self.kind is None else values[self.kind])

    def place(self) -> None:
        """Redraw the image when it is next painted."""
        self._image = None
        self.plot.update(self.plot.inside)

    def _paint_key(self, painter: QtGui.QPainter) -> None:
        inside = self.plot.inside
        painter.save()
        painter.setClipping(False)
        strip = QtCore.QRect(inside.right() + KEY_LEFT, inside.top(), KEY, inside.height())
        painter.drawImage(strip, _all_colors())
        painter.setPen(self.plot.pen("second"))
        line, taken = painter.fontMetrics().height(), list[QtCore.QRect]()
        for value, text in self.ticks:
            y = round(strip.bottom() - strip.height() * (value - self.low) / (self.high - self.low))
            top = min(max(y - line // 2, strip.top() - line // 2), strip.bottom() - line // 2)
            left = strip.right() + TICK + 2
            room = QtCore.QRect(left, top, self.plot.width() - left, line)
            if any(map(room.intersects, taken)):
                continue
            taken.append(room)
            painter.drawLine(strip.right() + 1, y, strip.right() + TICK, y)
            painter.drawText(room, QtCore.Qt.AlignmentFlag.AlignVCenter, text)
        painter.restore()

    def paint(self, painter: QtGui.QPainter) -> None:
        self._paint_key(painter)
        newest = self._looked_at[1]
        if newest < 0:
            return
        image = self._brought_up(newest)
        ring, wide = self._values.shape[-1], image.width()
        area = rectangle(self, self.plot.x.low, self.plot.y.low, self.plot.x.high, self.plot.y.high)
        self._hatch(painter, area)
        # The newest column is painted when it is complete.
        oldest = newest % ring * wide / ring
        left = area.width() * (1 - oldest / wide)
        high = image.height()
        for source, target in (
            (QtCore.QRectF(oldest, 0, wide - oldest, high), QtCore.QRectF(0, 0, left, 1)),
            (QtCore.QRectF(0, 0, oldest, high), QtCore.QRectF(left, 0, area.width() - left, 1)),
        ):
            target.setHeight(area.height())
            target.translate(area.topLeft())
            painter.drawImage(target, image, source)

    def _hatch(self, painter: QtGui.QPainter, area: QtCore.QRectF) -> None:
        """Hatch the columns since the first curve in which there is none."""
        values, newest = self._looked_at
        ring = values.shape[-1]
        columns = np.arange(max(self._first, newest - ring, 0), newest)
        blank = np.asarray(np.isnan(values[:, 0, columns % ring]).all(axis=0))
        wide, left = area.width() / ring, area.right() - area.width() * newest / ring
        for first, end in runs(blank):
            x, count = left + wide * float(columns[first]), end - first
            hole = QtCore.QRectF(x, area.top(), wide * count, area.height())
            paint_missing(painter, hole, self.plot.colors)

    def _brought_up(self, newest: int) -> QtGui.QImage:
        """The image at its size on the screen, with all complete columns."""
        ring = self._values.shape[-1]
        if self._image is None:
            size = self.plot.inside.size() * self.plot.devicePixelRatioF()
            self._wide = max(1, round(size.width() / ring))
            self._image = QtGui.QImage(
                self._wide * ring,
                max(1, size.height()),
                QtGui.QImage.Format.Format_ARGB32_Premultiplied,
            )
            self._image.fill(0)
            self._painted = -1
        first = max(self._painted, newest - ring + 1, 0)
        while first < newest:
            count = min(newest - first, ring - first % ring)
            self._paint_columns(self._image, first % ring, count)
            first += count
        self._painted = newest
        return self._image

    def _paint_columns(self, image: QtGui.QImage, first: int, count: int) -> None:
        numbers = numbers_of(self._shown(first, count)[::-1], self.low, self.high)
        painter = QtGui.QPainter(image)
        painter.setCompositionMode(QtGui.QPainter.CompositionMode.CompositionMode_Source)
        left, wide = first * self._wide, count * self._wide
        painter.drawImage(QtCore.QRect(left, 0, wide, image.height()), image_of(numbers))
        painter.end()


@cache
def _all_colors() -> QtGui.QImage:
    """All colors, that of the lowest value at the bottom."""
    return image_of(np.arange(STEPS, dtype=np.uint8)[::-1, None])
