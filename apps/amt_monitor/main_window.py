"""The window: it pulls from a measurement by timers and shows what it finds in panes."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.calibration_list import CalibrationList
from amt_monitor.commands import COMMANDS
from amt_monitor.docks import VERSION, Dock, lay_out
from amt_monitor.enter_presses import EnterPresses
from amt_monitor.file_desk import FileDesk
from amt_monitor.first_start import FirstStart
from amt_monitor.history_pane import HistoryPane
from amt_monitor.keys_sheet import KeysSheet
from amt_monitor.kinds import kinds_of
from amt_monitor.layouts_menu import LayoutsMenu
from amt_monitor.limit_alarm import LimitAlarm
from amt_monitor.limit_words import forecast_words, state_of, state_words, value_words, worst
from amt_monitor.live_results import results_of
from amt_monitor.log_watch import LogWatch, log_in
from amt_monitor.look import Look
from amt_monitor.measurement import MakeEngine, Measurement, Wanted
from amt_monitor.message_line import MessageLine
from amt_monitor.models_menu import ModelsMenu, running_models, swap_models
from amt_monitor.recent_menu import RecentMenu
from amt_monitor.settings import Settings
from amt_monitor.settings_dialog import SettingsDialog
from amt_monitor.status import status_text, title_text
from amt_monitor.theme import CHOICES, theme
from amt_monitor.top_bar import TopBar, clock, plain_label
from amt_monitor.tray import Tray
from amt_monitor.wall_view import WallMenu, WallView, wall_numbers
from amt_stream.calibration import in_words, reminder_of
from amt_stream.contract import takes_pascal
from amt_stream.events import keeper_in
from amt_stream.plain import plain
from amt_stream.refusal import Refusal

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Frames
    from amt_stream.results import Results
    from amt_stream.rows import Rows
    from amt_stream.session import SessionLog

CURVES_MS, NUMBERS_MS, STATE_MS = 33, 200, 400
FREE_MS = 50
LOST, FAILED = 3, 1
ASK_S = 60.0
"""Readings of so long are not thrown away unasked."""

STARTING = (
    "The models are being made ready.\n"
    "The first time after an installation they are compiled, which takes about a minute."
)

BUTTONS = ("pause", "stop", "clear", "mark", "log", "freeze")

MakeLog = Callable[["Engine", Path | None], "SessionLog"]
"""Makes a log of what an engine measures, in a folder, or where logs usually are."""


@dataclass(frozen=True)
class Shown:
    """Texts on the screen, by name of their pane, and what they were read from."""

    look: Look
    texts: dict[str, tuple[str, ...]]

    @property
    def frames(self) -> "Frames":
        return self.look.newest


class MainWindow(QtWidgets.QMainWindow):
    """Panes in docks; above them what is done with the measurement, below them how it stands.

    It starts to measure at once; `close` stops the engine and waits for it.

    make_engine: a new engine, not yet started, for what is wanted
    make_log: without, nothing can be logged that is not from the beginning
    """

    _refused = QtCore.Signal(str)

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
        self.setDockNestingEnabled(True)
        self.settings = settings or Settings()
        self.measurement = Measurement(make_engine)
        self._make_log = make_log
        self._log_watch = LogWatch()
        self.frozen = False
        self.shown: Shown | None = None
        self.docks: dict[str, Dock] = {}
        self._look: Look | None = None
        self._drawn: Frames | None = None
        self._panes_of: tuple[int, Any] | None = None
        self._told = ""
        self._sure = False
        self._refused.connect(self._tell)
        self._alarm = LimitAlarm(QtWidgets.QApplication.beep)
        self._tray = Tray(self)
        self._tray.asked.connect(self._come_back)
        self._build()
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
        self._begin(Wanted())

    def _build(self) -> None:
        self.wall_view = WallView()
        self.wall_view.closed.connect(self.activateWindow)
        self.actions_by_name: dict[str, QtGui.QAction] = {}
        for command in COMMANDS:
            action = QtGui.QAction(command.text, self)
            action.setObjectName(command.name)
            action.setShortcuts([QtGui.QKeySequence(key) for key in command.keys])
            action.setToolTip(f"{command.about} ({command.key})")
            action.setCheckable(command.checked)
            action.triggered.connect(partial(self._do, command.name))
            self.addAction(action)
            self.wall_view.addAction(action)
            self.actions_by_name[command.name] = action
        self.bar = TopBar([self.actions_by_name[name] for name in BUTTONS])
        self.device = self.bar.device
        self.device.chosen.connect(self._change_input)
        self.message, self.status = MessageLine(), plain_label("status")
        head = QtWidgets.QWidget()
        column = QtWidgets.QVBoxLayout(head)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self._menus()
        column.addWidget(self.menuBar())
        column.addWidget(self.bar)
        column.addWidget(self.message)
        self.first_start = FirstStart()
        self.first_start.setVisible(not self.settings.get("started", False))
        self.first_start.closed.connect(self._has_started)
        column.addWidget(self.first_start)
        self.setMenuWidget(head)
        self.waiting = plain_label("waiting")
        self.waiting.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
        self.waiting.setWordWrap(True)
        self.setCentralWidget(self.waiting)
        self.statusBar().addWidget(self.status, 1)
        self.statusBar().setSizeGripEnabled(False)
        EnterPresses(self)
        self.desk = FileDesk(
            self,
            self.settings,
            play=self.play,
            now=self._results,
            logged=self._logged,
            options=self._options,
            tell=self._tell,
        )
        self.recent_menu.chosen.connect(self.desk.open_path)

    def _menus(self) -> None:
        menus = {name: self.menuBar().addMenu(f"&{name}") for name in ("File", "Measure", "View")}
        self._view_menu = menus["View"]
        menus["Help"] = self.menuBar().addMenu("&Help")
        for command in COMMANDS:
            menus[command.menu].addAction(self.actions_by_name[command.name])
        self.recent_menu = RecentMenu(self.settings, self)
        menus["File"].insertMenu(self.actions_by_name["save_session"], self.recent_menu)
        self._models_menu = ModelsMenu(
            lambda: self.measurement.engine, self.choose_models, self.set_models
        )
        menus["Measure"].addMenu(self._models_menu)
        self._wall_menu = WallMenu(
            lambda: self._look, lambda: [*self.wall_view.numbers], self._choose_for_wall
        )
        self._view_menu.addMenu(self._wall_menu)
        self.wall_view.customContextMenuRequested.connect(
            lambda place: self._wall_menu.popup(self.wall_view.mapToGlobal(place))
        )
        self._view_menu.addSeparator()
        self._layouts_menu = LayoutsMenu(
            self.settings,
            lambda: self._layout_name,
            self._layout,
            self._restore_layout,
            self.lay_out_anew,
        )
        self._view_menu.addMenu(self._layouts_menu)
        themes = self._view_menu.addMenu("&Colors")
        self._themes = group = QtGui.QActionGroup(self)
        for choice in CHOICES:
            action = themes.addAction(choice.capitalize(), lambda c=choice: self.choose_theme(c))
            action.setCheckable(True)
            action.setData(choice)
            group.addAction(action)
        self._panes_menu = self._view_menu.addMenu("&Panes")

    def choose_models(self, names: tuple[str, ...]) -> None:
        """Measure with other models, from nothing."""
        wanted = replace(self.measurement.wanted, models=names, past=None, log=None)
        begin = partial(self._begin, wanted)
        self._unless_lost("Measure with other models?", "Begin", begin)

    def set_models(self, setting: str, word: str) -> None:
        """Set the models otherwise while they run; they are made in the background."""
        measurement = self.measurement
        engine = measurement.engine
        if engine is not None and measurement.measuring:
            settings = dict(measurement.wanted.settings) | {setting: word}
            measurement.wanted = replace(measurement.wanted, settings=settings)
            self._in_background("swap", lambda: swap_models(engine, setting, word))

    def choose_theme(self, choice: Any) -> None:
        """Paint in other colors, from now on."""
        theme.choose(choice)
        self.settings.put(theme=choice)

    def _do(self, name: str, *_: object) -> None:
        getattr(self if hasattr(self, name) else self.desk, name)()

    def pause(self) -> None:
        """Pause, or go on."""
        if self.measurement.paused or not self.measurement.measuring:
            self._go_on()
        else:
            self.measurement.pause()
        self._show_state()

    def stop(self) -> None:
        """Stop; go on where it is stopped."""
        if self.measurement.measuring:
            self.measurement.stop()
        else:
            self._go_on()
        self._show_state()

    def _go_on(self) -> None:
        if self.measurement.paused or self.measurement.can_go_on:
            self.measurement.go_on()
        elif not self.measurement.measuring:
            self._begin(replace(self.measurement.wanted, past=None, log=None))

    def anew(self) -> None:
        """Begin from nothing."""
        wanted = replace(self.measurement.wanted, past=None, log=None)
        self._unless_lost("Begin a new measurement?", "Begin", lambda: self._begin(wanted))

    def clear(self) -> None:
        """Forget what was counted."""
        engine = self.measurement.engine
        if engine is not None and self.measurement.measuring:
            self._unless_lost("Reset the readings?", "Reset", engine.clear)

    def reset(self) -> None:
        """Models back to silence; the clock goes on."""
        if self.measurement.engine is not None and self.measurement.measuring:
            self.measurement.engine.reset()

    def mark(self) -> None:
        """Ask for a note, and keep the moment at which it was asked for."""
        engine = self.measurement.engine
        if engine is None or not self.measurement.measuring:
            return
        count = sum(event.kind == "mark" for event in engine.events) + 1
        at = clock(self._look.newest.time_s[-1]) if self._look else clock(0)
        dialog = QtWidgets.QInputDialog(self._front)
        dialog.setWindowTitle("Marker")
        dialog.setLabelText(f"Note at {at}")
        dialog.setTextValue(f"mark {count}")
        dialog.textValueSelected.connect(engine.mark)
        dialog.open()

    def log(self) -> None:
        """Log from here on, or no more."""
        engine = self.measurement.engine
        if engine is None or not self.measurement.measuring:
            self._tell("nothing is measured, so there is nothing to log: start a measurement first")
        elif (log := log_in(engine)) is not None:
            engine.detach(log)
            self.measurement.wanted = replace(self.measurement.wanted, log=None)
        elif self._make_log is None:
            self._tell("this program has no place for logs")
        else:
            try:
                log = self._make_log(engine, self._folder)
            except (Refusal, OSError) as error:
                self._tell(str(error))
            else:
                engine.attach(log, log.table.rows.begin)
                self.measurement.wanted = replace(self.measurement.wanted, log=log.path)
                self.settings.add_recent(log.path)
        self._show_state()

    def replay(self) -> None:
        """Have the last of the sound written; the event of it tells where."""
        engine = self.measurement.engine
        keeper = keeper_in(engine.sinks) if engine is not None else None
        if keeper is None:
            self._tell(
                "no sound is kept: let it be kept, in File > Settings, and begin a new measurement"
            )
            return
        self._in_background("replay", keeper.replay)

    def calibrate(self) -> None:
        """Let the input go and calibrate it; then measure anew with what is kept, or go on."""
        self._unless_lost("Calibrate a microphone?", "Calibrate", self._calibrate)

    def _calibrate(self) -> None:
        # Its source brings torch; a window is seen before that.
        from amt_stream.engine.microphone import MicrophoneSource

        measurement = self.measurement
        wanted, engine = measurement.wanted, measurement.engine
        device = wanted.device
        if device is None and engine is not None and isinstance(engine.source, MicrophoneSource):
            heard = engine.source.device
            device = heard.name if heard.has_index else heard.behind
        was_measuring = measurement.measuring
        if was_measuring:
            measurement.stop()
        self._once_free(lambda: self._open_wizard(device, wanted, was_measuring))

    def _once_free(self, action: Callable[[], object]) -> None:
        """Do what needs the input, when nothing holds it any more."""
        self.measurement.poll()
        if self.measurement.busy:
            QtCore.QTimer.singleShot(FREE_MS, lambda: self._once_free(action))
        elif self.isVisible():
            action()

    def _open_wizard(self, device: str | int | None, wanted: Wanted, goes_on: bool) -> None:
        from amt_monitor.calibration_wizard import CalibrationWizard

        wizard = CalibrationWizard(self, device)
        kept: list[str] = []
        wizard.kept.connect(kept.append)

        def go_on(_: int) -> None:
            wizard.deleteLater()
            if kept:
                self._begin(replace(wanted, past=None, log=None))
            elif goes_on:
                self._go_on()

        wizard.finished.connect(go_on)
        wizard.open()

    def calibrations(self) -> None:
        """Show what is kept of every microphone."""
        kept = CalibrationList(self)
        kept.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        kept.open()

    def freeze(self) -> None:
        """Hold the picture; the measurement goes on behind it."""
        self.frozen = not self.frozen
        self.actions_by_name["freeze"].setChecked(self.frozen)
        self._judge()

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
        if self.wall_view.isVisible() and self._look is not None:
            look = replace(self._look, held=self._held)
            self.wall_view.choose(wall_numbers(look, self.settings.get("wall", [])))
            self.wall_view.read(look, self.message.text)

    def _choose_for_wall(self, names: list[str]) -> None:
        self.settings.put(wall=names)
        self._show_wall()

    @property
    def _front(self) -> QtWidgets.QWidget:
        """Above which a question is to stand."""
        return self.wall_view if self.wall_view.isVisible() else self

    def keys(self) -> None:
        KeysSheet(self._front).open()

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
        if engine is None or readings is None or dock is None:
            return None
        if not isinstance(dock.pane, HistoryPane):
            return None
        if rows := readings.take():
            self._hand_on(rows)
        return results_of(engine, readings, dock.pane.past)

    def _logged(self) -> Path | None:
        log = log_in(self.measurement.engine)
        return None if log is None else log.path

    def _options(self) -> list[str]:
        """Of `amt-stream analyze`, for a file: the models that run here."""
        engine = self.measurement.engine
        names = [] if engine is None else [*running_models(engine)]
        return ["--model", ",".join(names)] if names else []

    def play(self, path: Path) -> None:
        """Measure a sound file as it sounds."""
        wanted = Wanted(file=path)
        self._unless_lost(f"Play {path.name}?", "Play", lambda: self._begin(wanted))

    def quit(self) -> None:
        self.close()

    def close_now(self) -> None:
        """Close without asking."""
        self._sure = True
        self.close()

    def lay_out_anew(self) -> None:
        """As it is usual."""
        lay_out(self, list(self.docks.values()))

    def _change_input(self) -> None:
        wanted = Wanted(device=self.device.device)

        def stay() -> None:
            self.device.choose(self.measurement.wanted.device)

        self._unless_lost(
            "Measure with another input?", "Change", lambda: self._begin(wanted), stay
        )

    def _begin(self, wanted: Wanted) -> None:
        keep_s = float(self.settings.get("keep_s", 0))
        self.measurement.begin(replace(wanted, keep_s=keep_s, folder=self._folder))
        self._show_state()

    def _unless_lost(
        self,
        question: str,
        verb: str,
        action: Callable[[], object],
        otherwise: Callable[[], object] = lambda: None,
    ) -> None:
        """Do what throws readings away; ask first where these are many, and in no log."""
        measured_s = self.measurement.measured_s
        if measured_s < ASK_S or log_in(self.measurement.engine) is not None:
            action()
            return
        box = QtWidgets.QMessageBox(self._front)
        box.setObjectName("question")
        box.setText(question)
        box.setInformativeText(f"The readings of {clock(measured_s)} are in no log: they are lost.")
        role = QtWidgets.QMessageBox.ButtonRole
        yes = box.addButton(verb, role.DestructiveRole)
        box.addButton("Cancel", role.RejectRole)
        box.finished.connect(lambda _: action() if box.clickedButton() is yes else otherwise())
        box.open()

    def _tell(self, sentence: str) -> None:
        """Say something until the next is said."""
        self._told = sentence
        self._show_state()

    def _in_background(self, name: str, work: Callable[[], object]) -> None:
        """Do what waits for a disk; what it refuses is said."""

        def run() -> None:
            try:
                work()
            except (Refusal, ValueError) as refusal:
                self._refused.emit(str(refusal))

        threading.Thread(target=run, name=name, daemon=True).start()

    @property
    def on_screen(self) -> bool:
        """False while it is hidden, minimized or on a screen that is off."""
        handle = self.windowHandle()
        return not self.isMinimized() and handle is not None and handle.isExposed()

    def _seen(self) -> list[Dock]:
        return [dock for dock in self.docks.values() if dock.is_seen]

    def _look_again(self) -> Look | None:
        measurement = self.measurement
        if measurement.engine is None or self.frozen:
            return None
        # What is held is only told when it is judged: to ask for the state so often costs much.
        look = Look.at(measurement.engine, measurement.readings, ())
        if look is not None:
            self._look = look
            self._fit_panes(look)
        return look

    @property
    def _held(self) -> list[str]:
        state = self.measurement.state
        return ([] if state == "running" else [state]) + (["frozen"] if self.frozen else [])

    def _fit_panes(self, look: Look) -> None:
        """Make docks for what is measured, where that has changed."""
        names = None if look.readings is None else tuple(look.readings.models)
        of = self.measurement.begun, names
        if of == self._panes_of:
            return
        same = self._panes_of is not None and self._panes_of[1] == names and names is not None
        self._panes_of = of
        if same:
            for dock in self.docks.values():
                if dock.pane is not None:
                    dock.pane.begin_anew()
            return
        self._keep_layout()
        for dock in self.docks.values():
            self.removeDockWidget(dock)
            dock.leave()
        self.waiting.hide()
        self.docks = {kind.name: Dock(kind) for kind in kinds_of(look, self.settings)}
        for dock in self.docks.values():
            if dock.kind.always:
                dock.fill()
        self._panes_menu.clear()
        for dock in self.docks.values():
            self._panes_menu.addAction(dock.toggleViewAction())
        self.lay_out_anew()
        kept = self.settings.get("layouts", {}).get(self._layout_name)
        if isinstance(kept, str):
            self._restore_layout(kept)

    @property
    def _layout_name(self) -> str:
        return " ".join(sorted(self.docks))

    def _layout(self) -> str:
        return bytes(self.saveState(VERSION).toBase64().data()).decode()

    def _restore_layout(self, text: str) -> None:
        self.restoreState(QtCore.QByteArray.fromBase64(text.encode()), VERSION)

    def _keep_place(self) -> None:
        place = bytes(self.saveGeometry().toBase64().data()).decode()
        self.settings.put(place=place)

    def _restore_place(self) -> None:
        if place := self.settings.get("place", ""):
            # Qt brings it back to a screen that there is.
            self.restoreGeometry(QtCore.QByteArray.fromBase64(place.encode()))

    @property
    def _folder(self) -> Path | None:
        """Where logs and sounds are, if somebody has said so."""
        text = self.settings.get("log_folder", "")
        return Path(text) if text else None

    def choose_settings(self) -> None:
        """Ask for what is set once for all measurements."""
        available = QtWidgets.QSystemTrayIcon.isSystemTrayAvailable()
        SettingsDialog(self.settings, self._take_settings, self._front, available).open()

    def first_steps(self) -> None:
        """Show what a person needs to know at the first start."""
        self.first_start.show()

    def _has_started(self) -> None:
        if not self.settings.get("started", False):
            self.settings.put(started=True)
            self.lay_out_anew()  # there is more room now

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
        if self.measurement.measuring:
            self._alarm.look(limits, values, self.settings.get("limit_sound", False))
        of = worst(limits, values)
        told = [self.windowTitle()]
        if of is not None:
            told += [state_words(of, values), value_words(of, values), forecast_words(of, values)]
        self._tray.tell("" if of is None else state_of(of, values), "\n".join(filter(None, told)))

    def _keep_layout(self) -> None:
        if self.docks:
            kept = self.settings.get("layouts", {}) | {self._layout_name: self._layout()}
            self.settings.put(layouts=kept)

    def _move(self) -> None:
        seen = self._seen()
        if not seen and self.docks:
            return
        look = self._look_again()
        if look is None or look.newest is self._drawn:
            return
        self._drawn = look.newest
        for dock in seen:
            if dock.pane is not None:
                dock.pane.move(look)

    def _read(self) -> None:
        readings = self.measurement.readings
        if readings is not None and (rows := readings.take()):
            self._hand_on(rows)
        look = self._look_again()
        if look is None:
            return
        texts = {}
        for dock in self._seen():
            if dock.pane is not None:
                dock.pane.read(look)
                texts[dock.kind.name] = dock.pane.texts()
        if texts:
            self.shown = Shown(look, texts)
        self._judge()
        self._show_wall()

    def _hand_on(self, rows: "list[Rows]") -> None:
        """Let all panes have new rows, also those that are not seen."""
        for dock in self.docks.values():
            if dock.pane is not None:
                dock.pane.take(rows)

    def _judge(self) -> None:
        if self._look is None:
            return
        look = replace(self._look, held=self._held)
        for dock in self._seen():
            if dock.pane is not None:
                dock.pane.judge(look)

    def _show_state(self) -> None:
        """Also while hidden: an engine that has ended by itself must be put away."""
        measurement = self.measurement
        measurement.poll()
        self._name_actions()
        engine = measurement.engine
        health = engine.health if engine is not None else None
        note = health.note if health is not None and measurement.measuring else ""
        if measurement.error:
            note = f"\N{WARNING SIGN} {measurement.error}"
        self.message.say((note, self._told, self.settings.trouble))
        self._show_wall()
        self._follow_limits()
        self.bar.elapsed.setText(clock(measurement.measured_s))
        if engine is None:
            self.status.setText(measurement.state)
            self.waiting.setText(STARTING if measurement.busy else "Nothing is measured.")
            return
        if measurement.measuring and self.device.device is None:
            self.device.name_first(engine.source.name)
        log = log_in(engine)
        self.bar.log.setText(self._log_watch.words(log))
        self.actions_by_name["log"].setChecked(log is not None)
        self._show_calibration(engine)
        state = measurement.state
        self.status.setText(status_text(engine, state, measurement.measured_s))
        values = self._look.values if self._look else {}
        self.setWindowTitle(title_text(engine, state, values))
        if not measurement.measuring:
            self._judge()

    def _show_calibration(self, engine: "Engine") -> None:
        pascal = any(map(takes_pascal, engine.models.values()))
        known = all(one.calibrated for one in engine.calibration)
        doubted = pascal and not known
        self.bar.calibration.show_words(["uncalibrated"] if doubted else [], doubted)
        reminder = reminder_of(engine.calibration)
        calibrated = "calibrated, overdue" if reminder else "calibrated"
        self.bar.calibrated.setText(calibrated if pascal and known else "")
        about = ". ".join(filter(None, (in_words(engine.calibration), reminder)))
        for label in (self.bar.calibration, self.bar.calibrated):
            label.setToolTip(plain(about))

    def _name_actions(self) -> None:
        measurement, actions = self.measurement, self.actions_by_name
        measuring, busy = measurement.measuring, measurement.busy
        halted = measurement.paused or not measuring
        actions["pause"].setText("&Continue" if halted else "&Pause")
        goes_on = "&Continue" if measurement.can_go_on else "&Start"
        actions["stop"].setText("&Stop" if measuring else goes_on)
        for name in ("pause", "stop", "anew"):
            actions[name].setEnabled(not busy)
        self.device.setEnabled(not busy)
        for name in ("clear", "reset", "mark"):
            actions[name].setEnabled(measuring)

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:
        if not self._sure:
            asked = False

            def close() -> None:
                self._sure = True
                if asked:
                    self.close()

            self._unless_lost("Close the meter?", "Close", close)
            asked = True
            if not self._sure:
                event.ignore()
                return
        self._keep_layout()
        self._keep_place()
        self._tray.show_if(False)
        self.wall_view.close()
        for timer in self._timers:
            timer.stop()
        self.hide()
        for dock in self.docks.values():
            dock.leave()
        self.device.close_listing()
        self.measurement.close()
        event.accept()

    def exit_code(self) -> int:
        """What the program returns when the window closes now."""
        error, engine = self.measurement.error, self.measurement.engine
        if error is None:
            return 0
        lost = engine is not None and engine.error is error and engine.health.device_state == "lost"
        return LOST if lost else FAILED
