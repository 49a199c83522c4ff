"""Shares by band and ear, each second: those of `explain`, and in words."""

import numpy as np
import pytest

from amt_monitor.share_table import ShareColumn, ShareTable
from amt_monitor.shares_pane import SharesPane
from amt_monitor.view_state import ViewState
from amt_stream import ECMA418, ECMALoudness, ECMARoughness
from amt_stream.engine import Tone
from amt_stream.meters.band_shares import as_shares, band_limits, band_weights, binaural_parts
from tests.apps.test_followed_panes import FS, heard

SOUND = [
    Tone(500.0, level_db=60, ear="left"),
    Tone(4000.0, level_db=60, modulation=70.0, ear="right"),
]


@pytest.fixture(scope="module")
def made():
    """All metrics of 500 Hz on the left and rough 4 kHz on the right, to the end."""
    return heard(SOUND, {"ecma": ECMA418(FS)}, 2.05)


@pytest.fixture
def pane(qtbot, made):
    engine, readings, _ = made
    pane = SharesPane(ViewState.at(engine, readings))
    qtbot.addWidget(pane)
    pane.read(ViewState.at(engine, readings))
    return pane


def test_shares_are_those_of_the_last_whole_second(pane, made):
    frames = [one for one in made[2] if not one.after_end]
    time_s = np.concatenate([one.time_s for one in frames])
    last = (time_s > 1 + 1e-6) & (time_s <= 2 + 1e-6)
    for name in ("loudness", "roughness"):
        field = f"specific_{name[0] if name == 'roughness' else 'n'}"
        specific = np.concatenate([getattr(one.values, field) for one in frames], axis=1)
        parts = binaural_parts(specific[:, last]).sum(1) @ band_weights(band_limits())
        np.testing.assert_allclose(pane.shares[name], as_shares(parts), rtol=1e-9)
    assert pane.texts()[0].startswith("most at 4 kHz, right ear: ")
    assert pane.texts()[1].startswith("most at 500 Hz, left ear: ")
    assert (
        pane.texts()[2] == f"most at 4 kHz, right ear: {100 * pane.shares['roughness'][1, 7]:.0f} %"
    )
    assert pane.table.accessibleDescription().startswith("loudness: most at 4 kHz, right ear")


def test_what_is_lost_or_starts_again_has_none(pane, made):
    engine, readings, _ = made
    view = ViewState.at(engine, readings)
    pane.show_status(ViewState(engine, readings, view.frames, view.values, 0.0, ("lost",)))
    assert pane.texts() == ("", "", "")
    pane.restart()
    pane.read(view)
    assert pane.texts()[0].startswith("most at 4 kHz")


def test_models_of_one_metric_have_it_too_and_too_little_has_no_share(qtbot):
    tone = [Tone(1000.0, level_db=40.0)]
    models = {"ecma_roughness": ECMARoughness(FS), "it": ECMALoudness(FS)}
    engine, readings, _ = heard(tone, models, 1.6)
    view = ViewState.at(engine, readings)
    pane = SharesPane(view)
    qtbot.addWidget(pane)
    pane.read(view)
    loudness, roughness = pane.texts()
    assert loudness.startswith("most at 1 kHz, both ears: 8")
    assert roughness == "none"


def test_numbers_do_not_overlap_and_the_greatest_stay(qtbot):
    table = ShareTable([str(k) for k in range(10)])
    qtbot.addWidget(table)
    shares = np.linspace(0, 0.19, 10)[None]
    one = ShareColumn("Loudness", "", shares, [[f"{100 * v:.0f}" for v in shares[0]]])
    line = table.fontMetrics().height()
    assert [*table._apart(one, 0, line)] == [*range(9, -1, -1)]
    assert [*table._apart(one, 0, line / 2)] == [9, 7, 5, 3, 1]
    table.resize(400, 200)
    table.show_columns([one])
    assert not table.grab().isNull()
