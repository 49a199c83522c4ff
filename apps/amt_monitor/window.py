"""The window: it pulls from the engine by timers and shows what it finds."""

import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.device_choice import DeviceChoice
from amt_monitor.history_pane import HistoryPane
from amt_monitor.levels import LevelPane
from amt_monitor.numbers import NumberPane
from amt_monitor.pane import colors
from amt_monitor.spectrum_pane import SpectrumPane
from amt_monitor.status import status_text
from amt_monitor.switch import MakeEngine, Switch
from amt_stream.outputs import fault_words

if TYPE_CHECKING:
    from amt_stream.engine import Frames

CURVES_MS, NUMBERS_MS, STATE_MS = 33, 200, 400
LOST, FAILED = 3, 1


@dataclass(frozen=True)
class Shown:
    """Texts on the screen, by name of their pane, and the frames whose last row they were."""

    frames: "Frames"
    texts: dict[str, tuple[str, ...]]


class MonitorWindow(QtWidgets.QWidget):
    """The meter. It starts to measure at once; `close` stops the engine and waits for it."""

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
        self.start_button = _button("start_stop", "Stop", "Space", self.start_or_stop)
        self.reset_button = _button("reset", "Reset", "R", self.reset)
        self.freeze_button = _button("freeze", "Freeze", "P", self.freeze)
        self.freeze_button.setCheckable(True)
        self.device = DeviceChoice()
        self.device.chosen.connect(self._listen_to_choice)
        self.message = QtWidgets.QLabel()
        self.message.setObjectName("message")
        self.message.setWordWrap(True)
        self.message.setStyleSheet(f"color: {colors().alarm}; font-weight: bold")
        bar = QtWidgets.QHBoxLayout()
        for widget in (self.start_button, self.reset_button, self.freeze_button):
            bar.addWidget(widget)
        bar.addWidget(QtWidgets.QLabel("  Input"))
        bar.addWidget(self.device)
        bar.addStretch(1)
        self.ltl = NumberPane("ltl", "LTL", "long-term, attack 99 ms, release 0.75 s")
        self.stl = NumberPane("stl", "STL", "short-term, attack 22 ms, release 30 ms")
        self.levels = LevelPane()
        numbers = QtWidgets.QHBoxLayout()
        numbers.setSpacing(8)
        numbers.addWidget(self.ltl, 5)
        numbers.addWidget(self.stl, 5)
        numbers.addWidget(self.levels, 3)
        self.history, self.spectrum = HistoryPane(), SpectrumPane()
        self.status = QtWidgets.QLabel()
        self.status.setObjectName("status")
        self.status.setWordWrap(True)
        layout = QtWidgets.QVBoxLayout(self)
        layout.addLayout(bar)
        layout.addLayout(numbers, 3)
        layout.addWidget(self.history, 10)
        layout.addWidget(self.spectrum, 7)
        layout.addWidget(self.message)
        layout.addWidget(self.status)

    @property
    def panes(self) -> tuple[Any, ...]:
        return self.ltl, self.stl, self.levels, self.history, self.spectrum

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
        self.history.envelope.follow(engine.history)
        self.history.draw()
        specific = frames.values.specific_loudness
        self.spectrum.draw(None if specific is None else specific[:, -1])
        self.levels.draw(frames.level_db[:, -1])

    def _show_numbers(self) -> None:
        frames = self._latest()
        if frames is None:
            return
        self.ltl.show_sone(float(frames.values.ltl[-1]))
        self.stl.show_sone(float(frames.values.stl[-1]))
        self.levels.show_numbers(frames.level_db[:, -1], alarm=not frames.calibrated)
        self.shown = Shown(frames, {pane.objectName(): pane.texts() for pane in self.panes[:3]})
        self._mark()

    def _mark(self) -> None:
        """Say beside every reading why it is to be doubted."""
        if self.shown is None:
            return
        frames, state = self.shown.frames, self.switch.state
        alarm = not frames.calibrated
        calibration = ["uncalibrated"] if alarm else []
        held = [] if state == "running" else [state]
        held += ["frozen"] if self.frozen else []
        settling = ["settling"] if frames.settling[-1] else []
        doubts = calibration + settling + fault_words(self.history.recent_fault()) + held
        for pane in (self.ltl, self.stl, self.history, self.spectrum):
            pane.mark(doubts, alarm)
        self.levels.mark(calibration + held, alarm)
        for pane in (self.ltl, self.stl):
            pane.doubt(grey=bool(settling or held), alarm=alarm)

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
        self.message.setText(f"⚠ {switch.error}" if switch.error else note)
        self.message.setVisible(bool(self.message.text()))
        if engine is None or health is None:
            self.status.setText(switch.state)
            return
        if switch.measuring and self.device.device is None:
            self.device.name_first(engine.source.name)
        self.status.setText(status_text(engine, switch.state))
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


def _button(name: str, text: str, key: str, action: Any) -> QtWidgets.QPushButton:
    button = QtWidgets.QPushButton(text)
    button.setObjectName(name)
    button.setToolTip(f"Key: {key}")
    # So that the space bar always starts and stops, whichever button was clicked last.
    button.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
    button.clicked.connect(lambda _: action())
    return button


def run_window(
    make_engine: MakeEngine, *, duration: float | None = None, title: str = "amt_stream"
) -> int:
    """Show the meter until it is closed, or has measured for `duration` seconds.

    `make_engine(device)` gives a new engine, not yet started, for an input device; None is the one
    that the command line names. Returns the exit code: 0; 3 when the device was lost, or 1 when it
    could not be used, and nothing was started after that; 130 after Ctrl+C, 143 after SIGTERM.
    """
    app = QtWidgets.QApplication.instance() or QtWidgets.QApplication(sys.argv[:1])
    window = MonitorWindow(make_engine, title)
    signals: list[int] = []

    def end(number: int, _: object) -> None:
        signals.append(number)
        window.close()

    def count_down() -> None:
        if window.switch.busy:
            QtCore.QTimer.singleShot(50, count_down)
        else:
            QtCore.QTimer.singleShot(round(1000 * (duration or 0)), window.close)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    # A painting window must not keep the device's callback waiting for the interpreter's lock.
    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        if duration is not None:
            count_down()
        window.show()
        app.exec()
    finally:
        sys.setswitchinterval(switch_interval)
        for number, handler in before.items():
            signal.signal(number, handler)
        window.close()
    return 128 + signals[0] if signals else window.exit_code()
