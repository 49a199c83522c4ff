"""Levels and loudness against time."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

from pyqtgraph.Qt import QtGui, QtWidgets

from amt_monitor.base.theme import Colors, ThemedLabel
from amt_monitor.base.widgets import SteadyBox, add_all, add_choice, plain_label, tool_button
from amt_monitor.panes.pane import Pane
from amt_monitor.plot.history_layers import HistoryLayers
from amt_monitor.plot.history_traces import MOST, first_of, symbol_of, traces_of, unit_of
from amt_monitor.plot.plot_export import EXPORTS, offer
from amt_monitor.plot.time_plot import TimePlot
from amt_stream.core.words import clock_text
from amt_stream.meters.rows import Column, Rows, maxima_of, reading_text
from amt_stream.meters.state_signs import is_away
from amt_stream.views.history_words import moment_words, newest_words, states_legend
from amt_stream.views.reading_history import ReadingHistory
from amt_stream.views.settling_words import SETTLING
from amt_stream.views.view_state import ViewState

SPANS = {"1 min": 60.0, "5 min": 300.0, "15 min": 900.0, "1 h": 3600.0, "8 h": 28800.0}

LEGEND_BESIDE, LEGEND_INDENT = 1100, 12
"""Pixels of width from which the legend stands in the title bar, and of the gap before it."""

FOLLOW = (
    "Follow the end (End). In the plot: wheel, + and - zoom; a drag, Page Up and Page Down move; "
    "Left and Right read a time"
)


class HistoryPane(Pane):
    """The history of columns of one unit: their mean, and lightly their range.

    history: shared with other panes; this pane adds the new rows
    limited: the readings of limits, which are shown at first
    """

    def __init__(self, history: ReadingHistory, limited: Sequence[str] = ()) -> None:
        super().__init__("history", "History")
        self.history, self._limited = history, limited
        self.plot = TimePlot("history_plot", strip=True)
        self.plot.setAccessibleName("levels against time")
        self.plot.viewed.connect(self._view)
        self.plot.pointed.connect(self._point)
        self.plot.tell = lambda time_s: states_legend(self.history, self.layers.story(time_s))
        self.layers = HistoryLayers(self.plot, self.history)
        self._uncalibrated = False
        self._values: Mapping[str, Any] = {}
        self._maxima: dict[str, str] = {}
        self._settling: dict[str, str] = {}
        self._build()

    def _build(self) -> None:
        span, row = QtWidgets.QWidget(), QtWidgets.QHBoxLayout()
        row.setContentsMargins(8, 0, 8, 0)
        row.setSpacing(2)
        span.setLayout(row)
        self.spans = {
            seconds: _span_button(text, partial(self._choose_span, seconds))
            for text, seconds in SPANS.items()
        }
        # A span that was zoomed to.
        self.zoomed = plain_label("zoomed_span")
        add_all(row, *self.spans.values(), self.zoomed)
        self.live = tool_button("live", "Live", FOLLOW, lambda: self.plot.show_until(None))
        self.choice = tool_button("columns", "Show", "Choose the readings")
        self.columns_menu = QtWidgets.QMenu(self.choice)
        self.choice.setMenu(self.columns_menu)
        self.save = tool_button("save", "Export", "Export the visible span")
        menu = QtWidgets.QMenu(self.save)
        offer(menu, EXPORTS, self.plot, self.head_of_export, self.visible)
        self.save.setMenu(menu)
        for button in (self.choice, self.save):
            button.setPopupMode(QtWidgets.QToolButton.ToolButtonPopupMode.InstantPopup)
        for place, widget in enumerate((span, self.live, self.choice, self.save)):
            self.head.insertWidget(2 + place, widget)
        self.legend = ThemedLabel(self._words)
        self.legend.setObjectName("legend")
        # The text at the cursor must not widen the pane.
        policy = QtWidgets.QSizePolicy.Policy
        self.legend.setSizePolicy(policy.Ignored, policy.Preferred)
        self._legend_box = SteadyBox(self.legend, one_line=True)
        self.body.addWidget(self.plot, 1)
        self._place_legend()
        list_columns(self.columns_menu, self.history.main_columns, self._toggle)
        self.choose(first_of(self.history.main_columns, self._limited))
        self._view()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        self._place_legend()

    def _place_legend(self) -> None:
        """In the title bar where that is wide, else below it."""
        beside, box = self.width() >= LEGEND_BESIDE, self._legend_box
        if beside == (self.head.indexOf(box) >= 0) and box.parent() is not None:
            return
        if beside:
            self.body.removeWidget(box)
            self.head.insertWidget(6, box, 100)
            self.legend.setIndent(LEGEND_INDENT)
        else:
            self.head.removeWidget(box)
            self.legend.setIndent(0)
            self.body.insertWidget(self.body.indexOf(self.plot), box)

    def take(self, rows: Sequence[Rows]) -> None:
        for part in rows:
            self.history.add(part)

    def read(self, view: ViewState) -> None:
        self.layers.events = view.events
        self._values = view.values
        if view.readings is not None:
            self.layers.limits = view.readings.limits
            if not self._maxima:
                models = view.readings.rows.readings.values()
                offered = [column for one in models for column in one.offered]
                self._maxima = maxima_of(self.history.columns, offered)
        self.draw()

    def show_status(self, view: ViewState) -> None:
        super().show_status(view)
        self.show_uncalibrated(view.reading_status().uncalibrated)
        self._settling = {name: view.number_status(name).settling for name in self.chosen}
        self.layers.hold("frozen" in view.held)
        self.layers.lose(is_away(view.held))

    def restart(self) -> None:
        self.history.clear()
        self.plot.point(None)
        self.plot.show_until(None)
        self.layers.scale.reset()

    def change_limits(self, view: ViewState) -> None:
        assert view.readings is not None
        self.history.extend(view.readings.rows.columns)
        limited = [limit.column for limit in view.readings.limits]
        self.columns_menu.clear()
        list_columns(self.columns_menu, self.history.main_columns, self._toggle)
        own = [name for name in limited if unit_of(name) == self.layers.unit]
        self.choose([*(name for name in own if name not in self.chosen), *self.chosen])

    def show_uncalibrated(self, uncalibrated: bool) -> None:
        if uncalibrated != self._uncalibrated:
            self._uncalibrated = uncalibrated
            self.plot.set_unit(self.layers.unit, self._uncalibrated)

    def choose(self, names: Sequence[str]) -> None:
        """Show these columns: those of the last one's unit, as many as there are colors."""
        of_unit = [name for name in names if unit_of(name) == unit_of(names[-1])]
        self.layers.show(traces_of(of_unit[-MOST:]))
        self.plot.set_unit(self.layers.unit, self._uncalibrated)
        for action in self.columns_menu.actions():
            action.setChecked(action.data() in self.chosen)
        self.legend.rewrite()
        self.draw(again=True)

    @property
    def chosen(self) -> list[str]:
        return [trace.name for trace in self.layers.traces]

    def _toggle(self, name: str) -> None:
        left = [one for one in self.chosen if one != name]
        wanted = left if name in self.chosen else [*left, name]
        self.choose(wanted or [name])

    def draw(self, again: bool = False) -> None:
        if self.layers.draw(again):
            self._point()

    def _view(self) -> None:
        self.live.setEnabled(not self.plot.follows)
        for seconds, button in self.spans.items():
            button.setChecked(seconds == self.plot.span_s)
        self.zoomed.setText(clock_text(round(self.plot.span_s, 1)))
        self.zoomed.setVisible(self.plot.span_s not in self.spans)
        self.layers.scale.reset()
        self.draw(again=True)

    def _choose_span(self, seconds: float) -> None:
        self.plot.show_until(None if self.plot.follows else self.plot.end_s, seconds)
        self.spans[seconds].setChecked(True)  # a click on the chosen one does not release it

    def _point(self) -> None:
        at = self.plot.cursor_s
        self.layers.cursor.set(None if at is None else at - self.plot.reference_s)
        self.legend.rewrite()

    def _words(self, colors: Colors) -> str:
        at, parts = self.plot.cursor_s, []
        found = {} if at is None else self.layers.read_at(at)
        for trace in self.layers.traces:
            line = "&#9477;&#9477;" if trace.dashed else "&#9473;&#9473;"
            name, value = trace.name, ""
            if at is None:
                settling = self._settling.get(name, SETTLING)
                value = newest_words(name, self._maxima.get(name, ""), self._values, settling)
            if name in found:
                low, high = (reading_text(name, v) for v in found[name])
                value = f" {low if low == high else f'{low} to {high}'}"
            color = getattr(colors, trace.role)
            parts.append(
                f"<span style='color:{color}'>{line}</span> {escape(trace.caption)}{value}"
            )
        if at is not None:
            parts.append(escape(moment_words(self.history, at)))
            parts += map(escape, self.layers.happened(at))
        return " &nbsp; ".join(parts)

    def visible(self) -> Rows:
        return self.history.rows(self.chosen, self.plot.from_s, self.plot.end_s)

    def head_of_export(self) -> dict[str, Any]:
        shown = {"from_s": round(max(0.0, self.plot.from_s), 3), "to_s": round(self.plot.end_s, 3)}
        return {**super().head_of_export(), "visible": shown}


def list_columns(
    menu: QtWidgets.QMenu, columns: Sequence[Column], toggle: Callable[[str], object]
) -> None:
    """List columns by unit; `toggle` is called with the name of one."""
    for unit in dict.fromkeys(unit_of(one.name) for one in columns):
        menu.addSection(unit)
        for one in columns:
            if unit_of(one.name) == unit:
                act, about = partial(toggle, one.name), f"{one.quantity}, {one.statistic}"
                add_choice(menu, symbol_of(one.name), False, act, about=about, data=one.name)


def _span_button(text: str, choose: Callable[[], object]) -> QtWidgets.QToolButton:
    button = tool_button(f"span {text}", text, f"Show {text}", choose)
    button.setAccessibleName(f"show {text}")
    button.setCheckable(True)
    button.setAutoRaise(True)
    return button
