"""The window, used as a person uses it: what is on the screen, clicks and keys."""

import threading

import numpy as np
import pytest
import soundfile
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor import run_window
from amt_monitor.theme import theme
from amt_stream.calibration import UNCALIBRATED
from amt_stream.engine import Engine, FileSource, MicrophoneSource, SignalSource
from amt_stream.scales import sone_to_phon

Key, Button = QtCore.Qt.Key, QtCore.Qt.MouseButton.LeftButton


def text(window, name):
    return window.findChild(QtWidgets.QLabel, name).text()


def badges(window):
    return [pane.badge.text for pane in window.panes]


def pixels(widget):
    picture = widget.grab().toImage()
    size = picture.width(), picture.height()
    return {picture.pixelColor(x, y).name() for x in range(size[0]) for y in range(size[1])}


def wait_for_state(qtbot, window, state):
    qtbot.waitUntil(lambda: window.switch.state == state, timeout=15000)


def test_the_tone_of_one_sone_reads_one_sone(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    qtbot.waitUntil(lambda: window.shown.frames.time_s[-1] > 1.5, timeout=10000)
    assert (text(window, "ltl_sone"), text(window, "ltl_phon")) == ("1.00", "40.0")
    assert (text(window, "stl_sone"), text(window, "stl_phon")) == ("1.00", "40.0")
    assert window.shown.texts["levels"] == ("40.0", "40.0")


def test_numbers_on_the_screen_are_those_of_the_frame(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    for _ in range(3):
        before = window.shown
        qtbot.waitUntil(lambda before=before: window.shown is not before, timeout=5000)
        values = window.shown.frames.values
        for name, sone in (("ltl", values.ltl[-1]), ("stl", values.stl[-1])):
            on_screen = text(window, f"{name}_sone"), text(window, f"{name}_phon")
            assert window.shown.texts[name] == on_screen
            digits = len(on_screen[0].partition(".")[2])
            assert on_screen == (f"{sone:.{digits}f}", f"{sone_to_phon(float(sone)):.1f}")


def test_curves_are_those_of_the_frames(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    qtbot.mouseClick(window.start_button, Button)
    wait_for_state(qtbot, window, "stopped")
    history = window.switch.engine.history
    qtbot.wait(150)
    for curve, expected in zip(
        window.spectrum.curves, history.latest.values.specific_loudness[:, -1], strict=True
    ):
        np.testing.assert_array_equal(curve.y, expected)
    assert window.spectrum.curves[0].x[[0, -1]].tolist() == [1.75, 39.0]
    rows = history.read()
    for curve, name in zip(window.history.curves, ("stl", "ltl"), strict=True):
        drawn = curve.y
        assert np.nanmax(drawn) == pytest.approx(sone_to_phon(float(rows[name].max())))
    window.history.scale.setCurrentIndex(1)
    assert np.nanmax(window.history.curves[1].y) == rows.ltl.max()
    assert window.history.plot.y.high == 40.0


def test_keys_and_buttons(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    first = window.switch.engine
    qtbot.mouseClick(window.start_button, Button)
    wait_for_state(qtbot, window, "stopped")
    assert "stopped" in badges(window)[0]
    assert window.start_button.text() == "Start"
    qtbot.keyClick(window, Key.Key_Space)
    wait_for_state(qtbot, window, "running")
    assert window.switch.engine is not first
    qtbot.waitUntil(lambda: "settling" in badges(window)[0], timeout=5000)
    qtbot.waitUntil(lambda: "settling" not in badges(window)[0], timeout=10000)
    qtbot.keyClick(window, Key.Key_R)
    qtbot.waitUntil(lambda: "settling" in badges(window)[0], timeout=5000)
    qtbot.mouseClick(window.reset_button, Button)
    qtbot.waitUntil(
        lambda: [event.kind for event in window.switch.engine.events].count("reset") == 2,
        timeout=5000,
    )
    qtbot.keyClick(window, Key.Key_F11)
    qtbot.waitUntil(window.isFullScreen, timeout=5000)
    qtbot.keyClick(window, Key.Key_F11)
    qtbot.waitUntil(lambda: not window.isFullScreen(), timeout=5000)
    qtbot.keyClick(window, Key.Key_Q, QtCore.Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=5000)


def test_freeze_holds_the_picture_and_not_the_measurement(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    qtbot.keyClick(window, Key.Key_P)
    shown, count = window.shown, window.switch.engine.history.count
    drawn = window.history.curves[0].y.copy()
    qtbot.waitUntil(lambda: window.switch.engine.history.count > count + 500, timeout=5000)
    assert window.shown is shown
    np.testing.assert_array_equal(window.history.curves[0].y, drawn)
    assert all("frozen" in words for words in badges(window))
    qtbot.mouseClick(window.freeze_button, Button)
    qtbot.waitUntil(lambda: window.shown is not shown, timeout=5000)
    assert not any("frozen" in words for words in badges(window))


def test_uncalibrated_readings_look_uncalibrated(qtbot, open_window, tone_engine):
    window = open_window(lambda device: tone_engine(calibration=UNCALIBRATED))
    window._show_state()
    assert all("uncalibrated" in words for words in badges(window))
    assert "uncalibrated" in text(window, "status").lower()
    for pane in (window.history, window.spectrum):
        assert "uncalibrated" in pane.plot.unit_text
    colors, number = theme.colors, window.ltl.findChild(QtWidgets.QLabel, "ltl_phon")
    qtbot.waitUntil(lambda: colors.amber in pixels(window.ltl.badge), timeout=5000)
    qtbot.waitUntil(lambda: "settling" not in badges(window)[0], timeout=10000)
    qtbot.waitUntil(lambda: {colors.ink, colors.grid} <= pixels(number))
    assert colors.red not in pixels(window)


def test_calibrated_readings_do_not(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    window._show_state()
    assert not any("uncalibrated" in words for words in badges(window))
    assert "full-scale sine = 130.00 dB SPL, built-in signal" in text(window, "status")


def test_a_fault_is_marked_in_words_beside_the_numbers_and_in_the_history(
    qtbot, open_window, model, tmp_path
):
    sound = np.zeros((3 * 48000, 2), np.float32)
    sound[48000:52800] = 1.0
    soundfile.write(tmp_path / "clipped.wav", sound, 48000)
    window = open_window(lambda device: Engine(FileSource(tmp_path / "clipped.wav"), model))
    qtbot.waitUntil(lambda: "clip" in badges(window)[0], timeout=10000)
    qtbot.waitUntil(lambda: "clip" in window.history.marks.words, timeout=5000)
    assert "settling" in window.history.marks.words
    wait_for_state(qtbot, window, "stopped")
    assert window.exit_code() == 0


class Paints(QtCore.QObject):
    """Counts the paint events of a widget and of what is in it."""

    def __init__(self, window):
        super().__init__()
        self.count = 0
        for widget in window.findChildren(QtWidgets.QWidget):
            widget.installEventFilter(self)

    def eventFilter(self, _, event):
        self.count += event.type() == QtCore.QEvent.Type.Paint
        return False


def test_a_hidden_window_draws_nothing(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    paints = Paints(window)
    qtbot.waitUntil(lambda: paints.count > 10, timeout=5000)
    window.hide()
    qtbot.wait(100)
    painted, shown = paints.count, window.shown
    drawn, count = window.history.envelope.now_s, window.switch.engine.history.count
    qtbot.waitUntil(lambda: window.switch.engine.history.count > count + 500, timeout=5000)
    assert (paints.count, window.shown, window.history.envelope.now_s) == (painted, shown, drawn)
    window.show()
    qtbot.waitUntil(lambda: window.shown is not shown, timeout=5000)


def test_closing_ends_the_engine_and_its_threads(qtbot, open_window, tone_engine):
    before = set(threading.enumerate())
    window = open_window(tone_engine)
    assert any(thread.name == "engine" for thread in threading.enumerate())
    window.close()
    assert set(threading.enumerate()) == before
    assert window.exit_code() == 0


def test_closing_while_the_engine_is_being_made(open_window, tone_engine):
    before = set(threading.enumerate())
    window = open_window(tone_engine, readings=False)
    window.close()
    assert set(threading.enumerate()) == before


def test_run_window_closes_after_its_duration(qapp, tone_engine):
    assert run_window(tone_engine, duration=0.5, title="one sone") == 0


def test_a_device_that_is_not_there_is_one_sentence(qtbot, virtual_mic, open_window, model):
    def make_engine(device):
        return Engine(MicrophoneSource("no such device" if device is None else device), model)

    window = open_window(make_engine, readings=False)
    qtbot.waitUntil(lambda: "no such device" in text(window, "message"), timeout=15000)
    assert window.exit_code() == 1
    assert window.start_button.text() == "Start"
    # The list is looked up by another process; the arrow key chooses from it.
    qtbot.waitUntil(lambda: window.device.findData("virtual_mic") > 0, timeout=15000)
    while window.device.device != "virtual_mic":
        wait_for_state(qtbot, window, "stopped")
        qtbot.keyClick(window.device, Key.Key_Down)
    qtbot.waitUntil(lambda: window.shown is not None, timeout=15000)
    assert "virtual_mic" in text(window, "status")
    assert "no such device" not in text(window, "message")


def test_a_lost_device_is_one_sentence_until_it_is_back(qtbot, virtual_mic, open_window, model):
    window = open_window(lambda device: Engine(MicrophoneSource("virtual_mic"), model))
    engine = window.switch.engine
    virtual_mic.unplug()
    try:
        qtbot.waitUntil(lambda: "was lost" in text(window, "message"), timeout=15000)
        wait_for_state(qtbot, window, "lost")
        assert "lost" in text(window, "status")
        assert window.exit_code() == 0
    finally:
        virtual_mic.plug()
    wait_for_state(qtbot, window, "running")
    # A busy computer may have something else to say by now.
    qtbot.waitUntil(lambda: "was lost" not in text(window, "message"), timeout=15000)
    assert window.switch.engine is engine


def test_a_lost_device_that_is_not_waited_for_can_be_started_again(
    qtbot, virtual_mic, open_window, model
):
    window = open_window(lambda device: Engine(MicrophoneSource("virtual_mic", wait=False), model))
    virtual_mic.unplug()
    try:
        qtbot.waitUntil(lambda: "was lost" in text(window, "message"), timeout=15000)
        wait_for_state(qtbot, window, "stopped")
        assert window.exit_code() == 3
    finally:
        virtual_mic.plug()
    qtbot.keyClick(window, Key.Key_Space)
    wait_for_state(qtbot, window, "running")
    assert text(window, "message") == ""
    assert window.exit_code() == 0


@pytest.mark.parametrize("size", [(900, 600), (1200, 800), (1280, 1024)])
def test_no_number_is_cut_off(qtbot, open_window, tone_engine, size):
    window = open_window(tone_engine)
    window.resize(*size)
    qtbot.waitUntil(lambda: (window.width(), window.height()) == size, timeout=5000)
    for name in ("ltl_sone", "ltl_phon", "stl_sone", "stl_phon"):
        label = window.findChild(QtWidgets.QLabel, name)
        metrics = label.fontMetrics()
        assert max(map(metrics.horizontalAdvance, ("0.888", "888.8", ">120"))) <= label.width()
        assert metrics.tightBoundingRect("0").height() <= label.height()


def test_names_are_shown_as_they_are_typed(qtbot, open_window, model):
    name = "<h1>big</h1>\x1b[2J"

    def engine(device=None):
        return Engine(SignalSource(name=name), model)

    window = open_window(engine)
    window._show_state()
    plain = QtCore.Qt.TextFormat.PlainText
    for label in (window.status, window.message):
        assert label.textFormat() == plain
    assert text(window, "status").startswith("<h1>big</h1>\\x1b[2J, 48000 Hz")
    assert window.device.itemText(0) == "<h1>big</h1>\\x1b[2J (as started)"
