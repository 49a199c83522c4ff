"""What a person needs to know at the first start, in a panel above the numbers."""

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.theme import tint

STEPS = (
    ("Input", "Choose above what is heard: a microphone, a sound card, or what is played."),
    (
        "Calibrate",
        "Measure > Calibrate listens to a calibrator and keeps what it finds with the device.",
    ),
    (
        "Uncalibrated",
        "A badge says so, and numbers are hatched until then: they show changes, and no levels.",
    ),
    ("Keys", "Space pauses, S stops, R resets what is counted, F11 fills a wall, ? lists all."),
)


class GettingStartedPanel(QtWidgets.QWidget):
    """Four things beside each other, and a button that takes them away; `closed` says so.

    It is hidden until it is asked for.
    """

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
            heading, text = QtWidgets.QLabel(f"<b>{title}</b>"), QtWidgets.QLabel(words)
            text.setWordWrap(True)
            tint(text, "second")
            column.addWidget(heading)
            column.addWidget(text)
            column.addStretch(1)
            row.addLayout(column, 1)
        button = QtWidgets.QToolButton()
        button.setObjectName("got_it")
        button.setText("Got it")
        button.setToolTip("close this; Help > Getting started shows it again")
        button.setFocusPolicy(QtCore.Qt.FocusPolicy.StrongFocus)
        button.clicked.connect(lambda _: self._close())
        row.addWidget(button, 0, QtCore.Qt.AlignmentFlag.AlignTop)

    def ask(self) -> None:
        """Show it, until a person takes it away."""
        self._asked = True
        self.show()

    def give_way(self, given: bool) -> None:
        """Leave its room to what is more urgent, as long as that is there."""
        self.setVisible(self._asked and not given)

    def _close(self) -> None:
        self._asked = False
        self.hide()
        self.closed.emit()
