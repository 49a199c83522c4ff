"""The input level at each ear, as vertical meters."""

from typing import TYPE_CHECKING

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.pane import Pane
from amt_monitor.theme import axis_size, hatching, set_font, theme
from amt_stream.meters.frames import Fault
from amt_stream.meters.level_ballistics import SILENCE_DB, LevelBallistics

if TYPE_CHECKING:
    from amt_monitor.view_state import ViewState

LOW, HIGH, TICK = 20.0, 130.0, 10
"""Of the scale, in dB SPL."""
STEPS = 10, 20, 40
"""Between its numbers: the least for which there is room."""
WIDE, TICKED, BETWEEN = 12, 5, 34
"""Pixels of a meter, of a tick, and between the meters, where the numbers of the scale stand."""


class LevelMeters(QtWidgets.QWidget):
    """Two meters with a scale between them; a click clears CLIP.

    full_scale_db: of each ear, in dB SPL; the headroom is counted from it
    """

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("level_meters")
        self.ears = LevelBallistics(), LevelBallistics()
        self.full_scale_db: tuple[float, ...] = ()
        self.uncalibrated = False
        set_font(self, False, axis_size(self))
        theme.changed.connect(self.update)

    def minimumSizeHint(self) -> QtCore.QSize:
        line = self.fontMetrics().height()
        return QtCore.QSize(self.fontMetrics().horizontalAdvance("-188 dBFS") * 2, 8 * line)

    def mousePressEvent(self, event: QtGui.QMouseEvent) -> None:
        for ear in self.ears:
            ear.clipped = False
        self.update()

    def headroom(self, place: int) -> str:
        """The level below full scale, as "-34 dBFS"."""
        level = self.ears[place].level
        if not self.full_scale_db or level <= SILENCE_DB:
            return ""
        full = self.full_scale_db[min(place, len(self.full_scale_db) - 1)]
        return f"{level - full:.0f} dBFS"

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        painter, colors = QtGui.QPainter(self), theme.colors
        line, align = self.fontMetrics().height(), QtCore.Qt.AlignmentFlag
        groove = QtCore.QRect(0, line + 4, WIDE, self.height() - 3 * line - 12)
        middle = self.width() // 2
        wide = min(middle, self.fontMetrics().horizontalAdvance("-188 dBFS "))
        ink, second = QtGui.QColor(colors.ink), QtGui.QColor(colors.second)
        y = lambda level: round(  # noqa: E731
            groove.bottom() - min(1.0, max(0.0, (level - LOW) / (HIGH - LOW))) * groove.height()
        )
        painter.setPen(second)
        step = next((s for s in STEPS if groove.height() * s / (HIGH - LOW) >= line), STEPS[-1])
        for level in range(int(LOW), int(HIGH) + 1, TICK):
            at = y(level)
            for left in (middle - BETWEEN // 2, middle + BETWEEN // 2 - TICKED):
                painter.drawLine(left, at, left + TICKED - 1, at)
            if (level - int(LOW)) % step == 0:
                room = QtCore.QRect(middle - BETWEEN // 2, at - line // 2, BETWEEN, line)
                painter.drawText(room, align.AlignCenter, f"{level}")
        for place, (name, ear) in enumerate(zip("LR", self.ears, strict=True)):
            left = middle - BETWEEN // 2 - 2 - WIDE if not place else middle + BETWEEN // 2 + 2
            groove.moveLeft(left)
            painter.fillRect(groove, QtGui.QColor(colors.ground))
            bar = QtCore.QRect(groove)
            bar.setTop(y(ear.level) + 1)
            color = QtGui.QColor(colors.accent)
            if ear.level > LOW:
                painter.fillRect(bar, hatching(colors.accent) if self.uncalibrated else color)
            if ear.held > LOW:
                painter.fillRect(QtCore.QRect(left, y(ear.held), WIDE, 2), ink)
            painter.setPen(QtGui.QColor(colors.outline))
            painter.drawRect(groove.adjusted(0, 0, -1, 0))
            half = QtCore.QRect(middle if place else middle - wide, 0, wide, line)
            if ear.clipped:
                long = self.fontMetrics().horizontalAdvance("CLIP") + 8
                tag = QtCore.QRect(half.center().x() - long // 2, 0, long, line + 1)
                painter.fillRect(tag, ink)
                painter.setPen(QtGui.QColor(colors.paper))
                painter.drawText(tag, align.AlignCenter, "CLIP")
            else:
                painter.setPen(second)
                painter.drawText(half, align.AlignCenter, name)
            painter.setPen(ink)
            half.moveTop(groove.bottom() + 5)
            painter.drawText(half, align.AlignCenter, ear.text)
            painter.setPen(second)
            half.moveTop(half.bottom())
            painter.drawText(half, align.AlignCenter, self.headroom(place))


class LevelPane(Pane):
    """The level of the latest frames in dB SPL, left and right."""

    def __init__(self) -> None:
        super().__init__("levels", "Input", "dB SPL")
        self.meters = LevelMeters()
        self._seen: list[tuple[float, float, str, bool]] = []
        self.body.addWidget(self.meters, 1)

    def move(self, view: "ViewState") -> None:
        heard = view.heard
        if heard is None:
            return
        clipped = bool((heard.fault & int(Fault.CLIP)).any())
        levels = [float(level.max()) for level in heard.level_db]
        for place, ear in enumerate(self.meters.ears):
            # Both ears hear a single channel.
            ear.follow(heard.end_s, levels[min(place, len(levels) - 1)], clipped)
        self.meters.uncalibrated = not heard.calibrated
        ears = self.meters.ears
        seen = [(round(e.level, 1), round(e.held, 1), e.text, e.clipped) for e in ears]
        if seen != self._seen:
            self._seen = seen
            self.meters.update()

    def read(self, view: "ViewState") -> None:
        self.meters.full_scale_db = tuple(one.full_scale_db_spl for one in view.engine.calibration)
        self.move(view)
        self.meters.update()
        self.meters.setAccessibleName(", ".join(self.texts()))

    def restart(self) -> None:
        for ear in self.meters.ears:
            ear.clear()

    def texts(self) -> tuple[str, ...]:
        return tuple(ear.text for ear in self.meters.ears)

    def show_status(self, view: "ViewState") -> None:
        super().show_status(view)
        uncalibrated = view.heard is not None and not view.heard.calibrated
        self.about.setText("dB, uncalibrated" if uncalibrated else "dB SPL")
        if "lost" in view.held:
            self.restart()
            self.meters.update()
