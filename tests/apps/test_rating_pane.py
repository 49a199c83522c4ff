"""The pane of tones and impulses shows what the models found, and leaves out what is unchecked.

With AMT_PICTURES=FOLDER in the environment it leaves a picture of the window there.
"""

import os

import numpy as np
import pytest
import torch
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.panes.rating_pane import UNCHECKED
from amt_monitor.panes.reading_pane import pane_of
from amt_stream import Rating
from amt_stream.dsp.functional.rating.tones import critical_band
from amt_stream.engine import Engine, SignalSource
from amt_stream.meters.accumulators.rating import Impulse
from amt_stream.meters.rows import readings_of
from amt_stream.meters.signals import Noise, Tone
from tests.apps.expose import expose
from tests.dsp.metrology.test_rating import tone, white

FS = 16000


def made(qtbot, model):
    names = [column.name for column in readings_of([model], 1)[model].columns]
    return expose(qtbot, pane_of(model, names), 700, 500)


def test_the_tone_stands_in_its_band_above_the_threshold(qtbot):
    pane = made(qtbot, "tonal_audibility")
    stage, sound = Rating(FS), white(30, 7, FS, 1) + tone(1000, 60, 7, FS)
    y = stage(torch.from_numpy(sound).float()[None])
    values = type(y)(*(v.numpy() for v in y))
    frame = int(np.flatnonzero(values.complete[0])[0])
    pane.plot.show_tone(values, 0, frame, stage.frequencies[1])
    (found,) = pane.plot.tone.items
    assert 10**found.x == pytest.approx(1000, abs=2)
    assert found.y == pytest.approx(60, abs=0.3)
    low, width = critical_band(10**found.x)
    assert [10**x for x, _ in pane.plot.band.items] == pytest.approx([low, low + width])
    threshold = pane.plot.threshold.y[0]
    assert found.y - threshold == pytest.approx(values.audibility[0, frame], abs=1e-3)
    at = int(np.argmax(pane.plot.spectrum.y))
    assert 10 ** pane.plot.spectrum.x[at] == pytest.approx(1000, rel=0.02)
    values.tones[0, frame] = 0
    pane.plot.show_tone(values, 0, frame, stage.frequencies[1])
    assert not pane.plot.tone.items
    assert not len(pane.plot.threshold.y)


def test_an_impulse_without_a_check_is_left_out(qtbot):
    pane = made(qtbot, "impulses")
    impulses = [Impulse(2.0, 9.0, 100.0, 30.0), Impulse(65.0, 8.0, 90.0, 20.0, left_out=True)]
    pane.impulses.show_impulses(impulses)
    lines = [pane.impulses.topLevelItem(k) for k in range(2)]
    assert [line.text(5) for line in lines] == ["5.4", "7.2"]
    assert [line.checkState(0) == UNCHECKED for line in lines] == [True, False]
    told = []
    pane.impulses.changed.connect(lambda *what: told.append(what))
    lines[1].setCheckState(0, UNCHECKED)
    assert told == [(2.0, False, "")]
    lines[0].setCheckState(0, QtCore.Qt.CheckState.Checked)
    assert told[1:] == [(65.0, True, "")]
    # The reason that a person types beside the impulse stays there.
    pane.impulses.itemDoubleClicked.emit(lines[1], 0)
    editor = pane.impulses.findChild(QtWidgets.QLineEdit)
    qtbot.keyClicks(editor, "a dog")
    qtbot.keyClick(editor, QtCore.Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: told[2:] == [(2.0, False, "a dog")])
    pane.impulses.show_impulses([impulses[0]._replace(left_out=True)])
    assert pane.impulses.topLevelItem(0).text(6) == "a dog"


FAN = (
    Noise(kind="pink", low=40.0, high=16000.0, level_db=55.0),
    Tone(312.0, level_db=52.0),
    Noise(low=200.0, high=8000.0, level_db=80.0, start=2.0, duration=0.05, seed=1),
)
"""A fan that hums, and something that falls down once."""


def test_an_impulse_that_is_unchecked_counts_no_more(qtbot, open_window):
    """In a window with an engine: the hum is found after 3 s, and what fell is left out."""
    window = open_window(lambda wanted: Engine(SignalSource(FAN, 48000), Rating(48000)))
    window.resize(900, 640)
    pane = window.area.docks["rating"].pane
    qtbot.waitUntil(lambda: pane.impulses.topLevelItemCount() == 1, timeout=20000)

    def value(name):
        return window.updater.shown.view.values.get(name) or 0

    qtbot.waitUntil(lambda: value("ki_db") > 5, timeout=20000)
    qtbot.waitUntil(
        lambda: any(abs(10**one.x - 312) < 2 for one in pane.plot.tone.items), timeout=20000
    )
    assert "dB audible" in pane.plot.tone.items[0].text
    if folder := os.environ.get("AMT_PICTURES"):
        qtbot.waitUntil(lambda: value("tone_n") == 3, timeout=20000)
        window.grab().save(f"{folder}/rating.png")
    before = value("rating_db")
    pane.impulses.topLevelItem(0).setCheckState(0, UNCHECKED)
    qtbot.waitUntil(lambda: value("ki_db") == 0, timeout=20000)
    assert value("rating_db") < before - 4
    qtbot.waitUntil(lambda: pane.impulses.topLevelItem(0).checkState(0) == UNCHECKED, timeout=5000)
