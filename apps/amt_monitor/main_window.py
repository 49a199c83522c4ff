"""The window: it pulls from a measurement by timers and shows what it finds in panes."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.enter_key_filter import EnterKeyFilter
from amt_monitor.file_actions import FileActions
from amt_monitor.getting_started_panel import GettingStartedPanel
from amt_monitor.history_pane import HistoryPane
from amt_monitor.layouts_menu import LayoutsMenu
from amt_monitor.limit_alarm import LimitAlarm
from amt_monitor.limit_text import forecast_words, state_of, state_words, value_words, worst
from amt_monitor.live_results import results_of
from amt_monitor.log_status import LogStatus, log_in
from amt_monitor.measurement_actions import MakeLog, MeasurementActions
from amt_monitor.measurement_control import MakeEngine, MeasurementControl, MeasurementRequest
from amt_monitor.message_bar import MessageBar
from amt_monitor.models_menu import ModelsMenu, running_models
from amt_monitor.pane_area import PaneArea
from amt_monitor.pane_docks import PaneDock
from amt_monitor.recent_menu import RecentMenu
from amt_monitor.settings import Settings
from amt_monitor.settings_dialog import SettingsDialog
from amt_monitor.shortcuts_dialog import ShortcutsDialog
from amt_monitor.status_text import status_text, title_text
from amt_monitor.theme import CHOICES, NAMES, theme
from amt_monitor.top_bar import TopBar, elapsed_text, plain_label
from amt_monitor.tray_icon import TrayIcon
from amt_monitor.view_state import ViewState
from amt_monitor.wall_view import WallMenu, WallView, wall_numbers
from amt_monitor.window_commands import COMMANDS, GROUPS
from amt_stream.core.compiling import compiling
from amt_stream.core.safe_text import plain
from amt_stream.dsp.contract import takes_pascal
from amt_stream.meters.calibration import calibration_words, reminder_of

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Event, Frames
    from amt_stream.sessions.results import Results

CURVES_MS, NUMBERS_MS, STATE_MS = 33, 200, 400
LOST, FAILED = 3, 1
UNDONE = "Readings were reset. For 10 s, Undo or Ctrl+Z counts them again."
STARTING = "The models are being made ready."

TOO_SLOW = "; measure with fewer models, or close other programs"
"""What to do where the engine's own remedies are told."""

ROOMY = 700
"""Pixels from which on a window has room for a message and for the first steps."""

BUTTONS = ("pause", "stop", "reset_readings", "mark", "log", "freeze")


@dataclass(frozen=True)
class ShownTexts:
    """Texts on the screen, by name of their pane, and what they were read from."""

    view: ViewState
    texts: dict[str, tuple[str, ...]]

    @property
    def frames(self) -> "Frames":
        return self.view.newest


class MainWindow(QtWidgets.QMainWindow):
    """Panes in docks; above them what is done with the measurement, below them how it stands.

    It starts to measure at once; `close` stops the engine and waits for it.

    make_engine: a new engine, not yet started, for what is wanted
    make_log: without, nothing can be logged that is not from the beginning
    """

    def __init__(
        self,
        make_engine: MakeEngine,
        make_log: MakeLog | None = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__()
        self.setObjectName("amt_monitor")
        self.setMinimumSize(800, 520)
        room = self.screen().availableSize()
        self.resize(min(1280, room.width()), min(800, room.height()))
        self.settings = settings or Settings()
        self.area = PaneArea(self, self.settings)
        self.measurement = MeasurementControl(make_engine)
        self._log_watch = LogStatus()
        self.frozen = False
        self._frozen_of = 0
        self.shown: ShownTexts | None = None
        self._view: ViewState | None = None
        self._drawn: Frames | None = None
        self._told = ""
        self._reset: Event | None = None
        self._sure = False
        self._alarm, self._alarm_of = LimitAlarm(QtWidgets.QApplication.beep), 0
        self._tray = TrayIcon(self)
        self._tray.asked.connect(self._come_back)
        self._build(make_log)
        self._take_settings()
        self._restore_place()
        self._timers = []
        for milliseconds, action in (
            (CURVES_MS, self._move),
            (NUMBERS_MS, self._read),
            (STATE_MS, self._show_state),
        ):
            timer = QtCore.QTimer(self)
            timer.setTimerType(QtCore.Qt.TimerType.PreciseTimer)
            timer.timeout.connect(action)
            timer.start(milliseconds)
            self._timers.append(timer)
        self.device.refresh()
        self.controls.begin(MeasurementRequest())

    def _build(self, make_log: MakeLog | None) -> None:
        self.wall_view = WallView()
        self.wall_view.closed.connect(self.activateWindow)
        self.actions_by_name: dict[str, QtGui.QAction] = {}
        for command in COMMANDS:
            action = QtGui.QAction(command.text, self)
            action.setObjectName(command.name)
            action.setShortcuts([QtGui.QKeySequence(key) for key in command.keys])
            action.setToolTip(f"{command.about} ({command.key})")
            action.setCheckable(command.checked)
            action.setAutoRepeat(False)
            action.triggered.connect(partial(self._do, command.name))
            self.addAction(action)
            self.wall_view.addAction(action)
            self.actions_by_name[command.name] = action
        stop, pause = (self.actions_by_name[name].shortcuts() for name in ("stop", "pause"))
        self._stop_keys = stop, [*stop, *pause]
        self.bar = TopBar([self.actions_by_name[name] for name in BUTTONS])
        self.device = self.bar.device
        self.controls = MeasurementActions(
            self,
            self.measurement,
            self.settings,
            self.device,
            make_log=make_log,
            front=lambda: self._front,
        )
        self.controls.changed.connect(self._show_state)
        self.controls.told.connect(self._tell)
        self.device.chosen.connect(self.controls.change_input)
        self.message, self.status = MessageBar(), plain_label("status")
        self.message.undo.clicked.connect(lambda _: self.controls.undo_reset())
        head = QtWidgets.QWidget()
        column = QtWidgets.QVBoxLayout(head)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self._menus()
        column.addWidget(self.menuBar())
        column.addWidget(self.bar)
        column.addWidget(self.message)
        self.first_start = GettingStartedPanel()
        self.first_start.closed.connect(self._has_started)
        column.addWidget(self.first_start)
        if not self.settings.get("started", False):
            self.first_start.ask()
        self.setMenuWidget(head)
        self.waiting = plain_label("waiting")
        self.waiting.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
        self.waiting.setWordWrap(True)
        self.setCentralWidget(self.waiting)
        self.statusBar().addWidget(self.status, 1)
        self.statusBar().setContentsMargins(6, 0, 8, 0)
        self.statusBar().setSizeGripEnabled(False)
        EnterKeyFilter(self)
        self.desk = FileActions(
            self,
            self.settings,
            front=lambda: self._front,
            play=self.controls.play,
            now=self._results,
            logged=lambda: self.controls.log_of_all,
            options=self._options,
            tell=self._tell,
        )
        self.recent_menu.chosen.connect(self.desk.open_path)

    def _menus(self) -> None:
        menus = {name: self.menuBar().addMenu(f"&{name}") for name in ("File", "Measure", "View")}
        self._view_menu = menus["View"]
        menus["Help"] = self.menuBar().addMenu("&Help")
        for command in COMMANDS:
            if command.name in GROUPS:
                menus[command.menu].addSeparator()
            menus[command.menu].addAction(self.actions_by_name[command.name])
        self.recent_menu = RecentMenu(self.settings, self)
        menus["File"].insertMenu(self.actions_by_name["save_session"], self.recent_menu)
        self._models_menu = ModelsMenu(
            lambda: self.measurement.engine,
            self.controls.choose_models,
            self.controls.set_models,
        )
        menus["Measure"].addMenu(self._models_menu)
        self._wall_menu = WallMenu(
            lambda: self._view, lambda: [*self.wall_view.numbers], self._choose_for_wall
        )
        self._view_menu.addMenu(self._wall_menu)
        self.wall_view.customContextMenuRequested.connect(
            lambda place: self._wall_menu.popup(self.wall_view.mapToGlobal(place))
        )
        self._view_menu.addSeparator()
        self._layouts_menu = LayoutsMenu(
            self.settings,
            lambda: self.area.name,
            self.area.layout,
            self.area.restore,
            self.area.lay_out_anew,
        )
        self._view_menu.addMenu(self._layouts_menu)
        themes = self._view_menu.addMenu("&Colors")
        self._themes = group = QtGui.QActionGroup(self)
        for choice in CHOICES:
            action = themes.addAction(NAMES[choice], lambda c=choice: self.choose_theme(c))
            action.setCheckable(True)
            action.setData(choice)
            group.addAction(action)
        self._panes_menu = self._view_menu.addMenu("&Panes")

    def choose_theme(self, choice: Any) -> None:
        """Paint in other colors, from now on."""
        theme.choose(choice)
        self.settings.put(theme=choice)

    def _do(self, name: str, *_: object) -> None:
        homes = (self, self.controls, self.desk)
        getattr(next(one for one in homes if hasattr(one, name)), name)()

    def freeze(self) -> None:
        """Hold the picture; the measurement goes on behind it."""
        self.frozen, self._frozen_of = not self.frozen, self.measurement.begun
        self.actions_by_name["freeze"].setChecked(self.frozen)
        if self.frozen and self.measurement.engine is not None:
            # A maximum that is asked for later is not below the curve that is held.
            self.area.hear(self.measurement.engine, self.measurement.readings)
        self._judge(hidden=True)

    def wall(self) -> None:
        """Two or three numbers on all of the screen; again, as before."""
        if self.wall_view.isVisible():
            self.wall_view.close()
        else:
            self.wall_view.setGeometry(self.screen().geometry())
            self.wall_view.showFullScreen()
            self.wall_view.activateWindow()
            self._show_wall()

    def _show_wall(self) -> None:
        if self.wall_view.isVisible() and self._view is not None:
            view = replace(self._view, held=self._held)
            self.wall_view.choose(wall_numbers(view, self.settings.get("wall", [])))
            self.wall_view.read(view, self.message.text)

    def _choose_for_wall(self, names: list[str]) -> None:
        self.settings.put(wall=names)
        self._show_wall()

    @property
    def _front(self) -> QtWidgets.QWidget:
        """Above which a question is to stand."""
        return self.wall_view if self.wall_view.isVisible() else self

    def keys(self) -> None:
        ShortcutsDialog(self._front).open()

    def export(self) -> None:
        """Offer what the visible history can be kept as."""
        dock = self.docks.get("history")
        if dock is None or not isinstance(dock.pane, HistoryPane):
            self._tell("there is no history to export")
            return
        dock.show()
        dock.raise_()
        dock.pane.save.showMenu()

    def _results(self) -> "Results | None":
        """What was measured so far."""
        measurement, dock = self.measurement, self.docks.get("history")
        engine, readings = measurement.engine, measurement.readings
        if engine is None or readings is None or dock is None or not self._has_panes:
            return None
        if not isinstance(dock.pane, HistoryPane):
            return None
        if rows := readings.take():
            self.area.hand_on(rows)
        return results_of(engine, readings, dock.pane.history)

    def _options(self) -> list[str]:
        """Of `amt-stream analyze`, for a file: the models that run here."""
        engine = self.measurement.engine
        names = [] if engine is None else [*running_models(engine)]
        return ["--model", ",".join(names)] if names else []

    def quit(self) -> None:
        self.close()

    def close_now(self) -> None:
        """Close without asking."""
        self._sure = True
        self.close()

    @property
    def docks(self) -> dict[str, PaneDock]:
        """Those of what is measured, by the names of their panes."""
        return self.area.docks

    def _list_panes(self) -> None:
        self._panes_menu.clear()
        for dock in self.docks.values():
            self._panes_menu.addAction(dock.toggleViewAction())

    def _tell(self, sentence: str) -> None:
        """Say something until the next is said."""
        self._told = sentence
        self.message.say_again(sentence)
        self._show_state()

    def _refresh_view(self) -> ViewState | None:
        measurement = self.measurement
        if measurement.engine is None or self.frozen:
            return None
        # What is held is only told when it is judged: to ask for the state so often costs much.
        view = ViewState.at(measurement.engine, measurement.readings)
        if view is not None:
            self._view = view
            if self.area.fit(view, self.measurement.begun):
                self._list_panes()
        return view

    @property
    def _has_panes(self) -> bool:
        """Whether the panes are those of this measurement; what it reads waits for them."""
        return self.area.begun == self.measurement.begun

    @property
    def _held(self) -> list[str]:
        state = self.measurement.state
        return ([] if state == "running" else [state]) + (["frozen"] if self.frozen else [])

    def _keep_place(self) -> None:
        place = bytes(self.saveGeometry().toBase64().data()).decode()
        self.settings.put(place=place)

    def _restore_place(self) -> None:
        if place := self.settings.get("place", ""):
            # Qt brings it back to a screen that there is.
            self.restoreGeometry(QtCore.QByteArray.fromBase64(place.encode()))

    def choose_settings(self) -> None:
        """Ask for what is set once for all measurements."""
        available = QtWidgets.QSystemTrayIcon.isSystemTrayAvailable()
        SettingsDialog(self.settings, self._take_settings, self._front, available).open()

    def first_steps(self) -> None:
        """Show what a person needs to know at the first start."""
        self.first_start.ask()

    def _has_started(self) -> None:
        if not self.settings.get("started", False):
            self.settings.put(started=True)
            self.area.lay_out_anew()  # there is more room now

    def _take_settings(self) -> None:
        self._tray.show_if(self.settings.get("tray", False))
        if (choice := self.settings.get("theme", theme.choice)) != theme.choice:
            theme.choose(choice)
        for action in self._themes.actions():
            action.setChecked(action.data() == theme.choice)

    def _come_back(self) -> None:
        """From the tray, or from behind others."""
        self.setWindowState(self.windowState() & ~QtCore.Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def changeEvent(self, event: QtCore.QEvent) -> None:
        super().changeEvent(event)
        minimized = event.type() == QtCore.QEvent.Type.WindowStateChange and self.isMinimized()
        # Where there is no icon, it would never be found again.
        if minimized and self._tray.is_there and self.settings.get("minimize_to_tray", False):
            QtCore.QTimer.singleShot(0, self.hide)

    def _follow_limits(self) -> None:
        """Also while hidden or frozen."""
        readings = self.measurement.readings
        limits = () if readings is None else readings.limits
        values = {} if readings is None else readings.row or {}
        if self._alarm_of != self.measurement.begun:
            self._alarm_of = self.measurement.begun
            self._alarm.begin_anew()
        if self.measurement.measuring:
            self._alarm.check(limits, values, self.settings.get("limit_sound", False))
        held = self._held
        of = worst(limits, values, held)
        told = [self.windowTitle()]
        if of is not None:
            told += [state_words(of, values, held), value_words(of, values)]
            told.append(forecast_words(of, values, held))
        state = "" if of is None else state_of(of, values, held)
        self._tray.tell(state, "\n".join(filter(None, told)))

    def _move(self) -> None:
        if self.docks and not self.area.is_seen:
            return
        view = self._refresh_view()
        if view is None or view.newest is self._drawn:
            return
        self._drawn = view.newest
        for pane in self.area.seen.values():
            pane.move(view)

    def _read(self) -> None:
        view = self._refresh_view()
        if not self._has_panes:
            return
        engine, readings = self.measurement.engine, self.measurement.readings
        if readings is not None and (rows := readings.take()):
            self.area.hand_on(rows)
        if engine is not None:
            self.area.hear(engine, readings)
        if view is None:
            return
        seen = self.area.seen
        for pane in seen.values():
            pane.read(view)
        self._judge()
        if seen:
            self.shown = ShownTexts(view, {name: pane.texts() for name, pane in seen.items()})
        self._show_wall()

    def _judge(self, hidden: bool = False) -> None:
        if self._view is None:
            return
        view = replace(self._view, held=self._held)
        for dock in self.docks.values():
            if dock.pane is not None and (hidden or dock.is_seen):
                dock.pane.judge(view)

    def _show_state(self) -> None:
        """Also while hidden: an engine that has ended by itself must be put away."""
        measurement = self.measurement
        measurement.poll()
        if self.frozen and measurement.begun != self._frozen_of:
            self.freeze()  # what was held is of a measurement that is no more
        self._name_actions()
        engine = measurement.engine
        health = engine.health if engine is not None else None
        note = health.note if health is not None and measurement.measuring else ""
        if note and health is not None and health.overloaded:
            note += TOO_SLOW
        if measurement.error:
            note = f"\N{WARNING SIGN} {measurement.error}"
        undone = UNDONE if measurement.can_undo_reset else ""
        if engine is not None and (reset := _last_reset(engine)) is not self._reset:
            self._reset = reset
            self.message.say_again(UNDONE)
        self.message.say((note, self._told, self.settings.trouble), undone)
        self.first_start.give_way(bool(self.message.text) and self.height() < ROOMY)
        self._show_wall()
        self._follow_limits()
        self.bar.elapsed.setText(elapsed_text(measurement.measured_s))
        if engine is None:
            self.status.setText(measurement.state)
            starting = "\n".join(filter(None, (STARTING, compiling.note)))
            self.waiting.setText(starting if measurement.busy else "Nothing is measured.")
            return
        made_of = measurement.made_of
        if measurement.measuring and made_of.device is None and made_of.file is None:
            self.device.name_first(engine.source.name)
        log = log_in(engine)
        self.bar.log.setText(self._log_watch.words(log))
        self.actions_by_name["log"].setChecked(log is not None)
        self._show_calibration(engine)
        state = measurement.state
        self.status.setText(status_text(engine, state, measurement.measured_s))
        self.setWindowTitle(title_text(engine, state, self._view))
        if not measurement.measuring or self.frozen:
            self._judge()  # what has come in sight meanwhile

    def _show_calibration(self, engine: "Engine") -> None:
        pascal = any(map(takes_pascal, engine.models.values()))
        known = all(one.calibrated for one in engine.calibration)
        doubted = pascal and not known
        self.bar.calibration.show_words(["uncalibrated"] if doubted else [], doubted)
        reminder = reminder_of(engine.calibration)
        calibrated = "calibrated, overdue" if reminder else "calibrated"
        self.bar.calibrated.setText(calibrated if pascal and known else "")
        about = ". ".join(filter(None, (calibration_words(engine.calibration), reminder)))
        for label in (self.bar.calibration, self.bar.calibrated):
            label.setToolTip(plain(about))

    def _name_actions(self) -> None:
        measurement, actions = self.measurement, self.actions_by_name
        measuring, busy = measurement.measuring, measurement.busy
        actions["pause"].setText("&Continue" if measurement.paused else "&Pause")
        goes_on = "&Continue" if measurement.can_go_on else "&Start"
        actions["stop"].setText("&Stop" if measuring else goes_on)
        # One button goes on, and after a stop that one has both keys.
        actions["stop"].setShortcuts(self._stop_keys[0 if measuring else 1])
        actions["pause"].setEnabled(measuring and not busy)
        for name in ("stop", "anew"):
            actions[name].setEnabled(not busy)
        self.device.setEnabled(not busy)
        for name in ("reset_readings", "reset_filters", "mark"):
            actions[name].setEnabled(measuring)
        actions["undo_reset"].setEnabled(measurement.can_undo_reset)

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:
        if not self._sure:
            asked = False

            def close() -> None:
                self._sure = True
                if asked:
                    self.close()

            self.controls.unless_lost("Close the meter?", "Close", close)
            asked = True
            if not self._sure:
                event.ignore()
                return
        self.area.keep()
        self._keep_place()
        self._tray.show_if(False)
        self.wall_view.close()
        for timer in self._timers:
            timer.stop()
        self.hide()
        self.area.leave()
        self.device.close_listing()
        self.measurement.close()
        event.accept()

    def exit_code(self) -> int:
        """What the program returns when the window closes now."""
        error, engine = self.measurement.error, self.measurement.engine
        if error is None:
            return 0
        lost = engine is not None and engine.error is error and engine.device_state == "lost"
        return LOST if lost else FAILED


def _last_reset(engine: "Engine") -> "Event | None":
    return next((one for one in reversed(engine.events) if one.kind == "readings_reset"), None)
