"""The pane of partial loudness, in a window with an engine."""

import os

import numpy as np
import pytest

from amt_monitor.panes.reading_pane import pane_of
from amt_stream.dsp.models import PartialLoudness
from amt_stream.engine import Engine, SignalSource
from amt_stream.meters.rows import readings_of
from amt_stream.meters.signals import Noise, Tone

ALARM = (
    Tone(1000.0, level_db=75.0, ear="left"),
    Noise(low=500.0, high=1500.0, level_db=70.0, ear="right"),
)
"""A tone of 75 dB, and in the other channel noise of 40 dB per hertz."""


def test_audibility_is_drawn_by_frequency(qtbot, open_window):
    window = open_window(lambda wanted: Engine(SignalSource(ALARM, 48000), PartialLoudness(48000)))
    window.resize(900, 640)
    pane = window.area.docks["partial"].pane
    qtbot.waitUntil(
        lambda: len(pane.audibility.y) > 0 and pane.audibility.y.max() > 14, timeout=30000
    )
    at = int(np.argmax(pane.audibility.y))
    assert 10 ** pane.audibility.x[at] == pytest.approx(1000, rel=0.05)
    assert pane.threshold.y.tolist() == [0, 0]
    texts = dict(zip((cell.name for cell, _ in pane.numbers), pane.texts(), strict=True))
    assert float(texts["audible_db"]) == pytest.approx(16, abs=2)
    if folder := os.environ.get("AMT_PICTURES"):
        window.grab().save(f"{folder}/partial.png")


@pytest.mark.parametrize(("over_db", "text"), [(1.6, "+1.6 dB"), (-4.9, "-4.9 dB"), (7.0, "0.09")])
def test_near_the_threshold_a_number_is_how_far_it_is_above_it(qtbot, over_db, text):
    names = [column.name for column in readings_of(["partial"], 2)["partial"].columns]
    pane = pane_of("partial", names)
    qtbot.addWidget(pane)
    pane.show_readings({"partial_ltl_sone": 0.09, "target_sone": 4.0, "audible_db": over_db})
    texts = dict(zip((cell.name for cell, _ in pane.numbers), pane.texts(), strict=True))
    assert texts["partial_ltl_sone"].startswith(text)
    assert texts["target_sone"].startswith("4.0")
