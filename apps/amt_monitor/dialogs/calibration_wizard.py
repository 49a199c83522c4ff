"""The wizard that calibrates a microphone."""

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.dialogs.calibration_pages import (
    CorrectionPage,
    MicrophonePage,
    ResultPage,
    TonePage,
)
from amt_monitor.dialogs.calibration_parts import WizardPage
from amt_monitor.dialogs.calibration_run import CalibrationRun, Device, OpenSource, Target
from amt_stream.engine.inputs.calibrator_source import ToneReading

LOOK_MS = 100


class CalibrationWizard(QtWidgets.QWizard):
    """Calibrates a channel of a microphone and stores that by the microphone's identity.

    device, open_source: as `CalibrationRun` takes them
    """

    def __init__(
        self,
        parent: QtWidgets.QWidget | None = None,
        device: Device = None,
        open_source: OpenSource | None = None,
    ) -> None:
        super().__init__(parent, objectName="calibration_wizard")
        self.setWindowTitle("Calibrate a microphone")
        self.setWizardStyle(QtWidgets.QWizard.WizardStyle.ClassicStyle)
        option = QtWidgets.QWizard.WizardOption
        self.setOption(option.NoBackButtonOnStartPage)
        self.setOption(option.NoDefaultButton, False)
        self.setButtonText(QtWidgets.QWizard.WizardButton.FinishButton, "&Save")
        self.resize(680, 520)
        self.run = CalibrationRun(device, open_source, self)
        self.microphone = MicrophonePage(self.run)
        self.tone, self.response = TonePage(self.run), CorrectionPage(self.run)
        self.result_page = ResultPage(self.run)
        for page in (self.microphone, self.tone, self.response, self.result_page):
            self.addPage(page)
        self._timer = QtCore.QTimer(self, interval=LOOK_MS, timeout=self._refresh)
        self._timer.start()
        self.finished.connect(lambda _: self.run.let_go())

    def done(self, result: int) -> None:
        if result == self.DialogCode.Accepted and self.run.draft.target is Target.NEXT:
            if self.validateCurrentPage():
                self._begin_other()
        else:
            super().done(result)

    def _begin_other(self) -> None:
        """Measure the tone in the other channel."""
        other = self.run.draft.other
        self.run.draft.target = Target.ALONE
        self.restart()
        if other is not None:
            self.microphone.channel.setCurrentIndex(other - 1)
            self.next()

    def showEvent(self, event: QtGui.QShowEvent) -> None:
        super().showEvent(event)
        for name in QtWidgets.QWizard.WizardButton:
            if (button := self.button(name)) is not None:
                button.setIcon(QtGui.QIcon())  # no red cross on Cancel

    def _refresh(self) -> None:
        page = self.currentPage()
        if isinstance(page, WizardPage):
            listener = self.run.listener
            page.show_heard(ToneReading("ended") if listener is None else listener.reading)
