"""Hatched spans of time with a word each: faults and pauses."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.plot import ItemLayer


class TimeSpan(NamedTuple):
    """From `start` to `end` along the axis; lane 0 has harmless ones."""

    lane: int
    start: float
    end: float
    word: str


class TimeSpanLayer(ItemLayer[TimeSpan]):
    """Hatching shows without color; each lane has a line for its words."""

    @property
    def words(self) -> list[str]:
        return [span.word for span in self.items]

    def paint(self, painter: QtGui.QPainter) -> None:
        inside, pattern = self.plot.inside, QtCore.Qt.BrushStyle
        metrics = painter.fontMetrics()
        free: dict[int, float] = {}
        for lane, start, end, word in self.items:
            (left, _), (right, _) = self.plot.points([start, end], [0.0, 0.0]).tolist()
            left, right = max(left, inside.left()), min(right, inside.right() + 1)
            if right < inside.left() or left > inside.right():
                continue
            box = QtCore.QRectF(left, inside.top(), max(right - left, 2.0), inside.height())
            color = QtGui.QColor(self.plot.colors.ink if lane else self.plot.colors.second)
            color.setAlphaF(0.5)
            hatch = pattern.FDiagPattern if lane else pattern.BDiagPattern
            painter.fillRect(box, QtGui.QBrush(color, hatch))
            high, wide = metrics.height(), metrics.horizontalAdvance(word) + 8
            # Lane 0 shares its line with the unit.
            first = inside.left() if lane else self.plot.unit_right
            left = max(first, min(left, inside.right() + 1 - wide))
            if free.get(lane, left) <= left <= right:
                top = inside.top() + 2 + lane * (high + 2)
                tag = QtCore.QRectF(left, top, wide, high)
                painter.fillRect(tag, QtGui.QColor(self.plot.colors.paper))
                painter.setPen(self.plot.pen("ink" if lane else "second"))
                painter.drawText(tag, QtCore.Qt.AlignmentFlag.AlignCenter, word)
                free[lane] = tag.right()


def runs_of_true(marked: NDArray[np.bool_], join: int) -> list[tuple[int, int]]:
    """First and last index of each run of True; runs fewer than `join` apart are merged."""
    places = np.flatnonzero(marked)
    if not len(places):
        return []
    breaks = np.flatnonzero(np.diff(places) >= join)
    first = places[np.r_[0, breaks + 1]]
    last = places[np.r_[breaks, len(places) - 1]]
    return list(zip(first.tolist(), last.tolist(), strict=True))
