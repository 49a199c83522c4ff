"""Few numbers on the whole screen, readable across a room, with the limit and 15 minutes."""

from collections.abc import Sequence
from datetime import datetime

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.big_number import BigNumber
from amt_monitor.base.message_bar import Banner
from amt_monitor.base.theme import (
    CONTRAST_DARK,
    DARK,
    Colors,
    Role,
    palette_of,
    repaint,
    theme,
    tint,
)
from amt_monitor.base.widgets import plain_label, tied
from amt_monitor.panes.limits_pane import Light
from amt_monitor.window.top_bar import StateChip
from amt_monitor.window.wall_strip import LastMinutes
from amt_stream.core.safe_text import plain
from amt_stream.core.words import elapsed_text
from amt_stream.meters.rows.captions import caption_of, row_text
from amt_stream.meters.rows.limit_words import (
    forecast_words,
    state_of,
    state_words,
    value_words,
    worst,
)
from amt_stream.meters.state_signs import is_away
from amt_stream.views.reading_history import ReadingHistory
from amt_stream.views.view_state import ViewState

MOST = 3
"""Numbers at most."""

FIRST, OTHERS = 2, 1
"""Shares of the height: the first number, and the others below it."""

MARGIN, WORDS, DIGITS, BAND, STRIP = 0.025, 0.04, 0.42, 0.18, 0.14
"""Of the height: the margin, a line of words, the first number, the limit, the last minutes."""

SIZES = {"state_chip": 1.1, "banner": 1.0, "wall_state": 1.6, "wall_limit": 1.0}
SIZES |= {"wall_message": 0.7, "wall_others": 0.7, "wall_strip": 0.65}
"""Font sizes relative to a line of words."""
LEAST = 14
"""Pixels of the smallest letters."""

SHAPES = {"green": "●", "amber": "▲", "red": "■"}

LARGEST = 4000


class WallView(QtWidgets.QWidget):
    """A dark full-screen window; Esc closes it, and `closed` is emitted.

    Actions that are added to it keep their keys.
    """

    closed = QtCore.Signal()

    def __init__(self) -> None:
        super().__init__(objectName="wall_view", windowTitle="Wall view - amt-stream")
        self.setBackgroundRole(QtGui.QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.setContextMenuPolicy(QtCore.Qt.ContextMenuPolicy.CustomContextMenu)
        self.numbers: dict[str, BigNumber] = {}
        self.source, self.time = plain_label("wall_source"), plain_label("wall_time")
        self.chip, self.banner = StateChip(LEAST), Banner()
        self.light = Light()
        self.state, self.limit = plain_label("wall_state"), plain_label("wall_limit", wrap=True)
        self.others = plain_label("wall_others")
        self.others.setMinimumWidth(1)
        self.message = plain_label("wall_message", wrap=True)
        self.strip = LastMinutes()
        for label in (self.source, self.time, self.state, self.limit, self.others, self.message):
            tint(label, None)
        self.source.setMinimumWidth(1)  # a long name must not widen the screen
        top = QtWidgets.QHBoxLayout()
        top.addWidget(self.chip)
        top.addWidget(self.source, 1)
        top.addWidget(self.time)
        self._places = QtWidgets.QGridLayout()
        self.band = QtWidgets.QWidget(autoFillBackground=True)
        bottom = QtWidgets.QHBoxLayout(self.band, spacing=24)
        bottom.addWidget(self.light)
        bottom.addWidget(self.state)
        bottom.addWidget(self.limit, 1)
        self._column = QtWidgets.QVBoxLayout(self)
        self._column.addLayout(top)
        self._column.addWidget(self.banner)
        self._column.addLayout(self._places, 1)
        for widget in (self.band, self.others, self.strip, self.message):
            self._column.addWidget(widget)
        theme.changed.connect(self._darken)
        self._darken()

    @property
    def colors(self) -> Colors:
        """Dark in every theme."""
        return CONTRAST_DARK if theme.choice == "contrast" else DARK

    def choose(self, names: Sequence[str]) -> None:
        if list(names) == list(self.numbers):
            return
        for number in self.numbers.values():
            self._places.removeWidget(number)
            number.hide()
            number.deleteLater()
        self.numbers = {}
        for name in names:
            caption = caption_of(name)
            spare = elapsed_text(0) if caption.counted else ""
            self.numbers[name] = BigNumber(f"wall_{name}", caption, spare=spare)
        below, ignored = max(1, len(names) - 1), QtWidgets.QSizePolicy.Policy.Ignored
        for place, number in enumerate(self.numbers.values()):
            if place:
                self._places.addWidget(number, 1, place - 1)
            else:
                self._places.addWidget(number, 0, 0, 1, below)
            number.setSizePolicy(ignored, ignored)
        self._places.setRowStretch(0, FIRST)
        self._places.setRowStretch(1, OTHERS if len(names) > 1 else 0)
        for column in range(MOST - 1):
            self._places.setColumnStretch(column, 1 if column < below else 0)
        self._darken()

    def show_state(self, states: list[str], banner: str, message: str) -> None:
        self.chip.show_states(states)
        self.banner.say(banner)
        # The banner says it, and the numbers need the room.
        self.message.setText("" if banner else plain(message))
        self.message.setVisible(bool(self.message.text()))

    def read(self, view: ViewState, history: ReadingHistory | None) -> None:
        self.source.setText(plain(view.engine.source.name))
        self.time.setText(datetime.now().strftime("%H:%M:%S"))
        models = {name: view.model_of(name) for name in self.numbers}
        for name, number in self.numbers.items():
            text = row_text(name, view.values)
            number.show_text(text)
            number.lose(text if is_away(view.held) else "")
            model = models[name]
            doubt = view.number_status(name, model)
            role: Role | None = "second" if doubt.grey else None
            number.doubt(role, doubt.uncalibrated, doubt.settling)
            if number.caption.counted:
                measured_s = view.measured_s if model is None else view.measured_by(model, name)[0]
                number.show_note(elapsed_text(measured_s), "the time that it covers")
        self._show_limit(view)
        limits = view.readings.limits if view.readings is not None else ()
        self.strip.lose(is_away(view.held))
        self.strip.show_rows(history, next(iter(self.numbers), ""), limits)
        self._fit()

    def _show_limit(self, view: ViewState) -> None:
        limits = view.readings.limits if view.readings is not None else ()
        values, held = view.values, view.held
        of = worst(limits, values, held)
        for widget in (self.band, self.light, self.state, self.limit):
            widget.setVisible(of is not None)
        others = [limit for limit in limits if limit is not of]
        self.others.setVisible(bool(others))
        self.others.setText(
            "     ".join(
                f"{SHAPES.get(state_of(one, values, held), '○')} {value_words(one, values, held)}"
                for one in others
            )
        )
        if of is not None:
            self.light.show_state(state_of(of, values, held))
            self._color_band()
            self.state.setText(state_words(of, values, held))
            parts = value_words(of, values, held), forecast_words(of, values, held)
            self.limit.setText(tied(". ".join(filter(None, parts))))

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        height = self.height()
        margin, line = round(MARGIN * height), max(LEAST, round(WORDS * height))
        self._column.setContentsMargins(margin, margin, margin, margin)
        self._column.setSpacing(margin)
        self._places.setSpacing(margin)
        self.band.setFixedHeight(round(BAND * height))
        self.strip.setFixedHeight(round(STRIP * height))
        labels = self.source, self.time, self.state, self.limit, self.others, self.message
        self.banner.set_letters(round(SIZES["banner"] * line))
        for widget in (*labels, self.chip, self.strip):
            font = widget.font()
            font.setPixelSize(round(SIZES.get(widget.objectName(), 1.0) * line))
            bold = widget in (self.time, self.state, self.chip)
            font.setWeight(font.Weight.DemiBold if bold else font.Weight.Normal)
            widget.setFont(font)
            widget.updateGeometry()
        self.light.setFixedSize(round(2.4 * line), round(2.4 * line))
        self._fit()

    def _darken(self) -> None:
        """Tint labels again: they were made before this palette."""
        self.setPalette(palette_of(self.colors))
        self._color_band()
        self.banner.color()
        for label in self.findChildren(QtWidgets.QLabel):
            repaint(label)

    def _color_band(self) -> None:
        """An exceeded limit is in inverse letters on its color, to be seen from afar."""
        over, palette = self.light.state == "red", palette_of(self.colors)
        color = QtGui.QColor(self.colors.red) if over else self.colors.band
        palette.setColor(self.band.backgroundRole(), color)
        if palette != self.band.palette():
            self.band.setPalette(palette)
        self.light.inverse = over
        for label in (self.state, self.limit):
            tint(label, "paper" if over else None)

    def _fit(self) -> None:
        self._column.activate()
        if not self.numbers:
            return
        first, *others = self.numbers.values()
        for together, largest in (([first], DIGITS * self.height()), (others, LARGEST)):
            sizes = [one.size_in(one.width(), one.height(), round(largest)) for one in together]
            for number in together:
                number.set_size(min(sizes))

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        if event.key() == QtCore.Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:
        event.accept()
        self.closed.emit()
