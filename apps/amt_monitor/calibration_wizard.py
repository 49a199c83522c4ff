"""The way from a microphone to a calibrated one, page by page."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.calibration_pages import (
    CorrectionPage,
    MicrophonePage,
    Page,
    ResultPage,
    TonePage,
)
from amt_stream.calibration import (
    CALIBRATOR_UNCERTAINTY_DB,
    VALID_DAYS,
    Kept,
    Record,
    kept_channels,
    utc_now,
    write_records,
)
from amt_stream.calibrator import MeasuredTone
from amt_stream.correction import Correction, keep_corrections
from amt_stream.engine.calibrating import CalibratorListener, Heard
from amt_stream.engine.microphone import MicrophoneSource

LOOK_MS = 100

Device = str | int | None
OpenSource = Callable[[Device, int], MicrophoneSource]


@dataclass
class Draft:
    """What has been chosen and heard so far; nothing of it is kept before the end.

    tone: what the calibrator gave; None where the level is left as it is
    """

    device: Device = None
    identity: str = ""
    name: str = ""
    channel: int = 1
    reference_db_spl: float = 94.0
    frequency_hz: float = 1000.0
    tone: MeasuredTone | None = None
    correction: Correction | None = None
    uncertainty_db: float = CALIBRATOR_UNCERTAINTY_DB
    valid_days: float = float(VALID_DAYS)
    before: Kept = field(default_factory=lambda: Kept("", 1))

    @property
    def after(self) -> Kept:
        """What would be kept."""
        record = self.before.record
        if self.tone is not None:
            record = Record(
                self.identity,
                self.channel,
                self.reference_db_spl,
                round(self.tone.level_dbfs, 4),
                round(self.tone.frequency, 3),
                utc_now(),
                self.uncertainty_db,
                self.valid_days,
            )
        return Kept(self.identity, self.channel, record, self.correction)


class CalibrationWizard(QtWidgets.QWizard):
    """Calibrates a channel of a microphone and keeps that by the microphone's own identity.

    kept: comes with that identity once something is kept, or forgotten

    device: chosen at first; None is the default input
    open_source: makes the source of a device, with so many channels at least, in a thread of its
        own
    """

    kept = QtCore.Signal(str)

    def __init__(
        self,
        parent: QtWidgets.QWidget | None = None,
        device: Device = None,
        open_source: OpenSource | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("calibration_wizard")
        self.setWindowTitle("Calibrate a microphone")
        self.setWizardStyle(QtWidgets.QWizard.WizardStyle.ClassicStyle)
        option = QtWidgets.QWizard.WizardOption
        self.setOption(option.NoBackButtonOnStartPage)
        self.setOption(option.NoDefaultButton, False)
        self.setButtonText(QtWidgets.QWizard.WizardButton.FinishButton, "&Save")
        self.resize(680, 520)
        self.draft = Draft(device)
        self.listener: CalibratorListener | None = None
        self._open_source = open_source or open_microphone
        self.microphone = MicrophonePage(self)
        self.tone, self.response = TonePage(self), CorrectionPage(self)
        self.result_page = ResultPage(self)
        for page in (self.microphone, self.tone, self.response, self.result_page):
            self.addPage(page)
        self._timer = QtCore.QTimer(self)
        self._timer.timeout.connect(self._look)
        self._timer.start(LOOK_MS)
        self.finished.connect(lambda _: self._let_go())

    def listen(self, device: Device) -> None:
        """Hear another device, of which nothing is known yet."""
        self._let_go()
        self.draft.device, self.draft.identity = device, ""
        channel = self.draft.channel
        self.listener = CalibratorListener(
            lambda: self._open_source(device, channel), channel, self.draft.frequency_hz
        )

    def listen_anew(self) -> None:
        """Hear the channel and the tone that are chosen now, from nothing."""
        if self.listener is not None:
            self.listener.listen_to(self.draft.channel, self.draft.frequency_hz)

    def know_before(self) -> None:
        """Look up what is kept of the channel. Raises CalibrationError for broken files."""
        draft = self.draft
        mine = Kept(draft.identity, draft.channel)
        kept = (one for one in kept_channels() if one.device == draft.identity)
        draft.before = next((one for one in kept if one.channel == draft.channel), mine)
        draft.correction = draft.before.correction

    def keep(self) -> None:
        """Keep what was measured and chosen. Raises CalibrationError where that cannot be."""
        draft = self.draft
        after = draft.after
        if draft.tone is not None and after.record is not None:
            write_records([after.record])
        if draft.correction != draft.before.correction:
            keep_corrections(draft.identity, {draft.channel: draft.correction})
        self.kept.emit(draft.identity)

    def _look(self) -> None:
        page = self.currentPage()
        if isinstance(page, Page):
            heard = Heard("ended") if self.listener is None else self.listener.heard
            page.show_heard(heard)

    def _let_go(self) -> None:
        if self.listener is not None:
            self.listener.stop()
            self.listener = None


def open_microphone(device: Device, channel: int) -> MicrophoneSource:
    """The source of a device, of its first two channels, or of all up to the one that is asked."""
    return MicrophoneSource(device, channels=range(1, channel + 1) if channel > 2 else None)
