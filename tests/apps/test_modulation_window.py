"""The window of modulation spectra: a modulated tone is seen where it is heard."""

import numpy as np
import pytest
import torch
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.panes.modulation_panes import LONGEST, StrongestModulationPane
from amt_stream.dsp.models import ModulationSpectrum
from amt_stream.engine import Engine, FaultSource, SignalSource, Tone, am_tone_source
from amt_stream.meters.calibration import UNCALIBRATED
from tests.apps.expose import expose

FS = 48000
NEAREST_4_HZ = 5.236


@pytest.fixture(scope="module")
def king():
    """One model for all engines, as a stage keeps no state; run once, so that it is compiled."""
    model = ModulationSpectrum(FS, "king2019")
    model(torch.zeros(1, 2, FS // 10))
    return model


@pytest.fixture
def am_engine(king):
    """Makes engines that hear a tone of 1 kHz, modulated at 4 Hz."""
    return lambda duration=None: Engine(am_tone_source(FS, duration), king)


def maps(window):
    return window.area.docks["modulation"].pane.maps


def text(window, name):
    return window.findChild(QtWidgets.QLabel, name).text()


def test_a_tone_modulated_at_4_hz_lights_its_cell_within_a_second(
    qtbot, open_window, am_engine, king
):
    window = open_window(lambda device: am_engine(duration=1.0))
    band = int((king.fc - 1000).abs().argmin())
    modulation = int(np.abs(np.asarray(king.mfc) - NEAREST_4_HZ).argmin())
    qtbot.waitUntil(lambda: window.updater.shown.frames.time_s[-1] == 1.0, timeout=15000)
    assert text(window, "strongest_where") == f"5.2 Hz in {king.fc[band]:.0f} Hz"
    assert "both ears" in text(window, "strongest_about")
    for pane in maps(window):
        lit = pane.level_db
        assert np.unravel_index(np.nanargmax(lit), lit.shape) == (band, modulation)
        assert lit[band, modulation] == 0
        assert pane.frame.around == (band, modulation, band + 1, modulation + 1)
    assert window.updater.shown.texts["strongest"] == (
        text(window, "strongest_where"),
        text(window, "strongest_about"),
    )


def test_nothing_is_left_of_a_microphone_that_is_silent(qtbot, open_window, king):
    source = FaultSource(am_tone_source(FS), [("mute", 2.0, 3600.0)])
    window = open_window(lambda device: Engine(source, king))
    qtbot.waitUntil(lambda: window.measurement.state == "silent", timeout=15000)
    qtbot.waitUntil(lambda: text(window, "strongest_where") == "---", timeout=5000)
    for pane in maps(window):
        assert np.isnan(pane.level_db).all()
        assert pane.level_db.size
        assert pane.frame.around is None


def test_axes_are_in_hertz(open_window, am_engine):
    window = open_window(lambda device: am_engine())
    pane = maps(window)[0]
    left, bottom = pane.plot.y, pane.plot.x
    assert [label for _, label in left.ticks] == ["2", "5.2", "13.7", "35.9", "94"]
    assert [label for _, label in bottom.ticks][0::3] == ["100", "1000"]
    for axis in (left, bottom):
        assert "Hz" in axis.caption


def test_one_ear_is_seen_alone_and_faults_are_told(qtbot, open_window, king):
    tone = Tone(500.0, modulation=5.0, level_db=70.0, ear="right")

    def make_engine(device):
        return Engine(SignalSource([tone], FS), king, calibration=UNCALIBRATED)

    window = open_window(make_engine)
    qtbot.waitUntil(lambda: "right ear" in text(window, "strongest_about"), timeout=10000)
    left, right = maps(window)
    assert left.frame.around is None
    assert right.frame.around is not None
    assert np.nanmax(left.level_db) == -30
    window.show_state()
    number = window.findChild(QtWidgets.QLabel, "strongest_where")
    assert "hatched" in number.property("tint")
    assert window.bar.calibration.text == "uncalibrated"


def test_the_clock_runs_and_no_unit_is_made_up(qtbot, open_window, am_engine):
    window = open_window(lambda device: am_engine())
    qtbot.waitUntil(lambda: "ear" in text(window, "strongest_about"), timeout=10000)
    assert "units" not in text(window, "strongest_about")
    qtbot.waitUntil(lambda: window.measurement.measured_s > 1, timeout=10000)


def test_silence_and_keys(qtbot, open_window, king):
    window = open_window(lambda device: Engine(SignalSource([], FS), king))
    assert text(window, "strongest_where") == "silence"
    qtbot.keyClick(window, QtCore.Qt.Key.Key_F)
    qtbot.waitUntil(lambda: window.bar.chip.text.startswith("Frozen"), timeout=5000)
    qtbot.keyClick(window, QtCore.Qt.Key.Key_S)
    qtbot.waitUntil(lambda: window.measurement.state == "stopped", timeout=15000)
    assert window.exit_code() == 0


@pytest.mark.parametrize("size", [(260, 90), (520, 200), (1200, 600)])
def test_the_strongest_modulation_is_as_large_as_there_is_room(qtbot, size):
    pane = StrongestModulationPane()
    expose(qtbot, pane, *size)
    pane.where.setText(LONGEST)
    assert pane.where.fontMetrics().horizontalAdvance(LONGEST) <= pane.where.width()
    assert pane.where.font().pixelSize() >= min(size[0] / 16, size[1] / 4)
    # What it is stands close below it.
    qtbot.waitUntil(lambda: pane.below.y() - pane.where.geometry().bottom() <= 8, timeout=5000)
