"""Spans of time with a word each: faults, gaps and pauses."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.plot import ItemLayer
from amt_monitor.theme import hatching


class TimeSpan(NamedTuple):
    """From `start` to `end` along the axis; lane 0 has harmless ones; a gap is hatched."""

    lane: int
    start: float
    end: float
    word: str
    gap: bool = True


LINE = 3
"""Pixels of the line below the words of a span."""


class TimeSpanLayer(ItemLayer[TimeSpan]):
    """Words in the lane above the plot, with a line along each span; gaps are hatched below."""

    @property
    def words(self) -> list[str]:
        return [span.word for span in self.items]

    def paint(self, painter: QtGui.QPainter) -> None:
        inside, lane = self.plot.inside, self.plot.lane
        metrics = painter.fontMetrics()
        free = float(self.plot.unit_right)
        for span in sorted(self.items, key=lambda one: one.start):
            (left, _), (right, _) = self.plot.points([span.start, span.end], [0.0, 0.0]).tolist()
            left, right = max(left, inside.left()), min(right, inside.right() + 1)
            if right < inside.left() or left > inside.right():
                continue
            color = QtGui.QColor(self.plot.colors.ink if span.lane else self.plot.colors.second)
            if span.gap:
                box = QtCore.QRectF(left, inside.top(), max(right - left, 2.0), inside.height())
                painter.fillRect(box, QtGui.QColor(self.plot.colors.paper))
                painter.fillRect(box, hatching(self.plot.colors.outline))
            line = QtCore.QRectF(left, inside.top() - 1, max(right - left, 2.0), LINE)
            painter.fillRect(line, color)
            wide = metrics.horizontalAdvance(span.word) + 8
            left = max(free, min(left, inside.right() + 1 - wide))
            if left + wide <= inside.right() + 1 and left <= right:
                painter.setPen(color)
                tag = QtCore.QRectF(left, lane.top(), wide, lane.height())
                painter.drawText(tag, QtCore.Qt.AlignmentFlag.AlignVCenter, span.word)
                free = tag.right()


def runs_of_true(marked: NDArray[np.bool_], join: int) -> list[tuple[int, int]]:
    """First and last index of each run of True; runs fewer than `join` apart are merged."""
    places = np.flatnonzero(marked)
    if not len(places):
        return []
    breaks = np.flatnonzero(np.diff(places) >= join)
    first = places[np.r_[0, breaks + 1]]
    last = places[np.r_[breaks, len(places) - 1]]
    return list(zip(first.tolist(), last.tolist(), strict=True))
