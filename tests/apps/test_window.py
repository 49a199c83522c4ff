"""The window, used as a person uses it: what is on the screen, clicks and keys."""

import threading

import numpy as np
import pytest
import soundfile
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.theme import theme
from amt_monitor.window.run import run_window
from amt_stream.engine import Engine, FileSource, MicrophoneSource, SignalSource
from amt_stream.meters.calibration import UNCALIBRATED, Calibration
from tests.apps.expose import pixels
from tests.conftest import pactl

Key, Button = QtCore.Qt.Key, QtCore.Qt.MouseButton.LeftButton


def text(window, name):
    return window.findChild(QtWidgets.QLabel, name).text()


def pane_in(window, name):
    return window.area.docks[name].pane


def state(window):
    return window.bar.chip.text.lower()


def button(window, name):
    return window.bar.buttons[name]


def wait_for_state(qtbot, window, state):
    qtbot.waitUntil(lambda: window.measurement.state == state, timeout=15000)


def test_the_tone_of_one_sone_reads_one_sone(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    qtbot.waitUntil(lambda: window.updater.shown.frames.time_s[-1] > 1.5, timeout=10000)
    assert (text(window, "ltl_sone"), text(window, "ltl_phon")) == ("1.00", "40.0")
    assert (text(window, "stl_sone"), text(window, "stl_phon")) == ("1.00", "40.0")
    assert window.updater.shown.texts["levels"] == ("40.0", "40.0")
    assert window.windowTitle().endswith(" - amt-stream")


def test_numbers_on_the_screen_are_those_of_the_frame(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    for _ in range(3):
        before = window.updater.shown
        qtbot.waitUntil(lambda before=before: window.updater.shown is not before, timeout=5000)
        values = window.updater.shown.view.values
        for name in ("ltl", "stl"):
            on_screen = text(window, f"{name}_sone"), text(window, f"{name}_phon")
            assert set(on_screen) <= set(window.updater.shown.texts["moore2016"])
            digits = len(on_screen[0].partition(".")[2])
            sone, phon = values[f"{name}_sone"], values[f"{name}_phon"]
            assert on_screen == (f"{sone:.{digits}f}", f"{phon:.1f}")


def test_curves_are_those_of_the_frames(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    qtbot.mouseClick(button(window, "stop"), Button)
    wait_for_state(qtbot, window, "stopped")
    latest = window.measurement.engine.history.latest.values.specific_loudness[:, -1]

    def is_latest():
        for curve, expected in zip(
            pane_in(window, "specific_loudness").curves, latest, strict=True
        ):
            np.testing.assert_array_equal(curve.y, expected)

    qtbot.waitUntil(is_latest)
    assert pane_in(window, "specific_loudness").curves[0].x[[0, -1]].tolist() == [1.75, 39.0]
    pane, row = pane_in(window, "history"), window.measurement.readings.row
    assert pane.chosen == ["ltl_phon", "stl_phon"]
    qtbot.waitUntil(lambda: pane.history.now_s == row["time_s"], timeout=5000)
    for curve, name in zip(pane.layers.curves, pane.chosen, strict=True):
        assert curve.y[-1] == row[name]
    pane.choose(["stl_sone"])
    assert pane.layers.curves[0].y[-1] == row["stl_sone"] <= pane.plot.y.high


def test_the_last_curves_of_a_stopped_measurement_are_grey(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    plot, colors = pane_in(window, "specific_loudness").plot, theme.colors
    qtbot.waitUntil(lambda: colors.left in pixels(plot), timeout=5000)
    qtbot.mouseClick(button(window, "stop"), Button)
    wait_for_state(qtbot, window, "stopped")
    qtbot.waitUntil(lambda: not {colors.left, colors.right} & pixels(plot), timeout=5000)
    qtbot.mouseClick(button(window, "stop"), Button)
    qtbot.waitUntil(lambda: colors.left in pixels(plot), timeout=15000)


def test_keys_and_buttons(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    assert not any(action.autoRepeat() for action in window.actions_by_name.values())
    kinds = lambda: [event.kind for event in window.measurement.engine.events]  # noqa: E731
    qtbot.keyClick(window, Key.Key_Space)
    wait_for_state(qtbot, window, "paused")
    qtbot.waitUntil(lambda: "paused" in state(window), timeout=5000)
    qtbot.waitUntil(lambda: button(window, "pause").text() == "Continue", timeout=5000)
    qtbot.mouseClick(button(window, "pause"), Button)
    wait_for_state(qtbot, window, "running")
    qtbot.waitUntil(lambda: "settling" not in state(window), timeout=10000)
    qtbot.keyClick(window, Key.Key_R, QtCore.Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(lambda: "settling" in state(window), timeout=5000)
    assert "readings_reset" not in kinds()
    qtbot.keyClick(window, Key.Key_R)
    qtbot.waitUntil(lambda: "readings_reset" in kinds(), timeout=5000)
    assert kinds().count("filters_reset") == 1
    qtbot.keyClick(window, Key.Key_Q, QtCore.Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=5000)


def test_what_was_stopped_goes_on_where_it_was(qtbot, open_window, tone_engine):
    window = open_window(going_on(tone_engine))
    first = window.measurement.engine
    first.mark("before the stop")
    qtbot.waitUntil(lambda: window.measurement.measured_s > 1.0, timeout=10000)
    qtbot.keyClick(window, Key.Key_S)
    wait_for_state(qtbot, window, "stopped")
    qtbot.waitUntil(lambda: "stopped" in state(window), timeout=5000)
    # One button goes on, by the keys of both.
    assert button(window, "stop").text() == "Continue"
    assert (button(window, "pause").text(), button(window, "pause").isEnabled()) == ("Pause", False)
    keys = [key.toString() for key in window.actions_by_name["stop"].shortcuts()]
    assert keys == ["S", "Space"]
    counted = window.measurement.measured_s
    assert window.bar.chip.text == "Stopped 00:00:01"
    assert "before the stop" in [event.text for event in window.measurement.readings.events]
    qtbot.keyClick(window, Key.Key_Space)
    wait_for_state(qtbot, window, "running")
    assert window.measurement.engine is not first
    assert window.measurement.measured_s >= counted
    qtbot.waitUntil(lambda: window.measurement.measured_s > counted + 0.3, timeout=10000)
    assert window.measurement.engine.first_sample >= 48000
    assert window.measurement.begun == 1
    marked = lambda: pane_in(window, "history").layers.notes.items  # noqa: E731
    qtbot.waitUntil(lambda: any(text == "before the stop" for _, text in marked()), timeout=5000)


def test_readings_of_more_than_a_minute_are_not_thrown_away_unasked(
    qtbot, open_window, tone_engine
):
    window = open_window(tone_engine)
    window.measurement.readings._measured_s.change(lambda _: 3600.0)
    engine = window.measurement.engine
    control = QtCore.Qt.KeyboardModifier.ControlModifier
    asked = lambda: window.findChild(QtWidgets.QMessageBox, "question")  # noqa: E731
    none = QtCore.Qt.KeyboardModifier.NoModifier
    for key, modifier in ((Key.Key_N, control), (Key.Key_Q, control), (Key.Key_R, none)):
        qtbot.keyClick(window, key, modifier)
        qtbot.waitUntil(lambda: asked() is not None, timeout=5000)
        assert "01:00:0" in asked().informativeText()
        assert asked().defaultButton().text() == "Cancel"
        asked().setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        qtbot.keyClick(asked(), Key.Key_Escape)
        qtbot.waitUntil(lambda: asked() is None, timeout=5000)
        assert window.isVisible()
        assert window.measurement.engine is engine
        assert window.measurement.measured_s >= 3600.0
    qtbot.keyClick(window, Key.Key_N, control)
    qtbot.waitUntil(lambda: asked() is not None, timeout=5000)
    begin = next(one for one in asked().buttons() if one.text() == "Begin")
    qtbot.mouseClick(begin, Button)
    qtbot.waitUntil(lambda: window.measurement.engine is not engine, timeout=15000)
    assert window.measurement.measured_s < 60.0


def test_freeze_holds_the_picture_and_not_the_measurement(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    qtbot.keyClick(window, Key.Key_F)
    shown, count = window.updater.shown, window.measurement.engine.history.count
    drawn = pane_in(window, "history").layers.curves[0].y.copy()
    qtbot.waitUntil(lambda: window.measurement.engine.history.count > count + 500, timeout=5000)
    assert window.updater.shown is shown
    np.testing.assert_array_equal(pane_in(window, "history").layers.curves[0].y, drawn)
    assert "frozen" in state(window)
    qtbot.mouseClick(button(window, "freeze"), Button)
    qtbot.waitUntil(lambda: window.updater.shown is not shown, timeout=5000)
    qtbot.waitUntil(lambda: "frozen" not in state(window), timeout=5000)


def test_a_pane_that_is_opened_while_the_panes_are_frozen_is_drawn(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    dock = window.area.docks["specific_loudness"]
    window.tabifyDockWidget(dock, window.area.docks["waterfall"])
    window.area.docks["waterfall"].raise_()
    qtbot.waitUntil(lambda: not dock.is_seen, timeout=5000)
    qtbot.wait(300)  # the others are drawn meanwhile
    dock.pane.curves[0].set([], [])
    qtbot.keyClick(window, Key.Key_F)
    dock.raise_()
    qtbot.waitUntil(lambda: len(dock.pane.curves[0].y) > 0, timeout=5000)


def test_a_new_measurement_lets_go_of_the_picture_and_has_all_its_history(
    qtbot, open_window, tone_engine
):
    window = open_window(tone_engine)
    qtbot.keyClick(window, Key.Key_F)
    assert window.updater.frozen
    qtbot.keyClick(window, Key.Key_N, QtCore.Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(
        lambda: window.measurement.begun == 2 and not window.updater.frozen, timeout=15000
    )
    history = pane_in(window, "history").history
    qtbot.waitUntil(lambda: window.measurement.measured_s > 1.0, timeout=15000)
    qtbot.waitUntil(lambda: history.now_s > 1.0, timeout=5000)
    assert not window.actions_by_name["freeze"].isChecked()
    np.testing.assert_allclose(history.rows(["ltl_phon"], 0.0, 1.0)["time_s"][:3], [0.0, 0.1, 0.2])


def test_uncalibrated_readings_look_uncalibrated(qtbot, open_window, tone_engine):
    window = open_window(lambda device: tone_engine(calibration=UNCALIBRATED))
    window.show_state()
    assert window.bar.calibration.text == "uncalibrated"
    for pane in (pane_in(window, "history"), pane_in(window, "specific_loudness")):
        assert "uncalibrated" in pane.plot.unit_text
    colors, number = theme.colors, window.findChild(QtWidgets.QLabel, "ltl_phon")
    assert colors.amber in pixels(window.bar.calibration)
    qtbot.waitUntil(lambda: "settling" not in state(window), timeout=10000)
    qtbot.waitUntil(lambda: {colors.ink, colors.grid} <= pixels(number))
    assert colors.red not in pixels(window)


def test_calibrated_readings_do_not(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    window.show_state()
    assert not window.bar.calibration.text
    assert window.bar.calibrated.text() == "calibrated"
    assert "full-scale sine = 130.00 dB SPL, built-in signal" in window.bar.calibrated.toolTip()


def test_a_fault_is_marked_in_words_beside_the_numbers_and_in_the_history(
    qtbot, open_window, model, tmp_path
):
    sound = np.zeros((3 * 48000, 2), np.float32)
    sound[48000:52800] = 1.0
    soundfile.write(tmp_path / "clipped.wav", sound, 48000)
    window = open_window(lambda device: Engine(FileSource(tmp_path / "clipped.wav"), model))
    qtbot.waitUntil(lambda: "clip" in state(window), timeout=10000)
    qtbot.waitUntil(
        lambda: "clipped" in pane_in(window, "history").layers.marks.words, timeout=5000
    )
    assert "settling" in pane_in(window, "history").layers.marks.words
    wait_for_state(qtbot, window, "stopped")
    assert window.exit_code() == 0


def going_on(tone_engine):
    """Makes engines that go on where the one before was stopped."""

    def make(wanted):
        if wanted.resumed is None:
            return tone_engine(sinks=[])
        return tone_engine(sinks=[wanted.resumed], restore=wanted.resumed.standing.state)

    return make


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
    assert fastest_timer_ms(window) == 33
    window.hide()
    qtbot.waitUntil(lambda: fastest_timer_ms(window) >= 250, timeout=5000)
    painted, shown = paints.count, window.updater.shown
    curve = pane_in(window, "history").layers.curves[0]
    drawn, count = curve.y.copy(), window.measurement.engine.history.count
    qtbot.waitUntil(lambda: window.measurement.engine.history.count > count + 500, timeout=5000)
    assert (paints.count, window.updater.shown) == (painted, shown)
    np.testing.assert_array_equal(curve.y, drawn)
    window.show()
    qtbot.waitUntil(lambda: window.updater.shown is not shown, timeout=5000)
    assert fastest_timer_ms(window) == 33


def fastest_timer_ms(window):
    timers = window.findChildren(QtCore.QTimer)
    return min(timer.interval() for timer in timers if timer.isActive())


def test_new_numbers_do_not_lay_out_the_window_again(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    window.resize(1280, 800)
    for timer in window.findChildren(QtCore.QTimer):
        timer.stop()
    labels = window.state_view.line, pane_in(window, "moore2016").grid.elapsed
    for label in labels:
        label.setText("Measured 00:00:11")
    lay_out()
    requests = LayoutRequests(window)
    for label in labels:
        label.setText("Measured 00:00:12")
    pane_in(window, "history").legend.setText("LTL 40.0, max 81.0")
    lay_out()
    assert requests.count == 0
    for label in labels:
        requests.count = 0
        label.setText("Over 100:00:00")
        qtbot.waitUntil(lambda: requests.count > 0, timeout=5000)
        lay_out()


def test_panes_are_fitted_again_only_for_other_room(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    waits = window._fit_timer.isActive
    qtbot.waitUntil(lambda: not waits() and not window.area.has_other_room, timeout=5000)
    window.show_state()
    assert not waits()
    window.say("a message takes room")
    qtbot.waitUntil(waits, timeout=5000)
    qtbot.waitUntil(lambda: not waits() and not window.area.has_other_room, timeout=5000)


def lay_out():
    """A request goes from a widget to the one that holds it, each time events are processed."""
    for _ in range(8):
        QtWidgets.QApplication.processEvents()


class LayoutRequests(QtCore.QObject):
    """Counts how often a widget is asked to lay itself out."""

    def __init__(self, widget):
        super().__init__()
        self.count = 0
        widget.installEventFilter(self)

    def eventFilter(self, _, event):
        self.count += event.type() == QtCore.QEvent.Type.LayoutRequest
        return False


def test_closing_ends_the_engine_and_its_threads(qtbot, open_window, tone_engine):
    before = set(threading.enumerate())
    window = open_window(tone_engine)
    assert any(thread.name == "engine" for thread in threading.enumerate())
    window.close()
    qtbot.waitUntil(lambda: set(threading.enumerate()) <= before, timeout=10000)
    assert window.exit_code() == 0


def test_closing_while_the_engine_is_being_made(qtbot, open_window, tone_engine):
    before = set(threading.enumerate())
    window = open_window(tone_engine, readings=False)
    window.close()
    qtbot.waitUntil(lambda: set(threading.enumerate()) <= before, timeout=10000)


def test_run_window_closes_after_its_duration(qapp, tone_engine):
    assert run_window(tone_engine, duration=0.5) == 0


def test_a_device_that_is_not_there_is_one_sentence(qtbot, virtual_mic, open_window, model):
    def make_engine(wanted):
        return Engine(MicrophoneSource(wanted.device or "no such device"), model)

    window = open_window(make_engine, readings=False)
    qtbot.waitUntil(lambda: "no such device" in text(window, "message"), timeout=15000)
    assert window.exit_code() == 1
    assert button(window, "stop").text() == "Start"
    # The list is looked up by another process; the arrow key chooses from it.
    qtbot.waitUntil(lambda: window.device.findData("virtual_mic") > 0, timeout=15000)
    while window.device.device != "virtual_mic":
        wait_for_state(qtbot, window, "stopped")
        qtbot.keyClick(window.device, Key.Key_Down)
    qtbot.waitUntil(lambda: window.updater.shown is not None, timeout=15000)
    assert "virtual_mic" in text(window, "status")
    assert "no such device" not in text(window, "message")


def test_a_lost_device_is_one_sentence_until_it_is_back(qtbot, virtual_mic, open_window, model):
    window = open_window(lambda device: Engine(MicrophoneSource("virtual_mic"), model))
    engine = window.measurement.engine
    virtual_mic.unplug()
    try:
        wait_for_state(qtbot, window, "lost")
        banner = window.state_view.banner
        qtbot.waitUntil(lambda: banner.text().startswith("Microphone lost"), timeout=15000)
        assert "was lost" in banner.toolTip()
        assert "was lost" not in text(window, "message")
        assert "lost" in text(window, "status")
        assert window.exit_code() == 0
        curves = pane_in(window, "specific_loudness").curves
        qtbot.waitUntil(lambda: not any(len(curve.y) for curve in curves), timeout=5000)
    finally:
        virtual_mic.plug()
    wait_for_state(qtbot, window, "running")
    qtbot.waitUntil(lambda: all(len(curve.y) for curve in curves), timeout=5000)
    qtbot.waitUntil(lambda: not banner.isVisible(), timeout=15000)
    assert window.measurement.engine is engine


def test_a_muted_device_is_silent_in_the_window_until_it_is_not(
    qtbot, virtual_mic, open_window, model
):
    window = open_window(lambda device: Engine(MicrophoneSource(), model))
    engine, banner = window.measurement.engine, window.state_view.banner
    note = "'VirtualMicrophone' gives exact zeros: it is muted in the sound server"
    pactl("set-source-mute", "mic", "1")
    try:
        wait_for_state(qtbot, window, "silent")
        qtbot.waitUntil(lambda: banner.text().startswith("Microphone silent 00:0"), timeout=15000)
        assert banner.text().endswith(f", {note}")
        assert note not in text(window, "message")
        curves = pane_in(window, "specific_loudness").curves
        qtbot.waitUntil(lambda: not any(len(curve.y) for curve in curves), timeout=5000)
        assert window.exit_code() == 0
        window.wall_view.show()
        qtbot.waitUntil(lambda: window.wall_view.chip.state == "silent", timeout=15000)
        assert window.wall_view.banner.text() == banner.text()
        window.wall_view.hide()
    finally:
        pactl("set-source-mute", "mic", "0")
    wait_for_state(qtbot, window, "running")
    qtbot.waitUntil(lambda: not banner.isVisible(), timeout=15000)
    assert window.measurement.engine is engine


def test_a_microphone_that_is_muted_from_the_start_says_so_where_panes_will_be(
    qtbot, virtual_mic, open_window, model
):
    pactl("set-source-mute", "mic", "1")
    try:
        window = open_window(lambda device: Engine(MicrophoneSource(), model), readings=False)
        waiting = window.state_view.waiting
        qtbot.waitUntil(lambda: "it is muted in the sound" in waiting.text(), timeout=15000)
        assert window.bar.chip.state == "silent"
        assert waiting.isVisible()
    finally:
        pactl("set-source-mute", "mic", "0")
    qtbot.waitUntil(lambda: window.updater.shown is not None, timeout=15000)
    assert not waiting.isVisible()


def test_a_turned_gain_is_said_in_the_window_and_by_its_badge(
    qtbot, virtual_mic, open_window, model
):
    settings = {"calibration": Calibration(100.0, source="a test")}
    window = open_window(lambda device: Engine(MicrophoneSource(), model, **settings))
    bar = window.bar
    qtbot.waitUntil(lambda: bar.calibrated.text() == "calibrated", timeout=15000)
    pactl("set-source-volume", "mic", "50%")
    try:
        note = "readings are uncalibrated: the input gain is 50 % and was 100 % at the start"
        qtbot.waitUntil(lambda: note in text(window, "message").lower(), timeout=15000)
        assert (bar.calibration.text, bar.calibrated.text()) == ("uncalibrated", "")
        assert "the input gain is 50 % and was 100 %" in bar.calibration.toolTip()
    finally:
        pactl("set-source-volume", "mic", "100%")
    qtbot.waitUntil(lambda: bar.calibrated.text() == "calibrated", timeout=15000)
    assert bar.calibration.text == ""
    assert window.device.shown_text == engine_name(window) == "VirtualMicrophone"


def engine_name(window):
    return window.measurement.engine.source.name


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
    qtbot.waitUntil(lambda: "was lost" not in text(window, "message"), timeout=15000)
    assert window.exit_code() == 0


@pytest.mark.parametrize(
    "size",
    [
        (1024, 600),
        *(pytest.param(one, marks=pytest.mark.soak) for one in ((1200, 800), (1280, 1024))),
    ],
)
def test_no_number_is_cut_off(qtbot, open_window, tone_engine, size):
    window = open_window(tone_engine)
    window.resize(*size)
    qtbot.waitUntil(lambda: (window.width(), window.height()) == size, timeout=5000)
    for name in ("ltl_sone", "ltl_phon", "stl_sone", "stl_phon"):
        label = window.findChild(QtWidgets.QLabel, name)
        metrics, number = label.fontMetrics(), label.parent()
        for digits in ("0.888", "888.8", ">120"):
            number.show_text(digits)
            assert metrics.horizontalAdvance(digits) <= label.width()
            assert number.rect().contains(number.unit.geometry())
        assert metrics.tightBoundingRect("0").height() <= label.height()


def test_names_are_shown_as_they_are_typed(qtbot, open_window, model):
    name = "<h1>big</h1>\x1b[2J"

    def engine(device=None):
        return Engine(SignalSource(name=name), model)

    window = open_window(engine)
    window.show_state()
    plain = QtCore.Qt.TextFormat.PlainText
    for label in (window.state_view.line, window.message.label):
        assert label.textFormat() == plain
    assert text(window, "status").startswith("<h1>big</h1>\\x1b[2J · 48 kHz")
    assert window.device.itemText(0) == "<h1>big</h1>\\x1b[2J (as started)"
