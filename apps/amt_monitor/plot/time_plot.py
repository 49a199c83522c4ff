"""A plot over time that follows the measurement or stays in place."""

import math
from collections.abc import Callable
from functools import partial

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.plot.plot import Plot, PlotAxis, Ticks
from amt_stream.core.words import clock_text

SHORTEST_S, LONGEST_S = 2.0, 86400.0
STEPS_S = (0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600)
AGO = (("h", 3600.0, 1800.0), ("min", 60.0, 60.0), ("s", 1.0, 0.0))
"""Units, their seconds, and the distance of ticks from which they are used."""

ZOOM = 1.25
NEAR = 1e-6
"""Pixels that are no step of the axis."""
TICK_WIDTHS = 2.2
"""Room between ticks, relative to the width of a label."""


class TimePlot(Plot):
    """The wheel, + and - zoom; dragging, Page Up and Page Down move; End follows again.

    Times on the axis count from `reference_s`: the end while it is followed, else 0. Left and Right
    move the cursor.
    """

    viewed = QtCore.Signal()
    pointed = QtCore.Signal()

    def __init__(self, name: str, strip: bool = False) -> None:
        super().__init__(name, strip)
        self.tell: Callable[[float], str] = lambda time_s: ""
        """Says as rich text what happened at a time; shown where the mouse is."""
        self.setMouseTracking(True)
        self.setFocusPolicy(QtCore.Qt.FocusPolicy.StrongFocus)
        self.span_s = 60.0
        self.begin_s, self.now_s = 0.0, 0.0
        self.reference_s = 0.0
        self.cursor_s: float | None = None
        self._end_s: float | None = None
        self._dragged_from: tuple[float, float] | None = None

    @property
    def follows(self) -> bool:
        return self._end_s is None

    @property
    def end_s(self) -> float:
        return self.now_s if self._end_s is None else self._end_s

    @property
    def from_s(self) -> float:
        return self.end_s - self.span_s

    def show_until(self, end_s: float | None, span_s: float | None = None) -> None:
        """Show another span; None follows the end."""
        span = min(max(span_s or self.span_s, SHORTEST_S), LONGEST_S)
        if end_s is not None:
            end_s = max(end_s, self.begin_s + span / 10)
            end_s = None if end_s >= self.now_s else end_s
        if (end_s, span) != (self._end_s, self.span_s):
            self._end_s, self.span_s = end_s, span
            self.viewed.emit()

    def set_time(self, reference_s: float, y: PlotAxis) -> None:
        """Draw the axes; `reference_s` is the time of the newest data while the end is followed.

        The axis moves by whole pixels, so that painted pixels can move with it.
        """
        if self.follows:
            pixels_per_s = (self.inside.width() - 1) * self.devicePixelRatioF() / self.span_s
            if pixels_per_s > 0:
                reference_s = math.ceil(reference_s * pixels_per_s - NEAR) / pixels_per_s
            self.reference_s = reference_s
            self.set_axes(PlotAxis(-self.span_s, 0.0, self._ticks(-self.span_s, 0.0)), y)
        else:
            self.reference_s = 0.0
            self.set_axes(
                PlotAxis(self.from_s, self.end_s, self._ticks(self.from_s, self.end_s)), y
            )

    def _ticks(self, low: float, high: float) -> Ticks:
        # Tenths of the present must not change the ticks with each row.
        widest = clock_text(math.floor(self.end_s) if self.follows else self.end_s)
        wide = TICK_WIDTHS * self.fontMetrics().horizontalAdvance(widest)
        most = max(2, min(12, int(max(1, self.inside.width()) / wide)))
        step = next((s for s in STEPS_S if (high - low) / s <= most), STEPS_S[-1])
        numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
        tell = partial(ago, step_s=step) if self.follows else clock_text
        return tuple((k * step, tell(k * step)) for k in numbers)

    def point(self, time_s: float | None) -> None:
        if time_s is not None:
            time_s = min(max(time_s, self.from_s, 0.0), self.end_s)
        if time_s != self.cursor_s:
            self.cursor_s = time_s
            self.pointed.emit()

    def zoom(self, factor: float, at_s: float | None = None) -> None:
        """Change the visible span; `at_s` stays in place."""
        span = min(max(self.span_s * factor, SHORTEST_S), LONGEST_S)
        if self.follows or at_s is None:
            self.show_until(self._end_s, span)
        else:
            self.show_until(at_s + (self.end_s - at_s) * span / self.span_s, span)

    def wheelEvent(self, event: QtGui.QWheelEvent) -> None:
        angle = event.angleDelta()
        if abs(angle.x()) > abs(angle.y()):
            self.show_until(self.end_s - self.span_s * angle.x() / 1200)
        else:
            self.zoom(ZOOM ** (-angle.y() / 120), self._time_at(event.position()))
        event.accept()

    def mousePressEvent(self, event: QtGui.QMouseEvent) -> None:
        if event.button() == QtCore.Qt.MouseButton.LeftButton:
            self._dragged_from = event.position().x(), self.end_s

    def mouseMoveEvent(self, event: QtGui.QMouseEvent) -> None:
        if self._dragged_from is not None:
            x, end_s = self._dragged_from
            moved = (event.position().x() - x) / max(1, self.inside.width())
            if abs(moved) > 0.005 or not self.follows:
                self.show_until(end_s - moved * self.span_s)
        self.point(self._time_at(event.position()))
        if self.strip.contains(event.position().toPoint()):
            self._show_tip(event.globalPosition().toPoint(), event.position())

    def event(self, event: QtCore.QEvent) -> bool:
        if isinstance(event, QtGui.QHelpEvent):
            self._show_tip(event.globalPos(), QtCore.QPointF(event.pos()))
            return True
        return bool(super().event(event))

    def _show_tip(self, where: QtCore.QPoint, place: QtCore.QPointF) -> None:
        """Say at once what the strip shows here."""
        area = self.inside.united(self.strip)
        text = self.tell(self._time_at(place)) if area.contains(place.toPoint()) else ""
        if text:
            QtWidgets.QToolTip.showText(where, text, self)
        else:
            QtWidgets.QToolTip.hideText()

    def mouseReleaseEvent(self, event: QtGui.QMouseEvent) -> None:
        self._dragged_from = None

    def mouseDoubleClickEvent(self, event: QtGui.QMouseEvent) -> None:
        self.show_until(None)

    def leaveEvent(self, event: QtCore.QEvent) -> None:
        self.point(None)

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        key, text = QtCore.Qt.Key(event.key()), event.text()
        keys = QtCore.Qt.Key
        if text in ("+", "-"):
            self.zoom(1 / ZOOM if text == "+" else ZOOM, self.cursor_s)
        elif key in (keys.Key_PageUp, keys.Key_PageDown):
            self.show_until(self.end_s + self.span_s / (-2 if key == keys.Key_PageUp else 2))
        elif key in (keys.Key_Home, keys.Key_End):
            self.show_until(self.begin_s + self.span_s if key == keys.Key_Home else None)
        elif key in (keys.Key_Left, keys.Key_Right):
            step = self.span_s / 200 * (-1 if key == keys.Key_Left else 1)
            self.point((self.end_s if self.cursor_s is None else self.cursor_s) + step)
        elif key == keys.Key_Escape and self.cursor_s is not None:
            self.point(None)
        else:
            super().keyPressEvent(event)

    def _time_at(self, place: QtCore.QPointF) -> float:
        return self.values(place)[0] + self.reference_s


def ago(seconds: float, step_s: float = 1.0) -> str:
    """A time before the end, in the unit of the ticks: "-30 s", "-1.5 h"."""
    unit, length = next((u, n) for u, n, from_s in AGO if step_s >= from_s)
    return f"{seconds / length:g} {unit}"
