"""The bar above the panes: the state, commands, the input and its calibration."""

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.command_icons import SIDE, command_icon
from amt_monitor.device_combo_box import DeviceComboBox
from amt_monitor.pane import Badge
from amt_monitor.theme import set_font, theme
from amt_monitor.widgets import plain_label

GOES_ON = ("pause", "stop")
"""Buttons whose text changes to "Continue"."""

HEIGHT, WORDS_FROM = 44, 960
"""Pixels of height, and of width from which buttons have words beside their icons."""
WORD_LEFT = 6
"""Pixels between the icon of a button and its word."""
DEVICE = 180
"""Pixels that the name of the input keeps."""


class TopBar(QtWidgets.QWidget):
    """The state with the counted time, buttons, the input and its calibration.

    actions: those with a button, in order
    """

    def __init__(self, actions: list[QtGui.QAction]) -> None:
        super().__init__()
        self.buttons = {action.objectName(): _Button(action) for action in actions}
        for name in GOES_ON:
            self.buttons[name].keep_room_for("Continue")
        self.device = DeviceComboBox()
        self.device.setAccessibleName("input")
        self.device.setMinimumWidth(DEVICE)
        self.calibration = Badge()
        self.calibration.setObjectName("calibration")
        self.calibrated = plain_label("calibrated", role="second")
        self.chip = StateChip()
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(12, 6, 12, 6)
        row.setSpacing(6)
        self.setMinimumHeight(HEIGHT)
        row.addWidget(self.chip)
        for button in self.buttons.values():
            row.addWidget(button)
        row.addStretch(1)
        row.addWidget(self.device, 30)
        row.addWidget(self.calibration)
        row.addWidget(self.calibrated)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        for button in self.buttons.values():
            button.show_word(self.width() >= WORDS_FROM)


class StateChip(QtWidgets.QWidget):
    """The state of the measurement in a word, with the time that averages and maxima cover.

    The mark is a filled circle while readings count, a triangle where something is wrong, else an
    open circle.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("state_chip")
        self.state, self.clock, self._wrong = "idle", "", False
        set_font(self, True)
        self.setToolTip("the state, and the time that averages and maxima cover")
        theme.changed.connect(self.update)

    @property
    def text(self) -> str:
        return f"{self.state[:1].upper()}{self.state[1:]} {self.clock}".strip()

    def show_state(self, state: str, clock: str, wrong: bool) -> None:
        if (state, clock, wrong) != (self.state, self.clock, self._wrong):
            before = self.sizeHint()
            self.state, self.clock, self._wrong = state, clock, wrong
            self.setAccessibleName(self.text)
            if self.sizeHint() != before:
                self.updateGeometry()
            self.update()

    def sizeHint(self) -> QtCore.QSize:
        metrics = self.fontMetrics()
        return QtCore.QSize(metrics.horizontalAdvance(self.text) + 38, metrics.height() + 12)

    def minimumSizeHint(self) -> QtCore.QSize:
        return self.sizeHint()

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        painter, colors = QtGui.QPainter(self), theme.colors
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        frame = QtCore.QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        ink = QtGui.QColor(colors.paper if self._wrong else colors.ink)
        painter.setPen(QtGui.QPen(QtGui.QColor(colors.outline), 1))
        painter.setBrush(QtGui.QColor(colors.ink if self._wrong else colors.paper))
        painter.drawRoundedRect(frame, frame.height() / 2, frame.height() / 2)
        painter.setPen(QtGui.QPen(ink, 1.5))
        counts = self.state == "running" or self._wrong
        painter.setBrush(ink if counts else QtCore.Qt.BrushStyle.NoBrush)
        x, y = 17.0, frame.center().y()
        if self._wrong:
            points = (x, y - 5), (x + 5, y + 4), (x - 5, y + 4)
            painter.drawPolygon(QtGui.QPolygonF([QtCore.QPointF(*point) for point in points]))
        else:
            painter.drawEllipse(QtCore.QPointF(x, y), 4, 4)
        room = self.rect().adjusted(28, 0, -6, 0)
        painter.drawText(room, QtCore.Qt.AlignmentFlag.AlignVCenter, self.text)


class _Button(QtWidgets.QToolButton):
    """A button with icon and word that the Tab key reaches; filled while it is on."""

    def __init__(self, action: QtGui.QAction) -> None:
        super().__init__()
        self.setDefaultAction(action)
        self.setObjectName(f"{action.objectName()}_button")
        self.setFocusPolicy(QtCore.Qt.FocusPolicy.StrongFocus)
        self.setToolButtonStyle(QtCore.Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setIconSize(QtCore.QSize(SIDE, SIDE))
        self.setAutoRaise(True)
        action.setIconVisibleInMenu(False)
        action.changed.connect(self._draw_icon)
        theme.changed.connect(self._draw_icon)
        self._room = 0
        self._drawn: tuple[str, str] | None = None
        self._draw_icon()

    def _draw_icon(self) -> None:
        action, colors = self.defaultAction(), theme.colors
        goes_on = action.iconText() in ("Continue", "Start")
        color = colors.ink if action.isEnabled() else colors.outline
        drawn = "play" if goes_on else action.objectName(), color
        if drawn != self._drawn:
            self._drawn = drawn
            action.setIcon(command_icon(*drawn))

    def keep_room_for(self, text: str) -> None:
        """Reserve the width of this text, so that nothing moves."""
        metrics = self.fontMetrics()
        more = metrics.horizontalAdvance(text) - metrics.horizontalAdvance(self.text())
        self._room = self.sizeHint().width() + max(0, more)
        self.setMinimumWidth(self._room)

    def show_word(self, shown: bool) -> None:
        styles = QtCore.Qt.ToolButtonStyle
        style = styles.ToolButtonTextBesideIcon if shown else styles.ToolButtonIconOnly
        if style != self.toolButtonStyle():
            self.setToolButtonStyle(style)
            self.setMinimumWidth(self._room if shown else 0)

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        if not self.isChecked():
            self._paint_unchecked()
            return
        painter, colors = QtGui.QPainter(self), theme.colors
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        painter.setBrush(QtGui.QColor(colors.accent))
        edge = colors.ink if self.hasFocus() else colors.accent
        painter.setPen(QtGui.QPen(QtGui.QColor(edge), 2 if self.hasFocus() else 1))
        pill = QtCore.QRectF(self.rect()).adjusted(1, 2, -1, -2)
        painter.drawRoundedRect(pill, pill.height() / 2, pill.height() / 2)
        icon = command_icon(self.defaultAction().objectName(), colors.paper)
        icon.paint(painter, 8, (self.height() - SIDE) // 2, SIDE, SIDE)
        painter.setPen(QtGui.QColor(colors.paper))
        room, align = self.rect().adjusted(12 + SIDE, 0, -4, 0), QtCore.Qt.AlignmentFlag
        painter.drawText(room, align.AlignVCenter | align.AlignLeft, self.text())

    def _paint_unchecked(self) -> None:
        """Icon and word in the middle: Qt leaves all of the spare room at the right."""
        option = QtWidgets.QStyleOptionToolButton()
        self.initStyleOption(option)
        text = (
            ""
            if option.toolButtonStyle == QtCore.Qt.ToolButtonStyle.ToolButtonIconOnly
            else self.text()
        )
        option.text, option.icon = "", QtGui.QIcon()
        painter = QtWidgets.QStylePainter(self)
        painter.drawComplexControl(QtWidgets.QStyle.ComplexControl.CC_ToolButton, option)
        wide = SIDE + (WORD_LEFT + self.fontMetrics().horizontalAdvance(text) if text else 0)
        left = (self.width() - wide) // 2
        self.icon().paint(painter, left, (self.height() - SIDE) // 2, SIDE, SIDE)
        if text:
            on = self.isEnabled()
            painter.setPen(QtGui.QColor(theme.colors.ink if on else theme.colors.second))
            room = self.rect().adjusted(left + SIDE + WORD_LEFT, 0, 0, 0)
            painter.drawText(room, QtCore.Qt.AlignmentFlag.AlignVCenter, text)

    def sizeHint(self) -> QtCore.QSize:
        hint = super().sizeHint()
        wide = 24 + SIDE + self.fontMetrics().horizontalAdvance(self.text())
        return QtCore.QSize(max(hint.width(), wide) if self.isChecked() else hint.width(), 32)


def elapsed_text(seconds: float) -> str:
    """As 00:12:34."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
