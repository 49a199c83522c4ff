"""The frame of every window: it pulls from the engine by timers and shows what it finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.device_choice import DeviceChoice
from amt_monitor.status import status_text
from amt_monitor.switch import MakeEngine, Switch
from amt_stream.plain import plain
from amt_stream.rows import fault_words

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Frames

CURVES_MS, NUMBERS_MS, STATE_MS = 33, 200, 400
LOST, FAILED = 3, 1


@dataclass(frozen=True)
class Shown:
    """Texts on the screen, by name of their pane, and the frames whose last row they were."""

    frames: "Frames"
    texts: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Doubts:
    """Why readings are to be doubted, in words: their calibration, the model, the input, the state.

    `uncalibrated` where they have no calibration.
    """

    calibration: Sequence[str]
    settling: Sequence[str]
    held: Sequence[str]
    uncalibrated: bool

    @classmethod
    def of(cls, frames: "Frames", held: Sequence[str]) -> Self:
        """Those that the last of some frames tells."""
        return cls(
            calibration=[] if frames.calibrated else ["uncalibrated"],
            settling=["settling"] if frames.settling[-1] else [],
            held=held,
            uncalibrated=not frames.calibrated,
        )

    def words(self, fault: int) -> list[str]:
        """All of them, and the faults of the input."""
        return [*self.calibration, *self.settling, *fault_words(fault), *self.held]


class MeterWindow(QtWidgets.QWidget):
    """Buttons above, a message and a status line below; a subclass puts its panes in between.

    It starts to measure at once; `close` stops the engine and waits for it.
    """

    def __init__(self, make_engine: MakeEngine, title: str = "amt_stream") -> None:
        super().__init__()
        self.setWindowTitle(title)
        self.setObjectName("amt_monitor")
        self.setMinimumHeight(600)
        self.resize(1200, 800)
        self.switch = Switch(make_engine)
        self.frozen = False
        self.shown: Shown | None = None
        self._drawn: Frames | None = None
        self._build()
        for key, action in {
            "Space": self.start_or_stop,
            "R": self.reset,
            "P": self.freeze,
            "F11": self.full_screen,
            "Ctrl+Q": self.close,
        }.items():
            QtGui.QShortcut(QtGui.QKeySequence(key), self).activated.connect(action)
        self._timers = []
        for milliseconds, action in (
            (CURVES_MS, self._draw_curves),
            (NUMBERS_MS, self._show_numbers),
            (STATE_MS, self._show_state),
        ):
            timer = QtCore.QTimer(self)
            timer.setTimerType(QtCore.Qt.TimerType.PreciseTimer)
            timer.timeout.connect(action)
            timer.start(milliseconds)
            self._timers.append(timer)
        self.device.refresh()
        self.start_or_stop()

    def _build(self) -> None:
        self.start_button = button("start_stop", "Stop", "Space", self.start_or_stop)
        self.reset_button = button("reset", "Reset", "R", self.reset)
        self.freeze_button = button("freeze", "Freeze", "P", self.freeze)
        self.freeze_button.setCheckable(True)
        self.device = DeviceChoice()
        self.device.chosen.connect(self._listen_to_choice)
        self.message = plain_label("message")
        bold = self.message.font()
        bold.setBold(True)
        self.message.setFont(bold)
        self.bar = QtWidgets.QHBoxLayout()
        for widget in (self.start_button, self.reset_button, self.freeze_button):
            self.bar.addWidget(widget)
        self.bar.addWidget(QtWidgets.QLabel("  Input"))
        self.bar.addWidget(self.device)
        self.bar.addStretch(1)
        self.status = plain_label("status")
        layout = QtWidgets.QVBoxLayout(self)
        layout.addLayout(self.bar)
        self.add_panes(layout)
        layout.addWidget(self.message)
        layout.addWidget(self.status)

    def add_panes(self, layout: QtWidgets.QVBoxLayout) -> None:
        """Make the panes and put them into the window."""
        raise NotImplementedError

    def draw(self, frames: "Frames", engine: "Engine") -> None:
        """Paint what moves, thirty times a second at most."""
        raise NotImplementedError

    def show_numbers(self, frames: "Frames", engine: "Engine") -> dict[str, tuple[str, ...]]:
        """Write what is read, five times a second; gives the texts by name of their pane."""
        raise NotImplementedError

    def mark(self, doubts: Doubts) -> None:
        """Say beside every reading why it is to be doubted."""
        raise NotImplementedError

    def engine_changed(self, engine: "Engine") -> None:
        """Follow what has become of the engine, now and then, also while nothing is drawn."""

    @property
    def on_screen(self) -> bool:
        """False while it is hidden, minimized or on a screen that is off: then nothing is drawn."""
        handle = self.windowHandle()
        return not self.isMinimized() and handle is not None and handle.isExposed()

    def start_or_stop(self) -> None:
        if self.switch.measuring:
            self.switch.stop()
        else:
            self.switch.start(self.device.device)
        self._show_state()

    def reset(self) -> None:
        """The model back to silence; the clock goes on."""
        if self.switch.measuring and self.switch.engine is not None:
            self.switch.engine.reset()

    def freeze(self) -> None:
        """Hold the picture; the measurement goes on behind it."""
        self.frozen = not self.frozen
        self.freeze_button.setChecked(self.frozen)
        self._mark()

    def full_screen(self) -> None:
        self.showNormal() if self.isFullScreen() else self.showFullScreen()

    def _listen_to_choice(self) -> None:
        self.switch.start(self.device.device)
        self._show_state()

    def _latest(self) -> "Frames | None":
        engine = self.switch.engine
        if engine is None or self.frozen or not self.on_screen:
            return None
        return engine.history.latest

    def _draw_curves(self) -> None:
        frames, engine = self._latest(), self.switch.engine
        if frames is None or engine is None or frames is self._drawn:
            return
        self._drawn = frames
        self.draw(frames, engine)

    def _show_numbers(self) -> None:
        frames, engine = self._latest(), self.switch.engine
        if frames is None or engine is None:
            return
        self.shown = Shown(frames, self.show_numbers(frames, engine))
        self._mark()

    def _mark(self) -> None:
        if self.shown is None:
            return
        state = self.switch.state
        held = ([] if state == "running" else [state]) + (["frozen"] if self.frozen else [])
        self.mark(Doubts.of(self.shown.frames, held))

    def _show_state(self) -> None:
        """Also while hidden: an engine that has ended by itself must be put away."""
        switch = self.switch
        switch.poll()
        self.start_button.setText("Stop" if switch.measuring else "Start")
        for widget in (self.start_button, self.device):
            widget.setEnabled(not switch.busy)
        self.reset_button.setEnabled(switch.measuring)
        engine = switch.engine
        health = engine.health if engine is not None else None
        note = health.note if health is not None and switch.measuring else ""
        self.message.setText(plain(f"⚠ {switch.error}" if switch.error else note))
        self.message.setVisible(bool(self.message.text()))
        if engine is None or health is None:
            self.status.setText(switch.state)
            return
        if switch.measuring and self.device.device is None:
            self.device.name_first(engine.source.name)
        self.status.setText(status_text(engine, switch.state))
        self.engine_changed(engine)
        if not switch.measuring:
            self._mark()

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:
        for timer in self._timers:
            timer.stop()
        self.hide()
        self.device.close_listing()
        self.switch.close()
        event.accept()

    def exit_code(self) -> int:
        """What the program returns when the window closes now."""
        error, engine = self.switch.error, self.switch.engine
        if error is None:
            return 0
        lost = engine is not None and engine.error is error and engine.health.device_state == "lost"
        return LOST if lost else FAILED


def plain_label(name: str) -> QtWidgets.QLabel:
    """A label that shows what it is given as it stands, markup too."""
    label = QtWidgets.QLabel()
    label.setObjectName(name)
    label.setWordWrap(True)
    label.setTextFormat(QtCore.Qt.TextFormat.PlainText)
    return label


def button(name: str, text: str, key: str, action: Any) -> QtWidgets.QPushButton:
    """A button that tells its key."""
    button = QtWidgets.QPushButton(text)
    button.setObjectName(name)
    button.setToolTip(f"Key: {key}")
    # So that the space bar always starts and stops, whichever button was clicked last.
    button.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
    button.clicked.connect(lambda _: action())
    return button
