"""The command that measures the STI."""

from dataclasses import replace

from pyqtgraph.Qt import QtCore

from amt_monitor.actions.measurement_actions import ANEW, MeasurementActions
from amt_stream.views.stipa import MODEL


class StipaActions(QtCore.QObject):
    """Runs it on the measurement of `controls` [main-thread]."""

    def __init__(self, controls: MeasurementActions) -> None:
        super().__init__(controls)
        self._controls, self._measurement = controls, controls.measurement

    def measure_sti(self) -> None:
        """Measure the STI at several positions; begin a measurement of it if there is none."""
        readings = self._measurement.readings
        if self._measurement.measuring and readings is not None and MODEL in readings.models:
            self._open()
        else:
            self._controls.unless_lost("Measure speech transmission?", "Begin", self._begin)

    def _begin(self) -> None:
        request = replace(self._measurement.request, models=(MODEL,), **ANEW)
        self._controls.begin(request)
        self._open()

    def _open(self) -> None:
        from amt_monitor.dialogs.stipa_dialog import StipaDialog

        dialog = StipaDialog(self._measurement, self._controls.front())
        dialog.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.show()
