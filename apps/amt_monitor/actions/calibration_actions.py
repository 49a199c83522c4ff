"""Commands for calibrations."""

from dataclasses import replace
from functools import partial

from pyqtgraph.Qt import QtCore

from amt_monitor.actions.measurement_actions import MeasurementActions
from amt_monitor.dialogs.calibration_list import CalibrationList
from amt_stream.views.measurement_control import MeasurementRequest


class CalibrationActions(QtCore.QObject):
    """Calibrates the input of `controls` [main-thread]."""

    def __init__(self, controls: MeasurementActions) -> None:
        super().__init__(controls)
        self._controls, self._measurement = controls, controls.measurement

    def calibrate(self, why: str = "") -> None:
        """Release the input and calibrate it; then measure with the new level, or continue.

        why: shown first, such as why readings are uncalibrated
        """
        # An engine that is being made would take the input again.
        calibrate = partial(self._controls.once_free, partial(self._calibrate, why))
        self._controls.unless_lost("Calibrate a microphone?", "Calibrate", calibrate)

    def _calibrate(self, why: str) -> None:
        # This module imports torch, which the window does without at first.
        from amt_stream.engine.devices.microphone import MicrophoneSource

        measurement = self._measurement
        request, engine = measurement.request, measurement.engine
        device = request.device
        if device is None and engine is not None and isinstance(engine.source, MicrophoneSource):
            heard = engine.source.device
            device = heard.name if heard.has_index else heard.behind
        was_measuring = measurement.measuring
        if was_measuring:
            measurement.stop()
        self._controls.once_free(lambda: self._open_wizard(device, request, was_measuring, why))

    def _open_wizard(
        self, device: str | int | None, request: MeasurementRequest, goes_on: bool, why: str
    ) -> None:
        from amt_monitor.dialogs.calibration_wizard import CalibrationWizard

        wizard = CalibrationWizard(self._controls.front(), device)
        wizard.microphone.tell(why)
        kept: list[str] = []
        wizard.run.kept.connect(kept.append)

        def go_on(_: int) -> None:
            wizard.deleteLater()
            if kept:
                self._controls.made.emit()
                self._controls.begin(replace(request, resumed=None, log=None))
            elif goes_on:
                self._controls.go_on()

        wizard.finished.connect(go_on)
        wizard.open()

    def calibrations(self) -> None:
        kept = CalibrationList(self._controls.front())
        kept.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        kept.open()
