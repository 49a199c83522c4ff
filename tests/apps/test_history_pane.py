"""The history shows the rows as they were, whatever part and however much of it is looked at."""

import json
import xml.etree.ElementTree as ET
from itertools import product

import numpy as np
import pytest
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import LIGHT
from amt_monitor.panes.history_pane import HistoryPane
from amt_monitor.plot import curve_layers
from amt_monitor.plot.history_traces import GrowingScale, top_of
from amt_monitor.plot.line_layers import rooms_at_lines, rooms_beside
from amt_monitor.plot.plot import Plot, PlotAxis
from amt_monitor.plot.plot_export import COPY_PICTURE, COPY_ROWS, PlotExporter, copy, save
from amt_monitor.plot.time_plot import ago
from amt_monitor.plot.time_span_layer import TimeSpan, TimeSpanLayer, runs_of_true
from amt_stream.core.words import clock_text
from amt_stream.meters.frames import Event, Fault
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import LoudnessReadings, Rows, SoundLevelReadings
from amt_stream.views.history_states import GAP, OF_FAULT, SETTLING
from amt_stream.views.reading_history import ReadingHistory
from tests.apps.expose import expose

Key = QtCore.Qt.Key
BEGUN = np.datetime64("2026-11-22T08:00:00", "ms")


def rows_of(columns, numbers, seed=0):
    """Rows by their numbers, each 100 ms, of levels that go up and down."""
    numbers = np.asarray(numbers)
    time_s = np.round(numbers * 0.1, 6)
    noise = np.random.default_rng(seed + int(numbers[0]))
    level = 70 + 8 * np.sin(time_s / 300) + noise.normal(0, 3, len(numbers))
    table = {"time_s": time_s, "utc": BEGUN + (1000 * time_s).astype("timedelta64[ms]")}
    edges = {"_low_": -1.0, "_high_": 1.0}
    for column in columns:
        off = next((by for edge, by in edges.items() if edge in column.name), 0.0)
        table[column.name] = np.round(level, 4) + off
    flags = {"fault": np.uint8, "settling": bool}
    table |= {name: np.zeros(len(numbers), kind) for name, kind in flags.items()}
    return Rows(table | {"calibrated": np.ones(len(numbers), bool)})


@pytest.fixture
def open_history(qtbot):
    """Makes a pane of rows with some columns, on the screen."""

    def make(columns, *parts):
        pane = HistoryPane(ReadingHistory(columns, 0.1))
        expose(qtbot, pane, 1000, 320)
        pane.take(parts)
        pane.draw()
        return pane

    return make


@pytest.fixture
def levels():
    return SoundLevelReadings(1).columns


def test_curves_are_the_rows(open_history, levels):
    rows = rows_of(levels, range(1, 900))
    pane = open_history(levels, rows)
    assert pane.chosen == ["laf_db", "laeq_db"]
    shown = pane.layers.curves[0]
    known = ~np.isnan(shown.y)
    np.testing.assert_array_equal(shown.y[known], rows["laf_db"][-np.count_nonzero(known) :])
    assert np.count_nonzero(known) >= 600
    assert (pane.plot.x.low, pane.plot.x.high) == (-60.0, 0.0)
    assert -60.0 / pane.plot.inside.width() < shown.x[-1] <= 0.0
    pane.plot.point(55.5)
    at = float(rows["laf_db"][rows["time_s"] == 55.5][0])
    assert pane.layers.read_at(55.5)["laf_db"] == (at, at)
    assert f"LAF {at:.1f}" in pane.legend.text()
    assert "0:00:55.5" in pane.legend.text()


@pytest.mark.cases(2)
@pytest.mark.parametrize("span_s", [60.0, 900.0, 7200.0])
def test_what_moves_left_looks_as_painted_anew(open_history, monkeypatch, span_s):
    monkeypatch.setattr(curve_layers, "PIECE", 10_000)  # where a line is cut is seen
    columns = LoudnessReadings().columns
    first = round(12 * span_s)
    pane = open_history(columns, rows_of(columns, range(1, first)))
    pane.plot.show_until(None, span_s)
    seen = pixels_of(pane.plot)
    for count in (1, 2, 3, 5, 17, 230):
        pane.take([rows_of(columns, range(first, first + count))])
        first += count
        pane.draw()
        if count != 3:
            seen = pixels_of(pane.plot)
    assert len(pane.layers.curves[0].points) < 400
    np.testing.assert_array_equal(pixels_of(pane.plot), seen)
    pane.layers.scrolling.place()
    np.testing.assert_array_equal(pixels_of(pane.plot), seen)
    assert len(pane.layers.curves[0].points) > 400


def pixels_of(widget):
    picture = widget.grab().toImage().convertToFormat(QtGui.QImage.Format.Format_RGB32)
    wide, high = picture.width(), picture.height()
    return np.array([[picture.pixel(x, y) for x in range(wide)] for y in range(high)])


@pytest.mark.cases(2)
@pytest.mark.parametrize("span_s", [60.0, 900.0, 28800.0])
def test_no_length_is_drawn_with_more_than_the_screen_has_room_for(open_history, levels, span_s):
    parts = [rows_of(levels, range(first, first + 6000)) for first in range(1, 288_000, 6000)]
    pane = open_history(levels, *parts)
    pane.plot.show_until(None, span_s)
    curve, within = pane.layers.curves[0], pane.layers.ranges[0]
    assert 200 < len(curve.x) < 1.5 * pane.plot.inside.width() + 4
    everything = np.concatenate([part["laf_db"] for part in parts])
    seen = everything[-round(10 * span_s) :]
    high = within.high if span_s > 60 else curve.y
    assert np.nanmax(high) >= seen.max() - 1e-4


def test_it_follows_until_it_is_moved_and_after_end_again(qtbot, open_history, levels):
    pane = open_history(levels, rows_of(levels, range(1, 6000)))
    plot = pane.plot
    plot.setFocus()
    assert plot.follows
    assert not pane.live.isEnabled()
    qtbot.keyClicks(plot, "-")
    assert plot.span_s == 75.0
    qtbot.keyClick(plot, Key.Key_PageUp)
    assert not plot.follows
    assert plot.end_s == pytest.approx(599.9 - 37.5)
    end_s = plot.end_s
    pane.take([rows_of(levels, range(6000, 6100))])
    pane.draw()
    assert plot.end_s == end_s
    assert plot.x.low == pytest.approx(end_s - 75.0)
    assert all(":" in text for _, text in plot.x.ticks)
    qtbot.keyClick(plot, Key.Key_End)
    assert plot.follows
    wheel = QtGui.QWheelEvent(
        QtCore.QPointF(500, 100),
        plot.mapToGlobal(QtCore.QPointF(500, 100)),
        *(QtCore.QPoint(), QtCore.QPoint(0, 120)),
        *(QtCore.Qt.MouseButton.NoButton, QtCore.Qt.KeyboardModifier.NoModifier),
        *(QtCore.Qt.ScrollPhase.NoScrollPhase, False),
    )
    plot.wheelEvent(wheel)
    assert plot.span_s == 60.0
    left, move = QtCore.Qt.MouseButton.LeftButton, QtCore.QPoint(700, 100)
    qtbot.mousePress(plot, left, pos=QtCore.QPoint(400, 100))
    qtbot.mouseMove(plot, move)
    qtbot.mouseRelease(plot, left, pos=move)
    qtbot.waitUntil(lambda: not plot.follows, timeout=5000)
    assert plot.end_s == pytest.approx(609.9 - 60.0 * 300 / plot.inside.width(), abs=0.6)
    qtbot.mouseClick(pane.live, left)
    assert plot.follows
    with qtbot.waitActive(pane):
        pane.activateWindow()
    plot.setFocus()
    edge = plot.inside.left() - 1, plot.inside.center().y()
    qtbot.waitUntil(lambda: plot.grab().toImage().pixelColor(*edge).name() == LIGHT.accent)
    for key in (Key.Key_Escape, Key.Key_Left, Key.Key_Left):
        qtbot.keyClick(plot, key)
    assert plot.cursor_s == pytest.approx(609.9 - 0.6)


def test_what_happened_is_hatched_and_told(open_history, levels):
    rows = [rows_of(levels, range(1, 300)), rows_of(levels, range(500, 700))]
    rows[0]["fault"][100:110] = Fault.GAP
    rows[0]["settling"][:30] = True
    pane = open_history(levels, *rows)
    cause = "60 samples were lost: the device was pulled out"
    pane.layers.events = (
        Event("gap", 0, 10.2, 0.0, text=cause),
        Event("mark", 0, 65.0, 0.0, text="doors open"),
    )
    pane.draw()
    states = [one.state for one in pane.layers.marks.items]
    assert [(one.word, one.missing) for one in states] == [("gap", True)] * 2
    assert pane.layers.happened(10.5) == ["gap", cause]
    assert pane.layers.happened(40.0) == ["gap"]
    assert pane.layers.happened(60.0) == []
    (marker,) = pane.layers.notes.items
    assert marker == (65.0 - pane.plot.reference_s, "doors open")
    assert 69.9 <= pane.plot.reference_s < 69.9 + 60.0 / pane.plot.inside.width()
    pane.plot.show_until(None, 300.0)
    assert "settling" in pane.layers.marks.words
    # Rows that are wide apart are one stretch too, with one word.
    pane.plot.show_until(2.5, 2.0)
    assert pane.layers.marks.words == ["settling"]


def test_limits_of_the_unit_are_lines(open_history, levels):
    pane = open_history(levels, rows_of(levels, range(1, 300)))
    pane.layers.limits = (
        Limit("laeq_db", 105.0, amber=99.0, name="venue"),
        Limit("laeq_db", 60.0, name="masking", below=True),
        Limit("ltl_phon", 80.0, name="other"),
    )
    pane.draw()
    lines = [tuple(line) for line in pane.layers.thresholds.items]
    assert lines == [
        (105.0, "LAeq limit 105", "red"),
        (99.0, "99", "amber"),
        (60.0, "LAeq at least 60", "red"),
    ]
    assert pane.plot.y.high >= 105.0


def test_the_band_lies_around_its_curve(open_history):
    columns = LoudnessReadings(band=True).columns
    pane = open_history(columns, rows_of(columns, range(1, 300)))
    assert pane.chosen == ["ltl_phon", "stl_phon"]
    assert not any("low" in action.text() for action in pane.columns_menu.actions())
    band, curve = pane.layers.bands[0], pane.layers.curves[0]
    known = ~np.isnan(curve.y)
    assert np.count_nonzero(known) == 299
    np.testing.assert_allclose((band.high - curve.y)[known], 1.0)
    np.testing.assert_allclose((curve.y - band.low)[known], 1.0)
    pane.choose(["ltl_sone"])
    assert pane.layers.unit == "sone"
    assert pane.plot.y.low == 0.0


def test_curves_have_one_unit_and_colors_of_their_own(open_history, levels):
    pane = open_history(levels, rows_of(levels, range(1, 300)))
    for action in pane.columns_menu.actions():
        if action.data() in ("lcf_db", "las_db", "lzf_db"):
            action.trigger()
    assert pane.chosen == ["laeq_db", "lcf_db", "lzf_db", "las_db"]
    drawn = [(trace.role, trace.dashed) for trace in pane.layers.traces]
    assert len(set(drawn)) == 4


def test_what_is_visible_is_kept_as_it_was(open_history, levels, tmp_path):
    rows = rows_of(levels, range(1, 2000))
    pane = open_history(levels, rows)
    visible = pane.visible()
    assert len(visible) == 601
    np.testing.assert_array_equal(visible["laf_db"], rows["laf_db"][-601:])
    head = pane.head_of_export() | {
        "source": {"name": "<b>a microphone", "fs": 48000},
        "models": [{"name": "spl"}],
        "calibration": [{"calibrated": True, "full_scale_db_spl": 120.0, "date": "2026-11-22"}],
    }
    for ending in ("csv", "png", "svg"):
        path = tmp_path / f"history.{ending}"
        assert str(path) in save(path, pane.plot, head, pane.visible)
    lines = (tmp_path / "history.csv").read_text().splitlines()
    told = dict(line[2:].split(": ", 1) for line in lines if line.startswith("#"))
    assert json.loads(told["visible"]) == {"from_s": 139.9, "to_s": 199.9}
    assert lines[len(told)].startswith("time_s,utc,laf_db,laeq_db,")
    assert lines[-1].startswith(f"199.9,2026-11-22T08:03:19.900Z,{rows['laf_db'][-1]},")
    picture = QtGui.QImage(str(tmp_path / "history.png"))
    assert picture.width() == 2 * pane.plot.width()
    assert picture.height() > 2 * pane.plot.height()
    assert picture.pixelColor(2, 2).name() == LIGHT.paper
    texts = "".join(ET.parse(tmp_path / "history.svg").getroot().itertext())
    for words in ("<b>a microphone, 48000 Hz: spl", "full-scale sine = 120.00 dB SPL", "LAeq"):
        assert words in texts
    for name in (COPY_ROWS, COPY_PICTURE):
        assert "copied" in copy(name, pane.plot, head, pane.visible)
    # Drawn for a file, and as it was on the screen.
    assert pane.plot.colors == LIGHT


def test_rows_are_written_behind_the_window(qtbot, open_history, levels, tmp_path, monkeypatch):
    pane = open_history(levels, rows_of(levels, range(1, 100)))
    keeper = pane.plot.findChild(PlotExporter)

    def choose(path, wanted):
        monkeypatch.setattr(QtWidgets.QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
        with qtbot.waitSignal(keeper.message, timeout=5000) as told:
            pane.save.menu().actions()[0].trigger()
        assert told.args[0].startswith(wanted), told.args[0]

    written = tmp_path / "kept.csv"
    choose(tmp_path / "kept", f"saved as {written}")
    assert written.read_text().count("\n") > 99
    assert [path.name for path in tmp_path.iterdir()] == ["kept.csv"]
    choose(tmp_path / "kept", f"not saved: {written} exists")
    choose(written, f"saved as {written}")
    choose(tmp_path / "kept.CSV", f"saved as {tmp_path / 'kept.CSV'}")
    choose("/no such folder/history.csv", "not saved: ")


def test_what_is_frozen_stays_however_it_is_looked_at(open_history, levels):
    pane = open_history(levels, rows_of(levels, range(1, 900)))
    pane.layers.hold(True)
    pane.take([rows_of(levels, range(900, 1500))])
    pane.draw()
    last = pane.layers.curves[0].y[-1]
    pane.plot.zoom(0.5)
    assert pane.plot.end_s == 89.9
    assert pane.layers.curves[0].y[-1] == last
    pane.layers.hold(False)
    pane.draw()
    assert pane.plot.end_s == 149.9


def test_another_measurement_begins_anew(open_history, levels):
    pane = open_history(levels, rows_of(levels, range(1, 300)))
    pane.restart()
    assert pane.history.pyramid.newest == -1
    pane.take([rows_of(levels, range(1, 20))])
    pane.draw()
    assert pane.history.now_s == pytest.approx(1.9)


def colors_in(picture, area):
    places = product(range(area.left(), area.right() + 1), range(area.top(), area.bottom() + 1))
    return {picture.pixelColor(*place).name() for place in places}


def test_states_are_one_strip_below_the_plot_in_their_colors(qtbot):
    plot, marks = Plot("plot", strip=True), TimeSpanLayer()
    qtbot.addWidget(plot)
    plot.resize(400, 200)
    plot.set_axes(PlotAxis(0.0, 100.0), PlotAxis(0.0, 1.0))
    plot.add(marks)
    clipped = OF_FAULT[Fault.CLIP]
    spans = [TimeSpan(SETTLING, 10, 60), TimeSpan(clipped, 30, 40), TimeSpan(GAP, 80, 90)]
    empty = plot.grab().toImage()
    marks.set(spans)
    picture = plot.grab().toImage()

    def part(first, last, within):
        left, right = plot.points([first, last], [0.0, 0.0])[:, 0].round().astype(int).tolist()
        return QtCore.QRect(left, within.top(), right - left + 1, within.height())

    assert plot.strip.top() > plot.inside.bottom()
    for first, last, role in ((31, 39, "right"), (12, 28, "second"), (81, 89, "right")):
        seen = colors_in(picture, part(first, last, plot.strip))
        assert {getattr(LIGHT, role), LIGHT.paper} <= seen, (first, "a color, and a shape on it")
    for first, last in ((1, 8), (62, 78), (92, 99)):
        assert colors_in(picture, part(first, last, plot.strip)) == {LIGHT.paper}
    above = QtCore.QRect(0, 0, plot.width(), plot.inside.top())
    assert picture.copy(above) == empty.copy(above), "nothing stands above the plot"
    hatched = part(81, 89, plot.inside)
    assert LIGHT.outline in colors_in(picture, hatched)
    for first, last in ((1, 78), (92, 99)):  # only missing sound is hatched
        beside = part(first, last, plot.inside)
        assert picture.copy(beside) == empty.copy(beside)


def settling_rows(columns, numbers, after=(), rising=30.0):
    """Rows of 80 dB that rise again at some of the numbers, and settle within 40 rows."""
    rows = rows_of(columns, numbers)
    for column in columns:
        rows[column.name][:] = 80.0
        for start in after:
            place = int(np.searchsorted(numbers, start))
            rows[column.name][place : place + 3] = rising
    for start in after:
        place = int(np.searchsorted(numbers, start))
        rows["settling"][place : place + 40] = True
    return rows


@pytest.mark.parametrize("span_s", [60.0, 300.0, 900.0])
@pytest.mark.parametrize("ranged", [False, True])
def test_a_meter_that_starts_again_makes_no_spike(open_history, levels, span_s, ranged):
    numbers = np.r_[1:400, 450:900]
    rows = settling_rows(levels, numbers, after=[450])
    if ranged:
        both = {one.name: rows[one.name] + [[-1.0], [1.0]] for one in levels}
        rows = Rows({name: rows[name] for name in rows.columns}, both)
    pane = open_history(levels, rows)
    pane.plot.show_until(None, span_s)
    layers = pane.layers
    for curve in (*layers.curves, *layers.settling):
        assert curve.y[~np.isnan(curve.y)] == pytest.approx(80.0)
    for one in layers.ranges:
        for line, by in ((one.low, -1.0), (one.high, 1.0)):
            assert line[~np.isnan(line)] == pytest.approx(80.0 + by * ranged)
    grey = layers.settling[0]
    seen_s = grey.x[~np.isnan(grey.y)] + pane.plot.reference_s
    cell_s = grey.x[1] - grey.x[0]
    assert 45.0 <= seen_s.min() <= 45.6 + cell_s
    assert 48.5 <= seen_s.max() <= 49.0 + 2 * cell_s
    solid = ~np.isnan(layers.curves[0].y) & (np.abs(grey.x + pane.plot.reference_s - 47.0) < 1.5)
    assert not solid.any()
    # Tables and reports have all rows.
    assert pane.history.rows(["laf_db"], 45.0, 45.2)["laf_db"].tolist() == [30.0] * 3


@pytest.mark.parametrize("empty", [0, 1])
def test_what_rises_at_the_start_counts_and_is_drawn(open_history, levels, empty):
    rows = settling_rows(levels, np.arange(1, 300), after=[1], rising=95.0)
    for column in levels:  # before the first frame
        rows[column.name][:empty] = np.nan
    rows["settling"][:empty] = False
    pane = open_history(levels, rows)
    assert np.nanmax(pane.layers.curves[0].y) == 95.0
    assert np.isnan(pane.layers.settling[0].y).all()
    assert pane.layers.marks.words == ["settling"]


def test_settling_after_many_short_gaps_is_one_span(open_history, levels):
    starts = [*range(50, 500, 30)]
    numbers = [k for k in range(1, 600) if all(not 0 < start - k <= 2 for start in starts)]
    pane = open_history(levels, settling_rows(levels, np.array(numbers), after=starts))
    words = pane.layers.marks.words
    assert words.count("settling") == 1
    assert words.count("gap") == 15
    assert words[0] == "settling", "the worst is painted last"
    (span,) = (one for one in pane.layers.marks.items if one.state == SETTLING)
    start_s, end_s = (at + pane.plot.reference_s for at in span[1:])
    assert (start_s, end_s) == pytest.approx((4.95, 50.95), abs=0.15)


def test_only_what_is_drawn_is_said_to_settle(open_history, levels):
    rows = rows_of(levels, range(1, 300))
    texts = np.array([""] * 299, object)
    texts[100:200] = "las_db lcs_db"
    table = {name: rows[name] for name in rows.columns} | {"settling_columns": texts}
    table["settling"] = texts != ""
    pane = open_history(levels, Rows(table))
    assert pane.layers.marks.words == []
    assert np.isnan(pane.layers.settling[0].y).all()
    pane.choose(["laf_db", "las_db"])
    assert pane.layers.marks.words == ["settling"]
    drawn = [np.count_nonzero(~np.isnan(one.y)) for one in pane.layers.settling]
    assert drawn[0] == 0
    assert 50 <= drawn[1] <= 102


def test_the_strip_tells_what_a_state_is_when_it_was_and_why(qtbot, open_history, levels):
    rows = [rows_of(levels, range(1, 300)), rows_of(levels, range(350, 700))]
    rows[1]["settling"][:40] = True
    pane = open_history(levels, *rows)
    lost = "<the> microphone lost it"
    gap = Event("gap", 1435200, 29.9, 0.0, 120000, text=lost)
    pane.layers.events = gap, gap, Event("mark", 1440000, 30.0, 0.0, text="a note")
    pane.draw()
    plot = pane.plot

    def told(time_s):
        ((x, _),) = plot.points([time_s - plot.reference_s], [0.0]).tolist()
        place = QtCore.QPoint(round(x), plot.strip.center().y())
        event = QtGui.QHelpEvent(QtCore.QEvent.Type.ToolTip, place, plot.mapToGlobal(place))
        QtWidgets.QApplication.sendEvent(plot, event)
        return QtWidgets.QToolTip.text()

    text = told(32.0)
    assert "<b>▚ gap</b>, 0:00:30 to 0:00:35" in text
    clock = QtCore.QDateTime.fromMSecsSinceEpoch(BEGUN.astype(int).item()).addSecs(30)
    assert f"({clock.toString('HH:mm:ss')} to {clock.addSecs(5).toString('HH:mm:ss')})" in text
    assert "&lt;the&gt; microphone lost it (2 times, 5.00 s)" in text
    assert "a note" not in text
    assert "nothing was measured" in text
    assert "◐ settling" in told(37.0)
    assert "does not count in averages and maxima" in told(37.0)
    assert plot.tell(60.0) == ""
    qtbot.mouseMove(plot, QtCore.QPoint(plot.inside.center().x(), plot.strip.center().y()))
    assert set(plot.legend) >= {("right", False, "gap", "samples lost")}


@pytest.mark.parametrize("places", [(50, 52), (50, 75), (190, 196), (100, 104, 130), (8, 9)])
def test_values_of_maxima_lie_on_nothing(places):
    inside = QtCore.QRect(0, 0, 200, 100)
    marks = [QtCore.QRectF(at - 4, 20 + k, 8, 7) for k, at in enumerate(places)]
    rooms = rooms_beside(marks, [(26, 14)] * len(marks), inside)
    for place, room in enumerate(rooms):
        others = [*marks, *rooms[:place], *rooms[place + 1 :]]
        assert not any(room.intersects(other) for other in others)
        assert QtCore.QRectF(inside).contains(room)


def test_names_of_limits_stand_inside_and_on_no_other_name():
    inside = QtCore.QRect(50, 10, 400, 150)
    heights = [12.0, 90.0, 94.0, 100.0, 159.0]
    rooms = rooms_at_lines(heights, [(90, 14), (90, 14), (20, 14), (60, 14), (30, 14)], inside)
    for place, (room, y) in enumerate(zip(rooms, heights, strict=True)):
        assert QtCore.QRectF(inside).contains(room)
        assert not any(map(room.intersects, rooms[:place]))
        assert room.top() - 2 <= y <= room.bottom() + 2


def test_an_axis_grows_at_once_and_shrinks_after_five_seconds():
    scale = GrowingScale("sone")
    high = lambda value, now_s: scale.axis(np.array([value]), now_s).high  # noqa: E731
    assert [high(0.9, 0.0), high(1.7, 1.0)] == [1.0, 2.0]
    assert [high(0.9, 2.0), high(0.9, 6.9), high(0.9, 7.0)] == [2.0, 2.0, 1.0]
    assert [high(1.7, 8.0), high(0.9, 9.0), high(1.7, 13.0), high(0.9, 15.0)] == [2.0] * 4
    assert [top_of(v) for v in (0.0, 1.0, 2.4, 5.5, 79.0)] == [0.01, 1.2, 2.5, 6.0, 100.0]


def test_what_is_below_the_axis_of_levels_is_said(open_history):
    columns = LoudnessReadings().columns
    rows = rows_of(columns, range(1, 200))
    for name in ("ltl_phon", "stl_phon"):
        rows[name][100:] = 4.0
    pane = open_history(columns, rows)
    assert (pane.plot.y.low, pane.layers.marks.words) == (20.0, ["below range"])
    plot, picture = pane.plot, pane.plot.grab().toImage()
    left = round(plot.points([11.0 - plot.reference_s], [0.0])[0, 0])
    above = QtCore.QRect(left, 0, 100, plot.inside.bottom() - 20)
    assert colors_in(picture, above) <= {LIGHT.paper, LIGHT.grid}
    assert colors_in(picture, plot.strip) == {LIGHT.paper}
    pane.plot.point(15.0)
    assert "below range" in pane.legend.text()


def test_the_legend_has_the_maximum_that_the_numbers_have(open_history):
    columns = LoudnessReadings().columns
    pane = open_history(columns, rows_of(columns, range(1, 200)))
    pane._maxima = {"ltl_phon": "max_ltl_phon", "stl_phon": "max_stl_phon"}
    pane._values = {"ltl_phon": 60.0, "max_ltl_phon": 81.04, "stl_phon": 53.0, "max_stl_phon": 81.4}
    pane.legend.rewrite()
    assert "LTL 60.0, max 81.0" in pane.legend.text()
    assert "STL 53.0, max 81.4" in pane.legend.text()


def test_stretches_join_what_is_close():
    marked = np.zeros(30, bool)
    marked[[2, 3, 5, 20]] = True
    assert runs_of_true(marked, 2) == [(2, 3), (5, 5), (20, 20)]
    assert runs_of_true(marked, 5) == [(2, 5), (20, 20)]
    assert runs_of_true(np.zeros(3, bool), 5) == []


@pytest.mark.parametrize(
    ("seconds", "step_s", "text"),
    [
        (-30.0, 5.0, "-30 s"),
        (-60.0, 5.0, "-60 s"),
        (-300.0, 60.0, "-5 min"),
        (-5400.0, 1800.0, "-1.5 h"),
        (0.0, 3600.0, "0 h"),
    ],
)
def test_times_before_the_end(seconds, step_s, text):
    assert ago(seconds, step_s) == text


def test_times_since_the_beginning():
    assert [clock_text(s) for s in (3723.5, 59.99, 0.0)] == ["1:02:03.5", "0:01:00", "0:00:00"]


def test_times_before_the_start_are_negative():
    assert [clock_text(s) for s in (-15.0, -3600.4, 0.0, 30.5)] == [
        *("-0:00:15", "-1:00:00.4", "0:00:00", "0:00:30.5")
    ]


def test_a_button_shows_its_span_and_another_span_is_told(qtbot, open_history, levels):
    shown = open_history(levels, rows_of(levels, range(1, 100)))

    def on():
        return [button.text() for button in shown.spans.values() if button.isChecked()]

    assert on() == ["1 min"]
    assert shown.zoomed.isHidden()
    for _ in range(2):
        qtbot.mouseClick(shown.spans[900.0], QtCore.Qt.MouseButton.LeftButton)
        assert (on(), shown.plot.span_s) == (["15 min"], 900.0)
    shown.plot.show_until(None, 30.5)
    assert (on(), shown.zoomed.text()) == ([], "0:00:30.5")
    shown.spans[60.0].setFocus()
    qtbot.keyClick(shown.spans[60.0], QtCore.Qt.Key.Key_Space)
    assert (on(), shown.zoomed.isHidden()) == (["1 min"], True)
