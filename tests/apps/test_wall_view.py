"""The wall view: what is measured, for a whole room."""

import numpy as np
import pytest
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.base.theme import CONTRAST_DARK, DARK, LIGHT, theme
from amt_monitor.dialogs.calibration_list import CalibrationList
from amt_monitor.dialogs.calibration_wizard import CalibrationWizard
from amt_monitor.dialogs.report_dialog import ReportDialog
from amt_monitor.plot.history_traces import range_of
from amt_monitor.window.wall_strip import LastMinutes
from amt_monitor.window.wall_view import WallView
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.calibration import UNCALIBRATED
from amt_stream.meters.limits import Limit
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import JoinedRows, readings_of
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.views.reading_history import ReadingHistory
from tests.apps.test_history_pane import rows_of
from tests.apps.texts import recorded

Key = QtCore.Qt.Key
FS = 48000
LIMITS = [Limit("laeq_1s_db", 50.0, amber=40.0, name="loud")]


@pytest.fixture(scope="module")
def level():
    return Preset(("spl",)).models(FS, 2)["spl"]


@pytest.fixture
def measure(level):
    """Makes a function that makes engines which measure a tone of 80 dB against a limit."""

    def make(limits=LIMITS, **settings):
        def make_engine(wanted=None):
            readings = readings_of(["spl"], 2)
            table = JoinedRows(readings, 100, FS, limits=limits)
            source = SignalSource([Tone(1000.0, level_db=80.0)])
            return Engine(source, {"spl": level}, [FollowedReadings(table)], **settings)

        return make_engine

    return make


@pytest.fixture
def on_wall(qtbot, open_window, measure):
    """Opens a window, and the wall view by its key."""

    def make(**settings):
        window = open_window(measure(**settings))
        qtbot.keyClick(window, Key.Key_F11)
        qtbot.waitUntil(window.wall_view.isActiveWindow, timeout=5000)
        qtbot.waitUntil(lambda: bool(window.wall_view.numbers), timeout=10000)
        return window, window.wall_view

    return make


def test_it_shows_what_the_rows_have_and_how_the_limit_is_kept(qtbot, on_wall):
    window, wall = on_wall()
    assert wall.isFullScreen()
    assert list(wall.numbers) == ["laeq_1s_db", "laf_db"]
    qtbot.waitUntil(lambda: wall.numbers["laf_db"].text == "80.0", timeout=10000)
    values = window.updater.view.values
    qtbot.waitUntil(lambda: wall.state.text() == "Over the limit", timeout=10000)
    assert wall.light.state == values["limit_loud"] == "red"
    picture = wall.band.grab().toImage()
    seen = {picture.pixelColor(x, picture.height() // 2).name() for x in range(picture.width())}
    assert {DARK.red, DARK.paper} <= seen, "an exceeded limit is in inverse letters"
    assert wall.limit.text().startswith("LAeq,1s ")
    assert wall.limit.text().endswith("\xa0dB, limit\xa050\xa0dB")
    assert wall.source.text() == window.measurement.engine.source.name
    assert len(wall.time.text()) == 8
    for label in (wall.limit, wall.source):
        label.setText("many words " * 40)
    assert wall.minimumSizeHint().width() < wall.width()
    qtbot.keyClick(wall, Key.Key_S)
    qtbot.waitUntil(lambda: wall.state.text() == "Not known: stopped", timeout=10000)
    assert wall.light.state == "unknown"
    assert wall.band.grab().toImage().pixelColor(1, 1).name() == DARK.grid


def test_the_number_rules_and_the_limit_is_a_band_below_it(qtbot, on_wall):
    limits = [*LIMITS, Limit("laf_db", 99.0, name="far")]
    window, wall = on_wall(limits=limits)
    window.targets.wall.choose(["laf_db"])
    qtbot.waitUntil(lambda: wall.numbers["laf_db"].text == "80.0", timeout=10000)
    wall.resize(1280, 800)
    (first,) = wall.numbers.values()

    def size_is_a_third():
        size = first.digits.font().pixelSize()
        return 0.33 * wall.height() <= size <= 0.42 * wall.height() + 1

    qtbot.waitUntil(size_is_a_third)
    qtbot.waitUntil(lambda: wall.band.height() == round(0.18 * wall.height()))
    assert first.words.font().pixelSize() >= 0.05 * wall.height()
    assert wall.band.width() > 0.9 * wall.width()
    assert wall.others.text() == "● LAF 80.0 dB, limit 99 dB"
    qtbot.waitUntil(lambda: wall.strip.isVisible() and len(wall.strip._cells) > 0, timeout=5000)


def test_the_strip_has_a_scale_and_the_limit(qtbot, on_wall):
    limits = [Limit("laeq_1s_db", 85.0, amber=75.0, name="loud")]
    window, wall = on_wall(limits=limits)
    window.targets.wall.choose(["laf_db"])
    wall.resize(1280, 800)
    strip = wall.strip
    qtbot.waitUntil(lambda: len(strip._cells) > 0 and strip.isVisible(), timeout=10000)
    # Of LAF, the first number, there is no limit.
    assert (strip.name, strip.limits) == ("laeq_1s_db", (limits[0],))
    with recorded() as boxes:
        strip.grab()
    texts = [text for text, _ in boxes]
    # Its limits are drawn as in the history.
    assert {"LAeq,1s\ndB", "LAeq,1s limit 85", "75", "90", "now"} <= {*texts}
    picture = strip.grab().toImage()
    for name, color in (("LAeq,1s limit 85", DARK.red), ("75", DARK.amber)):
        at = round(next(box for text, box in boxes if text == name).center().y())
        rows = range(at - 6, at + 7)
        colors = [picture.pixelColor(x, y).name() for x in range(strip.width()) for y in rows]
        assert colors.count(color) > strip.width() / 3
    assert range_of("dB", np.array([61.2, np.nan, 85.0]), floor=False, least_db=20.0) == (60, 90)
    assert range_of("dB", np.array([61.2, 85.0])) == (20, 90)
    assert range_of("sone", np.array([3.3])) == (0, 4)


@pytest.fixture
def strip_of(qtbot):
    """Makes a strip with rows of 86 dB by their numbers, each 100 ms.

    settling: the number of rows that settle after a gap
    """

    def make(*numbers, settling=0):
        columns = readings_of(["spl"], 2)["spl"].columns
        history = ReadingHistory(columns, 0.1)
        for part in numbers:
            rows = rows_of(columns, part)
            rows["laf_db"][:] = 86.0
            rows["settling"][: settling if part is not numbers[0] else 0] = True
            history.add(rows)
        strip = LastMinutes()
        qtbot.addWidget(strip)
        strip.resize(900, 120)
        strip.show_rows(history, "laf_db", (Limit("laf_db", 99.0),))
        return strip, history

    return make


def columns_with(strip, color, near=60):
    """Where along the strip there is a color, from 0 at its left edge to 1."""
    picture, wanted = strip.grab().toImage(), QtGui.QColor(color)
    wide, high = picture.width(), picture.height()

    def is_near(x, y):
        pixel = picture.pixelColor(x, y)
        pairs = zip(pixel.getRgb(), wanted.getRgb(), strict=True)
        return all(abs(one - other) < near for one, other in pairs)

    middle = range(high // 10, 7 * high // 10)
    inside = range(wide // 7, wide)  # right of the numbers of its scale
    return np.array([x for x in inside if any(is_near(x, y) for y in middle)]) / wide


@pytest.mark.parametrize("count", [120, 450, 1300, 5000, 20_000])
def test_the_strip_fills_its_width_however_long_it_has_been_measured(strip_of, count):
    strip, _ = strip_of(range(1, count))
    assert strip.now_s == pytest.approx(count / 10, rel=0.01)
    assert strip.now_s - strip.from_s == pytest.approx(min(count / 10, 900.0), rel=0.02)
    drawn = columns_with(strip, LIGHT.level)
    assert drawn.max() > 0.99
    assert drawn.min() < 0.15
    with recorded() as boxes:
        strip.grab()
    times = [text for text, _ in boxes if text == "now" or text.startswith("-")]
    assert 3 <= len(times) <= 8


def test_missing_time_is_hatched_in_the_strip_until_now(qtbot, strip_of):
    strip, history = strip_of(range(1, 200), range(300, 600), settling=20)
    hatched = columns_with(strip, LIGHT.outline, near=2)
    assert 0.3 < hatched.min() < 0.45
    assert 0.5 < hatched.max() < 0.6
    strip.lose(True)

    def gone_on():
        strip.show_rows(history, "laf_db", ())
        return strip.now_s > history.now_s + 0.5

    qtbot.waitUntil(gone_on, timeout=10000)
    assert columns_with(strip, LIGHT.outline, near=2).max() > 0.98
    strip.lose(False)
    strip.show_rows(history, "laf_db", ())
    assert columns_with(strip, LIGHT.outline, near=2).max() < 0.6


def test_it_can_be_opened_before_the_first_reading(qtbot):
    wall = WallView()
    qtbot.addWidget(wall)
    with qtbot.captureExceptions() as raised:
        wall.show()
        qtbot.waitExposed(wall)
        wall.grab()
    assert raised == []


def test_it_is_dark_in_every_theme(qtbot, on_wall):
    before = theme.choice
    _, wall = on_wall()
    try:
        for choice, colors in (("light", DARK), ("dark", DARK), ("contrast", CONTRAST_DARK)):
            theme.choose(choice)

            def is_dark(colors=colors):
                picture = wall.grab().toImage()
                assert picture.pixelColor(2, 2).name() == colors.paper
                ink = wall.time.palette().color(wall.time.foregroundRole()).name()
                assert ink == colors.ink

            qtbot.waitUntil(is_dark)
    finally:
        theme.choose(before)


def test_each_number_is_in_doubt_with_its_own_model(qtbot, open_window, level, model):
    def make_engine(wanted=None):
        names = ["spl", "moore2016"]
        table = JoinedRows(readings_of(names, 2), 100, FS)
        source = SignalSource([Tone(1000.0, level_db=80.0)])
        models = {"spl": level, "moore2016": model}
        return Engine(source, models, [FollowedReadings(table)])

    window = open_window(make_engine)
    window.targets.wall.wall()
    wall = window.wall_view
    window.targets.wall.choose(["laf_db", "ltl_sone"])

    def only_one_settles():
        look = window.updater.view
        wall.read(look, None)
        level, loudness = map(look.number_status, ("laf_db", "ltl_sone"))
        return loudness.settling and not level.settling

    qtbot.waitUntil(only_one_settles, timeout=15000)
    tints = [number.digits.property("tint") for number in wall.numbers.values()]
    assert tints == ["ink", "second"]


def test_it_follows_the_state_and_keys_work_in_it(qtbot, on_wall):
    window, wall = on_wall(calibration=UNCALIBRATED, limits=())
    assert wall.light.isHidden()
    qtbot.waitUntil(lambda: wall.chip.text == "Uncalibrated", timeout=5000)
    assert all(number.uncalibrated.isVisible() for number in wall.numbers.values())
    qtbot.keyClick(wall, Key.Key_Space)
    qtbot.waitUntil(lambda: wall.chip.text == "Paused", timeout=5000)
    qtbot.keyClick(wall, Key.Key_S)
    qtbot.waitUntil(lambda: wall.chip.text == "Stopped", timeout=15000)
    for key in (Key.Key_Escape, Key.Key_F11):
        qtbot.waitUntil(wall.isActiveWindow, timeout=5000)
        qtbot.keyClick(wall, key)
        qtbot.waitUntil(lambda: not wall.isVisible(), timeout=5000)
        assert window.isVisible()
        window.targets.wall.wall()


def test_dialogs_stand_before_it(qtbot, on_wall, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    window, wall = on_wall()
    kinds = {
        "calibrations": CalibrationList,
        "report": ReportDialog,
        "calibrate": CalibrationWizard,
    }
    for name, kind in kinds.items():
        window.actions_by_name[name].trigger()
        qtbot.waitUntil(lambda kind=kind: wall.findChild(kind) is not None, timeout=15000)
        wall.findChild(kind).reject()
        qtbot.waitUntil(lambda kind=kind: wall.findChild(kind) is None, timeout=5000)


def test_numbers_are_chosen_from_a_menu_and_remembered(qtbot, on_wall):
    window, wall = on_wall()
    wall_menu = window.targets.wall

    def tick(name):
        wall_menu.fill_menu()
        actions = {
            a.objectName(): a for sub in wall_menu.menu.actions() for a in sub.menu().actions()
        }
        actions[f"wall_{name}"].trigger()

    for name in ("laeq_db", "lcpeak_db"):
        tick(name)
    assert list(wall.numbers) == ["laf_db", "laeq_db", "lcpeak_db"]
    tick("laf_db")
    assert window.settings.get("wall", []) == ["laeq_db", "lcpeak_db"]
    sizes = [number.digits.font().pixelSize() for number in wall.numbers.values()]
    assert sizes[0] >= sizes[1] > wall.height() / 10
    for number in wall.numbers.values():
        needed = number.extent(number.digits.font().pixelSize())
        assert needed.width <= number.width()
        assert needed.height <= number.height()
