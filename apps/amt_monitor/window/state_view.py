"""The state of the measurement on the screen: top bar, messages, status line."""

import time
from typing import TYPE_CHECKING

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.message_bar import Banner, MessageBar
from amt_monitor.base.settings import Settings
from amt_monitor.base.widgets import add_all, plain_label
from amt_monitor.dialogs.getting_started_panel import GettingStartedPanel
from amt_monitor.window.calibration_reason import uncalibrated_words
from amt_monitor.window.top_bar import TopBar
from amt_stream.core.compiling import compiling
from amt_stream.core.safe_text import plain
from amt_stream.core.words import elapsed_text
from amt_stream.dsp.contract import takes_pascal
from amt_stream.meters.calibration import Calibration, calibration_words, reminder_of
from amt_stream.meters.rows.limit_words import alarm_words
from amt_stream.meters.state_signs import AWAY, away_sentence, rank_states
from amt_stream.views.log_status import LogStatus, log_in
from amt_stream.views.measurement_control import MeasurementControl
from amt_stream.views.status_text import status_text
from amt_stream.views.view_state import ViewState

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Event, Health

UNDONE = "Readings were reset. Undo or Ctrl+Z restores them within 10 s."
STARTING = "Preparing the models."
TOO_SLOW = "; measure with fewer models, or close other programs"
"""What to do, after the engine has said what it does itself."""


_tabbed, _untabbed = QtCore.Qt.FocusPolicy.StrongFocus, QtCore.Qt.FocusPolicy.NoFocus


class StateView(QtWidgets.QWidget):
    """Menu bar, top bar, messages and first steps, one below the other.

    buttons: the actions that have a button in the top bar
    states: the present ones, the worst first
    line, waiting: the status line, and the text that stands where panes will be
    """

    def __init__(
        self, menu_bar: QtWidgets.QMenuBar, buttons: list[QtGui.QAction], settings: Settings
    ) -> None:
        super().__init__()
        self.menu_bar, self._settings = menu_bar, settings
        self.bar, self.message = TopBar(buttons), MessageBar()
        self.getting_started = GettingStartedPanel()
        self.line, self.waiting = plain_label("status"), plain_label("waiting", wrap=True)
        self.waiting.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
        self._log_status = LogStatus()
        self.states = ["idle"]
        self._away = "", 0.0
        self.banner = Banner()
        self._sentence = ""
        self._judged: tuple[Engine, tuple[Calibration, ...]] | None = None
        self._calibration: tuple[str, ...] = ()
        self._uncalibrated = "", ""
        self._reset: Event | None = None
        column = QtWidgets.QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        add_all(column, menu_bar, self.bar, self.banner, self.message, self.getting_started)

    def say(self, sentence: str) -> None:
        self._sentence = sentence
        self.message.say_again(sentence)

    def show_state(self, measurement: MeasurementControl, is_low: bool, frozen: bool) -> None:
        """Show how the measurement stands; a low window has no room for first steps too."""
        engine = measurement.engine
        undone = UNDONE if measurement.can_undo_reset else ""
        if engine is not None and (reset := _last_reset(engine)) is not self._reset:
            self._reset = reset
            self.message.say_again(UNDONE)
        health = None if engine is None else engine.health
        self.message.say(
            (_note(measurement, health), self._sentence, self._settings.trouble), undone
        )
        self.getting_started.give_way(bool(self.message.text) and is_low)
        self.states = _states(measurement, health, frozen)
        self.bar.chip.show_states(self.states, elapsed_text(measurement.measured_s))
        self._show_banner(measurement, health)
        self.bar.device.setEnabled(not measurement.busy)
        if engine is None or health is None:
            self.line.setText(measurement.state)
            starting = "\n".join(filter(None, (STARTING, compiling.note)))
            self.waiting.setText(starting if measurement.busy else "No measurement is running.")
            return
        self.waiting.setText(plain(health.note) or STARTING)
        running_request = measurement.running_request
        if (
            measurement.measuring
            and running_request.device is None
            and running_request.file is None
        ):
            self.bar.device.name_first(engine.source.name)
        log = log_in(engine)
        action = self.bar.buttons["log"].defaultAction()
        action.setIconText("Log" if log is None else self._log_status.words(log))
        action.setToolTip("" if log is None else plain(f"log {log.path}"))
        self._show_calibration(engine, health)
        self.line.setText(status_text(engine, health))

    def _show_banner(self, measurement: MeasurementControl, health: "Health | None") -> None:
        state, engine, now = measurement.state, measurement.engine, time.monotonic()
        if engine is None or health is None or state not in AWAY:
            self._away = "", 0.0
            self.banner.say(_alarm(measurement))
            self.banner.setToolTip("")
            return
        if self._away[0] != state:
            self._away = state, now
        seconds = now - self._away[1]
        self.banner.say(away_sentence(state, seconds, engine.source.name, health.note))
        self.banner.setToolTip(plain(health.note))

    def _show_calibration(self, engine: "Engine", health: "Health") -> None:
        pascal = any(map(takes_pascal, engine.models.values()))
        known = all(one.calibrated for one in engine.calibration)
        if self._judged != (engine, engine.calibration):
            # Files are read only once for each calibration.
            self._judged = engine, engine.calibration
            doubtful = pascal and not known
            self._uncalibrated = uncalibrated_words(engine, health) if doubtful else ("", "")
        words, why = self._uncalibrated
        reminder = reminder_of(engine.calibration)
        calibrated = "calibrated, overdue" if reminder else "calibrated"
        about = ". ".join(filter(None, (calibration_words(engine.calibration), reminder)))
        texts = words, why, calibrated if pascal and known else "", about
        if texts == self._calibration:
            return
        self._calibration = texts
        self.bar.calibration.show_text(words)
        self.bar.calibration.setFocusPolicy(_tabbed if words else _untabbed)
        self.bar.calibrated.setText(texts[2])
        self.bar.calibrated.setToolTip(plain(about))
        self.bar.calibration.setToolTip(f"{why} Click to calibrate." if why else "")
        self.bar.calibration.setAccessibleDescription(why)

    @property
    def why_uncalibrated(self) -> str:
        """A sentence; "" for calibrated readings."""
        return self._uncalibrated[1]


def _states(measurement: MeasurementControl, health: "Health | None", frozen: bool) -> list[str]:
    """The present states, the worst first."""
    engine = measurement.engine
    course = "failed" if measurement.error and not measurement.busy else measurement.state
    view = None if engine is None else ViewState.at(engine, measurement.readings)
    if view is None or health is None:
        return rank_states(course, frozen=frozen)
    return view.states(course, frozen, health)


def _alarm(measurement: MeasurementControl) -> str:
    """What is about to be exceeded, or ""."""
    readings = measurement.readings
    if readings is None or not measurement.measuring:
        return ""
    return alarm_words(readings.limits, readings.row or {})


def _note(measurement: MeasurementControl, health: "Health | None") -> str:
    if measurement.error:
        return f"\N{WARNING SIGN} {measurement.error}"
    if health is None or not measurement.measuring or measurement.state in AWAY:
        return ""  # the banner says it
    return health.note + (TOO_SLOW if health.note and health.overloaded else "")


def _last_reset(engine: "Engine") -> "Event | None":
    return next((one for one in reversed(engine.events) if one.kind == "readings_reset"), None)
