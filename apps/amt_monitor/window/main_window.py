"""The main window: commands, panes and the state of one measurement."""

from typing import Any, NamedTuple

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.actions.calibration_actions import CalibrationActions
from amt_monitor.actions.channels_menu import ChannelsMenu
from amt_monitor.actions.file_actions import FileActions
from amt_monitor.actions.layouts_menu import LayoutsMenu
from amt_monitor.actions.limit_actions import ChangeLimits, LimitActions
from amt_monitor.actions.measurement_actions import MakeLog, MeasurementActions
from amt_monitor.actions.models_menu import ModelsMenu, model_names
from amt_monitor.actions.presets_menu import PresetOf, PresetsMenu
from amt_monitor.actions.reading_actions import ReadingActions
from amt_monitor.actions.recent_menu import RecentMenu
from amt_monitor.actions.shortcuts_dialog import ShortcutsDialog
from amt_monitor.actions.stipa_actions import StipaActions
from amt_monitor.actions.window_actions import WindowActions
from amt_monitor.actions.window_commands import WindowCommand
from amt_monitor.base.enter_key_filter import EnterKeyFilter
from amt_monitor.base.settings import Settings
from amt_monitor.base.theme import theme
from amt_monitor.base.widgets import SteadyBox
from amt_monitor.dialogs.settings_dialog import SettingsDialog
from amt_monitor.panes.venue_pane import NAME as VENUE
from amt_monitor.window.limit_alarm import LimitNotifier
from amt_monitor.window.main_menu import MainMenu
from amt_monitor.window.pane_area import PaneArea
from amt_monitor.window.pane_docks import color_tabs, on_screen
from amt_monitor.window.pane_updater import PaneUpdater
from amt_monitor.window.state_view import StateView
from amt_monitor.window.tray_icon import TrayIcon
from amt_monitor.window.update_pacer import TimedUpdate, UpdatePacer
from amt_monitor.window.wall import Wall
from amt_monitor.window.wall_view import WallView
from amt_monitor.window.window_place import WindowPlace
from amt_stream.meters.presets import Preset
from amt_stream.views.log_status import log_in
from amt_stream.views.measurement_control import MakeEngine, MeasurementControl
from amt_stream.views.status_text import title_text

SEEN_MS, HIDDEN_MS = (33, 200, 400, 2000), (250, 1000, 1000, 2000)
"""Between two updates of curves, numbers, state and stored layout, seen and hidden."""

FIT_MS = 100
"""From the last change of the window's size to a layout that has room in it."""

USUAL = QtCore.QSize(1280, 800)

LOST, FAILED = 3, 1

ROOMY = 700
"""Pixels of height: a lower window has no room for a message and the first steps together."""

BUTTONS = ("pause", "stop", "reset_readings", "mark", "log", "freeze")


class Targets(NamedTuple):
    """What runs the commands, as `WindowCommand.target` names them."""

    window: "MainWindow"
    files: FileActions
    measurement: MeasurementActions
    readings: ReadingActions
    limits: LimitActions
    calibration: CalibrationActions
    wall: Wall
    sti: StipaActions


class MainWindow(QtWidgets.QMainWindow):
    """Panes in docks; the commands above them, the status line below.

    It starts to measure at once; `close` stops the engine and waits for it.

    make_engine: makes a new engine for a request, not yet started
    make_log: makes a log; without it, only logs from the beginning of a measurement are possible
    preset_of: returns the preset of an engine; without it, none can be saved
    change_limits: lets other limits judge a running engine; without it, a new one begins
    """

    def __init__(
        self,
        make_engine: MakeEngine,
        make_log: MakeLog | None = None,
        settings: Settings | None = None,
        preset_of: PresetOf | None = None,
        change_limits: ChangeLimits | None = None,
    ) -> None:
        super().__init__()
        self.setObjectName("amt_monitor")
        self.setMinimumSize(800, 520)
        # The frame is known only after the window is shown.
        title_bar = self.style().pixelMetric(QtWidgets.QStyle.PixelMetric.PM_TitleBarHeight)
        self.resize(USUAL.boundedTo(self.screen().availableSize() - QtCore.QSize(0, title_bar)))
        self.settings = settings or Settings()
        self.measurement = MeasurementControl(make_engine)
        self._preset_of = preset_of
        self.wall_view = WallView()
        self.wall_view.closed.connect(self.activateWindow)
        self.actions_by_name = WindowActions((self, self.wall_view), self._run)
        self.area = PaneArea(self, self.settings, self.actions_by_name["choose_limits"].trigger)
        self.updater = PaneUpdater(
            self.area, self.measurement, lambda: self.menus.list_panes(self.area.docks.values())
        )
        tray = TrayIcon(self)
        tray.asked.connect(self._come_back)
        self.limits = LimitNotifier(tray, QtWidgets.QApplication.beep)
        self._build_state_view()
        self._build_actions(make_log, change_limits)
        self._build_menus()
        self._close_unasked = False
        self._before_venue = ""
        theme.changed.connect(self._color_tabs)
        self._take_settings()
        self._place = WindowPlace(self, self.settings)
        updates = self._draw, self._read, self.show_state, self._keep_layout
        self._pacer = UpdatePacer(
            self,
            [*map(TimedUpdate, updates, SEEN_MS, HIDDEN_MS)],
            lambda: self.area.is_seen or self.wall_view.isVisible() or on_screen(self),
            self._catch_up,
        )
        self._fit_timer = QtCore.QTimer(self, singleShot=True, interval=FIT_MS)
        self._fit_timer.timeout.connect(self.area.fit_window)
        # Else a button would have the focus at first, and Enter in haste would press it.
        self.setFocus()
        self.device.refresh()
        self.targets.limits.begin_first()

    def _build_state_view(self) -> None:
        buttons = [self.actions_by_name[name] for name in BUTTONS]
        self.state_view = StateView(self.menuBar(), buttons, self.settings)
        self.bar, self.message = self.state_view.bar, self.state_view.message
        self.device, self.first_start = self.bar.device, self.state_view.getting_started
        self.message.undo.clicked.connect(lambda _: self.targets.readings.undo_reset())
        self.first_start.closed.connect(self._has_started)
        self.first_start.input_asked.connect(self.device.open_list)
        self.first_start.calibration_asked.connect(self.actions_by_name["calibrate"].trigger)
        if not self.settings.get("started", False):
            self.first_start.ask()
        self.setMenuWidget(self.state_view)
        self.setCentralWidget(self.state_view.waiting)
        self.statusBar().addWidget(SteadyBox(self.state_view.line), 1)
        self.statusBar().setContentsMargins(6, 0, 8, 0)
        self.statusBar().setSizeGripEnabled(False)
        EnterKeyFilter(self)

    def _build_actions(self, make_log: MakeLog | None, change_limits: ChangeLimits | None) -> None:
        controls = MeasurementActions(
            self,
            self.measurement,
            self.settings,
            self.device,
            make_log=make_log,
            front=lambda: self._front,
        )
        controls.changed.connect(self.show_state)
        controls.message.connect(self.say)
        controls.made.connect(self.first_start.finish)
        self.device.chosen.connect(controls.change_input)
        files = FileActions(
            self,
            self.settings,
            front=lambda: self._front,
            play=controls.play,
            now=self.updater.results,
            logged=lambda: controls.log_of_all,
            models=lambda: model_names(self.measurement.engine),
            tell=self.say,
        )
        limits = LimitActions(controls, change_limits, self._preset)
        calibration = CalibrationActions(controls)
        wall = Wall(self.wall_view, self.updater, self.state_view, self.settings)
        readings = ReadingActions(controls)
        sti = StipaActions(controls)
        self.targets = Targets(self, files, controls, readings, limits, calibration, wall, sti)
        self.bar.calibration.clicked.connect(
            lambda: calibration.calibrate(self.state_view.why_uncalibrated)
        )

    def _build_menus(self) -> None:
        self.menus = MainMenu(
            self.state_view.menu_bar,
            self.actions_by_name,
            RecentMenu(self.settings, self),
            ModelsMenu(
                lambda: self.measurement.engine,
                self.targets.measurement.choose_models,
                self.targets.measurement.set_models,
            ),
            ChannelsMenu(self.measurement, self.targets.measurement.choose_sound),
            PresetsMenu(self.settings, self._preset, self.targets.limits.choose_preset, self.say),
            self.targets.wall.menu,
            LayoutsMenu(
                self.settings,
                lambda: self.area.name,
                self.area.layout,
                self.area.restore,
                self.area.restore_default,
            ),
            self.choose_theme,
        )
        self.menus.recent.chosen.connect(self.targets.files.open_path)

    def _preset(self) -> Preset | None:
        engine = self.measurement.engine
        if engine is None or self._preset_of is None:
            return None
        return self._preset_of(engine)

    def _run(self, command: WindowCommand) -> None:
        getattr(getattr(self.targets, command.target), command.name)()

    @property
    def _front(self) -> QtWidgets.QWidget:
        """The window that dialogs stand over."""
        return self.wall_view if self.wall_view.isVisible() else self

    def choose_theme(self, choice: Any) -> None:
        theme.choose(choice)
        self.settings.put(theme=choice)

    def freeze(self) -> None:
        """Freeze the panes while the measurement continues, or release them."""
        self.updater.freeze(not self.updater.frozen)
        self.actions_by_name["freeze"].setChecked(self.updater.frozen)

    def venue(self) -> None:
        """Show the panes of a venue, or the layout before; measure with its preset first."""
        if VENUE not in self.area.docks:
            self._before_venue = ""
            self.targets.limits.choose_venue()
        elif self._before_venue:
            self.area.restore(self._before_venue)
            self._before_venue = ""
        else:
            self._before_venue = self.area.layout()
            self.area.restore_default()

    def keys(self) -> None:
        ShortcutsDialog(self._front).open()

    def export(self) -> None:
        pane = self.updater.history
        if pane is None:
            self.say("there is no history to export")
            return
        self.area.docks["history"].show()
        self.area.docks["history"].raise_()
        pane.save.showMenu()

    def quit(self) -> None:
        self.close()

    def close_now(self) -> None:
        self._close_unasked = True
        self.close()

    def say(self, sentence: str) -> None:
        self.state_view.say(sentence)
        self.show_state()

    def _keep_layout(self) -> None:
        """Store layout and place, often: a program that is killed loses nothing."""
        self.area.keep()
        self._place.keep()

    def choose_settings(self) -> None:
        available = QtWidgets.QSystemTrayIcon.isSystemTrayAvailable()
        SettingsDialog(self.settings, self._take_settings, self._front, available).open()

    def first_steps(self) -> None:
        self.first_start.ask()

    def _has_started(self) -> None:
        if not self.settings.get("started", False):
            self.settings.put(started=True)
            self.area.restore_default()  # there is more room now

    def _take_settings(self) -> None:
        self.limits.tray.show_if(self.settings.get("tray", False))
        if (choice := self.settings.get("theme", theme.choice)) != theme.choice:
            theme.choose(choice)
        self.menus.check_theme()

    def _come_back(self) -> None:
        self.setWindowState(self.windowState() & ~QtCore.Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def childEvent(self, event: QtCore.QChildEvent) -> None:
        super().childEvent(event)
        if event.polished() and isinstance(event.child(), QtWidgets.QTabBar):
            self._color_tabs()  # Qt makes a tab bar when docks need one

    def _color_tabs(self) -> None:
        color_tabs(self)

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        super().paintEvent(event)
        if theme.colors.framed:
            painter = QtGui.QPainter(self)
            painter.setPen(QtGui.QColor(theme.colors.outline))
            for dock in self.area.docks.values():
                if dock.isVisible():
                    painter.drawRect(dock.geometry().adjusted(-1, -1, 0, 0))

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_timer.start()

    def changeEvent(self, event: QtCore.QEvent) -> None:
        super().changeEvent(event)
        minimized = event.type() == QtCore.QEvent.Type.WindowStateChange and self.isMinimized()
        # Without an icon, a hidden window could not be found again.
        if minimized and self.limits.tray.is_there and self.settings.get("minimize_to_tray", False):
            QtCore.QTimer.singleShot(0, self.hide)

    def _draw(self) -> None:
        if not self._pacer.seen:
            self._pacer.look()
        self.updater.draw()

    def _read(self) -> None:
        self._pacer.look()
        self.read()

    def _catch_up(self) -> None:
        self.read()
        self.show_state()

    def read(self) -> None:
        self.updater.read()
        self.targets.wall.show()

    def show_state(self) -> None:
        """Show how the measurement stands, also while hidden: an engine may end by itself."""
        measurement, updater = self.measurement, self.updater
        measurement.poll()
        if updater.is_outdated:
            self.freeze()
        self.actions_by_name.show_state(measurement)
        self.state_view.show_state(measurement, self.height() < ROOMY, self.updater.frozen)
        if self.area.has_other_room:  # a banner or a message takes room too
            self._fit_timer.start()
        self.targets.wall.show()
        engine, state = measurement.engine, measurement.state
        if engine is not None:
            self.actions_by_name["log"].setChecked(log_in(engine) is not None)
            title = title_text(engine, state, updater.view)
            if title != self.windowTitle():  # Qt tells the window manager even of the same title
                self.setWindowTitle(title)
            if not measurement.measuring or self.updater.frozen:
                updater.show_status()  # panes that were opened meanwhile
        sound = self.settings.get("limit_sound", False)
        self.limits.show_state(measurement, updater.held, self.windowTitle(), sound)

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:
        if not self._close_unasked:
            asked = False

            def close() -> None:
                self._close_unasked = True
                if asked:
                    self.close()

            self.targets.measurement.unless_lost("Close the meter?", "Close", close)
            asked = True
            if not self._close_unasked:
                event.ignore()
                return
        self._keep_layout()
        self.limits.tray.show_if(False)
        self.wall_view.close()
        self._pacer.stop()
        self.hide()
        self.area.leave()
        self.device.close_listing()
        self.measurement.close()
        event.accept()

    def exit_code(self) -> int:
        """The program's exit code if the window closes now."""
        error, engine = self.measurement.error, self.measurement.engine
        if error is None:
            return 0
        lost = engine is not None and engine.error is error and engine.device_state == "lost"
        return LOST if lost else FAILED
