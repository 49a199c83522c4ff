"""The window of a level that is known within a decibel."""

import pytest
from pyqtgraph.Qt import QtWidgets

from amt_stream import Moore2016
from amt_stream.meters.calibration import Calibration


@pytest.fixture(scope="module")
def model():
    """With a band, in the place of the one that has none."""
    return Moore2016(fs=48000, specific_loudness=True, uncertainty_db=1.0)


def label(window, name):
    return window.findChild(QtWidgets.QLabel, name)


def test_how_far_off_it_may_be_stands_beside_the_number(qtbot, open_window, tone_engine):
    # The source's tone has 40 dB SPL by its own calibration of 130 dB.
    calibration = Calibration(130.0, calibration_uncertainty_db=0.6, microphone_uncertainty_db=0.8)
    window = open_window(lambda device: tone_engine(calibration=calibration))
    qtbot.waitUntil(lambda: window.updater.shown.frames.time_s[-1] > 1.5, timeout=10000)
    for kind in ("ltl", "stl"):
        texts = [label(window, f"{kind}_{unit}").text() for unit in ("sone", "phon")]
        assert texts == ["1.00", "40.0"]
        bands = [label(window, f"{kind}_{unit}_note") for unit in ("sone", "phon")]
        assert all(band.isVisible() for band in bands)
        assert [band.text() for band in bands] == ["± 8 %", "± 1.0"]
        values = window.updater.shown.view.values
        assert values[f"{kind}_low_sone"] < 0.93 < 1.07 < values[f"{kind}_high_sone"]
    window.show_state()
    told = "dB SPL +- 1.0 dB (k = 2; calibration 0.6 dB"
    assert window.bar.calibrated.isVisible()
    assert told in window.bar.calibrated.toolTip()
    for size in ((1200, 800), (900, 640)):
        window.resize(*size)
        pane = window.area.docks["moore2016"].pane

        def has_room(size=size, pane=pane):
            assert (window.width(), window.height()) == size
            for label in pane.findChildren(QtWidgets.QLabel):
                place = label.rect().translated(label.mapTo(pane, label.rect().topLeft()))
                assert not label.isVisible() or pane.rect().contains(place), label.objectName()

        qtbot.waitUntil(has_room)
