"""A day with the window, as a person has it: from the first start to the next morning.

With AMT_PICTURES=FOLDER in the environment it leaves a picture of each step there.
"""

import contextlib
import os
import re
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.settings import Settings
from amt_monitor.base.theme import theme
from amt_monitor.dialogs.calibration_wizard import CalibrationWizard
from amt_monitor.dialogs.limits_dialog import LimitsDialog
from amt_monitor.dialogs.report_dialog import ReportDialog
from amt_monitor.dialogs.results_dialog import ResultsDialog
from amt_monitor.window.main_window import MainWindow
from amt_stream.cli.command import build_parser
from amt_stream.cli.preset import chosen_preset
from amt_stream.cli.window import Maker
from amt_stream.meters.norms import load_norm
from amt_stream.meters.presets import load_preset
from amt_stream.meters.rows import NO_READING
from amt_stream.sessions import SessionLog
from amt_stream.sessions.reading import Session
from amt_stream.sessions.results import read_results

Key = QtCore.Qt.Key
FS = 48000
MOST_MS = 240_000
"""For what never comes: what comes is waited for, however slow the computer is."""
PICTURES = os.environ.get("AMT_PICTURES")
SIZE = 1280, 800


class Person:
    """Who uses the window: presses keys, waits for what they see, takes a picture."""

    def __init__(self, qtbot, window):
        self.qtbot, self.window = qtbot, window

    def sees(self, what):
        def look():
            self.window.show_state()
            return what()

        self.qtbot.waitUntil(look, timeout=MOST_MS)

    def presses(self, key, widget=None, modifier=QtCore.Qt.KeyboardModifier.NoModifier):
        widget = widget or self.window
        with self.qtbot.waitActive(widget):
            widget.activateWindow()  # there is no window manager to give it the keyboard
        self.qtbot.keyClick(widget, key, modifier)

    def state(self, word):
        self.sees(lambda: self.window.measurement.state == word)

    def dialog(self, kind):
        self.sees(lambda: self.found(kind) is not None)
        return self.found(kind)

    def agrees(self):
        """Answers a question, if there is one, as after a minute on a slow computer."""
        question = self.found(QtWidgets.QMessageBox)
        if question is not None:
            question.buttons()[0].click()

    def found(self, kind):
        shown = (one for one in self.window.findChildren(kind) if one.isVisible())
        return next(shown, None)

    def picture(self, name, widget=None, after_s=0.3):
        if PICTURES:
            QtGui.QCursor.setPos(self.window.screen().geometry().bottomRight())
            self.qtbot.wait(round(1000 * after_s))
            path = Path(PICTURES) / f"{name}.png"
            (widget or self.window).grab().save(str(path))
            Image.open(path).convert("RGB").save(path, optimize=True)


@pytest.fixture
def playing(virtual_mic):
    """Play a tone into the virtual microphone until it is terminated, however long that takes."""
    players, feeders = [], []

    def play(level_db):
        tone = 10 ** (level_db / 20) * np.sin(2 * np.pi * 1000 * np.arange(FS) / FS)
        second = np.stack([tone, tone], 1).astype("<f4").tobytes()
        form = ["--raw", "--format=float32le", f"--rate={FS}", "--channels=2"]
        player = ["pacat", "--playback", "--device=speaker", "--latency-msec=300", *form]
        environment = {**os.environ, **virtual_mic.settings()}
        process = subprocess.Popen(player, env=environment, stdin=subprocess.PIPE)
        players.append(process)
        feeders.append(threading.Thread(target=feed, args=(process.stdin, second)))
        feeders[-1].start()
        return process

    yield play
    for one in players:
        one.terminate()
        one.wait()
    for thread in feeders:
        thread.join()


def feed(pipe, second):
    """Write the same second of sound again and again, until nobody reads it."""
    with contextlib.suppress(OSError), pipe:
        while True:
            pipe.write(second)


@pytest.fixture
def start(qtbot, tmp_path):
    """Start the program anew, with what it remembers."""
    windows = []

    def make(*words):
        typed = ["meter", *words]
        args = build_parser().parse_args([str(word) for word in typed])
        maker = Maker(args, chosen_preset(args))
        window = MainWindow(
            maker.engine,
            maker.log,
            Settings(tmp_path / "monitor.json"),
            maker.preset,
            maker.change_limits,
        )
        windows.append(window)
        window.resize(*SIZE)
        window.show()
        with qtbot.waitActive(window):
            window.activateWindow()
        person = Person(qtbot, window)
        person.sees(lambda: window.updater.shown is not None)
        return person

    yield make
    for window in windows:
        window.close_now()


@pytest.fixture
def light(qapp):
    """In the colors of a desktop that is light, as the program chooses them when it starts."""
    before = theme.choice
    theme.choose("light")
    yield
    theme.choose(before)


def reading(window, name):
    return (window.measurement.readings.row or {}).get(name) or 0.0


def picture_of_page(page, target):
    """As a browser shows it."""
    from tests.service.browser import Browser

    with Browser(900, 1270) as browser:
        browser.open(page.as_uri())
        target.write_bytes(browser.picture())


def calibrate(person, channel):
    """By the wizard, with the tone that is heard."""
    person.presses(Key.Key_K, modifier=QtCore.Qt.KeyboardModifier.ControlModifier)
    wizard = person.dialog(CalibrationWizard)
    buttons = QtWidgets.QWizard.WizardButton

    def press(name):
        button = wizard.button(getattr(buttons, name))
        person.sees(button.isEnabled)
        person.qtbot.mouseClick(button, QtCore.Qt.MouseButton.LeftButton)

    person.sees(lambda: len(wizard.microphone.bars) == 2)
    wizard.microphone.channel.setCurrentIndex(channel - 1)
    press("NextButton")
    person.sees(wizard.tone.isComplete)
    if channel == 1:
        person.picture("calibration", wizard)
    press("NextButton")
    press("NextButton")
    press("FinishButton")
    person.sees(lambda: person.found(CalibrationWizard) is None)


def test_a_day_with_the_meter(qtbot, tmp_path, virtual_mic, playing, light, start, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    sounds = tmp_path / "sounds"
    words = ("--model", "moore2016,spl", "--limit", "laf_db>97", "--event-folder", sounds)
    person = start("--source", "demo", *words)
    window = person.window
    person.picture("first_start")
    assert window.first_start.isVisible()
    got_it = window.first_start.findChild(QtWidgets.QToolButton, "got_it")
    qtbot.mouseClick(got_it, QtCore.Qt.MouseButton.LeftButton)

    # Another input, by the keyboard.
    person.sees(lambda: window.device.findData("virtual_mic") > 0)
    window.device.setFocus()
    while window.device.device != "virtual_mic":
        person.presses(Key.Key_Down, window.device)
    person.sees(lambda: "virtual_mic" in window.state_view.line.text())
    person.state("running")
    assert window.bar.calibration.text == "uncalibrated"

    # Both of its channels are calibrated with a tone, and the readings are right at once.
    tone = playing(-6.02)
    for channel in (1, 2):
        calibrate(person, channel)
    person.sees(lambda: not window.bar.calibration.text)
    person.sees(lambda: abs(reading(window, "laf_db") - 94) < 0.1)
    person.state("running")  # with the second calibration
    person.sees(lambda: window.updater.shown.texts["levels"] == ("94.0", "94.0"))
    person.picture("measuring", after_s=15)

    # The microphone is pulled out, and put back.
    engine = window.measurement.engine
    virtual_mic.unplug()
    try:
        person.state("lost")
        banner = window.state_view.banner
        person.sees(lambda: bool(re.match(r"Microphone lost 00:\d\d", banner.text())))
        assert window.bar.chip.text.startswith("Lost")
        person.sees(lambda: window.updater.shown.texts["levels"] == ("-", "-"))
        assert set(window.updater.shown.texts["spl"]) == {NO_READING}
        last = window.area.docks["spl"].pane.grid.groups[0][0].symbol.text().partition("last ")[2]
        assert float(last) == pytest.approx(94.0, abs=0.1), "as the reading was before"
        marked = lambda: window.area.docks["history"].pane.layers.marks.words  # noqa: E731
        person.sees(lambda: "gap" in marked())
        person.picture("microphone_lost")
    finally:
        virtual_mic.plug()
    person.state("running")
    assert window.measurement.engine is engine
    person.sees(lambda: not window.state_view.banner.isVisible())

    # A log, a marker, the last of the sound.
    person.presses(Key.Key_L)
    person.sees(lambda: any(isinstance(one, SessionLog) for one in engine.sinks))
    person.sees(lambda: window.bar.buttons["log"].text().startswith("Logging 00:"))
    person.presses(Key.Key_M)
    note = person.dialog(QtWidgets.QInputDialog)
    note.setTextValue("door opens")
    person.presses(Key.Key_Return, note)
    person.sees(lambda: any(one.text == "door opens" for one in engine.events))
    person.presses(Key.Key_I)
    person.sees(lambda: any(sounds.glob("*.flac")))
    person.sees(lambda: any(one.kind == "sound_kept" for one in engine.events))

    # A limit is crossed.
    tone.terminate()
    playing(-0.5)
    person.sees(lambda: window.area.docks["limits"].pane.lights[0].state == "red")
    person.picture("limit_crossed", after_s=5)

    # The room reads it from the wall.
    person.presses(Key.Key_F11)
    wall = window.wall_view
    person.sees(wall.isVisible)
    person.sees(lambda: "97" in wall.state.text() + wall.limit.text())
    person.picture("wall_view", wall)
    qtbot.keyClick(wall, Key.Key_Escape)
    person.sees(lambda: not wall.isVisible())

    # Stop, and the session is in its folder, marker and all.
    person.sees(lambda: window.measurement.measured_s > 2)
    person.presses(Key.Key_Space)  # else LAeq goes on after the last row of the log
    person.state("paused")
    person.sees(lambda: told_of_pause(engine))
    person.presses(Key.Key_S)
    person.state("stopped")
    assert window.measurement.measured_s > 2
    log = Path(window.settings.get("recent", [])[0])
    assert "door opens" in [event.text for event in Session(log).events()]

    # A report of it.
    person.presses(Key.Key_P, modifier=QtCore.Qt.KeyboardModifier.ControlModifier)
    report = person.dialog(ReportDialog)
    report.findChild(QtWidgets.QLineEdit, "place").setText("Hall 3")
    person.picture("report_dialog", report)
    for name in ("report.html", "report.pdf"):
        report.write(tmp_path / name)
        person.sees((tmp_path / name).exists)
    page = (tmp_path / "report.html").read_text()
    assert all(words in page for words in ("Hall 3", "door opens", "virtual_mic", "<svg"))
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    if PICTURES:
        picture_of_page(tmp_path / "report.html", Path(PICTURES) / "report.png")
    report.reject()
    window.close_now()

    # The next morning the calibration is there, and so is the session.
    person = start("--device", "virtual_mic", *words)
    assert not person.window.first_start.isVisible()
    assert not person.window.bar.calibration.text
    assert person.window.bar.calibrated.text() == "calibrated"
    (recent,) = (one for one in person.window.menus.recent.actions() if one.data() == log)
    recent.trigger()
    kept = person.dialog(ResultsDialog)
    table = kept.table
    cells = [[table.item(row, at) for at in range(2)] for row in range(table.rowCount())]
    told = {name.text(): value.text() for name, value in cells if name and value}
    # Its average, which began with the log and not with the window.
    assert told["LAeq"] == f"{read_results(log).rows['laeq_db'][-1]:.1f}", told
    assert "door opens" in kept.findChild(QtWidgets.QPlainTextEdit, "events").toPlainText()
    person.picture("reopened", kept)
    kept.reject()

    # A norm by the mouse, its peak away by the keys; then a preset, which has its own limits.
    window = person.window
    limits_by_mouse_and_keys(person, load_norm("din-15905-5"))
    menu = window.menus.presets
    menu.fill()
    next(one for one in menu.actions() if one.objectName() == "preset_workplace").trigger()
    wanted = load_preset("workplace").limits
    person.sees(lambda: person.agrees() or limits_of(window) == wanted)
    person.sees(lambda: len(window.area.docks["limits"].pane.lights) == len(wanted))


def told_of_pause(engine):
    """Whether rows after the pause are in the log, which end its average."""
    (log,) = (one for one in engine.sinks if isinstance(one, SessionLog))
    events, rows = Session(log.path).events(), [*Session(log.path).rows()]
    paused_s = [one.time_s for one in events if one.kind == "paused"]
    return bool(paused_s and rows) and rows[-1]["time_s"] > paused_s[-1] + 0.2


def limits_of(window):
    readings = window.measurement.readings
    return () if readings is None else readings.limits


def limits_by_mouse_and_keys(person, norm):
    qtbot, window = person.qtbot, person.window
    before = limits_of(window)
    person.presses(Key.Key_L, modifier=QtCore.Qt.KeyboardModifier.ControlModifier)
    dialog = person.dialog(LimitsDialog)
    dialog.norm.setCurrentIndex(dialog.norm.findData("din-15905-5"))
    add = dialog.findChild(QtWidgets.QPushButton, "add_norm")
    qtbot.mouseClick(add, QtCore.Qt.MouseButton.LeftButton)
    assert dialog.limits == (*before, *norm)
    dialog.table.setFocus()
    person.presses(Key.Key_Delete, dialog.table)
    assert dialog.limits == (*before, norm[0])
    person.picture("limits", dialog)
    box = QtWidgets.QDialogButtonBox
    ok = dialog.findChild(box).button(box.StandardButton.Ok)
    ok.setFocus()
    person.presses(Key.Key_Return, ok)
    person.sees(lambda: limits_of(window) == (*before, norm[0]))
    person.sees(lambda: len(window.area.docks["limits"].pane.lights) == len(before) + 1)


FIVE = "moore2016,gm2002,zwicker,bs1770,spl"
LOUDNESS = {"moore2016", "levels", "history", "specific_loudness"}
SHOWN = {
    "measuring_demo": ("light", LOUDNESS, "demo", ()),
    "measuring_dark": ("dark", LOUDNESS, "demo", ()),
    "five_models": ("light", {*FIVE.split(","), "history"}, "demo", ("--model", FIVE)),
    "modulation": ("light", {"strongest", "modulation"}, "am-tone", ("--model", "king2019")),
}
HISTORY_MS = 40000


@pytest.mark.quick
@pytest.mark.parametrize(
    "name",
    ["measuring_demo", "modulation"]
    + [pytest.param(name, marks=pytest.mark.soak) for name in ("measuring_dark", "five_models")],
)
def test_what_a_text_shows_of_the_window(qtbot, start, name, qapp):
    colors, panes, source, words = SHOWN[name]
    before = theme.choice
    theme.choose(colors)
    try:
        person = start("--source", source, *words)
        qtbot.mouseClick(
            person.window.findChild(QtWidgets.QToolButton, "got_it"),
            QtCore.Qt.MouseButton.LeftButton,
        )
        assert panes <= {one.kind.name for one in person.window.area.docks.values() if one.is_seen}
        if PICTURES:
            qtbot.wait(HISTORY_MS)
        person.picture(name)
    finally:
        theme.choose(before)
