"""Commands for the measurement: start, pause, stop, mark, log, calibrate."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.actions.models_menu import swap_models
from amt_monitor.actions.presets_menu import PRESET
from amt_monitor.base.background_task import BackgroundTask
from amt_monitor.base.device_combo_box import DeviceComboBox
from amt_monitor.base.settings import Settings
from amt_monitor.base.widgets import ask, ask_text
from amt_monitor.dialogs.calibration_list import CalibrationList
from amt_stream.core.errors import Refusal
from amt_stream.core.settings import presets_folder
from amt_stream.core.words import elapsed_text
from amt_stream.engine.run_state import EngineEnded
from amt_stream.meters.audience import NO_AUDIENCE, Audience, as_audience
from amt_stream.meters.frames import Event
from amt_stream.meters.limits import Limit, limit_of
from amt_stream.meters.rows import columns_of
from amt_stream.sessions.events import keeper_in
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.views.log_status import log_in
from amt_stream.views.measurement_control import Channels, MeasurementControl, MeasurementRequest

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.meters.presets import Preset
    from amt_stream.sessions import SessionLog

AUDIENCE = "audience"
"""The settings' key for the correction to the audience."""

FREE_MS = 50
ANEW: Any = {"resumed": None, "log": None}
OTHER_SOUND: Any = {"channels": None, "layout": None, "resumed": None, "log": None}
"""Of a request for a measurement that was asked for here, and does not continue another."""

ASK_S = 60.0
"""Longer readings are not discarded without a question."""

MakeLog = Callable[["Engine", Path | None], "SessionLog"]
"""Makes a log of an engine, in this folder or in the default one."""

ChangeLimits = Callable[["Engine", tuple[Limit, ...]], str]
"""Lets other limits judge a running engine; returns why they cannot, or ""."""


class MeasurementActions(QtCore.QObject):
    """Runs them, and asks before readings are lost [main-thread].

    over: the window
    front: returns the window that dialogs stand over
    device: the list of inputs
    make_log: None where only logs from the beginning are possible
    change_limits: None where other limits begin a new measurement
    preset: returns the preset of what is measured, or None

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
        change_limits: ChangeLimits | None,
        front: Callable[[], QtWidgets.QWidget],
        preset: "Callable[[], Preset | None]" = lambda: None,
    ) -> None:
        super().__init__(over)
        self.measurement, self._settings, self._device = measurement, settings, device
        self._over, self._make_log, self._change_limits = over, make_log, change_limits
        self._front, self._preset = front, preset
        self._unlogged_s: dict[Path, float] = {}
        self._replaying = BackgroundTask(self)
        self._replaying.refused.connect(self.message)

    def choose_models(self, names: tuple[str, ...]) -> None:
        request = replace(self.measurement.request, models=names, resumed=None, log=None)
        begin = partial(self.begin, request)
        self.unless_lost("Measure with other models?", "Begin", begin)

    def choose_channels(self, channels: Channels) -> None:
        """Measure these channels of the same input."""
        self._choose_sound(channels, None)

    def choose_layout(self, layout: str) -> None:
        """Measure the same input with its channels in this layout."""
        self._choose_sound(None, layout)

    def _choose_sound(self, channels: Channels, layout: str | None) -> None:
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
            swapping = BackgroundTask(self)
            swapping.refused.connect(self.message)
            swapping.done.connect(lambda _: measurement.have_set(engine, setting, word))
            for signal in (swapping.done, swapping.refused):
                signal.connect(lambda _: swapping.deleteLater())
            swapping.run(lambda: swap_models(engine, setting, word))

    def pause(self) -> None:
        if self.measurement.paused:
            self._command(self.measurement.go_on)
        else:
            self._command(self.measurement.pause)
        self.changed.emit()

    def stop(self) -> None:
        """Stop; continue if it is stopped."""
        if self.measurement.measuring:
            self.measurement.stop()
        else:
            self._go_on()
        self.changed.emit()

    def _go_on(self) -> None:
        if self.measurement.can_go_on:
            self.measurement.go_on()
            if (request := self.measurement.request).file is None:
                self._device.choose(request.device)
        else:
            self.begin(replace(self.measurement.request, resumed=None, log=None))

    def new_measurement(self) -> None:
        request = replace(self.measurement.request, resumed=None, log=None)
        self.unless_lost("Start a new measurement?", "Begin", lambda: self.begin(request))

    def reset_readings(self) -> None:
        engine = self.measurement.engine
        if engine is not None and self.measurement.measuring:
            reset = partial(self._command, engine.reset_readings)
            self.unless_lost("Reset the readings?", "Reset", reset)

    def undo_reset(self) -> None:
        if self.measurement.can_undo_reset and self.measurement.engine is not None:
            with suppress(ValueError):  # too late: it is no longer offered
                self._command(self.measurement.engine.undo_reset)
        self.changed.emit()

    def reset_filters(self) -> None:
        """Reset the models to silence; the clock continues."""
        if self.measurement.engine is not None and self.measurement.measuring:
            self._command(self.measurement.engine.reset_filters)

    def _command(self, command: Callable[[], object]) -> None:
        """Run a command; if the measurement has just ended, say that it was not run."""
        try:
            command()
        except EngineEnded as error:
            self.message.emit(str(error))

    def mark(self) -> None:
        engine, readings = self.measurement.engine, self.measurement.readings
        if engine is None or not self.measurement.measuring:
            return
        latest = engine.history.latest
        events = engine.events if readings is None else readings.events
        count = sum(event.kind == "mark" for event in events) + 1

        def keep(text: str) -> None:
            if latest is None:
                # Without readings there is no exact moment.
                self._command(lambda: engine.mark(text))
                return
            event = latest.moment("mark", text)
            self._once_free(lambda: self._keep_mark(event, readings))

        ask_text(self._front(), "Marker", "Note", keep, f"mark {count}")

    def _keep_mark(self, event: Event, readings: FollowedReadings | None) -> None:
        """Send it to its measurement if that still runs, else store it with the readings."""
        engine, same = self.measurement.engine, self.measurement.readings is readings
        if engine is not None and same and self.measurement.measuring:
            self._command(lambda: engine.tell_event(event))
        elif readings is None or not same:
            self.message.emit(f"the marker is lost, as its measurement was replaced: {event.text}")
        else:
            readings.event(event)
            if log_in(engine) is not None:
                self.message.emit(f"the marker is not in the log, which has ended: {event.text}")

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
                self._settings.add_recent(log.path)
                self.made.emit()
        self.changed.emit()

    def _begin_late(self, log: "SessionLog", time_s: float) -> None:
        """Begin a log in the middle of a measurement."""
        log.table.rows.begin(time_s)
        self._unlogged_s[log.path] = self.measurement.measured_s

    @property
    def log_of_all(self) -> Path | None:
        """The folder of the log that has the whole measurement."""
        log = log_in(self.measurement.engine)
        return None if log is None or self._unlogged_s.get(log.path) else log.path

    def replay(self) -> None:
        """Save the sound in memory to a file; an event names the file."""
        engine = self.measurement.engine
        keeper = keeper_in(engine.sinks) if engine is not None else None
        if keeper is None:
            self.message.emit(
                "no sound is in memory: turn that on in File > Settings and start a new measurement"
            )
            return
        self._replaying.run(keeper.replay)

    def calibrate(self, why: str = "") -> None:
        """Release the input and calibrate it; then measure with the new level, or continue.

        why: shown first, such as why readings are uncalibrated
        """
        # An engine that is being made would take the input again.
        calibrate = partial(self._once_free, partial(self._calibrate, why))
        self.unless_lost("Calibrate a microphone?", "Calibrate", calibrate)

    def _calibrate(self, why: str) -> None:
        # This module imports torch, which the window does without at first.
        from amt_stream.engine.devices.microphone import MicrophoneSource

        measurement = self.measurement
        request, engine = measurement.request, measurement.engine
        device = request.device
        if device is None and engine is not None and isinstance(engine.source, MicrophoneSource):
            heard = engine.source.device
            device = heard.name if heard.has_index else heard.behind
        was_measuring = measurement.measuring
        if was_measuring:
            measurement.stop()
        self._once_free(lambda: self._open_wizard(device, request, was_measuring, why))

    def _once_free(self, action: Callable[[], object]) -> None:
        """Run an action as soon as the input is free."""
        self.measurement.poll()
        if self.measurement.busy:
            QtCore.QTimer.singleShot(FREE_MS, lambda: self._once_free(action))
        elif self._over.isVisible():
            action()

    def _open_wizard(
        self, device: str | int | None, request: MeasurementRequest, goes_on: bool, why: str
    ) -> None:
        from amt_monitor.dialogs.calibration_wizard import CalibrationWizard

        wizard = CalibrationWizard(self._front(), device)
        wizard.microphone.tell(why)
        kept: list[str] = []
        wizard.run.kept.connect(kept.append)

        def go_on(_: int) -> None:
            wizard.deleteLater()
            if kept:
                self.made.emit()
                self.begin(replace(request, resumed=None, log=None))
            elif goes_on:
                self._go_on()

        wizard.finished.connect(go_on)
        wizard.open()

    def begin_first(self) -> None:
        """Begin with the preset and the limits of the last start, unless options say others."""
        request = MeasurementRequest(remembered=frozenset(("preset", "limits", AUDIENCE)))
        found = self._settings.get("limits", None)
        try:
            if path := self._settings.get(PRESET, ""):
                from amt_stream.meters.presets import read_preset

                request = replace(request, preset=read_preset(Path(path)))
            if (audience := as_audience(self._settings.get(AUDIENCE, None))) is not None:
                request = replace(request, audience=audience)
            if isinstance(found, list):
                request = replace(request, limits=tuple(map(limit_of, found)))
        except (Refusal, TypeError) as refusal:
            self.message.emit(str(refusal))
        self.begin(request)

    def choose_limits(self) -> None:
        """Add, change and remove limits, which judge from now on, and after the next start."""
        from amt_monitor.dialogs.limits_dialog import LimitsDialog

        readings = self.measurement.readings
        limits = () if readings is None else readings.limits
        names = [] if readings is None else [column.name for column in readings.rows.columns]

        dialog = LimitsDialog(limits, names, self._front())
        dialog.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.chosen.connect(self._judge)
        dialog.open()

    def _judge(self, limits: tuple[Limit, ...]) -> None:
        """Let other limits judge the running measurement; where they cannot, ask for a new one."""
        engine = self.measurement.engine
        why_not = "They begin with a new measurement."
        if engine is not None and self.measurement.measuring and self._change_limits is not None:
            try:
                why_not = self._change_limits(engine, limits)
            except EngineEnded:
                pass  # just now, so they begin with a new one
            except (Refusal, ValueError) as refusal:
                self.message.emit(str(refusal))
                return
        if why_not:
            measure = partial(self._measure_with, limits)
            self.unless_lost("Measure with other limits?", "Begin", measure, why=why_not)
        else:
            self._keep_limits(limits)
            self.measurement.have_limits(limits)
            self.changed.emit()

    def _keep_limits(self, limits: tuple[Limit, ...]) -> None:
        self._settings.put(limits=[one.to_dict() for one in limits])
        if limits:
            self.made.emit()

    def _measure_with(self, limits: tuple[Limit, ...]) -> None:
        self._keep_limits(limits)
        self.measurement.have_limits(limits)
        self.begin(replace(self.measurement.request, **ANEW))

    def choose_audience(self) -> None:
        """Ask for the correction to the audience; measure anew with it, now and later."""
        from amt_monitor.dialogs.audience_dialog import AudienceDialog

        preset = self._preset()
        present = None if preset is None else preset.audience
        dialog = AudienceDialog(present, self._running, self._front())
        dialog.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)

        def measure(audience: Audience | None) -> None:
            kept = None if audience is None else audience.to_dict()
            self._settings.put(**{AUDIENCE: kept})
            request = self.measurement.request
            of_now: Any = {"remembered": request.remembered - {AUDIENCE}, **ANEW}
            self.begin(replace(request, audience=audience or NO_AUDIENCE, **of_now))

        dialog.chosen.connect(
            lambda audience: self.unless_lost(
                "Measure with this correction?", "Begin", partial(measure, audience)
            )
        )
        dialog.open()

    def _running(self) -> "Engine | None":
        return self.measurement.engine if self.measurement.measuring else None

    def choose_venue(self) -> None:
        """Measure with the preset of a venue, and with the present limits if one has forecasts."""
        readings = self.measurement.readings
        limits = () if readings is None else readings.limits
        ahead = any(len(columns_of([one])) > 1 for one in limits)
        self.choose_preset(presets_folder() / "venue.toml", limits if ahead else None)

    def choose_preset(self, path: Path, limits: tuple[Limit, ...] | None = None) -> None:
        """Measure with a preset, now and after the next start.

        limits: in place of its own
        """
        from amt_stream.meters.presets import read_preset

        try:
            preset = read_preset(path)
        except Refusal as refusal:
            self.message.emit(str(refusal))
            return

        def measure() -> None:
            kept = None if limits is None else [one.to_dict() for one in limits]
            self._settings.put(**{PRESET: str(path), "limits": kept})
            request = self.measurement.request
            if preset.audience is not None:  # that of the preset counts from now on
                self._settings.put(**{AUDIENCE: None})
                request = replace(request, audience=None)
            own: Any = {"models": None, "settings": {}, "limits": limits}
            kept_on = request.remembered & {AUDIENCE}
            self.begin(replace(request, preset=preset, remembered=kept_on, **own, **ANEW))

        self.unless_lost(f"Measure with the preset {path.stem}?", "Begin", measure)

    def calibrations(self) -> None:
        kept = CalibrationList(self._front())
        kept.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        kept.open()

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
        keep_s = float(self._settings.get("keep_s", 0))
        logged = log_in(self.measurement.engine) is not None
        self.measurement.begin(replace(request, keep_s=keep_s, folder=self._folder))
        if logged:
            self._once_free(self._log_too)
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
            ask(self._front(), question, about, verb, action, otherwise)

    @property
    def _lost_s(self) -> float:
        measured_s, log = self.measurement.measured_s, log_in(self.measurement.engine)
        if log is None or measured_s < ASK_S:
            return measured_s
        return self._unlogged_s.get(log.path, 0.0)

    @property
    def _folder(self) -> Path | None:
        text = self._settings.get("log_folder", "")
        return Path(text) if text else None
