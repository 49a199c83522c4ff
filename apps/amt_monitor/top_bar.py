"""The bar above the panes: commands, input, calibration, elapsed time, log."""

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.device_combo_box import DeviceComboBox
from amt_monitor.pane import Badge
from amt_monitor.widgets import plain_label, set_font

GOES_ON = ("pause", "stop")
"""Buttons whose text changes to "Continue"."""


class TopBar(QtWidgets.QWidget):
    """Buttons, the input and its calibration, the counted time, the log.

    actions: those with a button, in order
    """

    def __init__(self, actions: list[QtGui.QAction]) -> None:
        super().__init__()
        self.buttons = {action.objectName(): _Button(action) for action in actions}
        for name in GOES_ON:
            self.buttons[name].keep_room_for("Continue")
        self.device = DeviceComboBox()
        self.device.setAccessibleName("input")
        self.calibration = Badge()
        self.calibration.setObjectName("calibration")
        self.calibrated = plain_label("calibrated")
        self.elapsed = plain_label("elapsed")
        self.elapsed.setToolTip("the time that averages and maxima cover")
        set_font(self.elapsed, True, round(1.5 * self.fontMetrics().height()))
        self.elapsed.setMinimumWidth(self.elapsed.fontMetrics().horizontalAdvance("88:88:88 "))
        self.log = plain_label("log_words", role="second")
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(8, 4, 8, 4)
        row.setSpacing(4)
        for button in self.buttons.values():
            row.addWidget(button)
        row.addSpacing(8)
        row.addWidget(self.elapsed)
        row.addSpacing(8)
        label = QtWidgets.QLabel("&Input")
        label.setBuddy(self.device)
        row.addWidget(label)
        row.addWidget(self.device, 30)
        row.addWidget(self.calibration)
        row.addWidget(self.calibrated)
        row.addStretch(1)
        row.addWidget(self.log)


class _Button(QtWidgets.QToolButton):
    """A button that the Tab key reaches."""

    def __init__(self, action: QtGui.QAction) -> None:
        super().__init__()
        self.setDefaultAction(action)
        self.setObjectName(f"{action.objectName()}_button")
        self.setFocusPolicy(QtCore.Qt.FocusPolicy.StrongFocus)
        self.setToolButtonStyle(QtCore.Qt.ToolButtonStyle.ToolButtonTextOnly)

    def keep_room_for(self, text: str) -> None:
        """Reserve the width of this text, so that nothing moves."""
        metrics = self.fontMetrics()
        more = metrics.horizontalAdvance(text) - metrics.horizontalAdvance(self.text())
        self.setMinimumWidth(self.sizeHint().width() + max(0, more))


def elapsed_text(seconds: float) -> str:
    """As 00:12:34."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
