"""Details of the state of the measurement."""

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.theme import set_font
from amt_monitor.base.widgets import plain_label
from amt_monitor.panes.pane import Pane
from amt_stream.views.health_text import HealthLine, health_lines
from amt_stream.views.log_status import LogStatus, log_in
from amt_stream.views.view_state import ViewState


class HealthPane(Pane):
    """A line for each item; problems are bold."""

    def __init__(self) -> None:
        super().__init__("health", "Health")
        self._lines = QtWidgets.QGridLayout()
        self._lines.setHorizontalSpacing(12)
        self._lines.setVerticalSpacing(2)
        self._lines.setColumnStretch(1, 1)
        inside = QtWidgets.QWidget()
        column = QtWidgets.QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(self._lines)
        column.addStretch(1)
        self._area = QtWidgets.QScrollArea(frameShape=QtWidgets.QFrame.Shape.NoFrame)
        self._area.setWidgetResizable(True)
        self._area.setWidget(inside)
        self._area.setAccessibleName("health of the measurement")
        inside.setBackgroundRole(self.backgroundRole())
        self.body.addWidget(self._area, 1)
        self._labels: list[tuple[QtWidgets.QLabel, QtWidgets.QLabel]] = []
        self._log = LogStatus()

    def read(self, view: ViewState) -> None:
        lines = health_lines(view.engine)
        log = log_in(view.engine)
        words = self._log.words(log)
        self.show_lines(
            [*lines, HealthLine("Log", words if log is None else f"{words} ({log.path})")]
        )

    def show_lines(self, lines: list[HealthLine]) -> None:
        while len(self._labels) < len(lines):
            self._add()
        for place, (what, words) in enumerate(self._labels):
            there = place < len(lines)
            what.setVisible(there)
            words.setVisible(there)
            if there:
                line = lines[place]
                _write(what, line.what, line.wrong)
                _write(words, line.words, line.wrong)
                words.setAccessibleName(f"{line.what}: {line.words}")

    def texts(self) -> tuple[str, ...]:
        shown = [pair for pair in self._labels if not pair[0].isHidden()]
        return tuple(f"{what.text()}: {words.text()}" for what, words in shown)

    def _add(self) -> None:
        what, words = plain_label(role="second"), plain_label(wrap=True)
        words.setTextInteractionFlags(QtCore.Qt.TextInteractionFlag.TextSelectableByMouse)
        row = len(self._labels)
        self._lines.addWidget(what, row, 0, QtCore.Qt.AlignmentFlag.AlignTop)
        self._lines.addWidget(words, row, 1)
        self._labels.append((what, words))


def _write(label: QtWidgets.QLabel, text: str, bold: bool) -> None:
    if text != label.text():
        label.setText(text)
    if label.font().bold() != bold:
        set_font(label, bold)
