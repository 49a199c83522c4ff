"""The commands of the window as Qt actions."""

from collections.abc import Callable, Sequence

from pyqtgraph.Qt import QtGui, QtWidgets

from amt_monitor.actions.window_commands import COMMANDS, WindowCommand
from amt_stream.views.measurement_control import MeasurementControl


class WindowActions(dict[str, QtGui.QAction]):
    """Actions by the names of their commands.

    widgets: where their keys work; the first owns the actions
    run: called with the command of an action that is triggered
    """

    def __init__(
        self, widgets: Sequence[QtWidgets.QWidget], run: Callable[[WindowCommand], object]
    ) -> None:
        super().__init__()
        for command in COMMANDS:
            action = self[command.name] = QtGui.QAction(command.text, widgets[0])
            action.setObjectName(command.name)
            action.setShortcuts([QtGui.QKeySequence(key) for key in command.keys])
            action.setToolTip(f"{command.about} ({command.key})")
            action.setCheckable(command.checked)
            action.setAutoRepeat(False)
            action.triggered.connect(lambda _=False, command=command: run(command))
            for widget in widgets:
                widget.addAction(action)
        self["reset_readings"].setIconText("Reset")
        self["mark"].setIconText("Marker")
        stop, pause = (self[name].shortcuts() for name in ("stop", "pause"))
        self._stop_keys = stop, [*stop, *pause]

    def show_state(self, measurement: MeasurementControl) -> None:
        measuring, busy = measurement.measuring, measurement.busy
        self["pause"].setText("&Continue" if measurement.paused else "&Pause")
        start = "&Continue" if measurement.can_go_on else "&Start"
        self["stop"].setText("&Stop" if measuring else start)
        # After a stop, the key of Pause continues too.
        self["stop"].setShortcuts(self._stop_keys[0 if measuring else 1])
        self["pause"].setEnabled(measuring and not busy)
        for name in ("stop", "new_measurement"):
            self[name].setEnabled(not busy)
        for name in ("reset_readings", "reset_filters", "mark"):
            self[name].setEnabled(measuring)
        self["undo_reset"].setEnabled(measurement.can_undo_reset)
