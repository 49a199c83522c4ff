"""The pane of the narrow-band spectrum shows what the model gave."""

import numpy as np
import pytest
from pyqtgraph.Qt import QtCore

from amt_monitor.panes.reading_pane import pane_of
from amt_monitor.plot.frequency_plot import FrequencyColumns
from amt_stream import NarrowBandSpectrum
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.rows import readings_of
from tests.apps.expose import expose

FS = 48000
STAGE = NarrowBandSpectrum(FS)


@pytest.fixture
def pane(qtbot):
    names = [column.name for column in readings_of(["spectrum"], 2)["spectrum"].columns]
    return expose(qtbot, pane_of("spectrum", names), 700, 360)


def level_of(bins):
    """A floor at 10 dB and some bins above it."""
    level = np.full(STAGE.frequencies.size, 10.0)
    for k, db in bins.items():
        level[k] = db
    return level


@pytest.mark.parametrize("width", [80, 300, 640, 5000])
def test_of_the_bins_in_a_column_of_pixels_the_highest_is_drawn(width):
    columns, level = FrequencyColumns(), np.random.default_rng(width).normal(40, 10, 4097)
    columns.fit(level.size, STAGE.bin_hz, width)
    drawn = columns.highest(level)
    lg = np.log10(np.arange(columns.shown.start, columns.shown.stop) * STAGE.bin_hz)
    pixel = np.floor((lg - np.log10(20)) * width / 3)
    expected = [level[columns.shown][pixel == place].max() for place in np.unique(pixel)]
    np.testing.assert_array_equal(drawn, expected)
    assert len(drawn) <= width + 2
    assert (np.diff(columns.x) > 0).all()
    assert columns.x[0] <= np.log10(20)
    assert columns.x[-1] >= np.log10(20_000)
    alone = [place for place in np.unique(pixel) if (pixel == place).sum() == 1]
    assert set(lg[np.isin(pixel, alone)]) <= set(columns.x)


def test_each_channel_has_its_line_and_the_higher_one_its_name(pane):
    spectra = np.stack([level_of({171: 70.0}), level_of({1000: 55.0})])
    pane.show_spectrum(1.0, spectra, STAGE.bin_hz)
    pane.name_strongest()
    (strongest,) = pane.strongest.items
    assert strongest.text == "1002 Hz  70.0 dB"
    assert strongest.role == "left"
    for curve, k, db in zip(pane.curves, (171, 1000), (70.0, 55.0), strict=True):
        place = int(np.argmax(curve.y))
        assert curve.y[place] == db
        assert curve.x[place] == pytest.approx(np.log10(k * STAGE.bin_hz), abs=0.01)
    assert not pane.sides.isHidden()
    pane.show_spectrum(2.0, spectra[1:], STAGE.bin_hz)
    pane.name_strongest()
    assert pane.strongest.items[0].text == "5859 Hz  55.0 dB"
    assert pane.sides.isHidden()
    assert not len(pane.curves[1].y)
    pane.show_spectrum(3.0, np.full((1, 4097), -106.0), STAGE.bin_hz)
    pane.name_strongest()
    assert not pane.strongest.items


def test_the_scale_rises_at_once_and_falls_after_a_while(pane):
    def top_at(time_s, db):
        pane.show_spectrum(time_s, level_of({171: db})[None], STAGE.bin_hz)
        return pane.plot.y.high

    assert top_at(0.0, 70.0) == 80.0
    assert top_at(0.1, 101.0) == 120.0
    assert top_at(0.2, 50.0) == top_at(5.0, 50.0) == 120.0
    assert top_at(5.3, 50.0) == 60.0
    assert top_at(5.4, 5.0) == 60.0


def test_levels_are_read_off_at_the_cursor(qtbot, pane):
    spectra = np.stack([level_of({171: 70.0}), level_of({171: 33.0})])
    pane.show_spectrum(1.0, spectra, STAGE.bin_hz)
    at = pane.plot.points([np.log10(171 * STAGE.bin_hz)], [40.0])[0].round().astype(int)
    qtbot.mouseMove(pane.plot, QtCore.QPoint(*at.tolist()))
    qtbot.waitUntil(lambda: pane.cursor.items != (), timeout=5000)
    ((_, text),) = pane.cursor.items
    hz, told = text.split(" Hz  ")
    assert float(hz) == pytest.approx(1002, abs=12)
    assert told == "L 70.0  R 33.0 dB"
    pane.show_spectrum(2.0, spectra[1:] - 1.0, STAGE.bin_hz)
    pane.read_off()
    assert pane.cursor.items[0][1].endswith(" Hz  32.0 dB")
    pane.plot.setFocus()
    for _ in range(4):
        qtbot.keyClick(pane.plot, QtCore.Qt.Key.Key_Right)
    assert pane.cursor.items[0][1].endswith(" Hz  9.0 dB")
    qtbot.keyClick(pane.plot, QtCore.Qt.Key.Key_Escape)
    assert not pane.cursor.items


def test_it_shows_what_the_engine_measures_and_holds_what_was(qtbot, open_window):
    """A tone, then a softer one: the rows' numbers, the curve of the frame, the line of both."""
    tones = [Tone(1000.0, level_db=70.0, duration=1.5), Tone(3000.0, level_db=50.0, start=1.5)]
    window = open_window(lambda wanted: Engine(SignalSource(tones, FS), STAGE))
    pane = window.area.docks["spectrum"].pane
    qtbot.waitUntil(lambda: pane.strongest.items[:1] != (), timeout=15000)
    qtbot.waitUntil(lambda: window.updater.shown.view.values["time_s"] > 5.0, timeout=20000)
    qtbot.waitUntil(lambda: pane.strongest.items[0].text == "3000 Hz  50.0 dB", timeout=5000)
    values = window.updater.shown.view.values
    assert values["spectrum_peak_hz"] == pytest.approx(3000.0, abs=0.01)
    assert values["spectrum_peak_db"] == pytest.approx(50.0, abs=0.01)
    assert values["spectrum_max_hz"] == pytest.approx(1000.0, abs=0.1)
    pane.line.setCurrentText("maximum")
    greatest, curve = pane.greatest[0], pane.curves[0]
    # A third of a bin beside the middle of one.
    assert greatest.y.max() == pytest.approx(69.4, abs=0.1)
    assert greatest.x[greatest.y.argmax()] == pytest.approx(3.0, abs=0.01)
    assert np.interp(3.0, curve.x, curve.y) < 20.0
    newest = window.measurement.engine.histories[pane.model].latest.values.level_db[0, -1]
    assert curve.y.max() == pytest.approx(newest.max(), abs=0.01)
    pane.line.setCurrentText("no line")
    assert not len(greatest.y)
