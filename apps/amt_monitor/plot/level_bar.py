"""A level as a bar on a scale."""

from typing import NamedTuple

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import Role, theme

FINE = 1000


class LevelBarScale(NamedTuple):
    """From `low` to `high`, with a number at each tick; `signed` numbers show a plus."""

    low: float
    high: float
    ticks: tuple[float, ...]
    signed: bool = False

    def place(self, level: float) -> float:
        return min(1.0, max(0.0, (level - self.low) / (self.high - self.low)))


class LevelBar(QtWidgets.QWidget):
    """A bar with caption and text above and the scale below.

    limit: drawn as a line; the bar above it has the color `over`
    """

    def __init__(
        self,
        name: str,
        caption: str,
        scale: LevelBarScale,
        role: Role = "accent",
        limit: float | None = None,
        over: Role = "red",
    ) -> None:
        super().__init__(objectName=name)
        self.caption, self.scale = caption, scale
        self.text, self.uncalibrated = "-", False
        self.level, self.held = scale.low, scale.low
        self._role, self._limit, self._over = role, limit, over

    def set_level(self, level: float, held: float | None = None) -> None:
        held = self.scale.low if held is None else held
        places = self._seen(level), self._seen(held)
        if places != (self._seen(self.level), self._seen(self.held)):
            self.level, self.held = level, held
            self.update(self._groove)

    def _seen(self, level: float) -> int:
        """The level in steps that are worth painting."""
        return round(FINE * self.scale.place(level))

    def set_text(self, text: str, uncalibrated: bool) -> None:
        """Set the text at the right; a bar without calibration is hatched."""
        if (text, uncalibrated) != (self.text, self.uncalibrated):
            self.text, self.uncalibrated = text, uncalibrated
            self.update()

    def set_scale(self, scale: LevelBarScale) -> None:
        self.scale = scale
        self.update()

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        painter, groove = QtGui.QPainter(self), self._groove
        painter.fillRect(groove, self._color("ground"))
        self._paint_level(painter, groove)
        painter.setPen(self._color("second"))
        painter.drawRect(groove.adjusted(0, 0, -1, -1))
        for tick in self.scale.ticks:
            x = self._x(tick, groove)
            painter.drawLine(x, groove.bottom() - 4, x, groove.bottom() - 1)
        if not groove.contains(event.rect()):
            self._paint_texts(painter, groove)

    def _paint_texts(self, painter: QtGui.QPainter, groove: QtCore.QRect) -> None:
        """Paint what changes rarely."""
        align, line = QtCore.Qt.AlignmentFlag, self.fontMetrics().height()
        head = QtCore.QRect(0, 0, self.width(), line)
        painter.setPen(self._color("ink"))
        metrics, side = self.fontMetrics(), QtCore.Qt.TextElideMode.ElideRight
        room = head.width() - metrics.horizontalAdvance(self.text) - line // 2
        caption = metrics.elidedText(self.caption, side, room)
        painter.drawText(head, align.AlignLeft, caption)
        painter.drawText(head, align.AlignRight, self.text)
        painter.setPen(self._color("second"))
        free = 0
        for tick in self.scale.ticks:
            text = f"{tick:+g}" if self.scale.signed and tick else f"{tick:g}"
            wide = metrics.horizontalAdvance(text)
            middle = self._x(tick, groove)
            left = min(max(0, middle - wide // 2), self.width() - 1 - wide)
            # Numbers that do not fit are left out.
            if left >= free:
                painter.drawText(QtCore.QRect(left, groove.bottom() + 1, wide + 2, line), 0, text)
                free = left + wide + line // 3

    def _paint_level(self, painter: QtGui.QPainter, groove: QtCore.QRect) -> None:
        pattern = QtCore.Qt.BrushStyle
        style = pattern.BDiagPattern if self.uncalibrated else pattern.SolidPattern
        bar = QtCore.QRect(groove)
        bar.setWidth(self._x(self.level, groove))
        painter.fillRect(bar, QtGui.QBrush(self._color(self._role), style))
        if self._limit is not None:
            x = self._x(self._limit, groove)
            if bar.width() > x:
                bar.setLeft(x)
                painter.fillRect(bar, QtGui.QBrush(self._color(self._over), style))
            painter.fillRect(
                x - 1, groove.top(), 2, groove.height(), QtGui.QColor(theme.colors.ink)
            )
        if self.held > self.scale.low:
            over = self._limit is not None and self.held > self._limit
            color = self._color(self._over if over else self._role)
            x = self._x(self.held, groove)
            painter.fillRect(x - 1, groove.top(), 3, groove.height(), color)

    @property
    def _groove(self) -> QtCore.QRect:
        line = self.fontMetrics().height()
        return QtCore.QRect(0, line + 1, self.width(), max(6, self.height() - 2 * line - 4))

    def _x(self, level: float, groove: QtCore.QRect) -> int:
        return round(self.scale.place(level) * groove.width())

    @staticmethod
    def _color(role: Role) -> QtGui.QColor:
        return QtGui.QColor(getattr(theme.colors, role))
