"""Few numbers on the whole screen, readable across a room, with the limit and 15 minutes."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.big_number import BigNumber
from amt_monitor.curve_layers import polygon, runs
from amt_monitor.history_layers import thresholds_of
from amt_monitor.history_pyramid import FACTOR
from amt_monitor.history_traces import range_of, symbol_of, ticks_of, unit_of
from amt_monitor.limits_pane import Light
from amt_monitor.line_layers import paint_thresholds
from amt_monitor.message_bar import Banner
from amt_monitor.plot import PlotAxis
from amt_monitor.theme import (
    CONTRAST_DARK,
    DARK,
    Colors,
    Role,
    colors_of,
    palette_of,
    repaint,
    theme,
    tint,
)
from amt_monitor.time_plot import ago
from amt_monitor.top_bar import StateChip, elapsed_text
from amt_monitor.widgets import plain_label, tied
from amt_stream.core.safe_text import plain
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import reading_text
from amt_stream.meters.rows.captions import caption_of
from amt_stream.meters.rows.limit_words import (
    forecast_words,
    state_of,
    state_words,
    value_words,
    worst,
)
from amt_stream.meters.state_signs import is_away

if TYPE_CHECKING:
    from amt_monitor.reading_history import ReadingHistory
    from amt_monitor.view_state import ViewState

MOST = 3
"""Numbers at most."""

USUAL = (
    *("laf_db", "laeq_db", "ltl_phon", "ltl_sone", "momentary_lufs", "integrated_lufs"),
    *("gm2002_ltl_phon", "zwicker_n_sone", "zwicker_n5_sone"),
)
"""By default, the first two of these that exist."""

FIRST, OTHERS = 2, 1
"""Shares of the height: the first number, and the others below it."""

MARGIN, WORDS, DIGITS, BAND, STRIP = 0.025, 0.04, 0.42, 0.18, 0.14
"""Of the height: the margin, a line of words, the first number, the limit, the last minutes."""

SIZES = {"state_chip": 1.1, "banner": 1.0, "wall_state": 1.6, "wall_limit": 1.0}
SIZES |= {"wall_message": 0.7, "wall_others": 0.7, "wall_strip": 0.65}
"""Font sizes relative to a line of words."""
LEAST = 14
"""Pixels of the smallest letters."""

STRIP_S = {60: 20, 300: 60, 900: 300}
"""Seconds that the strip covers, and those between its ticks: the first that have all so far."""
LEAST_DB = 20.0
"""Least extent of the scale of levels: it is low, and begins above 20 dB."""
SHAPES = {"green": "●", "amber": "▲", "red": "■"}

LARGEST = 4000


class WallView(QtWidgets.QWidget):
    """A dark full-screen window; Esc closes it, and `closed` is emitted.

    Actions that are added to it keep their keys.
    """

    closed = QtCore.Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("wall_view")
        self.setWindowTitle("Wall view - amt-stream")
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
        self.band = QtWidgets.QWidget()
        self.band.setAutoFillBackground(True)
        bottom = QtWidgets.QHBoxLayout(self.band)
        bottom.setSpacing(24)
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

    def read(self, view: "ViewState", history: "ReadingHistory | None") -> None:
        self.source.setText(plain(view.engine.source.name))
        self.time.setText(datetime.now().strftime("%H:%M:%S"))
        models = {name: view.model_of(name) for name in self.numbers}
        for name, number in self.numbers.items():
            text = reading_text(name, view.values.get(name))
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
        self.strip.show_rows(history, next(iter(self.numbers), ""), limits)
        self._fit()

    def _show_limit(self, view: "ViewState") -> None:
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


class LastMinutes(QtWidgets.QWidget):
    """The course of one reading over the last minutes, on its scale, with its limits."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("wall_strip")
        self.name, self.span_s = "", 0
        self.limits: tuple[Limit, ...] = ()
        self._shown: tuple[object, ...] = ()
        self._cells: NDArray[np.float64] = np.empty(0)

    def show_rows(
        self, history: "ReadingHistory | None", first: str, limits: Sequence[Limit]
    ) -> None:
        """Show the reading of a limit: that of the first number, if it has one."""
        stored = [] if history is None else [one.name for one in history.columns]
        limited = [one.column for one in limits]
        wanted = [*([first] if first in limited else limited), first]
        name = next((one for one in wanted if one in stored), "")
        self.setVisible(bool(name))
        if not name or history is None:
            return
        now_s = history.now_s
        span_s = next((span for span in STRIP_S if now_s <= span), max(STRIP_S))
        level = history.level_for(now_s - span_s, now_s, max(1, self.width()))
        cell_s = history.step_s * FACTOR**level
        last, count = int(now_s / cell_s), int(span_s / cell_s)
        own = tuple(one for one in limits if one.column == name)
        if (shown := (name, span_s, last, own)) != self._shown:
            self._shown = shown
            self.name, self.span_s, self.limits = name, span_s, own
            self._cells = history.cells([name], level, last - count, last + 1).mean[0]
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
        line, axis, align = metrics.height(), self.scale, QtCore.Qt.AlignmentFlag
        about = f"{symbol_of(self.name)}\n{unit_of(self.name)}"
        left = max(map(metrics.horizontalAdvance, about.split("\n"))) + line
        left += max(metrics.horizontalAdvance(text) for _, text in axis.ticks) + line // 3
        inside = QtCore.QRectF(left, line / 2, self.width() - left - 2, self.height() - 1.7 * line)
        painter.setPen(QtGui.QColor(colors.second))
        painter.drawText(self.rect(), align.AlignLeft | align.AlignVCenter, about)

        def height(value: Any) -> Any:
            return inside.bottom() - inside.height() * (value - axis.low) / (axis.high - axis.low)

        free = float(self.height())
        for value, text in axis.ticks:
            painter.setPen(QtGui.QColor(colors.grid))
            y = round(height(value))
            painter.drawLine(QtCore.QLineF(inside.left(), y, inside.right(), y))
            room = QtCore.QRectF(0, height(value) - line / 2, left - line // 3, line)
            if room.bottom() <= free:
                painter.setPen(QtGui.QColor(colors.second))
                painter.drawText(room, align.AlignRight | align.AlignVCenter, text)
                free = room.top()
        step_s = STRIP_S[self.span_s]
        painter.setPen(QtGui.QColor(colors.second))
        for ago_s in range(0, self.span_s + 1, step_s):
            x = inside.right() - inside.width() * ago_s / self.span_s
            room = QtCore.QRectF(x - 4 * line, inside.bottom() + 0.2 * line, 8 * line, line)
            flag = align.AlignHCenter
            if ago_s in (0, self.span_s):  # at the edges
                flag = align.AlignLeft if ago_s else align.AlignRight
                room = QtCore.QRectF(x if ago_s else x - 8 * line, room.y(), 8 * line, line)
            painter.drawText(room, flag, ago(-ago_s, step_s) if ago_s else "now")
        pen = QtGui.QPen(QtGui.QColor(colors.ltl), max(2.0, line / 8))
        pen.setJoinStyle(QtCore.Qt.PenJoinStyle.RoundJoin)
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        painter.setPen(pen)
        x = np.linspace(inside.left(), inside.right(), len(self._cells))
        y = height(self._cells)
        for first, end in runs(np.isfinite(y)):
            painter.drawPolyline(polygon(np.stack((x[first:end], y[first:end]), axis=1)))
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing, False)
        thresholds = thresholds_of(self.limits)
        heights = [round(height(one.value)) for one in thresholds]
        paint_thresholds(painter, thresholds, heights, inside.toRect(), colors, thick=2.0)


class WallMenu(QtWidgets.QMenu):
    """Chooses the numbers of the wall view.

    view: returns the newest view, or None
    chosen: returns the names of the chosen readings
    choose: called with new names
    """

    def __init__(
        self,
        view: Callable[[], "ViewState | None"],
        chosen: Callable[[], Sequence[str]],
        choose: Callable[[list[str]], object],
    ) -> None:
        super().__init__("&Numbers on the wall")
        self._view, self._chosen, self._choose = view, chosen, choose
        self.aboutToShow.connect(self.fill)

    def fill(self) -> None:
        self.clear()
        view, chosen = self._view(), self._chosen()
        if view is None or view.readings is None:
            self.addAction("no readings").setEnabled(False)
            return
        for model in view.readings.models:
            menu = self.addMenu(model)
            for name in view.readings.of(model):
                caption = caption_of(name)
                action = menu.addAction(plain(caption.listed))
                action.setObjectName(f"wall_{name}")
                action.setCheckable(True)
                action.setChecked(name in chosen)
                action.triggered.connect(partial(self._tick, name))

    def _tick(self, name: str, *_: object) -> None:
        chosen = [*self._chosen()]
        if name in chosen:
            chosen.remove(name)
        else:
            chosen = [*chosen, name][-MOST:]
        if chosen:
            self._choose(chosen)


def wall_numbers(view: "ViewState", wanted: Sequence[str]) -> list[str]:
    if view.readings is None:
        return []
    there = [name for model in view.readings.models for name in view.readings.of(model)]
    if found := [name for name in wanted if name in there]:
        return found[:MOST]
    limited = [limit.column for limit in view.readings.limits]
    usual = [name for name in dict.fromkeys((*limited, *USUAL)) if name in there]
    return usual[:2] or there[:1]
