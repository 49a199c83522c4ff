"""Panes of curves show what the model and the rows gave."""

from dataclasses import replace

import numpy as np
import pytest
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import theme
from amt_monitor.panes.distribution_pane import DistributionPane, percentiles_of
from amt_monitor.panes.ears_pane import EarsPane, inhibited_text
from amt_monitor.panes.reading_pane import pane_of
from amt_monitor.panes.spectrum_pane import SpectrumPane
from amt_monitor.panes.waterfall_pane import COLUMN_S, COLUMNS, WaterfallPane
from amt_monitor.plot.image_layers import color_table
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.frames import Event, Fault
from amt_stream.meters.rows import Rows, SoundLevelReadings, readings_of
from amt_stream.sessions.counted_time import counted_from, pauses
from amt_stream.views.peak_hold import PeakHold
from amt_stream.views.reading_history import ReadingHistory, kept_of
from amt_stream.views.view_state import ViewState
from tests.apps.expose import expose


@pytest.fixture
def shown(qtbot):
    """Puts a pane on the screen, with a pixel for each column."""
    return lambda pane: expose(qtbot, pane, 760, 360)


def test_what_is_held_falls_after_two_seconds_and_the_greatest_stays():
    held, every, none = PeakHold(), np.ones(1, bool), np.zeros(1, bool)
    held.take(0.0, np.array([[1.0, 2.0], [3.0, 4.0]])[:, None], every, 1)
    held.take(1.0, np.array([[5.0, np.nan], [0.0, 0.0]])[:, None], every, 1)
    held.take(1.0, np.full((2, 1, 2), 9.0), none, 1)
    assert held.held.min() == 9.0
    held.take(3.1, np.zeros((2, 1, 2)), every, 1)
    assert held.held.max() == 0.0
    assert held.greatest.tolist() == [[5.0, 2.0], [3.0, 4.0]]
    several = np.array([[1.0, 8.0, 2.0], [7.0, 9.0, 1.0]])
    held.take(3.2, several, np.array([True, False, True]), 1, from_s=3.0)
    assert held.greatest.tolist() == [2.0, 7.0]
    assert held.held.tolist() == [8.0, 9.0]
    held.stand_still(True)
    held.take(9.0, np.full((2, 1), 20.0), every, 1, from_s=3.0)
    assert held.greatest.tolist() == [2.0, 7.0]
    assert held.held.tolist() == [8.0, 9.0]
    held.stand_still(False)
    assert held.greatest.tolist() == held.held.tolist() == [20.0, 20.0]
    held.clear()
    assert held.held is held.greatest is None


def test_the_greatest_is_again_that_from_before_all_resets_that_are_undone():
    def take(held, time_s, value, from_s):
        held.take(time_s, np.full((1, 1, 1), value), np.ones(1, bool), 1, from_s)
        return held.greatest.item()

    held = PeakHold()
    assert take(held, 19.0, 9.0, 0.0) == 9.0
    assert take(held, 21.0, 5.0, 20.0) == 5.0
    assert take(held, 23.0, 3.0, 22.0) == 3.0
    assert take(held, 24.0, 1.0, 0.0) == 9.0
    assert take(held, 31.0, 4.0, 30.0) == 4.0
    assert take(held, 42.0, 2.0, 41.0) == 2.0
    assert take(held, 43.0, 1.0, 30.0) == 4.0


def color_at(pane, age_s, cam):
    plot = pane.plot
    ((x, y),) = plot.points([-age_s], [cam]).tolist()
    return plot.grab().toImage().pixelColor(round(x), round(y)).rgb()


def is_hatched(pane, age_s):
    """Whether nothing but hatching is at a time."""
    plot, picture = pane.plot, pane.plot.grab().toImage()
    ((x, _),) = plot.points([-age_s], [0.0]).tolist()
    rows = range(plot.inside.top() + 1, plot.inside.bottom())
    colors = {picture.pixelColor(round(x), y).name() for y in rows}
    return colors == {theme.colors.paper, theme.colors.outline}


def test_the_waterfall_moves_to_the_left(shown):
    pane = shown(WaterfallPane())
    table = color_table()
    silent, loud = np.zeros((2, 150)), np.full((2, 150), 1.0)
    for k in range(round(90 / COLUMN_S)):
        pane.draw((k + 0.5) * COLUMN_S, loud if 700 <= k < 720 else silent)
    # From 20 to 18 seconds ago; the newest column is not yet whole.
    assert color_at(pane, 19.0, 20.0) == table[254]
    for age_s in (1.0, 17.0, 21.0, 40.0, 59.0):
        assert color_at(pane, age_s, 20.0) == table[0], age_s
    assert -pane.plot.x.low == COLUMNS * COLUMN_S
    pane.draw(100.0, silent)
    assert is_hatched(pane, 5.0)
    assert color_at(pane, 29.0, 20.0) == table[254]
    pane.top.setCurrentIndex(3)
    assert color_at(pane, 29.0, 20.0) in table[1:254]


def test_a_waterfall_that_is_held_stays_and_has_all_afterwards(shown):
    pane = shown(WaterfallPane())
    table = color_table()
    silent, loud = np.zeros((2, 150)), np.full((2, 150), 1.0)
    for k in range(100):
        pane.draw((k + 0.5) * COLUMN_S, loud if k < 50 else silent)
    held = pane.plot.grab().toImage()
    pane.colors.hold(True)
    # More than there is room for.
    for k in range(100, 100 + COLUMNS):
        pane.draw((k + 0.5) * COLUMN_S, loud if k >= 600 else silent)
    assert pane.plot.grab().toImage() == held
    pane.ear.setCurrentText("left ear")
    assert pane.plot.grab().toImage() == held
    pane.colors.hold(False)
    for age_s, color in ((1.0, 254), (9.0, 254), (11.0, 0), (59.0, 0)):
        assert color_at(pane, age_s, 20.0) == table[color], age_s


def test_a_waterfall_goes_on_into_hatched_columns_while_the_microphone_is_lost(qtbot, shown):
    pane = shown(WaterfallPane())
    table, loud = color_table(), np.full((2, 150), 1.0)
    for k in range(100):
        pane.draw((k + 0.5) * COLUMN_S, loud)
    before_s = pane.colors.until_s

    def gone_on():
        pane.colors.lose(True)
        return pane.colors.until_s >= before_s + 5 * COLUMN_S

    qtbot.waitUntil(gone_on, timeout=5000)
    assert is_hatched(pane, 2 * COLUMN_S)
    assert color_at(pane, 55.0, 20.0) == QtGui.QColor(theme.colors.paper).rgb(), "before the start"
    # Sound comes from a time that was blank already; what was heard before stays.
    pane.colors.lose(False)
    back_s = before_s + 3 * COLUMN_S
    pane.draw(back_s, loud)
    pane.draw(pane.colors.until_s + COLUMN_S, loud)
    assert np.isfinite(pane.colors.curve(back_s)).all()
    assert np.isnan(pane.colors.curve(before_s + 2 * COLUMN_S)).all()
    now_s = pane.colors.until_s
    assert color_at(pane, now_s - before_s + 1.0 - COLUMN_S / 2, 20.0) == table[254]
    assert is_hatched(pane, now_s - before_s - 2.5 * COLUMN_S)


def test_another_ear_is_shown_with_all_its_past(shown):
    pane, table = shown(WaterfallPane()), color_table()
    left_alone = np.stack((np.full(150, 1.0), np.zeros(150)))
    for k in range(200):
        pane.draw((k + 0.5) * COLUMN_S, left_alone)
    for ear, color in (("right ear", 0), ("left ear", 254), ("louder ear", 254), ("right ear", 0)):
        pane.ear.setCurrentText(ear)
        for age_s in (1.0, 10.0, 19.0):
            assert color_at(pane, age_s, 20.0) == table[color], (ear, age_s)


def test_equal_ears_lose_a_quarter_each(qtbot, open_window, model):
    def engine(wanted):
        return Engine(SignalSource([Tone(1000.0, level_db=60.0)]), model)

    window = open_window(engine)
    dock = window.area.docks["ears"]
    dock.toggleViewAction().trigger()
    assert dock in window.tabifiedDockWidgets(window.area.docks["specific_loudness"])
    front = window.area.docks["specific_loudness"]
    qtbot.waitUntil(lambda: dock.is_seen and not front.is_seen, timeout=5000)

    def settled():
        for text in (dock.pane.sum.text(), *(bar.text for bar in dock.pane.bars)):
            assert "25 % inhibited" in text
        assert dock.pane.bars[0].level == pytest.approx(0.75 * dock.pane.bars[0].held, rel=0.01)
        stl = window.updater.shown.view.values["stl_sone"]
        assert float(dock.pane.sum.text().split()[1]) == pytest.approx(stl, abs=0.02)

    # While the loudness still rises, texts, which change less often than bars, stay behind.
    qtbot.waitUntil(settled, timeout=10000)


def test_no_bar_is_left_where_a_microphone_is_silent(shown, model):
    """The numbers beside the bars are dashes."""
    sound = SignalSource([Tone(1000.0, level_db=60.0)], duration=0.5, paced=False)
    with Engine(sound, model) as engine:
        assert engine.wait(60)
    view = ViewState.at(engine, None)
    levels = {"momentary_lufs": -20.0, "true_peak_dbtp": -3.0}
    ears, programme = shown(EarsPane()), shown(pane_of("bs1770", levels))
    bars = *ears.bars, programme.momentary, programme.peak
    for state in ("running", "silent", "lost"):
        ears.move(view)
        ears.read(view)
        programme.show_readings(levels)
        for pane in (ears, programme):
            pane.show_status(replace(view, held=[state]))
        assert [bar.level > bar.scale.low for bar in bars] == [state == "running"] * 4
    assert ears.texts() == ("---", "---", "")


def test_ears_of_a_model_that_rests_are_not_known(shown, model):
    sound = SignalSource([Tone(1000.0, level_db=60.0)], duration=0.5, paced=False)
    with Engine(sound, model) as engine:
        assert engine.wait(60)
    view, pane = ViewState.at(engine, None), shown(EarsPane())
    for look in (pane.move, pane.read):
        look(view)
    assert all(text.endswith("% inhibited") for text in pane.texts())
    rests = view.newest.values._replace(stl_ears=view.newest.values.stl_ears * np.nan)
    (name,) = view.frames
    view = replace(view, frames={name: replace(view.newest, values=rests)})
    for look in (pane.move, pane.read):
        look(view)
    assert pane.texts() == ("---", "---", "")
    assert [bar.level for bar in pane.bars] == [0.0, 0.0]


def test_silence_is_not_inhibited():
    assert inhibited_text(0.0, 0.0) == "nothing to inhibit"
    assert inhibited_text(2.0, 2.0) == "0 % inhibited"


def rows_of(columns, first, level):
    time_s = np.round(0.1 * np.arange(first, first + len(level)), 6)
    table = {"time_s": time_s, "utc": np.full(len(level), np.datetime64("NaT", "ms"))}
    table |= {column.name: np.asarray(level, float) for column in columns}
    table |= {"fault": np.zeros(len(level), np.uint8), "settling": np.zeros(len(level), bool)}
    return Rows(table | {"calibrated": np.ones(len(level), bool)})


def test_the_distribution_is_that_of_the_rows(shown):
    columns = SoundLevelReadings(1).columns
    history = ReadingHistory(columns, 0.1)
    levels = np.random.default_rng(3).normal(65, 4, 4000)
    history.add(rows_of(columns, 1, levels[:1000]))
    pane = shown(DistributionPane(history))
    assert pane.name == "laf_db"
    history.add(rows_of(columns, 1001, levels[1000:]))
    found = {"l10_db": float(np.quantile(levels, 0.9)), "l90_db": None, "lae_db": 1.0}
    pane.follow((), found)
    first, counts = pane.distribution.shown()
    expected = np.bincount(np.floor(levels).astype(int))
    assert first == int(levels.min())
    np.testing.assert_array_equal(counts, expected[first:])
    assert pane.counted.text() == "0:06:40 counted"
    # What is exceeded for a tenth of the time is where the line goes through ten percent.
    low = float(pane.plot.x.ticks[0][1]) - pane.plot.x.ticks[0][0] - 0.5
    at = np.interp(-10.0, -pane.exceeded.y, pane.exceeded.x) + low + 0.5
    assert at == pytest.approx(found["l10_db"], abs=0.1)
    ((place, text),) = pane.percentiles.items
    assert text == f"L10 {found['l10_db']:.1f}"
    assert place + low + 0.5 == pytest.approx(found["l10_db"])


def test_what_is_not_counted_is_in_no_distribution(shown):
    columns = SoundLevelReadings(1).columns
    history = ReadingHistory(columns, 0.1)
    history.add(rows_of(columns, 1, np.repeat([50.5, 60.5, 70.5], 100)))
    pane = shown(DistributionPane(history))
    pane.follow((), {})
    assert pane.distribution.shown()[1].sum() == 300
    cleared = Event("readings_reset", 0, 10.0, 0.0)
    halted = (Event("paused", 0, 25.0, 0.0), Event("continued", 0, 28.0, 0.0))
    pane.follow((cleared, *halted), {})
    first, counts = pane.distribution.shown()
    assert first == 60
    assert (counts[0], counts[-1], counts.sum()) == (100, 70, 170)


def test_the_distribution_counts_the_first_rows_as_statistics_do(shown):
    """A burst counts, but neither the rise before it, nor what settles after a gap."""
    columns = SoundLevelReadings(1).columns
    rows = rows_of(columns, 1, [40.5, 90.5, 90.5, 80.5, 70.5, 60.5, 60.5, 99.5, 99.5, 60.5])
    rows["settling"][:6] = rows["settling"][7:9] = True
    rows["fault"][7] = Fault.GAP
    history = ReadingHistory(columns, 0.1)
    history.add(rows)
    pane = shown(DistributionPane(history))
    pane.follow((), {})
    first, counts = pane.distribution.shown()
    assert (first, counts[0], counts[-1], counts.sum()) == (60, 3, 2, 7)
    assert pane.distribution.counted_s == pytest.approx(0.7)


def test_pauses_and_resets_are_those_of_the_events():
    kinds = ("paused", "continued", "readings_reset", "paused", "gap")
    events = [Event(kind, 0, float(k), 0.0) for k, kind in enumerate(kinds)]
    assert pauses(events) == [(0.0, 1.0), (3.0, np.inf)]
    assert counted_from(events) == 2.0
    assert counted_from([*events, Event("reset_undone", 0, 9.0, 0.0)]) == 0.0
    assert (pauses(()), counted_from(())) == ([], 0.0)
    again = Event("continued", 0, 2.5, 0.0)
    assert pauses([*events[:2], again]) == [(0.0, 1.0)]


def test_percentiles_are_found_by_their_names():
    found = dict.fromkeys(["l10_db", "l5_db", "laeq_db", "ltl_n5_phon", "gm2002_ltl_n5_phon"], 1.0)
    assert percentiles_of("laf_db", found) == [("l10_db", "L10"), ("l5_db", "L5")]
    assert percentiles_of("ltl_phon", found) == [("ltl_n5_phon", "N5")]
    assert percentiles_of("gm2002_ltl_phon", found) == [("gm2002_ltl_n5_phon", "N5")]


def test_a_picture_of_each_plot_is_kept_by_its_menu(qtbot, shown):
    pane = shown(SpectrumPane())
    pane.draw(np.full((2, 150), 0.5))
    place = pane.plot.mapToGlobal(QtCore.QPoint(50, 50))
    reason = QtGui.QContextMenuEvent.Reason.Keyboard
    event = QtGui.QContextMenuEvent(reason, QtCore.QPoint(50, 50), place)
    QtWidgets.QApplication.sendEvent(pane.plot, event)
    menu = QtWidgets.QApplication.activePopupWidget()
    names = {action.text(): action for action in menu.actions()}
    names["Copy picture"].trigger()
    menu.close()
    picture = QtGui.QGuiApplication.clipboard().image()
    assert picture.width() == 2 * pane.plot.width()


def test_bands_are_kept_where_there_is_nothing_else():
    bands = readings_of(["third_octave"], 1)["third_octave"].columns
    levels = SoundLevelReadings(1).columns
    assert kept_of(bands) == list(bands)
    assert set(kept_of([*bands, *levels])) == {*levels}
    assert len(kept_of(SoundLevelReadings(2).columns)) == len(SoundLevelReadings(2).columns)


def test_rows_without_a_column_that_is_kept_are_taken_in():
    columns = SoundLevelReadings(1).columns
    history = ReadingHistory((), 0.1)
    history.add(rows_of(columns, 1, [60.0] * 5))
    assert (history.pyramid.newest, history.count) == (5, 5)


def test_of_several_that_are_heard_the_first_is_kept():
    columns = SoundLevelReadings(1).columns
    history = ReadingHistory(columns, 0.1)
    one, two = rows_of(columns, 1, [60.0] * 5), rows_of(columns, 1, [70.0] * 5)
    both = {name: np.stack((one[name], two[name]), axis=1).ravel() for name in one.columns}
    history.add(Rows({"row": np.array(["front", "back"] * 5)} | both))
    kept = history.rows(["laf_db"], 0.0, 1.0)
    assert kept["laf_db"].tolist() == [60.0] * 5


def test_changing_panes_and_themes_loses_nothing_and_shows_the_rows(qtbot, open_window, model):
    def engine(wanted):
        return Engine(SignalSource([Tone(1000.0, level_db=60.0)]), model)

    before = theme.choice
    window = open_window(engine)
    try:
        for name in ("waterfall", "ears", "distribution", "specific_loudness"):
            window.area.docks[name].toggleViewAction().trigger()
            theme.choose("dark" if name in ("waterfall", "distribution") else "light")
            qtbot.wait(200)
        pane = window.area.docks["history"].pane
        qtbot.waitUntil(lambda: pane.history.now_s > 1.0, timeout=10000)
    finally:
        theme.choose(before)
    health = window.measurement.engine.health
    assert (health.lost_samples, health.overruns) == (0, 0)
    rows = pane.history.rows(["ltl_phon"], 0.0, pane.history.now_s)
    np.testing.assert_allclose(np.diff(rows["time_s"]), 0.1)
    low, high = pane.layers.read_at(1.0)["ltl_phon"]
    shown = rows["ltl_phon"][np.isclose(rows["time_s"], 1.0)][0]
    assert low - 1e-5 <= shown <= high + 1e-5  # of all frames since the row before, in float32
    assert high - low < 0.1
