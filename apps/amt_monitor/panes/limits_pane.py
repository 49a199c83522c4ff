"""A light for each limit, with its state and its forecast."""

import re
from collections.abc import Callable, Sequence

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import Colors, colors_of, set_font, theme
from amt_monitor.base.widgets import SteadyBox, add_all, plain_label, tied, tool_button
from amt_monitor.panes.pane import Pane
from amt_stream.core.safe_text import plain
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows.captions import caption_of
from amt_stream.meters.rows.limit_words import forecast_words, state_of, state_words, value_words
from amt_stream.views.view_state import ViewState

SHAPES = {"green": "circle", "amber": "triangle", "red": "square"}
"""Shapes show the state without color."""

SIDE, STATE, WORDS = 2.4, 1.3, 0.85
"""Sizes of the light, of the state and of the words, in lines."""
SPACE = 12
LINES, LETTERS, LARGEST = 4, 18, 4
"""Lines of a limit; letters that must fit; most lines."""
SMALLEST = 13
"""Pixels of the smallest line, for long texts in a small pane."""


class Light(QtWidgets.QWidget):
    """The state of one limit."""

    def __init__(self) -> None:
        super().__init__()
        self.state = ""
        self.inverse = False
        """Whether it is on a background in the color of its state."""
        side = round(SIDE * self.fontMetrics().height())
        self.setFixedSize(side, side)
        theme.changed.connect(self.update)

    def show_state(self, state: str) -> None:
        """One of "green", "amber", "red"; any other is unknown."""
        if state != self.state:
            self.state = state
            self.setAccessibleName(state)
            self.update()

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        painter = QtGui.QPainter(self)
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        area = QtCore.QRectF(self.rect()).adjusted(3, 3, -3, -3)
        colors = colors_of(self)
        if self.inverse:
            colors = colors._replace(**{self.state: colors.paper})
        paint_light(painter, area, self.state, colors)


def paint_light(painter: QtGui.QPainter, area: QtCore.QRectF, state: str, colors: Colors) -> None:
    """A circle, triangle or square in its color; an empty circle for an unknown state."""
    shape = SHAPES.get(state)
    color = QtGui.QColor(getattr(colors, state) if shape else colors.second)
    painter.setPen(QtGui.QPen(color, 2))
    painter.setBrush(color if shape else QtCore.Qt.BrushStyle.NoBrush)
    if shape == "square":
        painter.drawRect(area)
    elif shape == "triangle":
        top = QtCore.QPointF(area.center().x(), area.top())
        painter.drawPolygon(QtGui.QPolygonF([top, area.bottomRight(), area.bottomLeft()]))
    else:
        painter.drawEllipse(area)


class LimitsPane(Pane):
    """Each limit with its light, its state and its forecast; without limits, a button.

    choose: asks for limits
    """

    def __init__(self, limits: Sequence[Limit], choose: Callable[[], object]) -> None:
        super().__init__("limits", "Limits")
        self.add = tool_button("add_limit", "Add a limit...", "of a norm, or a value", choose)
        self.lights: list[Light] = []
        self.words: list[tuple[QtWidgets.QLabel, QtWidgets.QLabel]] = []
        self._show(limits)

    def change_limits(self, view: ViewState) -> None:
        assert view.readings is not None
        self._box.hide()
        self._box.deleteLater()
        while self.body.count() > 1:  # the title
            self.body.takeAt(1)
        self.head.removeWidget(self.add)
        self._show(view.readings.limits)
        self.add.show()
        self._size_letters()

    def _show(self, limits: Sequence[Limit]) -> None:
        self._limits = tuple(limits)
        room = QtWidgets.QWidget()
        grid = QtWidgets.QGridLayout(room)
        # Letters grow with the pane and must not keep it from shrinking.
        grid.setSizeConstraint(QtWidgets.QLayout.SizeConstraint.SetNoConstraint)
        ignored = QtWidgets.QSizePolicy.Policy.Ignored
        room.setSizePolicy(ignored, ignored)
        self._box = box = SteadyBox(room)
        box.setMinimumHeight(len(self._limits) * LINES * self.fontMetrics().height())
        font = self.font()
        font.setPixelSize(round(STATE * self.fontMetrics().height()))
        font.setBold(True)
        longest = QtGui.QFontMetrics(font).horizontalAdvance("Within the limit ")
        box.setMinimumWidth(longest + round(SIDE * self.fontMetrics().height()) + SPACE)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setColumnStretch(1, 1)
        grid.setRowStretch(len(self._limits), 1)
        grid.setHorizontalSpacing(SPACE)
        self.lights, self.words, self._shape = [], [], list[str]()
        for row, limit in enumerate(self._limits):
            names = f"state_{row}", f"limit_{row}"
            light, (state, words) = Light(), (plain_label(name, wrap=True) for name in names)
            named = limit.given_name, caption_of(limit.column).spoken, limit.source
            about = ", ".join(filter(None, named))
            for widget in (light, state, words):
                widget.setToolTip(plain(about))
            column = QtWidgets.QVBoxLayout(spacing=0)
            add_all(column, state, words)
            grid.addWidget(light, row, 0, QtCore.Qt.AlignmentFlag.AlignTop)
            grid.addLayout(column, row, 1)
            self.lights.append(light)
            self.words.append((state, words))
        self.body.addWidget(box, 1)
        if self._limits:
            self.add.setText("Limits...")
            self.head.addWidget(self.add)
        else:
            box.hide()
            self.add.setText("Add a limit...")
            self.body.addWidget(self.add, 0, QtCore.Qt.AlignmentFlag.AlignLeft)
            self.body.addStretch(1)

    def show_status(self, view: ViewState) -> None:
        super().show_status(view)
        values, held = view.values, view.held
        for limit, light, (state, words) in zip(self._limits, self.lights, self.words, strict=True):
            light.show_state(state_of(limit, values, held))
            state.setText(state_words(limit, values, held))
            value = value_words(limit, values, held)
            if words.fontMetrics().horizontalAdvance(value) > words.width():
                value = value_words(limit, values, held, brief=True)
            parts = value, forecast_words(limit, values, held)
            words.setText(tied("\n".join(filter(None, parts))))
        # Numbers change often, and must not change the letters.
        shape = [re.sub(r"[\d.-]+", "", text) for text in self.texts()]
        if shape != self._shape:
            self._shape = shape
            self._size_letters()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        self._size_letters()

    def _size_letters(self) -> None:
        """The largest letters for usual texts, or smaller ones if the present texts are longer."""
        usual = self.fontMetrics().height()
        high = self.height() / (LINES * max(1, len(self._limits)) + 1)
        line = max(usual, min(LARGEST * usual, round(high), self.width() // LETTERS))
        room = self._box.height()
        while line > SMALLEST and self._height_with(line) > room:
            line -= 1
        for light, labels in zip(self.lights, self.words, strict=True):
            light.setFixedSize(round(SIDE * line), round(SIDE * line))
            for label, size, bold in zip(labels, (STATE, WORDS), (True, False), strict=True):
                set_font(label, bold, round(size * line))

    def _height_with(self, line: int) -> int:
        """The height of all limits with letters for lines of this height."""
        wide = self._box.width() - round(SIDE * line) - SPACE
        wrap = QtCore.Qt.TextFlag.TextWordWrap
        high = 0
        for labels in self.words:
            needed = 0
            for label, size in zip(labels, (STATE, WORDS), strict=True):
                font = label.font()
                font.setPixelSize(round(size * line))
                room = QtCore.QRect(0, 0, wide, QtWidgets.QWIDGETSIZE_MAX)
                box = QtGui.QFontMetrics(font).boundingRect(room, wrap, label.text())
                needed += box.height() if label.text() else 0
            high += max(needed, round(SIDE * line))
        return high

    def texts(self) -> tuple[str, ...]:
        return tuple(f"{state.text()}\n{words.text()}" for state, words in self.words)
