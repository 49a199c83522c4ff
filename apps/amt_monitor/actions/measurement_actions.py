"""Commands for the measurement: what it measures, start, pause, stop, log."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.actions.models_menu import swap_models
from amt_monitor.base.background_task import BackgroundTask
from amt_monitor.base.device_combo_box import DeviceComboBox
from amt_monitor.base.settings import Settings
from amt_monitor.base.widgets import ask
from amt_stream.core.errors import Refusal
from amt_stream.core.words import elapsed_text
from amt_stream.engine.run_state import EngineEnded
from amt_stream.views.log_status import log_in
from amt_stream.views.measurement_control import Channels, MeasurementControl, MeasurementRequest

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.sessions import SessionLog

FREE_MS = 50
ANEW: Any = {"resumed": None, "log": None}
OTHER_SOUND: Any = {"channels": None, "layout": None, "resumed": None, "log": None}
"""Of a request for a measurement that was asked for here, and does not continue another."""

ASK_S = 60.0
"""Longer readings are not discarded without a question."""

MakeLog = Callable[["Engine", Path | None], "SessionLog"]
"""Makes a log of an engine, in this folder or in the default one."""


class MeasurementActions(QtCore.QObject):
    """Runs them, and asks before readings are lost [main-thread].

    over: the window
    front: returns the window that dialogs stand over
    device: the list of inputs
    make_log: None where only logs from the beginning are possible

    `changed` follows each command; `message` has a sentence; `made` follows a calibration, a limit
    and a log.
    """

    changed = QtCore.Signal()
    message = QtCore.Signal(str)
    made = QtCore.Signal()

    def __init__(
        self,
        over: QtWidgets.QWidget,
        measurement: MeasurementControl,
        settings: Settings,
        device: DeviceComboBox,
        *,
        make_log: MakeLog | None,
        front: Callable[[], QtWidgets.QWidget],
    ) -> None:
        super().__init__(over)
        self.measurement, self.settings, self._device = measurement, settings, device
        self._over, self._make_log, self.front = over, make_log, front
        self._unlogged_s: dict[Path, float] = {}

    def choose_models(self, names: tuple[str, ...]) -> None:
        request = replace(self.measurement.request, models=names, resumed=None, log=None)
        begin = partial(self.begin, request)
        self.unless_lost("Measure with other models?", "Begin", begin)

    def choose_sound(self, channels: Channels, layout: str | None) -> None:
        """Measure these channels of the same input, or all of them in this layout."""
        last = self.measurement.running_request
        if (channels, layout) != (last.channels, last.layout):
            request = replace(last, channels=channels, layout=layout, resumed=None, log=None)
            begin = partial(self.begin, request)
            self.unless_lost("Measure other channels?", "Begin", begin)

    def set_models(self, setting: str, word: str) -> None:
        """Change a setting of the models while they run; they are made in the background."""
        measurement = self.measurement
        engine = measurement.engine
        if engine is not None and measurement.measuring:
            swapping = BackgroundTask(
                self, lambda _: measurement.have_set(engine, setting, word), self.message.emit
            )
            for signal in (swapping.done, swapping.refused):
                signal.connect(lambda _: swapping.deleteLater())
            swapping.run(lambda: swap_models(engine, setting, word))

    def pause(self) -> None:
        if self.measurement.paused:
            self.command(self.measurement.go_on)
        else:
            self.command(self.measurement.pause)
        self.changed.emit()

    def stop(self) -> None:
        """Stop; continue if it is stopped."""
        if self.measurement.measuring:
            self.measurement.stop()
        else:
            self.go_on()
        self.changed.emit()

    def go_on(self) -> None:
        if self.measurement.can_go_on:
            self.measurement.go_on()
            if (request := self.measurement.request).file is None:
                self._device.choose(request.device)
        else:
            self.begin(replace(self.measurement.request, resumed=None, log=None))

    def new_measurement(self) -> None:
        request = replace(self.measurement.request, resumed=None, log=None)
        self.unless_lost("Start a new measurement?", "Begin", lambda: self.begin(request))

    def command(self, command: Callable[[], object]) -> None:
        """Run a command; if the measurement has just ended, say that it was not run."""
        try:
            command()
        except EngineEnded as error:
            self.message.emit(str(error))

    def log(self) -> None:
        engine = self.measurement.engine
        if engine is None or not self.measurement.measuring:
            self.message.emit("no measurement is running: start one before you log")
        elif (log := log_in(engine)) is not None:
            engine.detach(log)
            self.measurement.request = replace(self.measurement.request, log=None)
        elif self._make_log is None:
            self.message.emit("this program has no place for logs")
        else:
            try:
                log = self._make_log(engine, self._folder)
            except (Refusal, OSError) as error:
                self.message.emit(str(error))
            else:
                self._unlogged_s[log.path] = 0.0
                engine.attach(log, partial(self._begin_late, log))
                self.measurement.request = replace(self.measurement.request, log=log.path)
                self.settings.add_recent(log.path)
                self.made.emit()
        self.changed.emit()

    def _begin_late(self, log: "SessionLog", time_s: float) -> None:
        log.table.rows.begin(time_s)
        self._unlogged_s[log.path] = self.measurement.measured_s

    @property
    def log_of_all(self) -> Path | None:
        """The folder of the log that has the whole measurement."""
        log = log_in(self.measurement.engine)
        return None if log is None or self._unlogged_s.get(log.path) else log.path

    def once_free(self, action: Callable[[], object]) -> None:
        """Run an action as soon as the input is free."""
        self.measurement.poll()
        if self.measurement.busy:
            QtCore.QTimer.singleShot(FREE_MS, lambda: self.once_free(action))
        elif self._over.isVisible():
            action()

    def play(self, path: Path) -> None:
        last = self.measurement.request
        request = replace(last, device=None, file=path, **OTHER_SOUND)
        self.unless_lost(f"Play {path.name}?", "Play", lambda: self.begin(request))

    def change_input(self) -> None:
        """Measure the chosen input with the same models, if it is another one."""
        measurement, device = self.measurement, self._device.device
        running_request = measurement.running_request
        measured = measurement.measuring and not measurement.busy
        if measured and running_request.file is None and running_request.device == device:
            return
        request = replace(measurement.request, device=device, file=None, **OTHER_SOUND)

        def stay() -> None:
            self._device.choose(self.measurement.request.device)

        self.unless_lost("Measure with another input?", "Change", lambda: self.begin(request), stay)

    def begin(self, request: MeasurementRequest) -> None:
        keep_s = float(self.settings.get("keep_s", 0))
        logged = log_in(self.measurement.engine) is not None
        self.measurement.begin(replace(request, keep_s=keep_s, folder=self._folder))
        if logged:
            self.once_free(self._log_too)
        self.changed.emit()

    def _log_too(self) -> None:
        if self.measurement.measuring and log_in(self.measurement.engine) is None:
            self.log()

    def unless_lost(
        self,
        question: str,
        verb: str,
        action: Callable[[], object],
        otherwise: Callable[[], object] = lambda: None,
        why: str = "",
    ) -> None:
        """Run an action that discards readings; ask first if they are long and in no log.

        why: the action is needed, for which it asks even of short readings
        """
        lost_s = self._lost_s
        if lost_s < ASK_S and not (why and self.measurement.measured_s):
            action()
        else:
            about = f"Readings of {elapsed_text(lost_s)} are in no log and will be lost."
            about = f"{why} {about}" if why and lost_s else why or about
            ask(self.front(), question, about, verb, action, otherwise)

    @property
    def _lost_s(self) -> float:
        measured_s, log = self.measurement.measured_s, log_in(self.measurement.engine)
        if log is None or measured_s < ASK_S:
            return measured_s
        return self._unlogged_s.get(log.path, 0.0)

    @property
    def _folder(self) -> Path | None:
        text = self.settings.get("log_folder", "")
        return Path(text) if text else None
