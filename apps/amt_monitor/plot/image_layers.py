"""Images in a plot."""

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyqtgraph import colormap
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.plot.plot import Layer

# Even in lightness, and with the same steps for the color-blind (Nunez, Anderton & Renslow 2018).
COLORS = "cividis"
STEPS, NOTHING = 255, 255
"""The number of colors, and the index of the transparent one."""


class ImageLayer(Layer):
    """An image of values (row, column), the first row at the bottom; NaN is transparent.

    low, high: values of the first and the last color
    """

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        self.left, self.bottom, self.right, self.top = 0.0, 0.0, 1.0, 1.0
        self._numbers = np.full((1, 1), NOTHING, np.uint8)
        self._image = image_of(self._numbers)

    def set_extent(self, left: float, bottom: float, right: float, top: float) -> None:
        self.left, self.bottom, self.right, self.top = left, bottom, right, top
        self.plot.update()

    def set(self, values: ArrayLike) -> None:
        numbers = numbers_of(values, self.low, self.high)[::-1]
        if not np.array_equal(numbers, self._numbers):
            self._numbers, self._image = numbers, image_of(numbers)
            self.plot.update(self.plot.inside)

    def paint(self, painter: QtGui.QPainter) -> None:
        painter.drawImage(self.area, self._image)

    @property
    def area(self) -> QtCore.QRectF:
        return rectangle(self, self.left, self.bottom, self.right, self.top)


class FrameLayer(Layer):
    """A frame around a part of the plot, with two lines so that it is visible on every color."""

    def __init__(self) -> None:
        self.around: tuple[float, float, float, float] | None = None

    def set(self, around: tuple[float, float, float, float] | None) -> None:
        """Left, bottom, right, top along the axes; None for no frame."""
        if around != self.around:
            self.around = around
            self.plot.update(self.plot.inside)

    def paint(self, painter: QtGui.QPainter) -> None:
        if self.around is not None:
            area = rectangle(self, *self.around)
            painter.setPen(self.plot.pen("ink"))
            painter.drawRect(area)
            painter.setPen(self.plot.pen("paper"))
            painter.drawRect(area.adjusted(1, 1, -1, -1))


def rectangle(layer: Layer, left: float, bottom: float, right: float, top: float) -> QtCore.QRectF:
    (x0, y0), (x1, y1) = layer.plot.points([left, right], [top, bottom]).tolist()
    return QtCore.QRectF(x0, y0, x1 - x0, y1 - y0)


def numbers_of(values: ArrayLike, low: float, high: float) -> NDArray[np.uint8]:
    values = np.asarray(values, float)
    known = ~np.isnan(values)
    steps = (np.where(known, values, low) - low) / (high - low) * (STEPS - 1)
    numbers = np.clip(np.rint(steps), 0, STEPS - 1).astype(np.uint8)
    numbers[~known] = NOTHING
    return numbers


def image_of(numbers: NDArray[np.uint8]) -> QtGui.QImage:
    """An image of color indices (row, column), the first row at the top."""
    rows, columns = numbers.shape
    image = QtGui.QImage(
        np.ascontiguousarray(numbers).tobytes(),
        *(columns, rows, columns),
        QtGui.QImage.Format.Format_Indexed8,
    )
    image.setColorTable(color_table())
    # A copy, as the image does not own the bytes.
    return image.copy()


@cache
def color_table() -> list[int]:
    """The colors, then the transparent one."""
    table = colormap.get(COLORS).getLookupTable(nPts=STEPS, mode="byte")
    return [QtGui.qRgb(*map(int, color[:3])) for color in table] + [0]
