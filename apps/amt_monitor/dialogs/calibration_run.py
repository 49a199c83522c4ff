"""The calibration of one channel while the wizard is open."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from pyqtgraph.Qt import QtCore

from amt_stream.engine.devices.microphone import MicrophoneSource
from amt_stream.engine.inputs.calibrator_source import CalibratorListener
from amt_stream.meters import calibration
from amt_stream.meters.calibrator import MeasuredTone
from amt_stream.meters.correction import Correction, keep_corrections
from amt_stream.meters.source_description import InputGain

Device = str | int | None
OpenSource = Callable[[Device, int], MicrophoneSource]


ALIKE_DB = 0.1
"""Two channels whose levels differ by less hear one microphone."""

THERE_DB = 6.0
"""The tone is there while its channel is at most so far below it."""


class Target(Enum):
    """What a calibration is stored for: its channel, both ears, or its channel before the other."""

    ALONE = "alone"
    BOTH = "both"
    NEXT = "next"


@dataclass
class Draft:
    """What was chosen and measured so far; it is stored only at the end.

    tone: of the calibrator; None where the level stays as it is
    gain: of the input at the tone; None if the system does not tell it
    inputs: number of channels that are heard
    alike: whether both ears hear the tone with the same level, as from one microphone
    """

    device: Device = None
    identity: str = ""
    name: str = ""
    channel: int = 1
    inputs: int = 1
    alike: bool = False
    target: Target = Target.ALONE
    reference_db_spl: float = 94.0
    frequency_hz: float = 1000.0
    tone: MeasuredTone | None = None
    gain: InputGain | None = None
    correction: Correction | None = None
    uncertainty_db: float = calibration.CALIBRATOR_UNCERTAINTY_DB
    valid_days: float = float(calibration.VALID_DAYS)
    before: calibration.Kept = field(default_factory=lambda: calibration.Kept("", 1))

    @property
    def other(self) -> int | None:
        """The channel of the other ear; None for a mono input."""
        return 3 - self.channel if self.inputs > 1 and self.channel < 3 else None

    @property
    def channels(self) -> list[int]:
        """The channels that it is stored for."""
        also = [self.other] if self.target is Target.BOTH and self.other is not None else []
        return sorted([self.channel, *also])

    def hear_both(self, levels_db: Sequence[float]) -> None:
        """Compare both ears while the tone is there; levels after its end say nothing of it."""
        own_db = levels_db[self.channel - 1] if self.channel <= len(levels_db) else -math.inf
        if self.tone is None or own_db < self.tone.level_dbfs - THERE_DB:
            return
        self.alike = len(levels_db) > 1 and abs(levels_db[0] - levels_db[1]) < ALIKE_DB

    @property
    def after(self) -> calibration.Kept:
        record = self.before.record
        if self.tone is not None:
            record = calibration.Record(
                self.identity,
                self.channel,
                self.reference_db_spl,
                round(self.tone.level_dbfs, 4),
                round(self.tone.frequency, 3),
                calibration.utc_now(),
                self.uncertainty_db,
                self.valid_days,
                self.gain,
                self.name,
            )
        return calibration.Kept(self.identity, self.channel, record, self.correction)


class CalibrationRun(QtCore.QObject):
    """The draft of a calibration and its microphone, shared by the pages of the wizard.

    kept: emitted with the identity of the microphone when a calibration was stored or deleted

    device: chosen at first; None is the default input
    open_source: opens a device with at least so many channels, in a thread
    """

    kept = QtCore.Signal(str)

    def __init__(
        self, device: Device, open_source: OpenSource | None, parent: QtCore.QObject
    ) -> None:
        super().__init__(parent)
        self.draft = Draft(device)
        self.listener: CalibratorListener | None = None
        self._open_source = open_source or _open_microphone

    def listen(self, device: Device) -> None:
        self.let_go()
        self.draft.device, self.draft.identity = device, ""
        channel = self.draft.channel
        self.listener = CalibratorListener(
            lambda: self._open_source(device, channel), channel, self.draft.frequency_hz
        )

    @property
    def gain(self) -> InputGain | None:
        """The present gain of the input, if the system reports it."""
        source = None if self.listener is None else self.listener.source
        return None if source is None else source.gain_of(0)

    def restart(self) -> None:
        if self.listener is not None:
            self.listener.listen_to(self.draft.channel, self.draft.frequency_hz)

    def know_before(self) -> None:
        """Look up the channel's stored calibration. Raises CalibrationError for broken files."""
        draft = self.draft
        mine = calibration.Kept(draft.identity, draft.channel)
        kept = (one for one in calibration.kept_channels() if one.device == draft.identity)
        draft.before = next((one for one in kept if one.channel == draft.channel), mine)
        draft.correction = draft.before.correction

    def usual_target(self) -> Target:
        """Both ears for one microphone, the other one next for two; one alone if that is known."""
        draft = self.draft
        of_other = (draft.identity, draft.other)
        if any((k.device, k.channel) == of_other and k.record for k in calibration.kept_channels()):
            return Target.ALONE
        return Target.BOTH if draft.alike else Target.NEXT

    def keep(self) -> None:
        """Store the draft. Raises CalibrationError where that is impossible."""
        draft = self.draft
        record, several = draft.after.record, len(draft.channels) > 1
        if record is not None and (several or draft.tone is not None):
            calibration.write_records(
                [replace(record, channel=channel) for channel in draft.channels]
            )
        if several or draft.correction != draft.before.correction:
            keep_corrections(draft.identity, dict.fromkeys(draft.channels, draft.correction))
        self.kept.emit(draft.identity)

    def let_go(self) -> None:
        if self.listener is not None:
            self.listener.stop()
            self.listener = None


def _open_microphone(device: Device, channel: int) -> MicrophoneSource:
    """A device with its first two channels, or with all up to the chosen one."""
    return MicrophoneSource(device, channels=range(1, channel + 1) if channel > 2 else None)
