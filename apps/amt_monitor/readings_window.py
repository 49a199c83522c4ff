"""The window of several models beside each other."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.levels import LevelPane
from amt_monitor.meter_window import Doubts, MeterWindow, button
from amt_monitor.reading_pane import ReadingPane, pane_of
from amt_monitor.theme import theme
from amt_stream.contract import takes_pascal
from amt_stream.outputs import LatestReadings
from amt_stream.rows import limit_words

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Frames

RECENT_S = 1.0
SPACE = 6


class ReadingsWindow(MeterWindow):
    """A pane for each model, and below them the level of the input where one takes pascal.

    Its engines have a sink `LatestReadings`. A reset forgets what has accumulated, and a pause
    keeps it as it is; neither touches a model.
    """

    def add_panes(self, layout: QtWidgets.QVBoxLayout) -> None:
        self.panes: dict[str, ReadingPane] = {}
        self.levels: LevelPane | None = None
        self.limits: QtWidgets.QLabel | None = None
        self._names: dict[str, tuple[str, ...]] = {}
        self._in_pascal: list[str] = []
        self._latest_frames: dict[str, Frames] = {}
        self._faults: dict[str, int] = {}
        self._sink: LatestReadings | None = None
        self._summed_up = False
        self._area = QtWidgets.QVBoxLayout()
        self._area.setSpacing(SPACE)
        self._area.addWidget(_centered("The models are being made ready."))
        layout.addLayout(self._area, 1)
        self.pause_button = button("pause", "Pause", "C", self.pause)
        self.pause_button.setCheckable(True)
        self.pause_button.setEnabled(False)
        self.bar.insertWidget(self.bar.indexOf(self.freeze_button), self.pause_button)
        QtGui.QShortcut(QtGui.QKeySequence("C"), self).activated.connect(self.pause)
        self.reset_button.setToolTip("Key: R; forgets maxima, percentiles, what was integrated")
        self.pause_button.setToolTip("Key: C; maxima, percentiles, what is integrated stay as is")

    def draw(self, frames: "Frames", engine: "Engine") -> None:
        sink = self._follow(engine)
        readings = found(sink)
        for pane in self.panes.values():
            pane.draw(readings)
        heard = self._heard(engine)
        if self.levels is not None and heard is not None:
            self.levels.draw(heard.level_db[:, -1])

    def show_numbers(self, frames: "Frames", engine: "Engine") -> dict[str, tuple[str, ...]]:
        readings = found(self._follow(engine))
        for name, history in engine.histories.items():
            if history.latest is not None:
                self._latest_frames[name] = history.latest
                recent = history.since(history.count - round(RECENT_S * history.frame_rate))
                self._faults[name] = int(np.bitwise_or.reduce(recent.fault))
        for pane in self.panes.values():
            pane.show_readings(readings)
        texts = {name: pane.texts() for name, pane in self.panes.items()}
        heard = self._heard(engine)
        if self.levels is not None and heard is not None:
            self.levels.show_numbers(heard.level_db[:, -1], uncalibrated=not heard.calibrated)
            texts["levels"] = self.levels.texts()
        if self.limits is not None and readings:
            texts["limits"] = states(self._follow(engine))
            self.limits.setText("<br>".join(map(_with_weight, texts["limits"])))
        return texts

    def mark(self, doubts: Doubts) -> None:
        paused = ["paused"] if self._sink is not None and self._sink.paused else []
        for name, pane in self.panes.items():
            frames = self._latest_frames.get(name)
            if frames is None:
                continue
            own = Doubts.of(frames, doubts.held)
            pane.mark([*own.words(self._faults[name]), *paused], own.uncalibrated)
            pane.doubt(grey=bool(own.settling or own.held), uncalibrated=own.uncalibrated)
            if self.levels is not None and name in self._in_pascal:
                self.levels.mark([*own.calibration, *own.held], own.uncalibrated)

    def engine_changed(self, engine: "Engine") -> None:
        sink, measuring = self._follow(engine), self.switch.measuring
        if not measuring and not self._summed_up:
            # The last frames came after the last time that the sink did this.
            sink.sum_up()
            self._summed_up = True
        self.pause_button.setEnabled(measuring)
        self.pause_button.setChecked(sink.paused)
        self.pause_button.setText("Continue" if sink.paused else "Pause")

    def reset(self) -> None:
        """What has accumulated is forgotten; the models go on."""
        if self.switch.measuring and self._sink is not None:
            self._sink.reset()

    def pause(self) -> None:
        """Nothing accumulates, until this is called again."""
        if self.switch.measuring and self._sink is not None:
            self._sink.paused = not self._sink.paused
            self._show_state()
            self._mark()

    def _follow(self, engine: "Engine") -> LatestReadings:
        """The engine's sink, which there are panes for."""
        sink = next(s for s in engine.sinks if isinstance(s, LatestReadings))
        if sink is not self._sink:
            self._sink, self._summed_up = sink, False
            self._latest_frames, self._faults = {}, {}
            names = {model: tuple(sink.of(model)) for model in sink.models}
            if names != self._names:
                self._names = names
                models = engine.models.items()
                self._in_pascal = [name for name, model in models if takes_pascal(model)]
                self._make_panes()
        return sink

    def _make_panes(self) -> None:
        _clear(self._area)
        self.panes = {model: pane_of(model, names) for model, names in self._names.items()}
        panes = list(self.panes.values())
        first = (len(panes) + 1) // 2
        for row in (panes[:first], panes[first:]):
            beside = QtWidgets.QHBoxLayout()
            beside.setSpacing(SPACE)
            for pane in row:
                beside.addWidget(pane, 1)
            if row:
                self._area.addLayout(beside, max(pane.share for pane in row))
        self.limits = None
        if self._sink is not None and self._sink.limits:
            self.limits = _centered("")
            self.limits.setObjectName("limits")
            self._area.addWidget(self.limits)
        self.levels = None
        if self._in_pascal:
            self.levels = LevelPane(beside=True)
            self._area.addWidget(self.levels)

    def _heard(self, engine: "Engine") -> "Frames | None":
        """The newest frames of a model that takes pascal."""
        return next((engine.histories[name].latest for name in self._in_pascal), None)


def found(sink: LatestReadings) -> dict[str, Any]:
    """All readings by name, those of the moment and those of the whole sound."""
    return (sink.row or {}) | sink.totals


def states(sink: LatestReadings) -> tuple[str, ...]:
    """Each limit in a line: its state, its name, and what is allowed."""
    row = sink.row or {}
    return tuple(
        f"{row.get(limit.state, '')}: {limit.name}, {limit_words(limit, row)}"
        for limit in sink.limits
    )


def _with_weight(line: str) -> str:
    state, _, rest = line.partition(":")
    color = f' style="color: {theme.colors.red}"' if state not in ("green", "amber") else ""
    return f"<b{color}>{escape(state)}</b>:{escape(rest)}"


def _clear(layout: QtWidgets.QLayout) -> None:
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.deleteLater()
        elif (inner := item.layout()) is not None:
            _clear(inner)


def _centered(text: str) -> QtWidgets.QLabel:
    label = QtWidgets.QLabel(text)
    label.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
    return label
