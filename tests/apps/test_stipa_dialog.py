"""The STI is measured at several positions in the window, and the noise apart.

With AMT_PICTURES=FOLDER in the environment it leaves a picture of the dialog there.
"""

import json
import os

import numpy as np
import pytest
import soundfile
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.dialogs import stipa_dialog
from amt_monitor.dialogs.stipa_dialog import StipaDialog
from amt_stream import Stipa
from amt_stream.engine import Engine, FileSource, MicrophoneSource
from amt_stream.meters.accumulators.sti import sti
from amt_stream.meters.calibration import Calibration
from amt_stream.sessions.results.stipa_positions import read_positions
from tests.dsp.metrology.test_stipa import FS, carriers

Button = QtCore.Qt.MouseButton.LeftButton
SHORT_S = 3.5


@pytest.fixture
def dialog_of(qtbot, open_window):
    """The dialog, opened by its command in a window that measures with this engine."""

    def make(make_engine):
        window = open_window(make_engine)
        window.actions_by_name["measure_sti"].trigger()
        (dialog,) = window.findChildren(StipaDialog)
        dialog.seconds = dialog.noise_s = SHORT_S
        qtbot.waitUntil(dialog.measure.isEnabled, timeout=30000)
        return dialog

    return make


@pytest.fixture
def hall(tmp_path):
    """An engine that hears modulated tones, of which 0.7 of the depth has arrived."""
    path = tmp_path / "hall.wav"
    soundfile.write(path, carriers(np.full((7, 2), 0.7), 20), FS, subtype="FLOAT")

    def make(wanted, **settings):
        return Engine(FileSource(path, loop=True), {"stipa": Stipa(FS)}, **settings)

    return make


def through_a_microphone(wanted):
    return Engine(MicrophoneSource("virtual_mic", channels=(1,)), {"stipa": Stipa(FS)})


def measured(qtbot, dialog, button, done):
    qtbot.waitUntil(button.isEnabled, timeout=20000)
    qtbot.mouseClick(button, Button)
    qtbot.waitUntil(done, timeout=60000)


def test_positions_are_measured_and_reported(qtbot, dialog_of, hall, tmp_path, monkeypatch):
    dialog = dialog_of(hall)
    dialog.signal.elsewhere.setChecked(True)
    assert "Not calibrated" in dialog.level.text()
    assert not dialog.measure_noise.isEnabled()
    assert not dialog.report.isEnabled()
    dialog.name.setText("Row 1")
    qtbot.mouseClick(dialog.measure, Button)
    qtbot.waitUntil(lambda: "STI 0.62" in dialog.progress.text(), timeout=30000)
    assert "(uncertain until 15 s)" in dialog.progress.text()
    assert not dialog.measure.isEnabled()
    qtbot.waitUntil(lambda: len(dialog.positions) == 1, timeout=30000)
    measured(qtbot, dialog, dialog.measure, lambda: len(dialog.positions) == 2)
    assert [one.name for one in dialog.positions] == ["Row 1", "Position 2"]
    assert dialog.positions[0].sti == pytest.approx(sti(np.full((7, 2), 0.7))[0], abs=0.01)
    assert [dialog.table.item(0, k).text() for k in (0, 1, 4)] == [
        "Row 1",
        "0.62",
        "less than 15 s",
    ]
    assert dialog.overall.text() == "", "none of them is valid"
    page, saved = tmp_path / "hall.html", tmp_path / "hall.json"
    monkeypatch.setattr(
        QtWidgets.QFileDialog, "getSaveFileName", lambda *_: (str(page), "Page (*.html)")
    )
    qtbot.mouseClick(dialog.report, Button)
    qtbot.waitUntil(page.exists, timeout=20000)
    assert "Position 2" in page.read_text("utf-8")
    monkeypatch.setattr(
        QtWidgets.QFileDialog, "getSaveFileName", lambda *_: (str(saved), "Positions (*.json)")
    )
    qtbot.mouseClick(dialog.save, Button)
    assert read_positions(saved) == dialog.positions
    assert json.loads(saved.read_text())["positions"][0]["sti"] == pytest.approx(0.62, abs=0.01)


def test_noise_is_measured_apart_and_added(qtbot, dialog_of, hall):
    level = Calibration(90.0, source="test")
    dialog = dialog_of(lambda wanted: hall(wanted, calibration=level))
    dialog.signal.elsewhere.setChecked(True)
    qtbot.waitUntil(dialog.measure_noise.isEnabled, timeout=20000)
    measured(qtbot, dialog, dialog.measure, lambda: len(dialog.positions) == 1)
    measured(qtbot, dialog, dialog.measure_noise, lambda: dialog.noise_db is not None)
    measured(qtbot, dialog, dialog.measure, lambda: len(dialog.positions) == 2)
    quiet, noisy = dialog.positions
    assert quiet.calibrated
    assert quiet.noise_db is None
    assert noisy.noise_db == dialog.noise_db
    assert noisy.sti < quiet.sti - 0.1, "as much noise as signal"


@pytest.mark.soak
def test_what_is_played_here_is_heard(qtbot, dialog_of, virtual_mic):
    dialog = dialog_of(through_a_microphone)
    dialog.seconds = 15.0
    measured(qtbot, dialog, dialog.measure, lambda: len(dialog.positions) == 1)
    (position,) = dialog.positions
    assert not position.no_signal
    if folder := os.environ.get("AMT_PICTURES"):
        dialog.grab().save(f"{folder}/stipa_dialog.png")


def test_an_output_that_is_not_there_is_said(qtbot, dialog_of, virtual_mic):
    dialog = dialog_of(through_a_microphone)
    dialog.signal.output.setText("no such output")
    qtbot.mouseClick(dialog.measure, Button)
    qtbot.waitUntil(
        lambda: "'no such output' does not play" in dialog.progress.text(), timeout=30000
    )
    qtbot.waitUntil(dialog.measure.isEnabled, timeout=5000)
    assert not dialog.positions


def test_a_measurement_of_another_model_begins_anew(qtbot, open_window, model):
    from amt_stream.engine import SignalSource, Tone

    asked = []

    def make(wanted):
        asked.append(wanted.models)
        own = {"stipa": Stipa(FS)} if wanted.models == ("stipa",) else model
        return Engine(SignalSource([Tone(1000.0, level_db=60.0)], FS), own)

    window = open_window(make)
    window.actions_by_name["measure_sti"].trigger()
    (dialog,) = window.findChildren(StipaDialog)
    qtbot.waitUntil(dialog.measure.isEnabled, timeout=30000)
    assert asked == [None, ("stipa",)]
    dialog.seconds = 30.0
    dialog.signal.elsewhere.setChecked(True)
    qtbot.mouseClick(dialog.measure, Button)
    qtbot.waitUntil(dialog.stop.isEnabled, timeout=5000)
    window.measurement.stop()
    qtbot.waitUntil(lambda: stipa_dialog.ENDED[4:] in dialog.progress.text(), timeout=20000)
