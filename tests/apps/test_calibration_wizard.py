"""A microphone is calibrated in a real window, with a calibrator's tone that is really played."""

import contextlib
import os
import subprocess

import numpy as np
import pytest
import soundfile
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.dialogs.calibration_list import CalibrationList
from amt_monitor.dialogs.calibration_run import Target
from amt_monitor.dialogs.calibration_wizard import CalibrationWizard
from amt_stream.engine import Engine, MicrophoneSource
from amt_stream.meters.calibration import (
    UNCALIBRATED,
    Record,
    calibrations_of,
    kept_channels,
    uncalibrated,
    write_records,
)
from amt_stream.meters.correction import keep_corrections, read_correction

FS = 48000
TONE = 10 ** (-30 / 20) * np.sin(2 * np.pi * 1000 * np.arange(40 * FS) / FS)
FILE = "* a microphone\n20 -1\n500 0\n8000 6\n"
Key = QtCore.Qt.Key


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An own configuration, with a correction file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "mic.cal").write_text(FILE)
    return tmp_path


@pytest.fixture
def playing(virtual_mic, tmp_path):
    """Play samples of one channel into both of the virtual microphone."""

    @contextlib.contextmanager
    def play(left, right):
        path = tmp_path / "tone.wav"
        soundfile.write(path, np.stack([left, right], axis=1), FS, subtype="FLOAT")
        player = ["paplay", "--device=speaker", "--latency-msec=50", str(path)]
        with subprocess.Popen(player, env={**os.environ, **virtual_mic.settings()}) as process:
            yield
            process.terminate()

    return play


@pytest.fixture
def open_wizard(qtbot):
    made = []

    def make(**given):
        wizard = CalibrationWizard(**given)
        made.append(wizard)
        qtbot.addWidget(wizard)
        wizard.show()
        with qtbot.waitActive(wizard):
            wizard.activateWindow()
        return wizard

    yield make
    for wizard in made:
        wizard.reject()


def press(qtbot, wizard, name):
    button = wizard.button(getattr(QtWidgets.QWizard.WizardButton, name))
    qtbot.waitUntil(button.isEnabled, timeout=15000)
    qtbot.mouseClick(button, QtCore.Qt.MouseButton.LeftButton)


def test_a_microphone_is_calibrated_with_a_tone_that_is_played(qtbot, open_wizard, playing, folder):
    write_records([Record("virtual_mic", 2, 94.0, -26.0, 1000.0, "2026-01-01T00:00:00Z", 0.25)])
    wizard = open_wizard(device="virtual_mic")
    said = []
    wizard.run.kept.connect(said.append)
    microphone, tone, response = wizard.microphone, wizard.tone, wizard.response
    with playing(0 * TONE, TONE):
        qtbot.waitUntil(lambda: len(microphone.bars) == 2, timeout=15000)
        qtbot.waitUntil(lambda: microphone.bars[1].level > -31, timeout=15000)
        assert microphone.bars[0].level < -80
        assert microphone.before.text() == "not calibrated"
        microphone.channel.setCurrentIndex(1)
        assert "full-scale sine = 120.00 dB SPL" in microphone.before.text()
        assert "days old: overdue" in microphone.before.text()
        assert microphone.kept_as.text() == "virtual_mic"
        qtbot.waitUntil(lambda: microphone.device.count() > 2, timeout=15000)
        assert microphone.device.device == "virtual_mic", "what is heard is what is shown"
        press(qtbot, wizard, "NextButton")
        assert not tone.isComplete()
        qtbot.waitUntil(tone.isComplete, timeout=15000)
        assert tone.headline.text() == "Stable"
        assert tone.taken.text().startswith("Taken: -30.0")
    # The tone is gone, and what was taken stays.
    qtbot.waitUntil(lambda: tone.headline.text() == "Level taken", timeout=15000)
    assert tone.isComplete()
    assert "You can remove the calibrator" in tone.taken.text()
    # A moment of the tone asks for nothing, and changes nothing.
    with playing(0 * TONE[: 2 * FS], TONE[: 2 * FS]):
        kinds = set()
        heard = lambda: wizard.run.listener.reading.verdict  # noqa: E731
        qtbot.waitUntil(lambda: kinds.add(heard() and heard().kind) or "short" in kinds)
        assert tone.headline.text() == "Level taken"
        assert tone.words.text() == "It stays until another tone has been stable"
    press(qtbot, wizard, "NextButton")
    qtbot.keyClicks(response.path, str(folder / "mic.cal"))
    qtbot.keyClick(response.path, Key.Key_Tab)
    assert "readings there are lowered by 4.5 dB, against" in response.words.text()
    press(qtbot, wizard, "NextButton")
    before, after, difference = (label.text() for label in wizard.result_page.numbers.texts)
    assert (before, difference) == ("120.00 dB SPL", "+4.00 dB")
    assert after.startswith("124.0")
    assert kept_channels()[0].correction is None, "nothing is kept before the end"
    assert wizard.result_page.targets[Target.NEXT].isChecked(), "the other channel hears nothing"
    wizard.result_page.targets[Target.ALONE].click()
    press(qtbot, wizard, "FinishButton")
    (kept,) = kept_channels()
    assert said == ["virtual_mic"]
    assert (kept.device, kept.channel) == ("virtual_mic", 2)
    assert kept.record.full_scale_db_spl == pytest.approx(124.0, abs=0.05)
    assert kept.correction == read_correction(folder / "mic.cal")
    assert wizard.run.listener is None


def test_what_is_no_calibrator_is_not_accepted(qtbot, open_wizard, playing, folder):
    wizard = open_wizard(device="virtual_mic")
    tone = wizard.tone
    with playing(np.clip(40 * TONE, -1, 1), TONE):
        press(qtbot, wizard, "NextButton")
        qtbot.waitUntil(lambda: tone.headline.text() == "Clipped", timeout=15000)
        assert "turn the input gain down" in tone.words.text()
        assert not tone.isComplete()
        tone.frequency.choice.setCurrentIndex(1)
        wizard.back()
        wizard.microphone.channel.setCurrentIndex(1)
        press(qtbot, wizard, "NextButton")
        qtbot.waitUntil(lambda: tone.headline.text() == "Another frequency", timeout=15000)
        assert "choose 1000 Hz as its frequency" in tone.words.text()
        assert not wizard.button(QtWidgets.QWizard.WizardButton.NextButton).isEnabled()
    tone.as_it_is.setChecked(True)
    press(qtbot, wizard, "NextButton")
    wizard.response.path.setText(str(folder / "none.cal"))
    wizard.response.path.editingFinished.emit()
    assert "none.cal cannot be read: No such file" in wizard.response.problem.text()
    assert not wizard.button(QtWidgets.QWizard.WizardButton.NextButton).isEnabled()


@pytest.mark.quick
def test_an_input_that_is_not_there_is_told_with_a_line(qtbot, open_wizard, virtual_mic, folder):
    wizard = open_wizard(device="no such microphone")
    page = wizard.microphone
    qtbot.waitUntil(lambda: "here is no input device" in page.problem.text(), timeout=15000)
    assert not wizard.button(QtWidgets.QWizard.WizardButton.NextButton).isEnabled()


def test_every_control_is_reached_by_tab_and_has_a_name(qtbot, open_wizard, virtual_mic, folder):
    wizard = open_wizard(device="virtual_mic")
    qtbot.waitUntil(lambda: len(wizard.microphone.bars) == 2, timeout=15000)
    controls = (
        QtWidgets.QComboBox,
        QtWidgets.QAbstractSpinBox,
        QtWidgets.QPushButton,
        QtWidgets.QCheckBox,
        QtWidgets.QLineEdit,
    )
    for page in (wizard.microphone, wizard.tone, wizard.response, wizard.result_page):
        for control in page.findChildren(QtWidgets.QWidget):
            inner = isinstance(control.parent(), QtWidgets.QComboBox | QtWidgets.QAbstractSpinBox)
            if isinstance(control, controls) and not inner:
                assert control.focusPolicy() & QtCore.Qt.FocusPolicy.TabFocus, control
                named = control.accessibleName() or getattr(control, "text", str)()
                assert named, control


def test_the_window_measures_with_what_was_kept(qtbot, open_window, model, playing, folder):
    """Let go meanwhile; it goes on where nothing is kept, and begins anew where something is."""

    def engine(wanted):
        source = MicrophoneSource("virtual_mic")
        known = calibrations_of(source.device.kept_by, (1, 2))
        return Engine(source, model, calibration=known)

    def wizard():
        qtbot.waitUntil(lambda: window.findChild(CalibrationWizard) is not None, timeout=15000)
        return window.findChild(CalibrationWizard)

    for channel in (1, 2):
        old = "2026-01-01T00:00:00Z"
        write_records([Record("virtual_mic", channel, 94.0, -26.0, 1000.0, old, 0.25)])
    window = open_window(engine, readings=False)
    state = window.bar.calibrated
    qtbot.waitUntil(lambda: state.text() == "calibrated, overdue", timeout=60000)
    assert "days old and was valid for 90" in state.toolTip()
    with playing(TONE, TONE):  # without sound there is nothing to go on with
        qtbot.waitUntil(lambda: window.measurement.readings.standing is not None, timeout=15000)
    begun = window.measurement.begun
    qtbot.keyClick(window, Key.Key_K, QtCore.Qt.KeyboardModifier.ControlModifier)
    wizard().reject()
    qtbot.waitUntil(lambda: window.measurement.measuring, timeout=15000)
    assert window.measurement.begun == begun
    qtbot.waitUntil(lambda: window.findChild(CalibrationWizard) is None)
    window.actions_by_name["calibrate"].trigger()
    opened = wizard()
    with playing(TONE, TONE):
        press(qtbot, opened, "NextButton")
        qtbot.waitUntil(opened.tone.isComplete, timeout=15000)
    for name in ("NextButton", "NextButton", "FinishButton"):
        press(qtbot, opened, name)
    qtbot.waitUntil(lambda: window.measurement.begun == begun + 1, timeout=15000)
    first, second = window.measurement.engine.calibration
    assert first.full_scale_db_spl == pytest.approx(124.0, abs=0.05)
    assert second.full_scale_db_spl == 120.0


def test_all_that_is_kept_is_listed_and_can_be_forgotten(qtbot, folder):
    write_records([Record("usb mic", 1, 94.0, -26.0, 1000.0, "2026-01-01T00:00:00Z", 0.25)])
    keep_corrections("another", {2: read_correction(folder / "mic.cal")})
    dialog = CalibrationList()
    qtbot.addWidget(dialog)
    dialog.show()
    told = [
        [dialog.table.item(row, column).text() for column in range(6)]
        for row in range(dialog.table.rowCount())
    ]
    assert told[0] == ["another", "2", "-", "-", "not calibrated", "mic.cal"]
    assert told[1][:4] == ["usb mic", "1", "120.00 dB SPL", "2026-01-01"]
    assert told[1][4].endswith("days old: overdue")
    dialog.table.selectRow(1)
    qtbot.mouseClick(dialog.forget, QtCore.Qt.MouseButton.LeftButton)
    box = dialog.findChild(QtWidgets.QMessageBox, "question")
    yes = next(one for one in box.buttons() if one.text() == "Forget")
    with qtbot.waitSignal(dialog.changed):
        qtbot.mouseClick(yes, QtCore.Qt.MouseButton.LeftButton)
    assert [one.device for one in kept_channels()] == ["another"]


def stored():
    return {one.channel: one.record.full_scale_db_spl for one in kept_channels()}


def test_one_tone_calibrates_both_ears_of_one_microphone(
    qtbot, open_window, model, playing, folder
):
    """A click on the badge opens the wizard with the reason; its end changes badge and reading."""

    def engine(wanted):
        source = MicrophoneSource("virtual_mic")
        known = calibrations_of(source.device.kept_by, (1, 2))
        return Engine(source, model, calibration=uncalibrated_as_one(known))

    window = open_window(engine, readings=False)
    badge = window.bar.calibration
    qtbot.waitUntil(lambda: badge.text == "uncalibrated", timeout=60000)
    qtbot.waitUntil(lambda: badge.width() > badge.height(), timeout=15000)  # it was laid out
    assert badge.focusPolicy() & QtCore.Qt.FocusPolicy.TabFocus
    qtbot.mouseClick(badge, QtCore.Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.findChild(CalibrationWizard) is not None, timeout=15000)
    wizard = window.findChild(CalibrationWizard)
    assert wizard.microphone.why.text().startswith("virtual_mic has no calibration.")
    with playing(TONE, TONE):
        press(qtbot, wizard, "NextButton")
        qtbot.waitUntil(wizard.tone.isComplete, timeout=15000)
    for name in ("NextButton", "NextButton"):
        press(qtbot, wizard, name)
    cancel = wizard.button(QtWidgets.QWizard.WizardButton.CancelButton)
    assert cancel.icon().isNull(), "no red cross"
    assert wizard.result_page.targets[Target.BOTH].isChecked(), "both hear the same tone"
    assert "channel 1 and 2" in wizard.result_page.about.text()
    press(qtbot, wizard, "FinishButton")
    qtbot.waitUntil(lambda: window.bar.calibrated.text() == "calibrated", timeout=15000)
    assert not badge.text
    assert stored() == {1: pytest.approx(124.0, abs=0.05), 2: stored()[1]}
    assert {one.full_scale_db_spl for one in window.measurement.engine.calibration} == {stored()[1]}


def uncalibrated_as_one(known):
    return known if all(one.calibrated for one in known) else uncalibrated(known)


def test_a_badge_names_the_channel_that_is_not_calibrated(
    qtbot, open_window, model, folder, playing
):
    write_records([Record("virtual_mic", 1, 94.0, -26.0, 1000.0, "2026-11-01T00:00:00Z", 0.25)])

    def engine(wanted):
        return Engine(MicrophoneSource("virtual_mic"), model, calibration=UNCALIBRATED)

    window = open_window(engine, readings=False)
    badge = window.bar.calibration
    qtbot.waitUntil(lambda: badge.text == "channel 2 uncalibrated", timeout=60000)
    assert "Channel 2 of virtual_mic has no calibration" in badge.toolTip()
    assert badge.accessibleDescription() in badge.toolTip()


def test_the_other_channel_is_calibrated_next(qtbot, open_wizard, playing, folder):
    wizard = open_wizard(device="virtual_mic")
    with playing(TONE, 0.5 * TONE):
        press(qtbot, wizard, "NextButton")
        qtbot.waitUntil(wizard.tone.isComplete, timeout=15000)
        for name in ("NextButton", "NextButton"):
            press(qtbot, wizard, name)
        assert wizard.result_page.targets[Target.NEXT].isChecked()
        press(qtbot, wizard, "FinishButton")
        assert wizard.isVisible()
        assert wizard.currentPage() is wizard.tone
        assert wizard.run.draft.channel == 2
        assert not wizard.tone.isComplete()
        qtbot.waitUntil(wizard.tone.isComplete, timeout=15000)
    for name in ("NextButton", "NextButton"):
        press(qtbot, wizard, name)
    assert wizard.result_page.targets[Target.ALONE].isChecked()
    press(qtbot, wizard, "FinishButton")
    assert not wizard.isVisible()
    assert stored()[2] - stored()[1] == pytest.approx(6.02, abs=0.1)
