"""The first steps, in a panel above the panes."""

from typing import NamedTuple

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.theme import set_font
from amt_monitor.base.widgets import add_all, plain_label, tool_button


class FirstStep(NamedTuple):
    """A step: its title, its words, its button, and the button for the next step."""

    title: str
    words: str
    action: str
    next: str


STEPS = (
    FirstStep(
        "Input",
        "Choose what to measure: a microphone, a sound card, or the computer's sound. The bars of "
        "the input level must move when you speak.",
        "Choose the input...",
        "Next",
    ),
    FirstStep(
        "Calibrate",
        "With a calibrator, or the file of your microphone, levels and loudness are true. Without "
        "one you can go on: a badge says so, and only changes are valid.",
        "Calibrate...",
        "Go on uncalibrated",
    ),
    FirstStep(
        "What to read",
        "LTL is how loud it has been for a while, STL how loud it is just now, both in sone and "
        "phon. Averages and maxima cover the time at the top; R resets them. ? lists all keys.",
        "",
        "Done",
    ),
)


class GettingStartedPanel(QtWidgets.QWidget):
    """Three steps, which can be skipped.

    input_asked, calibration_asked: emitted by the buttons of the first two steps
    closed: emitted after the last step, or when they are skipped
    """

    input_asked = QtCore.Signal()
    calibration_asked = QtCore.Signal()
    closed = QtCore.Signal()

    def __init__(self) -> None:
        super().__init__(objectName="first_start")
        self._asked, self.step = False, 0
        self.hide()
        self.title, self.words = plain_label("step"), plain_label("", wrap=True, role="second")
        set_font(self.title, bold=True)
        self.action = tool_button("step_action", "", "", self._act)
        self.back = tool_button("step_back", "Back", "the step before", lambda: self._show(-1))
        self.next = tool_button("step_next", "", "the next step", self._go_on)
        about = "close these steps; Help > Getting started shows them again"
        self.skip = tool_button("got_it", "Skip", about, self._close)
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(12, 4, 8, 4)
        row.setSpacing(8)
        row.addWidget(self.title)
        row.addSpacing(8)
        row.addWidget(self.words, 1)
        add_all(row, self.action, self.back, self.next, self.skip)
        self._show()

    def ask(self) -> None:
        """Show them from the first one."""
        self._asked, self.step = True, 0
        self._show()
        self.show()

    def finish(self) -> None:
        """Close them, as the user has done what they explain."""
        if self._asked:
            self._close()

    def give_way(self, given: bool) -> None:
        """Hide it while a message needs its room."""
        self.setVisible(self._asked and not given)

    def _show(self, by: int = 0) -> None:
        self.step += by
        step, last = STEPS[self.step], len(STEPS) - 1
        self.title.setText(f"{self.step + 1} of {len(STEPS)}  {step.title}")
        self.words.setText(step.words)
        for button, text in ((self.action, step.action), (self.next, step.next)):
            button.setText(text)
            button.setVisible(bool(text))
        self.back.setVisible(self.step > 0)
        self.skip.setVisible(self.step < last)

    def _go_on(self) -> None:
        if self.step == len(STEPS) - 1:
            self._close()
        else:
            self._show(1)

    def _act(self) -> None:
        if self.step == 0:
            self.input_asked.emit()
        else:
            self._show(1)
            self.calibration_asked.emit()

    def _close(self) -> None:
        self._asked = False
        self.hide()
        self.closed.emit()
