"""The input level at each ear, as vertical meters."""

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import axis_size, hatching, set_font, theme
from amt_monitor.panes.pane import Pane
from amt_stream.meters.frames import Fault
from amt_stream.meters.rows.limit_words import silence
from amt_stream.views.level_ballistics import SILENCE_DB, LevelBallistics
from amt_stream.views.view_state import ViewState

LOW, HIGH, TICK = 20.0, 130.0, 10
"""Of the scale, in dB SPL."""
STEPS = 10, 20, 40
"""Between its numbers: the least for which there is room."""
LEAST, MOST, TICKED, BETWEEN = 12, 40, 5, 34
"""Pixels of a meter, of a tick, and between the meters, where the numbers of the scale stand."""
SHARE = 0.2
"""Of the width: a meter."""


class LevelMeters(QtWidgets.QWidget):
    """Two meters with a scale between them; a click clears CLIP.

    full_scale_db: of each ear, in dB SPL; the headroom is counted from it
    resting: whether nothing is measured: the meters are empty, and the last levels grey
    """

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("level_meters")
        self.ears = LevelBallistics(), LevelBallistics()
        self.full_scale_db: tuple[float, ...] = ()
        self.uncalibrated = self.resting = False
        self.setAttribute(QtCore.Qt.WidgetAttribute.WA_OpaquePaintEvent)
        set_font(self, False, axis_size(self))
        self._ground: QtGui.QPixmap | None = None
        self._moved: list[tuple[int, int, bool, bool] | None] = [None, None]
        self._written = [("", "")] * 2
        self._renew()
        theme.changed.connect(self._renew)

    def minimumSizeHint(self) -> QtCore.QSize:
        line = self.fontMetrics().height()
        return QtCore.QSize(self.fontMetrics().horizontalAdvance("-188 dBFS") * 2, 8 * line)

    def mousePressEvent(self, event: QtGui.QMouseEvent) -> None:
        for ear in self.ears:
            ear.clipped = False
        self.update()

    def rest(self, resting: bool) -> None:
        if resting != self.resting:
            self.resting = resting
            self.update()
        self.refresh(texts=True)

    def headroom(self, place: int) -> str:
        """The level below full scale, as "-34 dBFS"."""
        level = self.ears[place].level
        if not self.full_scale_db or level <= SILENCE_DB:
            return ""
        full = self.full_scale_db[min(place, len(self.full_scale_db) - 1)]
        return f"{level - full:.0f} dBFS"

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        self._renew()

    def changeEvent(self, event: QtCore.QEvent) -> None:
        if event.type() == QtCore.QEvent.Type.FontChange:
            self._renew()
        super().changeEvent(event)

    def _renew(self) -> None:
        self._ground = None
        places = range(len(self.ears))
        self._grooves, self._halves = [*map(self._groove, places)], [*map(self._half, places)]
        self.update()

    def refresh(self, texts: bool) -> None:
        """Paint what has moved, and where asked the numbers that have changed.

        Numbers that change 30 times a second could not be read.
        """
        for place, ear in enumerate(self.ears):
            groove, half = self._grooves[place], self._halves[place]
            moved = self._height(ear.level), self._height(ear.held), ear.clipped, self.uncalibrated
            if moved != self._moved[place]:
                before, self._moved[place] = self._moved[place], moved
                same_texts = before is not None and before[2] == ear.clipped
                self.update(groove if same_texts else half)
            if texts and (written := (ear.text, self.headroom(place))) != self._written[place]:
                self._written[place] = written
                self.update(half.adjusted(0, groove.bottom() + 1 - half.top(), 0, 0))

    def _groove(self, place: int) -> QtCore.QRect:
        line, middle = self.fontMetrics().height(), self.width() // 2
        wide = min(MOST, max(LEAST, round(SHARE * self.width())))
        left = middle + BETWEEN // 2 + 2 if place else middle - BETWEEN // 2 - 2 - wide
        return QtCore.QRect(left, line + 4, wide, self.height() - 3 * line - 12)

    def _half(self, place: int) -> QtCore.QRect:
        """The meter of an ear, with its texts."""
        middle = self.width() // 2
        wide = min(middle, self.fontMetrics().horizontalAdvance("-188 dBFS "))
        return QtCore.QRect(middle if place else middle - wide, 0, wide, self.height())

    def _height(self, level: float) -> int:
        groove = self._grooves[0]
        share = min(1.0, max(0.0, (level - LOW) / (HIGH - LOW)))
        return round(groove.bottom() - share * groove.height())

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        painter, ratio = QtGui.QPainter(self), self.devicePixelRatioF()
        if self._ground is None or self._ground.devicePixelRatio() != ratio:
            self._ground = QtGui.QPixmap(self.size() * ratio)
            self._ground.setDevicePixelRatio(ratio)
            self._ground.fill(QtGui.QColor(theme.colors.paper))
            ground = QtGui.QPainter(self._ground)
            ground.setFont(self.font())
            self._paint_scale(ground)
            ground.end()
        painter.drawPixmap(0, 0, self._ground)
        painted = event.rect()
        for place, groove in enumerate(self._grooves):
            self._paint_meter(painter, place, groove)
            # Texts stand above and below.
            if painted.top() < groove.top() or painted.bottom() > groove.bottom():
                self._paint_texts(painter, place, groove)

    def _paint_scale(self, painter: QtGui.QPainter) -> None:
        line, middle = self.fontMetrics().height(), self.width() // 2
        high = self._grooves[0].height()
        painter.setPen(QtGui.QColor(theme.colors.second))
        step = next((s for s in STEPS if high * s / (HIGH - LOW) >= line), STEPS[-1])
        for level in range(int(LOW), int(HIGH) + 1, TICK):
            at = self._height(level)
            for left in (middle - BETWEEN // 2, middle + BETWEEN // 2 - TICKED):
                painter.drawLine(left, at, left + TICKED - 1, at)
            if (level - int(LOW)) % step == 0:
                room = QtCore.QRect(middle - BETWEEN // 2, at - line // 2, BETWEEN, line)
                painter.drawText(room, QtCore.Qt.AlignmentFlag.AlignCenter, f"{level}")

    def _paint_meter(self, painter: QtGui.QPainter, place: int, groove: QtCore.QRect) -> None:
        colors, ear = theme.colors, self.ears[place]
        painter.fillRect(groove, QtGui.QColor(colors.ground))
        if ear.level > LOW and not self.resting:
            bar = QtCore.QRect(groove)
            bar.setTop(self._height(ear.level) + 1)
            color = QtGui.QColor(colors.accent)
            painter.fillRect(bar, hatching(colors.accent) if self.uncalibrated else color)
        if ear.held > LOW and not self.resting:
            held = QtCore.QRect(groove.left(), self._height(ear.held), groove.width(), 2)
            painter.fillRect(held.intersected(groove), QtGui.QColor(colors.ink))
        painter.setPen(QtGui.QColor(colors.outline))
        painter.drawRect(groove.adjusted(0, 0, -1, 0))

    def _paint_texts(self, painter: QtGui.QPainter, place: int, groove: QtCore.QRect) -> None:
        colors, ear, center = theme.colors, self.ears[place], QtCore.Qt.AlignmentFlag.AlignCenter
        line, half = self.fontMetrics().height(), QtCore.QRect(self._halves[place])
        half.setHeight(line)
        second = QtGui.QColor(colors.second)
        if ear.clipped:
            long = self.fontMetrics().horizontalAdvance("CLIP") + 8
            tag = QtCore.QRect(half.center().x() - long // 2, 0, long, line + 1)
            painter.fillRect(tag, QtGui.QColor(colors.ink))
            painter.setPen(QtGui.QColor(colors.paper))
            painter.drawText(tag, center, "CLIP")
        else:
            painter.setPen(second)
            painter.drawText(half, center, "LR"[place])
        painter.setPen(second if self.resting else QtGui.QColor(colors.ink))
        half.moveTop(groove.bottom() + 5)
        painter.drawText(half, center, ear.text)
        painter.setPen(second)
        half.moveTop(half.bottom())
        painter.drawText(half, center, self.headroom(place))


class LevelPane(Pane):
    """The level of the latest frames in dB SPL, left and right."""

    def __init__(self) -> None:
        super().__init__("levels", "Input", "dB SPL")
        self.meters = LevelMeters()
        self.body.addWidget(self.meters, 1)

    def move(self, view: ViewState) -> None:
        heard = view.heard
        if heard is None or self.meters.resting:
            return
        # Faults of calm frames need not be looked up.
        clipped = heard.calm_s < 0 and bool((heard.fault & int(Fault.CLIP)).any())
        for level, ear in zip(view.levels_of_ears(heard), self.meters.ears, strict=True):
            ear.follow(heard.end_s, float(level.max()), clipped)
        self.meters.uncalibrated = not heard.calibrated
        self.meters.refresh(texts=False)

    def read(self, view: ViewState) -> None:
        each, heard = view.engine.calibration, view.engine.heard
        if heard is not None and view.heard is not None and len(each) == len(heard.channels):
            each = tuple(each[place] for place in heard.places_of(view.heard.model))
        self.meters.full_scale_db = tuple(one.full_scale_db_spl for one in each)
        self.move(view)
        self.meters.refresh(texts=True)
        self.meters.setAccessibleName(", ".join(self.texts()))

    def restart(self) -> None:
        for ear in self.meters.ears:
            ear.clear()

    lose = restart

    def texts(self) -> tuple[str, ...]:
        return tuple(ear.text for ear in self.meters.ears)

    def show_status(self, view: ViewState) -> None:
        super().show_status(view)
        uncalibrated = view.heard is not None and not view.heard.calibrated
        self.about.setText("dB, uncalibrated" if uncalibrated else "dB SPL")
        self.meters.rest(bool(silence(view.held)))
