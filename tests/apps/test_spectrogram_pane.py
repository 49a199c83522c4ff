"""A spectrogram has every frame of the last minute, and its marker reads time, frequency, level."""

import numpy as np
import pytest
from pyqtgraph.Qt import QtCore

from amt_monitor.panes.spectrogram_pane import SPAN_DB, SpectrogramPane
from amt_stream import NarrowBandSpectrum
from amt_stream.dsp.stages import Octaves, SoundLevel, ThirdOctaves
from amt_stream.engine import Engine, SignalSource, Tone
from tests.apps.expose import expose
from tests.apps.test_followed_panes import heard, tone_with_click

FS = 48000
Key = QtCore.Qt.Key


@pytest.fixture
def of(qtbot):
    """The pane of a model that heard a tone, and a click of 20 ms at 1.5 s; and all frames."""

    def make(model):
        engine, readings, frames = heard(tone_with_click(1.5), {"it": model})
        pane = SpectrogramPane("spectrogram_it", "it", "it", model)
        expose(qtbot, pane, 700, 300)
        pane.take_frames(engine, readings)
        pane._fit()
        return pane, frames

    return make


def row_of(pane, hz):
    return int(np.argmin(np.abs(np.log(np.array(pane.rows.hz) / hz))))


@pytest.mark.parametrize("kind", [ThirdOctaves, Octaves])
def test_bands_are_the_highest_of_each_time(of, kind):
    model = kind(FS)
    pane, frames = of(model)
    highest = np.concatenate([one.values.highest[0, 0] for one in frames], axis=-1)
    time_s = np.concatenate([one.time_s for one in frames])
    columns = time_s // 0.1
    for column in (5, 15, 20):
        expected = 10 * np.log10(highest[:, columns == column].max(axis=-1) / 4e-10)
        np.testing.assert_allclose(pane.colors.curve(0.1 * column + 0.05), expected, atol=1e-3)
    assert pane.rows.hz == [float(f) for f in model.nominal]


def test_lines_of_a_spectrum_are_the_highest_in_each_row(of):
    pane, _ = of(NarrowBandSpectrum(FS))
    found = pane.colors.curve(1.25)
    at = row_of(pane, 1000.0)  # the highest line lies near the edge of this row
    assert abs(found[at - 1 : at + 2].max() - 40.0) < 1.5
    assert found[row_of(pane, 300.0)] < 0.0
    later, at = pane.colors.curve(1.75), row_of(pane, 3000.0)
    assert later[at - 1 : at + 2].max() > found[at - 1 : at + 2].max() + 40.0
    assert np.isfinite(found).all(), "rows between two lines show the nearest one"


def test_the_scale_follows_the_highest_level_of_the_minute(of):
    pane, _ = of(ThirdOctaves(FS))
    peak = pane.colors.highest
    assert pane.colors.high - 10.0 < peak <= pane.colors.high
    assert pane.colors.high - pane.colors.low == SPAN_DB
    assert pane.texts()[0] == f"{pane.colors.low:g} to {pane.colors.high:g} dB"
    # After a minute of less, it is lower.
    quiet = np.full((2, len(pane.rows.hz)), 12.0)
    for k in range(30, 640):
        pane.draw((k + 0.5) * 0.1, quiet)
    pane._fit()
    assert pane.colors.high == 20.0


def test_the_marker_reads_time_frequency_and_level(qtbot, of):
    pane, _ = of(ThirdOctaves(FS))
    row, age_s = row_of(pane, 3150.0), 1.55 - pane.colors.until_s
    ((x, y),) = pane.plot.points([age_s], [row + 0.5]).tolist()
    qtbot.mouseMove(pane.plot, QtCore.QPoint(round(x), round(y)))
    level = pane.colors.curve(1.55)[row]
    qtbot.waitUntil(lambda: bool(pane.value.text()), timeout=5000)
    clock, hz, unit, db, _ = pane.value.text().split()
    assert clock.startswith("0:00:01.")
    assert (hz, unit) == ("3150", "Hz")
    assert abs(float(db) - level) < 0.06
    assert pane.plot.accessibleDescription() == pane.value.text()
    pane.plot.setFocus()
    qtbot.keyClick(pane.plot, Key.Key_Up)
    assert "4000 Hz" in pane.value.text()
    qtbot.keyClick(pane.plot, Key.Key_Escape)
    assert not pane.value.text()
    qtbot.keyClick(pane.plot, Key.Key_Left)
    assert pane.value.text()


def test_models_with_bands_or_lines_have_one_in_their_layout(qtbot, open_window):
    def engine(wanted):
        source = SignalSource([Tone(1000.0, level_db=60.0)])
        return Engine(source, {"spl": SoundLevel(FS), "third_octave": ThirdOctaves(FS)})

    window = open_window(engine)
    dock = window.area.docks["spectrogram_third_octave"]
    qtbot.waitUntil(lambda: dock.pane is not None and dock.pane.colors.highest > 50, timeout=15000)
    assert not dock.isHidden()
    assert "spectrogram_spl" not in window.area.docks
    assert dock.pane.colors.high in (60.0, 70.0)
