"""Nothing that was measured or noted is lost without a word."""

from types import SimpleNamespace

import numpy as np
import pytest
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_stream.engine import Engine, PushSource
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import SessionLog
from amt_stream.sessions.reading import Session
from amt_stream.views.log_status import log_in

FS = 48000
LEVEL = Calibration(100.0, "calibrator", "2026-11-01", True, 0.3)
Key, Button = QtCore.Qt.Key, QtCore.Qt.MouseButton.LeftButton
CONTROL = QtCore.Qt.KeyboardModifier.ControlModifier
NOISE = 0.01 * np.random.default_rng(6).standard_normal((FS // 2, 2)).astype(np.float32)


@pytest.fixture
def measured(qtbot, open_window, tmp_path):
    """A window over engines that hear what a test pushes, and what is done with it."""
    preset = Preset(("spl",))
    models = preset.models(FS, 2)
    made = SimpleNamespace(sources=[], logs=[])

    def engine(wanted):
        made.sources.append(PushSource(FS, 2, live=False))
        return Engine(made.sources[-1], models, [], calibration=LEVEL)

    def log(engine, among):
        table = Table(preset, models, Sound("noise", FS, (1, 2), [LEVEL], None), RowSettings(100))
        made.logs.append(SessionLog(tmp_path / f"log {len(made.logs)}", table))
        return made.logs[-1]

    def hear(seconds):
        measurement = made.window.measurement
        qtbot.waitUntil(lambda: measurement.measuring and not measurement.busy, timeout=15000)
        before = measurement.measured_s
        for _ in range(round(2 * seconds)):
            made.sources[-1].push(NOISE)
        qtbot.waitUntil(lambda: measurement.measured_s > before + seconds - 0.3, timeout=15000)

    made.window = open_window(engine, readings=False, make_log=log)
    made.hear = hear
    made.asked = lambda: made.window.findChild(QtWidgets.QMessageBox, "question")
    return made


def new_measurement(qtbot, measured):
    """Begin another measurement; gives its log."""
    window = measured.window
    qtbot.waitUntil(lambda: window.measurement.begun == 2, timeout=15000)
    qtbot.waitUntil(lambda: log_in(window.measurement.engine) is not None, timeout=5000)
    return log_in(window.measurement.engine)


def test_a_log_that_began_later_has_not_what_came_before(qtbot, measured, monkeypatch):
    window = measured.window
    measured.hear(6)
    window.measurement.readings._measured_s.change(lambda _: 7200.0)
    qtbot.keyClick(window, Key.Key_L)
    assert measured.logs == [log_in(window.measurement.engine)]
    offered = []

    def name(*words):
        offered.append(words[1])
        return "", ""

    monkeypatch.setattr(QtWidgets.QFileDialog, "getSaveFileName", name)
    window.show_state()
    qtbot.waitUntil(lambda: window.targets.files._now() is not None, timeout=5000)
    qtbot.keyClick(window, Key.Key_S, CONTROL)
    assert offered == ["Save the session as a folder"]
    qtbot.keyClick(window, Key.Key_N, CONTROL)
    qtbot.waitUntil(lambda: measured.asked() is not None, timeout=5000)
    assert "02:00:00 are in no log" in measured.asked().informativeText()
    begin = next(one for one in measured.asked().buttons() if one.text() == "Begin")
    qtbot.mouseClick(begin, Button)
    assert new_measurement(qtbot, measured) is measured.logs[1]


def test_a_log_from_the_beginning_has_all_and_is_followed_by_another(qtbot, measured):
    window = measured.window
    measured.hear(1)
    qtbot.keyClick(window, Key.Key_L)
    window.measurement.readings._measured_s.change(lambda _: 7200.0)
    qtbot.keyClick(window, Key.Key_S, CONTROL)
    assert window.message.text.endswith(f"in the log {measured.logs[0].path}")
    qtbot.keyClick(window, Key.Key_N, CONTROL)
    assert new_measurement(qtbot, measured) is measured.logs[1]
    assert measured.asked() is None
    qtbot.keyClick(window, Key.Key_L)
    window.measurement.readings._measured_s.change(lambda _: 0.0)
    qtbot.keyClick(window, Key.Key_N, CONTROL)
    qtbot.waitUntil(lambda: window.measurement.begun == 3, timeout=15000)
    qtbot.wait(200)
    assert log_in(window.measurement.engine) is None


def asked_note(qtbot, window):
    qtbot.keyClick(window, Key.Key_M)
    shown = (one for one in window.findChildren(QtWidgets.QInputDialog) if one.isVisible())
    return next(shown)


def marks(events):
    return [(event.text, event.time_s) for event in events if event.kind == "mark"]


def test_a_marker_is_of_the_moment_at_which_its_key_was_pressed(qtbot, measured):
    window = measured.window
    measured.hear(1)
    qtbot.keyClick(window, Key.Key_L)
    note = asked_note(qtbot, window)
    measured.hear(3)
    note.setTextValue("door opens")
    note.accept()
    readings = window.measurement.readings
    qtbot.waitUntil(lambda: marks(readings.events) != [], timeout=5000)
    window.measurement.stop()
    qtbot.waitUntil(lambda: window.measurement.state == "stopped", timeout=15000)
    events = marks(Session(measured.logs[0].path).events())
    assert events == marks(readings.events) == [("door opens", pytest.approx(1.0, abs=0.1))]


@pytest.mark.parametrize("logged", [False, True])
def test_a_note_of_a_sound_that_has_ended_meanwhile_is_kept(qtbot, measured, logged):
    window = measured.window
    measured.hear(1)
    if logged:
        qtbot.keyClick(window, Key.Key_L)
    note = asked_note(qtbot, window)
    window.measurement.stop()
    qtbot.waitUntil(lambda: window.measurement.state == "stopped", timeout=15000)
    note.setTextValue("crash")
    note.accept()
    events = window.measurement.readings.events
    assert marks(events) == [("crash", pytest.approx(1.0, abs=0.1))]
    assert ("not in the log, which has ended: crash" in window.message.text) == logged


def test_a_note_of_a_measurement_that_is_no_more_is_told(qtbot, measured):
    window = measured.window
    measured.hear(1)
    note = asked_note(qtbot, window)
    window.targets.measurement.new_measurement()
    qtbot.waitUntil(lambda: window.measurement.begun == 2, timeout=15000)
    note.setTextValue("crash")
    note.accept()
    assert "measurement was replaced" in window.message.text
    assert "crash" in window.message.text
