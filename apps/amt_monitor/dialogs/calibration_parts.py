"""What the pages of the calibration wizard share."""

import math
from collections.abc import Sequence

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.message_bar import begun
from amt_monitor.base.theme import set_font
from amt_monitor.base.widgets import plain_label, set_up_spin
from amt_monitor.dialogs.calibration_run import CalibrationRun, Draft
from amt_stream.core.safe_text import plain
from amt_stream.engine.inputs.calibrator_source import ToneReading


class WizardPage(QtWidgets.QWizardPage):
    """A page with a title, a sentence, and a line for problems."""

    def __init__(self, run: CalibrationRun, name: str, title: str, about: str) -> None:
        super().__init__(objectName=name)
        self.setTitle(title)
        self.setSubTitle(about)
        self._run = run
        self.body = QtWidgets.QVBoxLayout(self)
        self.problem = plain_label("problem", wrap=True)
        set_font(self.problem, bold=True)

    @property
    def draft(self) -> Draft:
        return self._run.draft

    def show_heard(self, heard: ToneReading) -> None:
        """Show the tone reading, ten times a second."""

    def refuse(self, sentence: str) -> None:
        """Show a problem; "" clears it."""
        self.problem.setText(begun(plain(sentence)))


class CaptionedNumbers(QtWidgets.QWidget):
    """A few numbers side by side, each below its caption."""

    def __init__(self, captions: Sequence[str]) -> None:
        super().__init__()
        grid = QtWidgets.QGridLayout(self)
        grid.setContentsMargins(0, 4, 0, 4)
        self.captions, self.texts = captions, [plain_label(name, wrap=True) for name in captions]
        for column, (caption, text) in enumerate(zip(captions, self.texts, strict=True)):
            set_font(text, False, round(1.4 * self.fontMetrics().height()))
            text.setWordWrap(False)
            grid.addWidget(plain_label("", caption, role="second"), 0, column)
            grid.addWidget(text, 1, column)
            grid.setColumnStretch(column, 1)

    def show_texts(self, texts: Sequence[str]) -> None:
        for caption, label, text in zip(self.captions, self.texts, texts, strict=True):
            label.setText(text)
            label.setAccessibleName(f"{caption}: {text}")


class PresetNumberInput(QtWidgets.QWidget):
    """A number: one of the usual ones, or another."""

    changed = QtCore.Signal()

    def __init__(
        self, usual: Sequence[float], unit: str, low: float, high: float, name: str
    ) -> None:
        super().__init__()
        self.choice = QtWidgets.QComboBox(accessibleName=name)
        for value in usual:
            self.choice.addItem(f"{value:g} {unit}", value)
        self.choice.addItem("another", math.nan)
        self.own = spin(low, high, unit, 0.1 if unit.startswith("dB") else 1.0, f"{name}, another")
        self.own.setValue(usual[0])
        self.own.hide()
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.choice)
        row.addWidget(self.own)
        row.addStretch(1)
        self.setFocusProxy(self.choice)
        self.choice.currentIndexChanged.connect(self._changed)
        self.own.valueChanged.connect(self._changed)

    @property
    def value(self) -> float:
        chosen = float(self.choice.currentData())
        return self.own.value() if math.isnan(chosen) else chosen

    def _changed(self) -> None:
        self.own.setVisible(math.isnan(float(self.choice.currentData())))
        self.changed.emit()


def spin(
    low: float, high: float, unit: str, step: float, name: str, decimals: int = 2
) -> QtWidgets.QDoubleSpinBox:
    box = QtWidgets.QDoubleSpinBox(decimals=decimals)
    box.setRange(low, high)
    box.setSingleStep(step)
    set_up_spin(box, unit, name)
    box.setKeyboardTracking(False)
    return box
