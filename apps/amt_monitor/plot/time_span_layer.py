"""Spans of time in which something was wrong, as a strip below a plot."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.base.state_shape import paint_shape
from amt_monitor.base.theme import Colors, hatching
from amt_monitor.plot.plot import ItemLayer
from amt_stream.meters.state_signs import SIGNS
from amt_stream.views.history_states import PlotState

LEAST = 2.0
"""Pixels of the narrowest span."""
MARGIN = 1
"""Pixels between the edge of the strip and the shapes on it."""


class TimeSpan(NamedTuple):
    """A state from `start` to `end` along the axis."""

    state: PlotState
    start: float
    end: float


class TimeSpanLayer(ItemLayer[TimeSpan]):
    """One strip below the plot, with the color and the shape of each state; of several at one time
    it shows the last of the items. Where nothing was measured, the plot is hatched."""

    @property
    def words(self) -> list[str]:
        return [span.state.word for span in self.items]

    def at(self, x: float) -> list[TimeSpan]:
        """The spans at a place along the axis, the one that is shown first."""
        return [span for span in reversed(self.items) if span.start <= x <= span.end]

    def paint(self, painter: QtGui.QPainter) -> None:
        inside, places = self.plot.inside, []
        for span in self.items:
            (left, _), (right, _) = self.plot.points([span.start, span.end], [0.0, 0.0]).tolist()
            left, right = max(left, inside.left()), min(right, inside.right() + 1)
            if right < inside.left() or left > inside.right():
                continue
            wide = max(right - left, LEAST)
            if span.state.missing:
                box = QtCore.QRectF(left, inside.top(), wide, inside.height())
                paint_missing(painter, box, self.plot.colors)
            if span.state.sign:
                places.append((span.state.sign, left, left + wide))
            else:
                painter.setPen(QtGui.QPen(self.plot.color("second"), 2, QtCore.Qt.PenStyle.DotLine))
                floor = inside.bottom()
                painter.drawLine(QtCore.QLineF(left, floor, left + wide, floor))
        for place in places:
            self._paint_box(painter, *place)
        for k, (state, left, right) in enumerate(places):
            self._paint_shape(painter, state, left, right, places[k + 1 :])

    def _colors(self, state: str) -> tuple[QtGui.QColor, QtGui.QColor]:
        """The color of a state, and that of its shape."""
        sign, colors = SIGNS[state], self.plot.colors
        color = QtGui.QColor(getattr(colors, sign.color))
        return color, QtGui.QColor(colors.paper) if sign.filled else color

    def _paint_box(self, painter: QtGui.QPainter, state: str, left: float, right: float) -> None:
        strip = self.plot.strip
        box = QtCore.QRectF(left, strip.top(), right - left, strip.height())
        painter.fillRect(box, self._colors(state)[0])
        if not SIGNS[state].filled:
            painter.fillRect(box.adjusted(1, 1, -1, -1), QtGui.QColor(self.plot.colors.paper))

    def _paint_shape(
        self,
        painter: QtGui.QPainter,
        state: str,
        left: float,
        right: float,
        above: Sequence[tuple[str, float, float]],
    ) -> None:
        """The shape, once, where nothing worse lies on it and there is room."""
        side = self.plot.strip.height() - 2 * MARGIN
        for _, covered, free in sorted(above, key=lambda one: one[1]):
            if covered < left + side + 2 * MARGIN and free > left:
                left = free
        if left + side + 2 * MARGIN <= right:
            top, ink = self.plot.strip.top() + MARGIN, self._colors(state)[1]
            paint_shape(painter, state, left + MARGIN, top, side, ink)


def paint_missing(painter: QtGui.QPainter, box: QtCore.QRectF, colors: Colors) -> None:
    """Hatch a part of a plot in which nothing was measured."""
    painter.fillRect(box, QtGui.QColor(colors.paper))
    painter.fillRect(box, hatching(colors.outline))


def runs_of_true(marked: NDArray[np.bool_], join: int) -> list[tuple[int, int]]:
    """First and last index of each run of True; runs fewer than `join` apart are merged."""
    places = np.flatnonzero(marked)
    if not len(places):
        return []
    breaks = np.flatnonzero(np.diff(places) >= join)
    first = places[np.r_[0, breaks + 1]]
    last = places[np.r_[breaks, len(places) - 1]]
    return list(zip(first.tolist(), last.tolist(), strict=True))
