"""The bar above the panes: the state, commands, the input and its calibration."""

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.badge import Badge
from amt_monitor.base.big_number import text_width
from amt_monitor.base.command_icons import SIDE, command_icon
from amt_monitor.base.device_combo_box import DeviceComboBox
from amt_monitor.base.state_shape import paint_shape
from amt_monitor.base.theme import colors_of, set_font, theme
from amt_monitor.base.widgets import plain_label
from amt_stream.meters.state_signs import BETWEEN, SIGNS, states_text

GOES_ON = ("pause", "stop")
"""Buttons whose text changes to "Continue"."""

HEIGHT, SPACE = 44, 6
"""Pixels of height, and between its parts."""
WORD_LEFT = 6
"""Pixels between the icon of a button and its word."""
DEVICE = 180
"""Pixels that the name of the input keeps."""
LETTERS = 18
"""Pixels of the letters of the state, which is read from afar."""


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
        self.chip = StateChip(LETTERS)
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(12, 6, 12, 6)
        row.setSpacing(SPACE)
        self.setMinimumHeight(HEIGHT)
        row.addWidget(self.chip)
        for button in self.buttons.values():
            row.addWidget(button)
        row.addStretch(1)
        row.addWidget(self.device, 30)
        row.addWidget(self.calibration, 0, QtCore.Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.calibrated)

    def minimumSizeHint(self) -> QtCore.QSize:
        return QtCore.QSize(self._needed(words=False), HEIGHT)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        self._fit()

    def event(self, event: QtCore.QEvent) -> bool:
        if event.type() == QtCore.QEvent.Type.LayoutRequest:
            self._fit()
        return bool(super().event(event))

    def _fit(self) -> None:
        """Show the words of buttons where all else has room beside them, and the clock with them.

        The badge, which is rare, is read whole.
        """
        words = self.width() >= self._needed(words=True)
        for button in self.buttons.values():
            button.show_word(words)
        self.chip.show_clock(words)

    def _needed(self, words: bool) -> int:
        """The least width, with or without the words of the buttons."""
        least = int(self.layout().minimumSize().width())
        each = self.buttons.values()
        return least + sum(button.width_with(words) - button.least for button in each)


class StateChip(QtWidgets.QWidget):
    """The worst state of the measurement as a word, a shape and a color; a second one; a clock.

    The clock is the time that averages and maxima cover. `letters` are the pixels of the word.
    """

    def __init__(self, letters: int) -> None:
        super().__init__(objectName="state_chip")
        self.states: list[str] = ["idle"]
        self.clock, self._clocked = "", True
        set_font(self, True, letters)
        self.setToolTip("the state, and the time that averages and maxima cover")
        theme.changed.connect(self.update)

    @property
    def state(self) -> str:
        return self.states[0]

    @property
    def text(self) -> str:
        return f"{states_text(self.states)} {self.clock}".strip()

    def show_states(self, states: list[str], clock: str = "") -> None:
        """Show these states, the worst first."""
        if (states, clock) != (self.states, self.clock):
            before = self.sizeHint()
            self.states, self.clock = states, clock
            self.setAccessibleName(", ".join(filter(None, (*states, clock))))
            if self.sizeHint() != before:
                self.updateGeometry()
            self.update()

    def show_clock(self, shown: bool) -> None:
        """Leave out the clock where room is short."""
        if shown != self._clocked:
            self._clocked = shown
            self.updateGeometry()
            self.update()

    def _parts(self) -> list[tuple[str, bool, int]]:
        """Each part of the text, whether it is bold, and its width."""
        text = states_text(self.states)
        first = text.partition(BETWEEN)[0]
        parts = [(first, True, text_width(first, self._letters, True))]
        if rest := text[len(first) :]:
            parts.append((rest, False, text_width(rest, self._letters)))
        if self.clock and self._clocked:
            # The widest digits, so that nothing moves each second.
            widest = "".join("0" if one.isdigit() else one for one in self.clock)
            parts.append((f"  {self.clock}", False, text_width(f"  {widest}", self._letters)))
        return parts

    @property
    def _letters(self) -> int:
        return QtGui.QFontInfo(self.font()).pixelSize()

    @property
    def shown_parts(self) -> list[tuple[str, bool, int]]:
        """The parts that have room: without the clock first, then without the second state."""
        parts, room = self._parts(), self.width()
        while len(parts) > 1 and self._extent(parts).width() > room:
            parts.pop()
        return parts

    def _extent(self, parts: list[tuple[str, bool, int]]) -> QtCore.QSize:
        wide = sum(width for _, _, width in parts)
        return QtCore.QSize(round(wide + 2.6 * self._letters), round(1.8 * self._letters))

    def sizeHint(self) -> QtCore.QSize:
        return self._extent(self._parts())

    def minimumSizeHint(self) -> QtCore.QSize:
        return self._extent(self._parts()[:1])

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        painter, colors, sign = QtGui.QPainter(self), colors_of(self), SIGNS[self.state]
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        color, paper = QtGui.QColor(getattr(colors, sign.color)), QtGui.QColor(colors.paper)
        side, thick = 0.9 * self._letters, max(1.5, self._letters / 12)
        frame = QtCore.QRectF(self.rect()).adjusted(thick, thick, -thick, -thick)
        painter.setPen(QtGui.QPen(color, thick))
        painter.setBrush(color if sign.filled else paper)
        painter.drawRoundedRect(frame, frame.height() / 2, frame.height() / 2)
        ink = paper if sign.filled else color
        left = 0.8 * self._letters
        paint_shape(painter, self.state, left, (self.height() - side) / 2, side, ink)
        painter.setPen(ink)
        x = round(left + 1.25 * self._letters)
        font = self.font()
        for text, bold, width in self.shown_parts:
            font.setWeight(font.Weight.DemiBold if bold else font.Weight.Normal)
            painter.setFont(font)
            room = QtCore.QRect(x, 0, width, self.height())
            painter.drawText(room, QtCore.Qt.AlignmentFlag.AlignVCenter, text)
            x += width


class _Button(QtWidgets.QToolButton):
    """A button with icon and word that the Tab key reaches; filled while it is on."""

    def __init__(self, action: QtGui.QAction) -> None:
        super().__init__()
        self.setDefaultAction(action)
        self.setObjectName(f"{action.objectName()}_button")
        self.setFocusPolicy(QtCore.Qt.FocusPolicy.StrongFocus)
        self.setIconSize(QtCore.QSize(SIDE, SIDE))
        self.setAutoRaise(True)
        action.setIconVisibleInMenu(False)
        action.changed.connect(self._draw_icon)
        theme.changed.connect(self._draw_icon)
        self._room = 0
        self._drawn: tuple[str, str] | None = None
        self._draw_icon()
        self._worded, self._bare = False, int(self.sizeHint().width())
        self.show_word(True)
        self._beside = int(self.sizeHint().width()) - self._bare - self._text_width()

    @property
    def least(self) -> int:
        return max(self.minimumWidth(), int(self.sizeHint().width()))

    def width_with(self, word: bool) -> int:
        """The least width with its word, or with its icon alone, whichever it shows now.

        If it depended on that, the bar would show and hide the words forever at some widths.
        """
        wide = self._bare + (self._beside + self._text_width() if word else 0)
        return max(self._room if word else 0, wide, self._checked_width())

    def _text_width(self) -> int:
        return max(map(self.fontMetrics().horizontalAdvance, self.text().split("\n")))

    def _checked_width(self) -> int:
        """The width of the filled button, which has its word anyway; 0 while it is off."""
        return 24 + SIDE + self._text_width() if self.isChecked() else 0

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
        if shown != self._worded:
            self._worded = shown
            styles = QtCore.Qt.ToolButtonStyle
            style = styles.ToolButtonTextBesideIcon if shown else styles.ToolButtonIconOnly
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
        return QtCore.QSize(max(super().sizeHint().width(), self._checked_width()), 32)
