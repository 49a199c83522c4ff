"""Pages of the wizard that calibrates a microphone."""

from dataclasses import replace
from pathlib import Path

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.device_combo_box import DeviceComboBox
from amt_monitor.base.theme import set_font
from amt_monitor.base.widgets import add_all, plain_label, push_button
from amt_monitor.dialogs.calibration_list import CalibrationList, calibration_state
from amt_monitor.dialogs.calibration_parts import (
    CaptionedNumbers,
    PresetNumberInput,
    WizardPage,
    spin,
)
from amt_monitor.dialogs.calibration_run import CalibrationRun, Target
from amt_monitor.plot.correction_plot import CorrectionPlot
from amt_monitor.plot.level_bar import LevelBar, LevelBarScale
from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import plain
from amt_stream.engine.devices.microphone import MicrophoneSource
from amt_stream.engine.inputs.calibrator_source import ToneReading
from amt_stream.meters.calibration import LARGEST_UNCERTAINTY_DB, LONGEST_VALID_DAYS, Calibration
from amt_stream.meters.calibrator import QUIET_DBFS, STABLE_DB, STABLE_S, ToneVerdict
from amt_stream.meters.correction import CorrectionError, read_correction

MOST_CHANNELS = 8
LEVELS = 94.0, 104.0, 114.0
FREQUENCIES = 1000.0, 250.0
LEVEL_SCALE = LevelBarScale(-90.0, 0.0, (-90, -60, -40, -20, -10, 0))
HEADLINES = {
    "good": "Stable",
    "short": "Hold it still",
    "drift": "The level drifts",
    "quiet": "Too quiet",
    "noise": "Not a tone",
    "clipped": "Clipped",
    "frequency": "Another frequency",
    "gap": "Sound was lost",
    "invalid": "Not numbers",
}
"""A headline for each kind of verdict."""


TAKEN, STAYS = "Level taken", "it stays until another tone has been stable"
"""Headline and words while something else is heard after a stable tone."""


class MicrophonePage(WizardPage):
    """Choice of the microphone and its channel, with level bars."""

    def __init__(self, run: CalibrationRun) -> None:
        super().__init__(
            run,
            "microphone_page",
            "Which microphone",
            "Speak, or tap the microphone: the bar of its channel must move.",
        )
        self.device = DeviceComboBox("the default input")
        self.device.setAccessibleName("input")
        self.channel = QtWidgets.QComboBox(objectName="channel", accessibleName="channel")
        self.bars: list[LevelBar] = []
        self._bars = QtWidgets.QVBoxLayout()
        self.before = plain_label("before", wrap=True)
        self.kept_as = plain_label("kept_as", wrap=True, role="second")
        every = push_button("every", "All &calibrations...", self._list)
        form = QtWidgets.QFormLayout()
        form.addRow("&Input", self.device)
        form.addRow("&Channel", self.channel)
        form.addRow("Level", self._bars)
        form.addRow("So far", self.before)
        form.addRow("Stored as", self.kept_as)
        self.why = plain_label("why", wrap=True)
        self.why.hide()
        self.body.addWidget(self.why)
        self.body.addLayout(form)
        self.body.addWidget(self.problem)
        self.body.addStretch(1)
        self.body.addWidget(every, 0, QtCore.Qt.AlignmentFlag.AlignLeft)
        self.device.chosen.connect(self._listen)
        self.channel.currentIndexChanged.connect(self._choose_channel)

    def tell(self, why: str) -> None:
        """Say why the wizard was opened."""
        self.why.setText(why)
        self.why.setVisible(bool(why))

    def initializePage(self) -> None:
        if self._run.listener is None:
            self.device.refresh()
            if self.draft.device is not None and self.device.findData(self.draft.device) < 0:
                self.device.addItem(plain(self.draft.device), self.draft.device)
            self.device.choose(self.draft.device)
            self._listen()

    def isComplete(self) -> bool:
        return bool(self.draft.identity) and not self.problem.text()

    def show_heard(self, heard: ToneReading) -> None:
        listener = self._run.listener
        source = None if listener is None else listener.source
        if source is not None and not self.bars:
            self._know(source)
        if heard.state in ("ended", "lost"):
            self.refuse(heard.words or "the input has stopped: choose it again")
        elif heard.state == "listening" and self.draft.identity:
            self.refuse("")
        for bar, (rms, peak) in zip(self.bars, heard.levels_db, strict=False):
            bar.set_level(rms, peak)
            bar.set_text(f"{rms:.0f} dBFS" if rms > -100 else "silent", False)
        self.completeChanged.emit()

    def _listen(self, channel: int = 1) -> None:
        self._forget_bars()
        self.refuse("")
        for label in (self.before, self.kept_as):
            label.setText("")
        with QtCore.QSignalBlocker(self.channel):
            self.channel.clear()
        self.draft.channel = channel
        self._run.listen(self.device.device)
        self.completeChanged.emit()

    def _know(self, source: object) -> None:
        assert isinstance(source, MicrophoneSource)
        self.draft.identity = next(iter(source.device.kept_by), "")
        self.draft.name, self.draft.inputs = source.name, source.channels
        if self.draft.device is None:
            self.device.name_first(source.name)
        for number in range(1, source.channels + 1):
            bar = LevelBar(
                f"level_{number}", f"Channel {number}", LEVEL_SCALE, limit=-3, over="amber"
            )
            bar.setMinimumHeight(3 * bar.fontMetrics().height())
            bar.setAccessibleName(f"level of channel {number}")
            self.bars.append(bar)
            self._bars.addWidget(bar)
        offered = min(MOST_CHANNELS, source.device.channels)
        with QtCore.QSignalBlocker(self.channel):
            self.channel.addItems([str(number) for number in range(1, offered + 1)])
            self.channel.setCurrentIndex(min(self.draft.channel, offered) - 1)
        self.kept_as.setText(plain(source.name) if self.draft.identity else "-")
        self.kept_as.setToolTip(plain(self.draft.identity))
        if source.device.played:
            self.refuse(f"{source.name} is the sound that this computer plays: choose a microphone")
        elif not self.draft.identity:
            self.refuse(
                f"the system does not tell which microphone {source.name!r} is: choose it by its "
                "own name"
            )
        self._choose_channel()

    def _choose_channel(self) -> None:
        self.draft.channel = max(1, self.channel.currentIndex() + 1)
        self.draft.tone = None
        if self.draft.channel > len(self.bars):
            self._listen(self.draft.channel)  # a device is opened with its first two channels
            return
        self._run.restart()
        self._show_before()

    def _show_before(self) -> None:
        if not self.draft.identity:
            return
        try:
            self._run.know_before()
        except Refusal as refusal:
            self.refuse(str(refusal))
            return
        before = self.draft.before
        correction = before.correction
        parts = [calibration_state(before)]
        if before.record is not None:
            parts.insert(0, f"full-scale sine = {_level(before.calibration)}")
        if correction is not None:
            parts.append(f"corrected by {correction.name}")
        self.before.setText(plain(", ".join(parts)))
        self.before.setToolTip(plain(before.calibration))

    def _forget_bars(self) -> None:
        for bar in self.bars:
            bar.hide()
            bar.deleteLater()
        self.bars = []

    def _list(self) -> None:
        dialog = CalibrationList(self)
        dialog.changed.connect(self._show_before)
        dialog.changed.connect(lambda: self._run.kept.emit(self.draft.identity))
        dialog.open()


class TonePage(WizardPage):
    """Measures the calibrator's tone until it is stable."""

    def __init__(self, run: CalibrationRun) -> None:
        super().__init__(
            run,
            "tone_page",
            "The tone of the calibrator",
            f"Fit the calibrator and switch it on. Its level is taken once it has stayed within "
            f"{STABLE_DB:g} dB for {STABLE_S:g} s.",
        )
        self.level = PresetNumberInput(LEVELS, "dB SPL", 40.0, 170.0, "level of the calibrator")
        self.frequency = PresetNumberInput(
            FREQUENCIES, "Hz", 50.0, 12000.0, "frequency of the calibrator"
        )
        form = QtWidgets.QFormLayout()
        form.addRow("Le&vel", self.level)
        form.addRow("&Frequency", self.frequency)
        self.headline = plain_label("headline", wrap=True)
        self.words = plain_label("words", wrap=True)
        set_font(self.headline, True, 2 * self.fontMetrics().height())
        self.words.setMinimumHeight(2 * self.fontMetrics().height())
        self.words.setAlignment(QtCore.Qt.AlignmentFlag.AlignTop)
        self.progress = QtWidgets.QProgressBar(maximum=round(10 * STABLE_S), textVisible=False)
        self.progress.setAccessibleName("seconds for which the tone has been stable")
        self.numbers = CaptionedNumbers(("Level", "Frequency", "Spread, last 5 s"))
        self.taken = plain_label("taken", wrap=True)
        self.again = push_button("again", "&Measure again", self._begin)
        self.as_it_is = QtWidgets.QCheckBox("I have no calibrator: &keep the present level")
        self.as_it_is.setObjectName("as_it_is")
        self.as_it_is.toggled.connect(lambda _: self.completeChanged.emit())
        last = QtWidgets.QHBoxLayout()
        last.addWidget(self.taken, 1)
        last.addWidget(self.again)
        self.body.setSpacing(10)
        add_all(self.body, form, self.headline, self.words, self.progress, self.numbers, last)
        self.body.addStretch(1)
        self.body.addWidget(self.as_it_is)
        self.body.addWidget(self.problem)
        self.level.changed.connect(self._choose)
        self.frequency.changed.connect(self._begin)

    def initializePage(self) -> None:
        self._begin()

    def isComplete(self) -> bool:
        return self.draft.tone is not None or self.as_it_is.isChecked()

    def validatePage(self) -> bool:
        if self.as_it_is.isChecked():
            self.draft.tone = None
        return self.isComplete()

    def show_heard(self, heard: ToneReading) -> None:
        self.refuse(heard.words if heard.state in ("ended", "lost") else "")
        verdict = heard.verdict if heard.state == "listening" else None
        self._show(verdict)
        if verdict is not None and verdict.mean is not None:
            # The reading stays when the calibrator is taken off: no key press is needed.
            self.draft.tone, self.draft.gain = verdict.mean, self._run.gain
            self.draft.hear_both([rms for rms, _ in heard.levels_db])
            self.completeChanged.emit()
        self._show_taken()

    def _show(self, verdict: ToneVerdict | None) -> None:
        kind = "" if verdict is None else verdict.kind
        headline, words = HEADLINES.get(kind, "Listening"), "" if verdict is None else verdict.words
        good_s = 0.0 if verdict is None or verdict.kind == "drift" else verdict.good_s
        if self.draft.tone is not None and kind != "good":
            # The calibrator may be off by now, as the page says: nothing is wrong.
            headline, words, good_s = TAKEN, STAYS, STABLE_S
        self.headline.setText(headline)
        self.words.setText(plain(words[:1].upper() + words[1:]))
        self.progress.setValue(round(10 * min(STABLE_S, good_s)))
        tone = None if verdict is None else verdict.tone
        heard = tone is not None and tone.total_dbfs > QUIET_DBFS
        self.numbers.show_texts(
            (
                f"{tone.level_dbfs:.2f} dBFS" if tone is not None and heard else "-",
                f"{tone.frequency:.1f} Hz" if tone is not None and heard else "-",
                f"{verdict.spread_db:.2f} dB" if verdict is not None and verdict.good_s else "-",
            )
        )

    def _show_taken(self) -> None:
        tone = self.draft.tone
        self.again.setEnabled(tone is not None)
        text = (
            f"Taken: {tone.level_dbfs:.2f} dBFS at {tone.frequency:.1f} Hz. "
            "You can remove the calibrator."
            if tone is not None
            else "No level is taken yet."
        )
        self.taken.setText(text)

    def _choose(self) -> None:
        self.draft.reference_db_spl = self.level.value

    def _begin(self) -> None:
        self._choose()
        self.draft.frequency_hz, self.draft.tone = self.frequency.value, None
        self._run.restart()
        self._show(None)
        self._show_taken()
        self.completeChanged.emit()


class CorrectionPage(WizardPage):
    """The file with the microphone's response."""

    def __init__(self, run: CalibrationRun) -> None:
        super().__init__(
            run,
            "correction_page",
            "The microphone's response",
            "The maker's file gives the microphone's response over frequency (.cal, .txt, .frd). "
            "Readings are corrected by it. If you have none, go on.",
        )
        self.path = QtWidgets.QLineEdit(objectName="path", accessibleName="correction file")
        self.path.setPlaceholderText("no file")
        self.path.editingFinished.connect(self._read)
        choose = push_button("choose", "C&hoose...", self._choose)
        self.none = push_button("none", "N&one", self._clear)
        file = QtWidgets.QWidget()
        file.setFocusProxy(self.path)
        line = QtWidgets.QHBoxLayout(file)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self.path, 1)
        line.addWidget(choose)
        line.addWidget(self.none)
        self.inverted = QtWidgets.QCheckBox("The file has &corrections to add, not the response")
        self.inverted.setObjectName("inverted")
        self.inverted.toggled.connect(self._read)
        self.plot, self.words = CorrectionPlot(), plain_label("words", wrap=True)
        form = QtWidgets.QFormLayout()
        form.addRow("&File", file)
        form.addRow("", self.inverted)
        self.body.addLayout(form)
        self.body.addWidget(self.plot, 1)
        self.body.addWidget(self.words)
        self.body.addWidget(self.problem)

    def initializePage(self) -> None:
        correction = self.draft.correction
        self.path.setText("")
        self.path.setPlaceholderText("no file" if correction is None else plain(correction.name))
        with QtCore.QSignalBlocker(self.inverted):
            self.inverted.setChecked(correction is not None and correction.inverted)
        self.refuse("")
        self._show()

    def isComplete(self) -> bool:
        return not self.problem.text()

    def _choose(self) -> None:
        name, _ = QtWidgets.QFileDialog.getOpenFileName(
            self, "The microphone's response", "", "Responses (*.cal *.txt *.frd);;All files (*)"
        )
        if name:
            self.path.setText(name)
            self._read()

    def _clear(self) -> None:
        self.path.setText("")
        self.path.setPlaceholderText("no file")
        self.draft.correction = None
        self.refuse("")
        self._show()

    def _read(self) -> None:
        name, inverted = self.path.text().strip(), self.inverted.isChecked()
        try:
            if name:
                self.draft.correction = read_correction(Path(name), inverted)
            elif self.draft.correction is not None:
                self.draft.correction = replace(self.draft.correction, inverted=inverted)
            self.refuse("")
        except CorrectionError as refusal:
            self.draft.correction = None
            self.refuse(str(refusal))
        self._show()

    def _show(self) -> None:
        after = self.draft.after.calibration.correction
        self.plot.show_correction(after)
        self.words.setText("No correction." if after is None else plain(after.in_words()))
        self.none.setEnabled(self.draft.correction is not None)
        self.completeChanged.emit()


class ResultPage(WizardPage):
    """The change, before it is saved."""

    def __init__(self, run: CalibrationRun) -> None:
        super().__init__(
            run, "result_page", "Before and after", "Nothing is stored until you press Save."
        )
        self.setFinalPage(True)
        self.numbers = CaptionedNumbers(("Before", "After", "Difference"))
        self.about = plain_label("about", wrap=True)
        self.uncertainty = spin(0.0, LARGEST_UNCERTAINTY_DB, "dB", 0.05, "of the calibrator")
        self.days = spin(1.0, LONGEST_VALID_DAYS, "days", 10.0, "days of validity", 0)
        form = QtWidgets.QFormLayout()
        form.addRow("Calibrator's &uncertainty (k = 2)", self.uncertainty)
        form.addRow("Remind me &after", self.days)
        caption = plain_label("", "Level of a full-scale sine", role="second")
        add_all(self.body, caption, self.numbers)
        self.body.addLayout(form)
        self.body.addWidget(self.about)
        self.targets = {target: QtWidgets.QRadioButton() for target in Target}
        for target, button in self.targets.items():
            button.setObjectName(target.value)
            button.toggled.connect(self._choose_target)
            self.body.addWidget(button)
        self.body.addStretch(1)
        self.body.addWidget(self.problem)
        self.uncertainty.valueChanged.connect(self._choose)
        self.days.valueChanged.connect(self._choose)

    def initializePage(self) -> None:
        measured = self.draft.tone is not None
        for control, value in (
            (self.uncertainty, self.draft.uncertainty_db),
            (self.days, self.draft.valid_days),
        ):
            with QtCore.QSignalBlocker(control):
                control.setValue(value)
            control.setEnabled(measured)
        self.refuse("")
        self._offer_targets()
        self._show()

    def _offer_targets(self) -> None:
        draft = self.draft
        draft.target = Target.ALONE if draft.other is None else self._run.usual_target()
        one, other = draft.channel, draft.other
        words = {
            Target.ALONE: f"Store it for channel {one} &alone",
            Target.BOTH: f"Both &ears: store it for channel {other} as well",
            Target.NEXT: f"Store it, then calibrate channel {other} n&ext",
        }
        for target, button in self.targets.items():
            button.setText(words[target])
            button.setVisible(other is not None)
            button.setChecked(target is draft.target)

    def _choose_target(self) -> None:
        chosen = (target for target, button in self.targets.items() if button.isChecked())
        self.draft.target = next(chosen, Target.ALONE)
        self._show()

    def validatePage(self) -> bool:
        try:
            self._run.keep()
        except Refusal as refusal:
            self.refuse(str(refusal))
            return False
        return True

    def _choose(self) -> None:
        self.draft.uncertainty_db = self.uncertainty.value()
        self.draft.valid_days = self.days.value()
        self._show()

    def _show(self) -> None:
        before, after = self.draft.before.calibration, self.draft.after.calibration
        difference = f"{after.full_scale_db_spl - before.full_scale_db_spl:+.2f} dB"
        if self.draft.tone is None:
            difference = "unchanged"
        elif not before.calibrated:
            difference = "-"
        self.numbers.show_texts((_level(before), _level(after), difference))
        channels = " and ".join(map(str, self.draft.channels))
        self.about.setText(plain(f"{self.draft.name}, channel {channels}: {after}."))


def _level(calibration: Calibration) -> str:
    level = f"{calibration.full_scale_db_spl:.2f} dB SPL"
    return level if calibration.calibrated else "unknown"
