"""The pane of speech transmission, in a window with an engine.

With AMT_PICTURES=FOLDER in the environment it leaves a picture of the window there.
"""

import os

import numpy as np
import pytest
import soundfile

from amt_monitor.panes.bands_pane import MTI
from amt_monitor.panes.reading_pane import pane_of
from amt_stream import Stipa
from amt_stream.engine import Engine, FileSource
from amt_stream.meters.accumulators.sti import category, sti
from amt_stream.meters.rows import readings_of
from tests.dsp.metrology.test_stipa import FS, carriers

M = np.linspace(0.3, 0.9, 7)[:, None] * np.ones(2)


def texts(pane):
    return {cell.shown_as: text for (cell, _), text in zip(pane.numbers, pane.texts(), strict=True)}


def test_bands_and_category_are_those_of_the_sound(qtbot, open_window, tmp_path):
    path = tmp_path / "hall.wav"
    soundfile.write(path, carriers(M, 17), FS, subtype="FLOAT")
    window = open_window(lambda wanted: Engine(FileSource(path), Stipa(FS)))
    window.resize(900, 640)
    pane = window.area.docks["stipa"].pane
    value, mti = sti(M)
    qtbot.waitUntil(lambda: texts(pane)["sti"] == f"{value:.2f}", timeout=30000)
    qtbot.waitUntil(lambda: pane.why.text() == "± 0.008 after 16 s", timeout=30000)
    assert pane.bars.heights == pytest.approx(mti, abs=2e-3)
    assert texts(pane)["sti_category"] == category(value)
    if folder := os.environ.get("AMT_PICTURES"):
        window.grab().save(f"{folder}/stipa.png")


def test_it_says_why_an_index_is_not_valid(qtbot):
    names = [column.name for column in readings_of(["stipa"], 1)["stipa"].columns]
    pane = pane_of("stipa", names)
    qtbot.addWidget(pane)
    pane.show_readings({"sti": 0.5, "sti_reasons": 17.0, "sti_sd": 0.01, "sti_s": 6.0, MTI[2]: 0.4})
    assert (
        pane.why.text()
        == "± 0.010 after 6 s; no signal: play the STIPA test signal; less than 15 s"
    )
    assert pane.bars.heights.tolist() == [0, 0, 0.4, 0, 0, 0, 0]
    pane.show_readings({})
    assert not pane.why.text()
