"""Settings: whole at any time, kept from one start to the next, and asked for in a dialog."""

import json
import signal
import subprocess
import sys

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.settings import VERSION, Settings
from amt_monitor.base.theme import theme
from amt_monitor.dialogs.calibration_parts import spin
from amt_monitor.dialogs.calibration_wizard import CalibrationWizard
from amt_monitor.dialogs.settings_dialog import SettingsDialog
from amt_monitor.window.limit_alarm import LimitAlarm
from amt_monitor.window.tray_icon import TrayIcon, light_icon
from amt_stream.cli.command import build_parser
from amt_stream.cli.preset import chosen_preset, with_microphones
from amt_stream.cli.window import Maker
from amt_stream.meters.limits import Limit
from amt_stream.sessions.events import keeper_in
from amt_stream.views.measurement_control import MeasurementRequest

Button = QtCore.Qt.MouseButton.LeftButton

WRITER = """
import sys
from pathlib import Path
from amt_monitor.base.settings import Settings
settings = Settings(Path(sys.argv[1]))
print("ready", flush=True)
for n in range(10**6):
    settings.put(n=n, filling="x" * 20000)
    if n % 10 == 9:
        print(n, flush=True)
"""


def test_a_sudden_end_leaves_the_file_whole(tmp_path):
    path = tmp_path / "monitor.json"
    for rounds in range(1, 3):
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout.readline() == "ready\n"
            for _ in range(rounds):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
        found = json.loads(path.read_text())
        assert found["version"] == VERSION
        assert len(found["filling"]) == 20000
        kept = Settings(path)
        assert not kept.trouble
        assert kept.get("n", -1) >= 9


def test_a_broken_file_is_put_aside(tmp_path):
    path = tmp_path / "monitor.json"
    for text in ('{"version": 1', "[]", '{"version": "one"}', "\0" * 100, "[" * 100000):
        path.write_text(text)
        settings = Settings(path)
        assert "cannot be read" in settings.trouble
        assert path.with_name("monitor.json.unreadable").read_text() == text
        settings.put(theme="dark")
        assert Settings(path).get("theme", "") == "dark"


def test_where_nothing_can_be_written_it_says_so_and_goes_on(tmp_path):
    (tmp_path / "file").write_text("")
    settings = Settings(tmp_path / "file" / "monitor.json")
    settings.put(theme="dark")
    assert settings.trouble.startswith("settings cannot be saved in ")
    assert settings.get("theme", "") == "dark"


def test_a_file_of_a_later_version_is_read_and_left(tmp_path):
    path = tmp_path / "monitor.json"
    path.write_text(text := json.dumps({"version": VERSION + 1, "theme": "dark", "new": 1}))
    settings = Settings(path)
    assert settings.get("theme", "") == "dark"
    settings.put(theme="light")
    assert path.read_text() == text


def test_a_setting_of_another_kind_is_as_none(tmp_path):
    path = tmp_path / "monitor.json"
    path.write_text(json.dumps({"version": VERSION, "keep_s": "much", "wall": "laf_db"}))
    settings = Settings(path)
    assert settings.get("keep_s", 0) == 0
    assert settings.get("wall", []) == []


def test_the_dialog_puts_what_is_asked_for(qtbot, tmp_path):
    before, path = theme.choice, tmp_path / "monitor.json"
    told = []
    dialog = SettingsDialog(Settings(path), lambda: told.append(1))
    qtbot.addWidget(dialog)
    dialog.theme.setCurrentText("Dark")
    dialog.folder.setText(str(tmp_path / "logs"))
    assert not dialog.seconds.isEnabled()
    qtbot.mouseClick(dialog.keep, Button, pos=QtCore.QPoint(8, dialog.keep.height() // 2))
    dialog.seconds.setValue(30)
    dialog.sound.setChecked(True)
    dialog.accept()
    assert told
    kept = Settings(path)
    assert kept.get("theme", "") == "dark"
    assert kept.get("log_folder", "") == str(tmp_path / "logs")
    assert kept.get("keep_s", 0) == 30
    assert kept.get("limit_sound", False)
    assert theme.choice == before, "the window chooses it"
    for label in dialog.findChildren(QtWidgets.QLabel):
        assert label.text() == "" or label.wordWrap() or label.sizeHint().width() < 400


def test_place_layout_and_first_start_are_remembered(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    assert window.first_start.isVisible()
    qtbot.mouseClick(window.first_start.findChild(QtWidgets.QToolButton, "got_it"), Button)
    assert not window.first_start.isVisible()
    window.resize(1100, 700)
    window.area.docks["specific_loudness"].close()
    window.menus.layouts.save_as("no & spectrum")
    window.menus.layouts.save_as("  ")
    window.area.restore_default()
    assert window.area.docks["specific_loudness"].isVisible()
    window.close_now()
    again = open_window(tone_engine)
    assert (again.width(), again.height()) == (1100, 700)
    assert not again.first_start.isVisible()
    assert again.area.docks["specific_loudness"].isVisible()
    menu = again.menus.layouts
    menu.fill()
    actions = {action.objectName(): action for action in menu.actions()}
    actions["layout_no & spectrum"].trigger()
    assert not again.area.docks["specific_loudness"].isVisible()
    menu.forget("no & spectrum")
    assert menu.named == {}
    again.first_steps()
    assert again.first_start.isVisible()


def test_a_limit_sounds_once_when_it_turns_red():
    limit, sounds = Limit("laf_db", 80.0), []
    alarm = LimitAlarm(lambda: sounds.append(1))
    for state, count in (
        ("green", 0),
        ("red", 1),
        ("red", 1),
        ("unknown", 1),
        ("red", 1),
        ("amber", 1),
        ("red", 2),
        ("uncalibrated", 2),
    ):
        alarm.check([limit], {limit.state: state}, True)
        assert len(sounds) == count, state
    alarm.check([limit], {limit.state: "red"}, False)
    assert len(sounds) == 2


def test_a_limit_that_will_be_exceeded_sounds_before_it_is():
    limit, sounds = Limit("laeq_1min_db", 80.0, ahead_s=300.0), []
    alarm = LimitAlarm(lambda: sounds.append(1))
    for state, left_s, count in (
        ("green", None, 0),
        ("green", 500.0, 0),
        ("amber", 290.0, 1),
        ("amber", None, 1),
        ("amber", 280.0, 1),
        ("red", None, 2),
        ("amber", 200.0, 2),
        ("green", None, 2),
        ("amber", 300.0, 3),
    ):
        values = {limit.state: state, "laeq_1min_until_80_s": left_s}
        alarm.check([limit], values, True)
        assert len(sounds) == count, (state, left_s)


def test_the_tray_shows_the_light_and_is_no_place_to_be_lost_in(qtbot, open_window, tone_engine):
    def colors(state):
        picture = light_icon(state).pixmap(64, 64).toImage()
        return {picture.pixelColor(x, y).name() for x in range(64) for y in range(64)}

    for state in ("green", "amber", "red"):
        assert getattr(theme.colors, state) in colors(state)
    window = open_window(tone_engine)
    window.settings.put(tray=True, minimize_to_tray=True)
    window._take_settings()
    if not QtWidgets.QSystemTrayIcon.isSystemTrayAvailable():
        assert not window.limits.tray.is_there
        window.showMinimized()
        qtbot.wait(200)
        assert not window.isHidden()
    tray = TrayIcon(window)
    tray.tell("red", "over the limit")
    assert not tray.is_there


def test_sound_and_logs_are_where_settings_have_them(tmp_path):
    args = build_parser().parse_args(["meter", "--source", "am-tone", "--model", "spl"])
    preset = chosen_preset(args)
    args = with_microphones(args, preset)
    maker = Maker(args, preset)
    engine = maker.engine(MeasurementRequest(keep_s=5.0, folder=tmp_path))
    keeper = keeper_in(engine.sinks)
    assert keeper.folder == tmp_path / "sounds"
    assert keeper.words.startswith("the last 5 s")
    engine.stop()
    engine = maker.engine(MeasurementRequest(folder=tmp_path))
    assert keeper_in(engine.sinks) is None
    log = maker.log(engine, tmp_path)
    assert log.path.parent == tmp_path
    log.close()
    engine.stop()


def test_a_window_that_is_killed_has_kept_its_layout(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    path = window.settings.path
    window.area.docks["levels"].close()
    name = window.area.name
    qtbot.waitUntil(
        lambda: Settings(path).get("layouts", {}).get(name) == window.area.layout(), timeout=6000
    )
    assert window.area.docks["levels"].isHidden()
    window.resize(1000, 700)
    qtbot.waitUntil(lambda: Settings(path).get("place", "") != "", timeout=6000)


def test_numbers_are_typed_as_they_are_written(qtbot, tmp_path):
    before = QtCore.QLocale()
    QtCore.QLocale.setDefault(QtCore.QLocale("de_DE"))
    try:
        boxes = (
            spin(0.0, 20.0, "dB", 0.05, "x"),
            SettingsDialog(Settings(tmp_path / "s"), int).seconds,
        )
        boxes[0].setValue(1.25)
        assert boxes[0].text() == "1.25 dB"
        assert [box.locale() for box in boxes] == [QtCore.QLocale.c()] * 2
    finally:
        QtCore.QLocale.setDefault(before)


def test_the_first_start_is_three_steps(qtbot, open_window, tone_engine, virtual_mic):
    window = open_window(tone_engine)
    steps = window.first_start
    assert steps.title.text() == "1 of 3  Input"
    qtbot.mouseClick(steps.action, Button)
    qtbot.waitUntil(window.device.view().isVisible, timeout=5000)
    window.device.hidePopup()
    qtbot.mouseClick(steps.next, Button)
    assert steps.title.text() == "2 of 3  Calibrate"
    assert steps.next.text() == "Go on uncalibrated"
    qtbot.mouseClick(steps.next, Button)
    assert steps.title.text() == "3 of 3  What to read"
    assert "sone" in steps.words.text()
    qtbot.mouseClick(steps.back, Button)
    qtbot.mouseClick(steps.action, Button)
    qtbot.waitUntil(lambda: window.findChild(CalibrationWizard) is not None, timeout=15000)
    window.findChild(CalibrationWizard).reject()
    assert steps.step == 2, "the wizard was the second step"
    qtbot.mouseClick(steps.next, Button)
    assert not steps.isVisible()
    assert Settings(window.settings.path).get("started", False)
    window.actions_by_name["first_steps"].trigger()
    assert steps.isVisible()
    assert steps.step == 0
    qtbot.mouseClick(steps.skip, Button)
    assert not steps.isVisible()
