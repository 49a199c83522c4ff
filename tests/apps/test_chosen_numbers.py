"""Numbers that a person chooses: by keyboard, of all that there are, kept for the next time."""

import pytest
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.settings import Settings
from amt_monitor.panes.chosen_readings_pane import ChooseReadingsDialog
from amt_monitor.window.pane_kinds import pane_kinds
from amt_stream.dsp.stages import BS1770, SoundLevel
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.rows import JoinedRows, reading_text, readings_of
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.views.view_state import ViewState

FS = 48000
Key = QtCore.Qt.Key


@pytest.fixture
def look():
    source = SignalSource([Tone(1000.0, level_db=60.0)], FS, duration=2.0, paced=False)
    names = ("spl", "bs1770")
    sink = FollowedReadings(JoinedRows(readings_of(names, 2), 100, FS))
    models = {"spl": SoundLevel(FS), "bs1770": BS1770(FS)}
    with Engine(source, models, [sink]) as engine:
        assert engine.wait(60)
        sink.sum_up()
        yield ViewState.at(engine, sink)


def pane_of(look, settings):
    kinds = pane_kinds(look, settings, lambda: None)
    return next(kind for kind in kinds if kind.name == "numbers").make()


def test_chosen_numbers_are_those_of_the_rows_and_are_kept(qtbot, look, tmp_path):
    settings = Settings(tmp_path / "monitor.json")
    pane = pane_of(look, settings)
    qtbot.addWidget(pane)
    pane.resize(500, 300)
    pane.show()
    pane.read(look)
    assert [cell.name for cell, _ in pane.grid.numbers] == ["laf_db", "lcf_db"]
    names = ["laeq_db", "integrated_lufs", "true_peak_dbtp", "lcpeak_db", "l10_db"]
    pane.take_names(names)
    pane.read(look)
    pane.show_status(look)
    assert [cell.name for cell, _ in pane.grid.numbers] == names
    assert pane.texts() == tuple(reading_text(name, look.values[name]) for name in names)
    assert pane.texts()[0] == "60.0"
    assert len(pane.grid.groups) == 3
    assert pane.grid.elapsed.text() in ("Measured 00:00:01", "Measured 00:00:02")
    assert pane.head.indexOf(pane.grid.elapsed_box) > 0
    look.readings.measured_of = {"spl": {"l10_db": 65.0}}
    pane.read(look)
    assert pane.grid.elapsed.text().endswith(" to 00:01:05")
    again = pane_of(look, Settings(settings.path))
    qtbot.addWidget(again)
    again.read(look)
    assert [cell.name for cell, _ in again.grid.numbers] == names


def test_what_another_model_has_is_kept_while_that_does_not_run(qtbot, look, tmp_path):
    settings = Settings(tmp_path / "monitor.json")
    settings.put(numbers=["ltl_sone", "laf_db"])
    pane = pane_of(look, settings)
    qtbot.addWidget(pane)
    pane.read(look)
    assert [cell.name for cell, _ in pane.grid.numbers] == ["laf_db"]
    pane.take_names(["laeq_db"])
    assert settings.get("numbers", []) == ["laeq_db", "ltl_sone"]


def test_a_number_is_found_and_taken_by_keyboard(qtbot, look, tmp_path):
    settings = Settings(tmp_path / "monitor.json")
    pane = pane_of(look, settings)
    qtbot.addWidget(pane)
    pane.show()
    pane.read(look)
    qtbot.mouseClick(pane.choose, QtCore.Qt.MouseButton.LeftButton)
    dialog = pane.findChild(QtWidgets.QDialog, "choose_numbers")
    with qtbot.waitActive(dialog):
        dialog.activateWindow()
    qtbot.keyClicks(dialog.search, "LUFS integ")
    shown = [item.text() for item in dialog._items() if not item.isHidden()]
    assert shown == ["Integrated (I), LUFS"]
    qtbot.keyClick(dialog.search, Key.Key_Down)
    qtbot.waitUntil(dialog.list.hasFocus, timeout=5000)
    assert "gated" in dialog.about.text() or "-70 LUFS" in dialog.about.text()
    qtbot.keyClick(dialog.list, Key.Key_Space)
    assert dialog.chosen == ["laf_db", "lcf_db", "integrated_lufs"]
    qtbot.keyClick(dialog.list, Key.Key_Space)
    qtbot.keyClick(dialog.list, Key.Key_Space)
    qtbot.keyClick(dialog.search, Key.Key_Return)
    qtbot.waitUntil(lambda: len(pane.grid.numbers) == 3, timeout=5000)
    assert settings.get("numbers", []) == ["laf_db", "lcf_db", "integrated_lufs"]


def test_cancel_leaves_what_was_chosen(qtbot):
    dialog = ChooseReadingsDialog(["laf_db", "las_db"], ["las_db"])
    qtbot.addWidget(dialog)
    assert [item.data(QtCore.Qt.ItemDataRole.UserRole) for item in dialog._items()] == [
        "las_db",
        "laf_db",
    ]
    assert dialog.chosen == ["las_db"]


def test_loudness_has_two_decimals_below_100():
    written = [reading_text("ltl_sone", sone) for sone in (0.0, 0.052, 4.106, 99.99, 123.46)]
    assert written == ["0.00", "0.05", "4.11", "99.99", "123.5"]
