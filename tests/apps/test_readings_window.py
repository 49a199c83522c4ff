"""The window of several models: what is on its labels is what the sink has."""

import numpy as np
import pytest
import soundfile
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.big_number import BigNumber
from amt_monitor.base.theme import theme
from amt_monitor.panes.model_panes import lu_text
from amt_monitor.panes.reading_pane import pane_of
from amt_monitor.window.limit_alarm import LimitAlarm
from amt_monitor.window.pane_docks import AREA, PaneDock
from amt_monitor.window.pane_kinds import PaneKind
from amt_monitor.window.run import run_window
from amt_stream.engine import Engine, FaultSource, FileSource, SignalSource, Tone
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters import catalog
from amt_stream.meters.calibration import UNCALIBRATED
from amt_stream.meters.limits import Limit
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import JoinedRows, LoudnessReadings, ProgrammeReadings, readings_of
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.sessions.outputs.latest import SUMMARY_S
from tests.apps.expose import expose, pixels
from tests.apps.texts import tab_bars

METERS = catalog.models_side_by_side()
FIVE = ("moore2016", "gm2002", "zwicker", "bs1770", "spl")
PATIENT = {"ring_s": 30.0, "sink_slack_s": 30.0, "ladder": ()}
"""Settings of an engine that loses and leaves out nothing on a busy machine."""
Key = QtCore.Qt.Key
FS = 48000
# What comes before 0.63 s is in no maximum: a level rises from silence.
LOUD_IN_SOFT = [Tone(1000.0, level_db=60.0), Tone(1000.0, level_db=67.0, start=1.5, duration=0.2)]
LOUD = Limit("laf_db", 80.0, name="loud")


@pytest.fixture(scope="module")
def stages():
    """The models, which keep no state, each made and compiled when it is first asked for."""
    made = {}

    def make(names, channels):
        for name in names:
            if (name, channels) not in made:
                made[name, channels] = Preset((name,)).models(FS, channels)[name]
                ReadyStage(made[name, channels], FS, 10.0, channels).warm()
        return {name: made[name, channels] for name in names}

    return make


@pytest.fixture
def engine_of(stages):
    """Makes a function that makes engines, as the command line does."""

    def make(source, *names, end_s=np.inf, limits=(), **settings):
        # Before a window waits for readings: to compile takes minutes where nothing is cached.
        stages(names, source().channels)

        def make_engine(device=None):
            heard = source()
            readings = readings_of(names, heard.channels)
            table = JoinedRows(readings, 100, FS, to_s=end_s, limits=limits)
            sink = FollowedReadings(table)
            models = stages(names, heard.channels)
            return Engine(heard, models, [sink], **PATIENT | settings)

        return make_engine

    return make


@pytest.fixture
def open_readings(qtbot, open_window):
    """Opens a window and waits for the first readings."""

    def make(make_engine):
        window = open_window(make_engine, readings=False)
        wait_until(qtbot, window, lambda: window.updater.shown is not None)
        return window

    return make


def told_of(readings):
    """Names of all that a pane is given."""
    return [*(column.name for column in readings.columns), *readings.headlines]


def wait_until(qtbot, window, true):
    """Until `true()`, of a window that looks at its engine again and again."""

    def look():
        window.show_state()
        window.read()
        return true()

    qtbot.waitUntil(look, timeout=25000)


def readings(window):
    sink = window.measurement.readings
    return sink.row | sink.totals


def reading_panes(window):
    return [dock.pane for name, dock in window.area.docks.items() if name in METERS]


def button(window, name):
    return window.bar.buttons[name]


def label(window, name):
    return window.findChild(QtWidgets.QLabel, name)


def text(window, name):
    return label(window, name).text()


def ink(window, name):
    number = label(window, name)
    return number.palette().color(number.foregroundRole()).name()


def wait_for_the_end(qtbot, window):
    """Until the source has ended and the last readings are on the labels."""
    wait_until(qtbot, window, lambda: window.measurement.state == "stopped")
    window.read()


def test_after_a_gap_each_number_is_grey_as_long_as_it_settles(qtbot, open_readings, engine_of):
    """LAF forgets a sound that is 50 dB louder in 2.1 s, LAS in 16 s; a slow computer has gaps."""

    def source():
        sound = SignalSource([Tone(1000.0, level_db=60.0)], FS, 5.0, paced=False)
        return FaultSource(sound, [("drop", 2.0, 0.3)])

    window = open_readings(engine_of(source, "moore2016", "spl"))
    wait_for_the_end(qtbot, window)
    for name in ("moore2016", "spl"):
        window.area.docks[name].pane.show_status(window.updater.view)
    second = QtGui.QColor(theme.colors.second).name()
    grey = {
        cell.name
        for pane in reading_panes(window)
        for cell, number in pane.numbers
        if number.palette().color(number.foregroundRole()).name() == second
    }
    assert {"ltl_phon", "las_db"} <= grey
    assert not grey & {"stl_phon", "laf_db", "laeq_db", "lcpeak_db", "lafmax_db", "l90_db"}


def test_five_models_read_a_tone_alike(qtbot, open_readings, engine_of):
    tone = Tone(1000.0, level_db=60.0)
    source = lambda: SignalSource([tone], FS, 0.7, paced=False)  # noqa: E731
    window = open_readings(engine_of(source, *FIVE, end_s=0.6))
    wait_for_the_end(qtbot, window)
    for name in ("ltl_phon", "stl_phon", "zwicker_n_phon", "laf_db", "laeq_db"):
        assert float(text(window, name)) == pytest.approx(60.0, abs=0.15), name
    assert float(text(window, "gm2002_stl_phon")) == pytest.approx(60.0, abs=0.3)
    assert window.updater.shown.texts["levels"] == ("60.0", "60.0")
    shown = readings(window)
    for pane in reading_panes(window):
        for cell, number in pane.numbers:
            assert number.text() == cell.write(shown), cell.name
    assert text(window, "short_term_lufs") == text(window, "lra_lu") == "---"
    assert text(window, "momentary_lufs") == f"{shown['momentary_lufs']:.1f}"
    assert text(window, "momentary_lu") == f"{shown['momentary_lufs'] + 23:+.1f}"
    assert window.updater.shown.texts["moore2016"] == window.area.docks["moore2016"].pane.texts()
    status = window.updater.view.reading_status
    assert status("gm2002").settling
    assert not status("zwicker").settling
    assert window.bar.chip.state == "stopped"


@pytest.mark.parametrize(
    ("models", "limits"),
    [
        (FIVE[:1], ()),
        pytest.param(FIVE[:3], (), marks=pytest.mark.soak),
        pytest.param(FIVE, (), marks=pytest.mark.soak),
        (FIVE, [LOUD]),
    ],
)
def test_nothing_is_cut_off_at_the_smallest_size(qtbot, open_readings, engine_of, models, limits):
    source = lambda: SignalSource(LOUD_IN_SOFT, FS)  # noqa: E731
    window = open_readings(engine_of(source, *models, limits=limits))
    window.resize(1024, 600)
    qtbot.waitUntil(lambda: (window.width(), window.height()) == (1024, 600), timeout=5000)
    window.area.restore_default()

    def whole():
        seen = [dock for dock in window.area.docks.values() if dock.is_seen]
        assert all(window.dockWidgetArea(dock) == AREA for dock in window.area.docks.values())
        for bar in tab_bars(window):
            assert bar.sizeHint().width() <= bar.width(), "more names than there is room for"
        assert {models[0], "history"} <= {dock.kind.name for dock in seen}
        inside = window.rect()
        places = [QtCore.QRect(dock.mapTo(window, QtCore.QPoint()), dock.size()) for dock in seen]
        for place, dock in zip(places, seen, strict=True):
            assert inside.contains(place), dock.kind.name
            others = [one for one in places if one is not place]
            assert not any(place.intersects(other) for other in others), dock.kind.name
        for dock in seen:
            for cell, number in getattr(dock.pane, "numbers", ()):
                if number.isVisible():
                    where = QtCore.QRect(number.mapTo(dock, QtCore.QPoint()), number.size())
                    assert dock.rect().contains(where), cell.name

    qtbot.waitUntil(whole)


def test_a_dock_knows_its_least_width_before_it_is_seen(qtbot):
    names = told_of(ProgrammeReadings(2))
    dock = PaneDock(
        PaneKind("bs1770", "Programme loudness", 0, 4, lambda: pane_of("bs1770", names))
    )
    dock.fill()
    before = dock.least_width
    window = QtWidgets.QMainWindow()
    qtbot.addWidget(window)
    window.addDockWidget(AREA, dock)
    window.show()
    qtbot.waitExposed(window)
    qtbot.waitUntil(lambda: dock.least_width == pytest.approx(before, abs=8))


def test_a_model_of_both_ears_without_specific_loudness(qtbot, open_readings, engine_of):
    window = open_readings(engine_of(lambda: SignalSource(LOUD_IN_SOFT, FS), "gm2002"))
    assert "ears" not in window.area.docks
    assert "gm2002" in window.area.docks


def test_reset_and_pause_leave_the_models_alone(qtbot, open_readings, engine_of):
    window = open_readings(engine_of(lambda: SignalSource(LOUD_IN_SOFT, FS), "bs1770", "spl"))
    sink, chip = window.measurement.engine.sinks[0], window.bar.chip
    now_and_most = lambda: (text(window, "laf_db"), text(window, "lafmax_db"))  # noqa: E731
    wait_until(qtbot, window, lambda: (sink.totals.get("lafmax_db") or 0.0) > 65)
    # One model may have counted the loud part while the rows, which wait for both, stand before it.
    wait_until(qtbot, window, lambda: sink.row["time_s"] > 2.5)
    wait_until(qtbot, window, lambda: now_and_most()[0] == "60.0" and chip.state == "running")
    loudest = sink.totals["lafmax_db"]
    assert loudest > 65
    assert now_and_most() == ("60.0", f"{loudest:.1f}")
    qtbot.keyClick(window, Key.Key_R)
    wait_until(qtbot, window, lambda: now_and_most() == ("60.0", "60.0"))
    assert chip.state == "running"
    qtbot.mouseClick(button(window, "pause"), QtCore.Qt.MouseButton.LeftButton)
    wait_until(qtbot, window, lambda: button(window, "pause").text() == "Continue")
    wait_until(qtbot, window, lambda: chip.state == "paused")
    assert ink(window, "laf_db") == theme.colors.second
    qtbot.keyClick(window, Key.Key_R)
    before = sink.row["time_s"]
    wait_until(qtbot, window, lambda: sink.row["time_s"] > before + SUMMARY_S)
    assert now_and_most() == ("60.0", "---")
    assert text(window, "integrated_lufs") == text(window, "true_peak_dbtp") == "---"
    qtbot.keyClick(window, Key.Key_Space)
    wait_until(qtbot, window, lambda: button(window, "pause").text() == "Pause")
    wait_until(qtbot, window, lambda: now_and_most() == ("60.0", "60.0"))
    assert chip.state == "running"


def test_freeze_holds_the_numbers_and_not_the_measurement(qtbot, open_readings, engine_of):
    window = open_readings(engine_of(lambda: SignalSource(LOUD_IN_SOFT, FS), "spl"))
    wait_until(qtbot, window, lambda: text(window, "lafmax_db") != "---")
    qtbot.keyClick(window, Key.Key_F)
    before, shown = window.area.docks["spl"].pane.texts(), window.updater.shown
    sink = window.measurement.engine.sinks[0]
    loudest = sink.totals["lafmax_db"]
    wait_until(qtbot, window, lambda: sink.totals["lafmax_db"] > loudest)
    assert window.area.docks["spl"].pane.texts() == before == shown.texts["spl"]
    assert window.updater.shown is shown
    wait_until(qtbot, window, lambda: window.bar.chip.state == "frozen")
    assert ink(window, "laf_db") == theme.colors.second
    qtbot.mouseClick(button(window, "freeze"), QtCore.Qt.MouseButton.LeftButton)
    wait_until(
        qtbot, window, lambda: text(window, "lafmax_db") == f"{sink.totals['lafmax_db']:.1f}"
    )
    assert window.updater.shown is not shown


def test_without_calibration_only_what_takes_pascal_is_marked(qtbot, open_readings, engine_of):
    source = lambda: SignalSource([Tone(1000.0, level_db=60.0)], FS)  # noqa: E731
    window = open_readings(engine_of(source, "bs1770", "spl", calibration=UNCALIBRATED))
    wait_until(qtbot, window, lambda: "hatched" in label(window, "laf_db").property("tint"))
    assert window.bar.calibration.text == "uncalibrated"
    assert label(window, "laf_db").autoFillBackground()
    assert label(window, "lcpeak_db").autoFillBackground()
    wait_until(qtbot, window, lambda: window.windowTitle().startswith("LAeq "))
    assert window.windowTitle().partition(" - ")[0].endswith(" dB, uncalibrated")
    wait_until(qtbot, window, lambda: window.bar.chip.state == "uncalibrated")
    assert not label(window, "momentary_lufs").autoFillBackground()
    marked = {
        name: [number.uncalibrated.isVisible() for group in grid.groups for number in group]
        for name, grid in ((one, window.area.docks[one].pane.grid) for one in ("spl", "bs1770"))
    }
    assert all(marked["spl"])
    assert not any(marked["bs1770"])
    assert window.area.docks["levels"].pane.about.text() == "dB, uncalibrated"


@pytest.mark.parametrize("channels", [1, 6])
def test_a_programme_needs_no_level_and_no_calibration(
    qtbot, open_readings, engine_of, tmp_path, channels
):
    sine = np.sin(2 * np.pi * 997 * np.arange(FS) / FS)
    sound = np.zeros((FS, channels))
    # A full-scale sine of 997 Hz in one front channel reads -3.01 LUFS (BS.1770-5, Annex 1). The
    # low-frequency channel, the fourth, counts for no loudness, but its peak clips as any other.
    if channels == 6:
        sound[:, 2], sound[:, 3] = 0.1 * sine, 0.95 * sine
    else:
        sound[:, 0] = 0.1 * sine
    soundfile.write(tmp_path / "tone.wav", sound, FS, subtype="FLOAT")
    source = lambda: FileSource(tmp_path / "tone.wav", paced=False)  # noqa: E731
    window = open_readings(engine_of(source, "bs1770"))
    wait_for_the_end(qtbot, window)
    pane = window.area.docks["bs1770"].pane
    assert "levels" not in window.area.docks
    assert window.bar.chip.text.startswith("Stopped")
    assert not window.bar.calibration.text
    assert not window.bar.calibrated.text()
    for name in ("momentary", "integrated", "max_momentary"):
        assert float(text(window, f"{name}_lufs")) == pytest.approx(-23.0, abs=0.1), name
    for name in ("momentary_lu", "integrated_lu"):
        assert float(text(window, name)) == pytest.approx(0.0, abs=0.1), name
    assert text(window, "short_term_lufs") == "---"
    peak_db, words = ("-0.4", "over the limit") if channels == 6 else ("-20.0", "limit")
    assert text(window, "true_peak_dbtp") == peak_db
    assert pane.peak.text == f"{words} -1 dBTP"
    assert pane.momentary.level == pytest.approx(0.0, abs=0.1)
    pane.scale.setCurrentText("EBU +18")
    assert (pane.momentary.scale.low, pane.momentary.scale.high) == (-36, 18)


def test_a_peak_above_the_limit_is_told_in_words_and_in_color(qtbot):
    pane = pane_of("bs1770", told_of(ProgrammeReadings(2)))
    qtbot.addWidget(pane)
    for peak, over in ((-1.0, False), (-0.9, True)):
        pane.show_readings({"true_peak_dbtp": peak, "momentary_lufs": -23.04})
        pane.doubt(grey=False, uncalibrated=False)
        assert (ink(pane, "true_peak_dbtp") == theme.colors.red) == over
        assert pane.peak.text == ("over the limit -1 dBTP" if over else "limit -1 dBTP")
    assert text(pane, "momentary_lu") == lu_text(-23.04) == "+0.0"


def test_a_band_stands_beside_the_number(qtbot):
    pane = pane_of("moore2016", told_of(LoudnessReadings(band=True)))
    qtbot.addWidget(pane)
    pane.resize(390, 274)
    pane.show()
    pane.show_readings({"ltl_sone": 1.0, "ltl_low_sone": 0.93, "ltl_high_sone": 1.12})
    assert text(pane, "ltl_sone_note") == "± 12 %"
    assert text(pane, "ltl_phon_note").startswith("± 1.")
    assert text(pane, "stl_sone_note") == ""
    band = label(pane, "ltl_sone_note")
    assert band.fontMetrics().horizontalAdvance(band.text()) <= band.width()
    pane.grid.lose({"ltl_sone": 1.0})
    assert text(pane, "ltl_sone_note") == text(pane, "ltl_phon_note") == "", "lost"
    pane.show_readings({"ltl_sone": 1.0, "ltl_low_sone": 0.93, "ltl_high_sone": 1.12})
    assert text(pane, "ltl_sone_note") == "± 12 %"
    pane.show_readings({"ltl_sone": 1.0})
    assert text(pane, "ltl_sone_note") == text(pane, "ltl_phon_note") == ""


@pytest.mark.cases(10)
@pytest.mark.parametrize("size", [(0, 0), (390, 274), (585, 366), (1176, 640)])
@pytest.mark.parametrize("model", METERS)
def test_no_number_is_cut_off(qtbot, model, size):
    readings = readings_of([model], 2)[model]
    pane = pane_of(model, told_of(readings))
    expose(qtbot, pane, QtCore.QSize(*size).expandedTo(pane.minimumSizeHint()))
    wide = {
        "Hz": "18888",
        "sone": "0.888",
        "sone_HMS": "88.88",
        "asper": "8.88",
        "vacil_HMS": "8.88",
        "phon": ">120",
        "LU": "+88.8",
        "LUFS": "-88.8",
        "dBTP": "-88.8",
    }
    area = QtCore.QRect(QtCore.QPoint(), pane.size())
    seen = [label for _, label in pane.numbers if label.isVisible()]
    # Third octaves are seen as bars first; a pane without room leaves out its small numbers.
    assert all(
        number in seen for _, number in pane.numbers if isinstance(number.parent(), BigNumber)
    )
    for cell, number in pane.numbers:
        if number not in seen:
            continue
        text = wide.get(cell.caption.unit, "188.8")
        if isinstance(number.parent(), BigNumber):
            number.parent().show_text(text)
            assert number.parent().rect().contains(number.parent().unit.geometry()), cell.name
        metrics, room = number.fontMetrics(), number.contentsRect()
        assert metrics.horizontalAdvance(text) <= number.width()
        assert metrics.tightBoundingRect("0").height() <= room.height(), cell.name
        assert area.contains(QtCore.QRect(number.mapTo(pane, QtCore.QPoint()), number.size()))
    labels = list(pane.grid.findChildren(QtWidgets.QLabel))
    labels = [one for one in labels if one.isVisible() and one.text()]
    rects = [QtCore.QRect(one.mapTo(pane, QtCore.QPoint()), one.size()) for one in labels]
    for place, rect in enumerate(rects):
        over = [labels[k].text() for k in range(place) if rects[k].intersects(rect)]
        assert not over, (labels[place].text(), over)


CHOSEN = {
    "moore2016": ["ltl_n5_phon"],
    "gm2002": ["gm2002_max_stl_sone"],
    "zwicker": ["sharpness_acum", "zwicker_n5_sone"],
    "ecma_loudness": ["ecma_loudness_mean_sone"],
    "ecma_tonality": ["ecma_tonality_mean_tu", "ecma_tonality_hz"],
    "ecma_roughness": ["ecma_roughness_r10_asper"],
    "ecma_fluctuation": ["ecma_fluctuation_f10_vacil"],
    "ecma": ["ecma_loudness_sone", "ecma_roughness_hz"],
    "bs1770": ["lra_lu"],
    "spl": ["lae_db"],
    "third_octave": ["lzf_1000hz_db", "lzeq_31_5hz_db"],
    "octave": ["octave_lzf_1000hz_db", "octave_lzeq_31_5hz_db"],
    "spectrum": ["spectrum_peak_db"],
}
"""By model; of others the last reading."""


@pytest.mark.parametrize("model", METERS)
def test_a_pane_of_few_readings_shows_those_that_it_has(qtbot, model):
    """As of --columns: a row of large numbers may have none left."""
    names = CHOSEN.get(model) or told_of(readings_of([model], 2)[model])[-1:]
    pane = pane_of(model, names)
    expose(qtbot, pane, 500, 400)
    pane.show_readings(dict.fromkeys(names, 1.0))
    pane.doubt(grey=True, uncalibrated=False)
    assert {cell.name for cell, _ in pane.numbers} == {*names}


def test_bars_of_bands_stand_as_high_as_their_levels(qtbot):
    names = [column.name for column in readings_of(["third_octave"], 1)["third_octave"].columns]
    pane = pane_of("third_octave", names)
    qtbot.addWidget(pane)
    levels = {name: 20.0 + k for k, name in enumerate(names)}
    pane.show_readings(levels | {names[3]: None, names[4]: -12.0})
    heights = pane.bars.heights
    np.testing.assert_array_equal(heights[5:], [levels[name] for name in names[5:]])
    assert (heights[3], heights[4]) == (0.0, 0.0)
    assert pane.texts()[3:5] == ("---", "-12.0")
    pane.doubt(grey=False, uncalibrated=True)
    assert "uncalibrated" in pane.plot.unit_text


def test_run_window_shows_readings(qapp, engine_of):
    make_engine = engine_of(lambda: SignalSource([], FS), "bs1770")
    assert run_window(make_engine, duration=0.05) == 0


def test_states_of_limits_are_words_and_shapes(qtbot, engine_of, open_readings):
    source = lambda: SignalSource(LOUD_IN_SOFT, FS)  # noqa: E731
    limits = [LOUD, Limit("laeq_1s_db", 20.0, name="soft")]
    window = open_readings(engine_of(source, "spl", limits=limits))
    pane = window.area.docks["limits"].pane
    wait_until(qtbot, window, lambda: pane.lights[1].state == "red")
    assert pane.lights[0].state == "green"
    loud, soft = pane.texts()
    assert loud.startswith("Within the limit\nLAF ")
    assert soft.startswith("Over the limit\nLAeq,1s ")
    sides = {len(corners(light)) for light in pane.lights}
    assert len(sides) == 2, "states are told apart by their shapes"
    assert "#" + theme.colors.red[1:] in pixels(pane.lights[1])
    assert theme.colors.red not in pixels(pane.lights[0])


def test_a_limit_is_not_known_while_nothing_is_measured(qtbot, engine_of, open_readings):
    window = open_readings(engine_of(lambda: SignalSource(LOUD_IN_SOFT, FS), "spl", limits=[LOUD]))
    pane = window.area.docks["limits"].pane
    light, chip = pane.lights[0], window.bar.chip
    wait_until(qtbot, window, lambda: light.state == "green")
    qtbot.keyClick(window, Key.Key_Space)
    wait_until(qtbot, window, lambda: chip.state == "paused")
    assert light.state == "green"
    qtbot.keyClick(window, Key.Key_Space)
    wait_until(qtbot, window, lambda: chip.state == "running")
    qtbot.keyClick(window, Key.Key_S)
    wait_until(qtbot, window, lambda: chip.state == "stopped")
    wait_until(qtbot, window, lambda: light.state == "unknown")
    assert light.state == "unknown"
    assert pane.texts()[0].startswith("Not known: stopped\nLAF ")
    assert window.updater.shown.texts["limits"] == pane.texts()
    qtbot.keyClick(window, Key.Key_S)
    wait_until(qtbot, window, lambda: light.state == "green" and chip.state == "running")


def test_a_limit_sounds_again_in_another_measurement(qtbot, engine_of, open_readings):
    limits, sounds = [Limit("laeq_1s_db", 20.0, name="soft")], []
    window = open_readings(engine_of(lambda: SignalSource(LOUD_IN_SOFT, FS), "spl", limits=limits))
    window.settings.put(limit_sound=True)
    window.limits.alarm = LimitAlarm(lambda: sounds.append(window.measurement.begun))
    wait_until(qtbot, window, lambda: sounds == [1])
    qtbot.keyClick(window, Key.Key_N, QtCore.Qt.KeyboardModifier.ControlModifier)
    wait_until(qtbot, window, lambda: sounds == [1, 2])


def corners(light):
    """Which corners of a light are painted."""
    picture = light.grab().toImage()
    ground, last, inset = picture.pixelColor(0, 0), picture.width() - 1, 4
    places = [(x, y) for x in (inset, last - inset) for y in (inset, last - inset)]
    return [place for place in places if picture.pixelColor(*place) != ground]
