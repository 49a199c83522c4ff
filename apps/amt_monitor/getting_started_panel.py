"""The first steps, in a panel above the panes."""

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.widgets import plain_label, tool_button

STEPS = (
    ("Input", "Choose the input above: a microphone, a sound card, or the computer's sound."),
    (
        "Calibrate",
        "Measure > Calibrate measures a calibrator's tone and stores the level with the device.",
    ),
    (
        "Uncalibrated",
        "Until then a badge says so and numbers are hatched: only their changes are valid.",
    ),
    (
        "Keys",
        "Space pauses, S stops, R resets readings, F11 shows the wall view, ? lists all keys.",
    ),
)


class GettingStartedPanel(QtWidgets.QWidget):
    """Four hints and a button that closes them; `closed` is emitted then."""

    closed = QtCore.Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("first_start")
        self._asked = False
        self.hide()
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(12, 6, 8, 6)
        row.setSpacing(16)
        for title, words in STEPS:
            column = QtWidgets.QVBoxLayout()
            column.setSpacing(0)
            column.addWidget(QtWidgets.QLabel(f"<b>{title}</b>"))
            column.addWidget(plain_label("", words, wrap=True, role="second"))
            column.addStretch(1)
            row.addLayout(column, 1)
        about = "close this; Help > Getting started shows it again"
        button = tool_button("got_it", "Got it", about, self._close)
        row.addWidget(button, 0, QtCore.Qt.AlignmentFlag.AlignTop)

    def ask(self) -> None:
        self._asked = True
        self.show()

    def give_way(self, given: bool) -> None:
        """Hide it while a message needs its room."""
        self.setVisible(self._asked and not given)

    def _close(self) -> None:
        self._asked = False
        self.hide()
        self.closed.emit()
