"""The last minutes of one reading, below the numbers of the wall view."""

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import Role, colors_of
from amt_monitor.plot.curve_layers import polygon, runs
from amt_monitor.plot.history_layers import GREY, reaching, thresholds_of
from amt_monitor.plot.history_traces import range_of, style_of, symbol_of, ticks_of, unit_of
from amt_monitor.plot.line_layers import paint_thresholds
from amt_monitor.plot.plot import PlotAxis
from amt_monitor.plot.time_plot import STEPS_S, ago
from amt_monitor.plot.time_span_layer import paint_missing
from amt_stream.meters.limits import Limit
from amt_stream.views.history_pyramid import FACTOR
from amt_stream.views.reading_history import ReadingHistory, missing_in

SHORTEST_S, LONGEST_S = 10.0, 900.0
"""Seconds that the strip covers at least and at most: all of the measurement in between."""
TICKS = 6
"""Intervals between the numbers along the time, at most."""
LEAST_DB = 20.0
"""Least extent of the scale of levels: it is low, and begins above 20 dB."""


class LastMinutes(QtWidgets.QWidget):
    """The course of one reading over the last minutes, on its scale, with its limits.

    Missing time is hatched. While the reading is settling, its curve is thin and grey.

    from_s, now_s: the times at both edges
    """

    def __init__(self) -> None:
        super().__init__(objectName="wall_strip")
        self.name, self.from_s, self.now_s = "", 0.0, SHORTEST_S
        self.limits: tuple[Limit, ...] = ()
        self._shown: tuple[object, ...] = ()
        self._lost_at: float | None = None
        self._times: NDArray[np.float64] = np.empty(0)
        self._cell_s = 1.0
        self._cells: NDArray[np.float64] = np.empty(0)
        self._missing = self._settling = np.zeros(0, bool)

    def lose(self, lost: bool) -> None:
        """Go on into missing time while the microphone is lost: rows come when it is back."""
        self._lost_at = (self._lost_at or time.monotonic()) if lost else None

    def show_rows(
        self, history: ReadingHistory | None, first: str, limits: Sequence[Limit]
    ) -> None:
        """Show the reading of a limit: that of the first number, if it has one."""
        stored = [] if history is None else [one.name for one in history.columns]
        limited = [one.column for one in limits]
        wanted = [*([first] if first in limited else limited), first]
        name = next((one for one in wanted if one in stored), "")
        self.setVisible(bool(name))
        if not name or history is None or history.pyramid.newest < 0:
            return
        lost_s = 0.0 if self._lost_at is None else time.monotonic() - self._lost_at
        now_s = history.now_s + lost_s
        from_s = max(history.first_s, now_s - LONGEST_S)
        level = history.level_for(from_s, now_s, max(1, self.width()))
        cell_s = history.step_s * FACTOR**level
        begin, last = int(from_s / cell_s), int(now_s / cell_s)
        own = tuple(one for one in limits if one.column == name)
        if (shown := (name, begin, last, level, own)) != self._shown:
            self._shown, self.name, self.limits = shown, name, own
            cells = history.cells([name], level, begin, last + 1, risen=True)
            self._times = (np.arange(begin, last + 1) + 0.5) * cell_s
            after = self._times + cell_s / 2 >= history.disturbed_s
            self._cells, self._settling = cells.mean[0], history.settling_in(cells, name) & after
            # The newest cell may not have its row yet.
            self._missing = missing_in(cells) & (self._times < now_s)
            self._missing &= self._times > history.first_s
            self._cell_s, self.now_s = cell_s, (last + 1) * cell_s
            self.from_s = min(begin * cell_s, self.now_s - SHORTEST_S)
            self.update()

    @property
    def scale(self) -> PlotAxis:
        """Of round numbers around the readings and the limits."""
        values = np.array([*self._cells, *(one.value for one in thresholds_of(self.limits))])
        low, high = range_of(unit_of(self.name), values, floor=False, least_db=LEAST_DB)
        return PlotAxis(low, high, ticks_of(low, high, 3))

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        if not self.name:
            return
        painter, colors, metrics = QtGui.QPainter(self), colors_of(self), self.fontMetrics()
        line, axis = metrics.height(), self.scale
        about = f"{symbol_of(self.name)}\n{unit_of(self.name)}"
        left = max(map(metrics.horizontalAdvance, about.split("\n"))) + line
        left += max(metrics.horizontalAdvance(text) for _, text in axis.ticks) + line // 3
        inside = QtCore.QRectF(left, line / 2, self.width() - left - 2, self.height() - 1.7 * line)

        def height(value: Any) -> Any:
            return inside.bottom() - inside.height() * (value - axis.low) / (axis.high - axis.low)

        self._paint_values(painter, inside, about, [(height(v), text) for v, text in axis.ticks])
        self._paint_times(painter, inside)
        for first, end in runs(self._missing):
            x, right = self._along(inside, self._times[[first, end - 1]] + self._halves).tolist()
            hole = QtCore.QRectF(x, inside.top(), right - x, inside.height())
            paint_missing(painter, hole, colors)
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        thick, along = max(2.0, line / 8), self._along(inside, self._times)
        settling = reaching(self._settling, self._cells)
        settled = np.where(self._settling, np.nan, self._cells)
        self._paint_line(painter, GREY, thick / 2, along, height(settling))
        self._paint_line(painter, style_of(self.name)[0], thick, along, height(settled))
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing, False)
        thresholds = thresholds_of(self.limits)
        heights = [round(height(one.value)) for one in thresholds]
        paint_thresholds(painter, thresholds, heights, inside.toRect(), colors, thick=2.0)

    def _paint_values(
        self,
        painter: QtGui.QPainter,
        inside: QtCore.QRectF,
        about: str,
        ticks: Sequence[tuple[float, str]],
    ) -> None:
        """The reading with its unit, and grid lines with their numbers, as many as have room."""
        colors, line = colors_of(self), self.fontMetrics().height()
        align, free = QtCore.Qt.AlignmentFlag, float(self.height())
        painter.setPen(QtGui.QColor(colors.second))
        painter.drawText(self.rect(), align.AlignLeft | align.AlignVCenter, about)
        for y, text in ticks:
            painter.setPen(QtGui.QColor(colors.grid))
            painter.drawLine(QtCore.QLineF(inside.left(), round(y), inside.right(), round(y)))
            room = QtCore.QRectF(0, y - line / 2, inside.left() - line // 3, line)
            if room.bottom() <= free:
                painter.setPen(QtGui.QColor(colors.second))
                painter.drawText(room, align.AlignRight | align.AlignVCenter, text)
                free = room.top()

    @property
    def _halves(self) -> NDArray[np.float64]:
        return np.array([-0.5, 0.5]) * self._cell_s

    def _along(self, inside: QtCore.QRectF, times: Any) -> Any:
        share = (times - self.from_s) / (self.now_s - self.from_s)
        return np.clip(inside.left() + inside.width() * share, inside.left(), inside.right())

    def _paint_times(self, painter: QtGui.QPainter, inside: QtCore.QRectF) -> None:
        """Numbers along the time, from the newest on, as many as have room."""
        span_s, metrics = self.now_s - self.from_s, self.fontMetrics()
        step_s = next(step for step in STEPS_S if span_s / step <= TICKS)
        painter.setPen(QtGui.QColor(colors_of(self).second))
        free = math.inf
        for k in range(math.floor(span_s / step_s + 1e-6) + 1):
            text = ago(-k * step_s, step_s) if k else "now"
            wide = metrics.horizontalAdvance(text)
            x = self._along(inside, self.now_s - k * step_s) - wide / 2
            x = min(max(x, inside.left()), inside.right() - wide)
            if x + wide > free:
                break
            free = x - metrics.height() / 2
            foot = inside.bottom() + 0.2 * metrics.height() + metrics.ascent()
            painter.drawText(QtCore.QPointF(x, foot), text)

    def _paint_line(
        self,
        painter: QtGui.QPainter,
        role: Role,
        width: float,
        x: NDArray[np.float64],
        y: NDArray[np.float64],
    ) -> None:
        pen = QtGui.QPen(QtGui.QColor(getattr(colors_of(self), role)), width)
        pen.setJoinStyle(QtCore.Qt.PenJoinStyle.RoundJoin)
        painter.setPen(pen)
        for first, end in runs(np.isfinite(y)):
            painter.drawPolyline(polygon(np.stack((x[first:end], y[first:end]), axis=1)))
