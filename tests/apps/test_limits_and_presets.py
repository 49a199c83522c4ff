"""Limits and presets are chosen in the window, by mouse and by keys, and kept."""

from dataclasses import replace

import numpy as np
import pytest
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.settings import Settings
from amt_monitor.dialogs.limits_dialog import LimitsDialog
from amt_monitor.panes.pane import ElidedLabel
from amt_monitor.window.main_window import MainWindow
from amt_stream.cli.command import build_parser
from amt_stream.cli.preset import chosen_preset
from amt_stream.cli.window import Maker
from amt_stream.core.settings import presets_folder, tables_in, write_tables
from amt_stream.meters.limits import Limit
from amt_stream.meters.norms import load_norm
from amt_stream.meters.presets import load_preset, read_preset, shipped_presets
from amt_stream.sessions.results import read_results
from amt_stream.views.log_status import log_in
from tests.apps.texts import engine_of

Key, Button = QtCore.Qt.Key, QtCore.Qt.MouseButton.LeftButton
CONTROL = QtCore.Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def start(qtbot, tmp_path):
    """Start the program anew, with what it remembers."""
    windows = []

    def make(*words):
        args = build_parser().parse_args(["meter", "--source", "demo", *words])
        maker = Maker(args, chosen_preset(args))
        settings = Settings(tmp_path / "monitor.json")
        settings.put(log_folder=str(tmp_path / "logs"))
        window = MainWindow(maker.engine, maker.log, settings, maker.preset, maker.change_limits)
        windows.append(window)
        window.show()
        with qtbot.waitActive(window):
            window.activateWindow()
        qtbot.waitUntil(lambda: window.updater.shown is not None, timeout=60000)
        return window

    yield make
    for window in windows:
        window.close_now()


def dialog_in(qtbot, window):
    def found():
        return [one for one in window.findChildren(LimitsDialog) if one.isVisible()]

    qtbot.waitUntil(lambda: bool(found()), timeout=5000)
    with qtbot.waitActive(found()[0]):
        found()[0].activateWindow()
    return found()[0]


def begun_anew(qtbot, window, begun):
    qtbot.waitUntil(lambda: window.measurement.begun > begun, timeout=60000)
    qtbot.waitUntil(lambda: window.area.begun == window.measurement.begun, timeout=60000)


def test_a_limit_is_told_on_one_line_of_a_narrow_pane(qtbot, open_window):
    window = open_window(engine_of("loudness and level"))
    window.first_start.skip.click()
    window.resize(1280, 800)
    pane, (_, words) = window.area.docks["limits"].pane, window.area.docks["limits"].pane.words[0]
    window.area.restore_default()
    qtbot.waitUntil(lambda: words.text().endswith("limit\N{NO-BREAK SPACE}85\N{NO-BREAK SPACE}dB"))
    line = words.fontMetrics().height()
    qtbot.waitUntil(lambda: words.heightForWidth(words.width()) < 1.5 * line, timeout=5000)
    for wide, units in ((700, 2), (200, 1)):
        pane.setFixedWidth(wide)
        qtbot.waitUntil(lambda units=units: words.text().count("dB") == units, timeout=5000)


def test_long_words_of_limits_are_whole_in_a_small_pane(qtbot, start):
    limits = "--limit", "laeq_15min_db>70", "--limit", "laf_db>99"
    window = start("--model", "moore2016,spl", *limits)
    window.resize(1280, 800)
    window.first_start.skip.click()
    pane = window.area.docks["limits"].pane
    qtbot.waitUntil(lambda: "Only part" in pane.words[0][1].text(), timeout=15000)

    def lacking():
        labels = [label for pair in pane.words for label in pair]
        boxes = [(one.text(), one.heightForWidth(one.width()), one.height()) for one in labels]
        bottom = labels[-1].mapTo(pane, labels[-1].rect().bottomLeft()).y()
        short = [box for box in boxes if box[1] > box[2] + 1]
        return short or ([] if bottom < pane.height() else [bottom, pane.height()])

    qtbot.waitUntil(lambda: lacking() == [], timeout=5000)
    assert pane.words[0][1].toolTip() == "Average level, 15 min (LAeq,15min)"


def test_limits_by_mouse_are_kept_over_restarts(qtbot, start):
    window = start()
    pane = window.area.docks["limits"].pane
    assert pane.add.isVisible()
    assert pane.add.text() == "Add a limit..."
    qtbot.mouseClick(pane.add, Button)
    dialog = dialog_in(qtbot, window)
    dialog.norm.setCurrentIndex(dialog.norm.findData("din-15905-5"))
    assert "DIN 15905-5:2007-11" in dialog.source.text()
    qtbot.mouseClick(dialog.findChild(QtWidgets.QPushButton, "add_norm"), Button)
    assert dialog.limits == load_norm("din-15905-5")
    assert dialog.table.item(0, 4).text() == "DIN 15905-5:2007-11"
    dialog.reading.setCurrentIndex(dialog.reading.findData("ltl_phon"))
    assert dialog.value.suffix() == " phon"
    dialog.value.setValue(70.0)
    qtbot.mouseClick(dialog.adding, Button)
    assert dialog.limits[-1] == Limit("ltl_phon", 70.0)
    # A second time it is refused, and says why.
    qtbot.mouseClick(dialog.adding, Button)
    assert "Two limits are called ltl_70" in dialog.problem.text()
    dialog.value.setValue(75.0)
    dialog.amber.setValue(72.0)
    qtbot.mouseClick(dialog.changing, Button)
    assert dialog.limits[-1] == Limit("ltl_phon", 75.0, amber=72.0)
    dialog.table.selectRow(1)
    qtbot.mouseClick(dialog.removing, Button)
    wanted = (load_norm("din-15905-5")[0], Limit("ltl_phon", 75.0, amber=72.0))
    assert dialog.limits == wanted
    begun = window.measurement.begun
    qtbot.mouseClick(ok_of(dialog), Button)
    # The meter of levels does not run: a new measurement is needed, and asked for.
    asked = window.findChild(QtWidgets.QMessageBox, "question")
    assert "need a meter that does not run: Sound level." in asked.informativeText()
    qtbot.mouseClick(next(one for one in asked.buttons() if one.text() == "Begin"), Button)
    begun_anew(qtbot, window, begun)
    assert window.measurement.readings.limits == wanted
    assert {"moore2016", "spl"} <= {*window.measurement.engine.models}, "a limit needs its model"
    assert len(window.area.docks["limits"].pane.lights) == 2
    window.close_now()
    again = start()
    assert again.measurement.readings.limits == wanted
    again.close_now()
    # What the program is given precedes what was kept.
    given = start("--limit", "laf_db>80")
    assert given.measurement.readings.limits == (Limit("laf_db", 80.0),)
    history = given.area.docks["history"].pane
    assert history.chosen == ["laf_db", "laeq_db"], "not the reading of the limit"
    qtbot.waitUntil(lambda: [one.value for one in history.layers.thresholds.items] == [80.0])


def test_a_banner_says_that_a_limit_will_be_exceeded(qtbot, start):
    """With silence before it, a tone 1.76 dB above the limit of a minute exceeds it after 40 s."""
    words = "--source", "am-tone", "--full-scale-db", "100", "--model", "spl"
    window = start(*words, "--limit", "laeq_1min_db>28.24,ahead=60")
    banner = window.state_view.banner
    qtbot.waitUntil(lambda: "over the limit in" in banner.text(), timeout=60000)
    assert banner.isVisible()
    assert banner.text().startswith("LAeq,1min ")
    assert "allowed from now on" in banner.text()
    (pane,) = window.area.docks["limits"].pane.words
    qtbot.waitUntil(lambda: pane[0].text().startswith("Over the limit in"), timeout=5000)
    wall = window.wall_view
    window.targets.wall.wall()
    qtbot.waitUntil(lambda: "over the limit in" in wall.banner.text(), timeout=5000)


def test_a_venue_is_seen_at_one_press_with_the_limits_that_are_there(qtbot, start):
    words = "--source", "am-tone", "--full-scale-db", "160", "--model", "spl"
    window = start(*words, "--limit", "laeq_30min_db>92,ahead=300")
    assert "venue" not in window.area.docks
    begun = window.measurement.begun
    qtbot.keyClick(window, Key.Key_V)
    begun_anew(qtbot, window, begun)
    qtbot.waitUntil(lambda: "venue" in window.area.docks and window.area.docks["venue"].is_seen)
    assert [one.column for one in window.measurement.readings.limits] == ["laeq_30min_db"]
    pane = window.area.docks["venue"].pane
    large = [cell.name for cell, _ in pane.grid._large]
    assert large == [
        *("laeq_30min_db", "laeq_30min_allowed_92_db", "laeq_30min_until_92_s"),
        *("lceq_minus_laeq_db", "lcpeak_db"),
    ]
    # Its average, after some of its beats.
    qtbot.waitUntil(
        lambda: pane.texts()[0] == "90.0" and "---" not in pane.texts()[:5], timeout=15000
    )
    texts = dict(zip(large, pane.texts(), strict=False))
    assert texts["laeq_30min_until_92_s"] == "> 30"
    assert not window.area.docks["spl"].isVisible()
    # Again, and what was there before the last press is there.
    window.area.docks["events"].show()
    qtbot.keyClick(window, Key.Key_V)
    qtbot.waitUntil(lambda: not window.area.docks["events"].isVisible())
    qtbot.keyClick(window, Key.Key_V)
    qtbot.waitUntil(window.area.docks["events"].isVisible)


def test_a_venue_pane_says_that_levels_are_corrected(qtbot, start):
    words = "--source", "am-tone", "--full-scale-db", "160", "--preset", "venue"
    window = start(*words, "--audience", "4.2,6")
    pane = window.area.docks["venue"].pane
    symbols = [number.caption.words for _, number in pane.grid._large]
    assert symbols[0] == "LAeq,15min audience"
    assert symbols[4] == "LCpeak audience"
    about = pane.head_bar.findChild(ElidedLabel)
    assert about.text().startswith(
        "limit 100 dB; in the audience: the level at the microphone +4.2"
    )


def tab_to(qtbot, dialog, widget):
    for _ in range(40):
        if dialog.focusWidget() is widget:
            return
        qtbot.keyClick(dialog.focusWidget() or dialog, Key.Key_Tab)
    raise AssertionError(f"Tab does not reach {widget.objectName()}")


def types(qtbot, field, text):
    field.selectAll()
    qtbot.keyClicks(field, text)


def test_limits_by_keys_alone(qtbot, start):
    window = start("--model", "spl")
    qtbot.keyClick(window, Key.Key_L, CONTROL)
    dialog = dialog_in(qtbot, window)
    tab_to(qtbot, dialog, dialog.reading)
    types(qtbot, dialog.reading.lineEdit(), "no such reading")
    tab_to(qtbot, dialog, dialog.adding)
    qtbot.keyClick(dialog.adding, Key.Key_Space)
    assert "There is no reading 'no such reading'" in dialog.problem.text()
    assert dialog.limits == ()
    tab_to(qtbot, dialog, dialog.reading)
    types(qtbot, dialog.reading.lineEdit(), "laeq_15min_db")
    tab_to(qtbot, dialog, dialog.value)
    types(qtbot, dialog.value, "62.5")
    tab_to(qtbot, dialog, dialog.adding)
    qtbot.keyClick(dialog.adding, Key.Key_Space)
    assert dialog.limits == (Limit("laeq_15min_db", 62.5),)
    engine, measured_s = window.measurement.engine, window.measurement.measured_s
    tab_to(qtbot, dialog, ok_of(dialog))
    qtbot.keyClick(ok_of(dialog), Key.Key_Return)
    limits = (Limit("laeq_15min_db", 62.5),)
    qtbot.waitUntil(lambda: window.measurement.readings.limits == limits, timeout=5000)
    # It judges the measurement that runs.
    assert window.measurement.engine is engine
    assert window.measurement.measured_s >= measured_s
    pane = window.area.docks["limits"].pane
    qtbot.waitUntil(lambda: len(pane.lights) == 1, timeout=5000)
    qtbot.waitUntil(lambda: "so far" in pane.words[0][0].text(), timeout=5000)
    assert "LAeq,15min" in pane.words[0][1].text()
    assert pane.lights[0].state == "unknown", "its window is not whole"
    level, count = "laeq_15min_db", window.area.docks["history"].pane.history.count
    assert count > 0
    history = window.area.docks["history"].pane
    assert level in history.chosen
    qtbot.waitUntil(lambda: np.isfinite(history.history.rows([level], 0, 1e6)[level][-1]))
    assert np.isnan(history.history.rows([level], 0, 1e6)[level][0])
    told = [one.text for one in engine.events if one.kind == "limits"]
    assert told == ["from here on: LAeq,15min limit 62.5 dB"]
    # And removed again.
    qtbot.keyClick(window, Key.Key_L, CONTROL)
    dialog = dialog_in(qtbot, window)
    tab_to(qtbot, dialog, dialog.table)
    qtbot.keyClick(dialog.table, Key.Key_Delete)
    assert dialog.limits == ()
    tab_to(qtbot, dialog, ok_of(dialog))
    qtbot.keyClick(ok_of(dialog), Key.Key_Return)
    qtbot.waitUntil(lambda: window.measurement.readings.limits == (), timeout=5000)
    qtbot.waitUntil(lambda: pane.add.text() == "Add a limit...", timeout=5000)
    assert pane.add.isVisible()
    assert window.measurement.engine is engine
    (*_, told) = [one.text for one in engine.events if one.kind == "limits"]
    assert told == "from here on: none; ended: LAeq,15min limit 62.5 dB (kept so far)"


@pytest.fixture
def dialog(qtbot):
    made = LimitsDialog((), ["laf_db", "lafmax_db", "laeq_db", "stl_phon", "stl_sone"])
    qtbot.addWidget(made)
    with qtbot.waitActive(made):
        made.show()
        made.activateWindow()
    return made


def test_readings_are_found_by_their_names_and_keys_are_not_shown(qtbot, dialog):
    texts = [dialog.reading.itemText(k) for k in range(dialog.reading.count())]
    assert "Level, fast (LAF)" in texts
    assert not [one for one in texts if "_" in one]
    assert len({*texts}) == len(texts)
    field, popup = dialog.reading.lineEdit(), dialog.reading.completer().popup()
    types(qtbot, field, "average")
    qtbot.waitUntil(popup.isVisible, timeout=5000)
    offered = [popup.model().index(k, 0).data() for k in range(popup.model().rowCount())]
    assert "Average level, 15 min (LAeq,15min)" in offered
    assert all("average" in one.lower() for one in offered)
    popup.hide()
    for typed, column in (
        ("Level, fast (LAF)", "laf_db"),
        ("laf", "laf_db"),
        ("LAFmax", "lafmax_db"),
        ("highest level, f", "lafmax_db"),
        ("LAeq,15min", "laeq_15min_db"),
        ("LAeq,5min", "laeq_5min_db"),
        ("l10_db", "l10_db"),
        ("level", "level"),
    ):
        types(qtbot, field, typed)
        assert dialog._column == column
    # A word that is searched for, or a number in the wrong field, is no unit.
    for typed in ("average", "17"):
        types(qtbot, field, typed)
        assert dialog.value.text() == "85.0"
    types(qtbot, field, "level")
    dialog.add()
    assert "There is no reading 'level'" in dialog.problem.text()


@pytest.mark.parametrize("place", ["left", "middle", "end"])
def test_what_is_typed_after_a_click_replaces_the_value(qtbot, dialog, place):
    value, field = dialog.value, dialog.value.lineEdit()
    dialog.reading.setFocus()
    assert (value.value(), value.suffix()) == (85.0, " dB")
    x = {"left": 2, "middle": field.width() // 4, "end": field.width() - 2}[place]
    qtbot.mouseClick(field, Button, pos=QtCore.QPoint(x, field.height() // 2))
    qtbot.waitUntil(field.hasSelectedText, timeout=5000)
    qtbot.keyClicks(value, "15")
    assert (value.value(), value.text()) == (15.0, "15 dB")
    qtbot.keyClick(value, Key.Key_Return)
    assert dialog.limits == (Limit("laf_db", 15.0),)
    assert dialog.isVisible(), "Enter adds it"
    assert dialog.value.text() == "15.0 dB"


def test_a_reading_that_is_not_in_the_list_can_be_changed(qtbot, dialog):
    types(qtbot, dialog.reading.lineEdit(), "LAeq,5min")
    dialog.add()
    assert dialog.reading.currentText() == "Average level, 5 min (LAeq,5min), dB"
    dialog.value.setValue(80.0)
    dialog.change()
    assert dialog.limits == (Limit("laeq_5min_db", 80.0),)


def test_a_changed_value_is_judged_as_before(qtbot, dialog):
    before = Limit("laeq_15min_db", 99.0, amber=96.0, hysteresis=1.0, hold_s=5.0, ahead_s=300.0)
    dialog.limits = (before,)
    dialog._show(0)
    dialog.value.setValue(100.0)
    dialog.change()
    assert dialog.limits == (replace(before, threshold=100.0, name=""),)


@pytest.mark.cases(2)
@pytest.mark.parametrize("made", ["limit", "log", "calibration"])
def test_the_first_steps_go_once_something_was_made(qtbot, start, made):
    window = start()
    assert window.first_start.isVisible()
    if made == "limit":
        window.targets.limits._judge((Limit("ltl_phon", 70.0),))
    elif made == "log":
        window.targets.measurement.log()
    else:
        window.targets.measurement.made.emit()
    qtbot.waitUntil(lambda: not window.first_start.isVisible(), timeout=5000)
    assert window.settings.get("started", False)


def test_a_log_goes_on_under_other_limits(qtbot, start):
    window = start("--model", "spl")
    window.targets.measurement.log()
    qtbot.waitUntil(lambda: log_in(window.measurement.engine) is not None, timeout=5000)
    log = log_in(window.measurement.engine)
    limits = (Limit("lceq_db", 20.0),)
    window.targets.limits._judge(limits)
    qtbot.waitUntil(lambda: window.measurement.readings.limits == limits, timeout=5000)
    qtbot.waitUntil(lambda: (window.measurement.readings.row or {}).get("limit_lceq_20") == "red")
    window.targets.measurement.stop()
    qtbot.waitUntil(lambda: window.measurement.state == "stopped", timeout=20000)
    results = read_results(log.path)
    assert [one["times"] for one in results.limits] == [1]
    assert {*results.rows["limit_lceq_20"]} == {"", "red"}
    # Stopped and continued, the log and the window go on with them.
    ended_s = results.duration_s
    window.targets.measurement.stop()
    qtbot.waitUntil(lambda: window.measurement.state == "running", timeout=20000)
    assert window.measurement.readings.limits == limits
    qtbot.waitUntil(lambda: window.measurement.readings.row["time_s"] > ended_s + 0.3)
    window.targets.measurement.stop()
    qtbot.waitUntil(lambda: window.measurement.state == "stopped", timeout=20000)
    again = read_results(log.path)
    assert again.duration_s > ended_s
    assert [one["times"] for one in again.limits] == [1]
    assert again.limits[0]["judged_from_s"] == results.limits[0]["judged_from_s"]
    assert log.path.parent.name == "logs"


def ok_of(dialog):
    buttons = QtWidgets.QDialogButtonBox
    return dialog.findChild(buttons).button(buttons.StandardButton.Ok)


def test_a_preset_is_chosen_saved_and_kept(qtbot, start, tmp_path):
    window = start()
    menu = window.menus.presets

    def choose(name):
        menu.fill()
        action = next(one for one in menu.actions() if one.objectName() == name)
        begun = window.measurement.begun
        action.trigger()
        begun_anew(qtbot, window, begun)

    choose("preset_workplace")
    shipped = load_preset("workplace")
    assert [*window.measurement.engine.models] == [*shipped.names]
    assert window.measurement.readings.limits == shipped.limits
    menu.save_as("hall 3")
    saved = tmp_path / "presets" / "hall 3.toml"
    assert read_preset(saved).limits == shipped.limits
    assert read_preset(saved).settings == window._preset().settings
    window.close_now()
    window = start()
    assert [*window.measurement.engine.models] == [*shipped.names]
    menu = window.menus.presets
    menu.fill()
    checked = [one.objectName() for one in menu.actions() if one.isChecked()]
    assert checked == ["preset_hall 3"]
    choose("preset_broadcast")
    menu.forget(saved)
    menu.fill()
    assert not [one for one in menu.actions() if one.objectName() == "preset_hall 3"]
    window.close_now()
    assert [*start("--model", "spl").measurement.engine.models] == ["spl"]


@pytest.mark.parametrize("name", shipped_presets())
def test_what_is_saved_of_a_preset_is_read_again(name, tmp_path):
    preset = load_preset(name)
    write_tables(tmp_path / "it.toml", preset.tables)
    again = read_preset(tmp_path / "it.toml")
    assert again.tables == preset.tables
    shipped = tables_in(presets_folder() / f"{name}.toml")
    write_tables(tmp_path / "shipped.toml", shipped)
    assert tables_in(tmp_path / "shipped.toml") == shipped


def test_awkward_texts_are_read_as_they_were_written(tmp_path):
    tables = {
        "a b": 'quotes " and \\ and \n, \x7f, ö, 𝄞',
        "s": {"k": [{"x.y": {"z": 1.5}}], "n": True},
    }
    write_tables(tmp_path / "it.toml", tables)
    assert tables_in(tmp_path / "it.toml") == tables
