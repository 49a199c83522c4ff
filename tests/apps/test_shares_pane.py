"""Shares by band and ear, each second: those of `explain`, and in words.

With AMT_PICTURES=FOLDER in the environment it leaves a picture of the pane there.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from amt_monitor.panes.share_table import ShareColumn, ShareTable
from amt_monitor.panes.shares_pane import SharesPane
from amt_stream import ECMA418, ECMALoudness, ECMARoughness
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows.models.band_shares import (
    as_shares,
    band_limits,
    band_weights,
    binaural_parts,
)
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.offline.explain import Explanation
from amt_stream.sessions.events import SoundKeeper
from amt_stream.views.view_state import ViewState
from tests.apps.test_followed_panes import FS, heard

SOUND = [
    Tone(500.0, level_db=60, ear="left"),
    Tone(4000.0, level_db=60, modulation=70.0, ear="right"),
]


SIZE = 900, 320


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
    if folder := os.environ.get("AMT_PICTURES"):
        pane.resize(*SIZE)
        pane.grab().save(str(Path(folder) / "shares.png"))


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
    assert all(len(one.shares) == 2 for one in pane.table.columns)
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


VALUES = {"loudness": 4.0, "tonality": 2.0, "roughness": 0.0, "laeq": 60.0}
CHANGES = {
    "loudness": [[0.0, -0.4], [0.0, -0.1], [0.0, -0.3]],
    "tonality": [[0.0, 0.1], [0.0, 0.0], [0.0, 0.1]],
    "roughness": [[0.0, 0.0]] * 3,
    "laeq": [[0.0, -2.0], [0.0, 0.0], [0.0, -2.0]],
}


def explanation(changes):
    arrays = {name: np.array(rows) for name, rows in changes.items()}
    return Explanation(np.zeros((0, 3)), VALUES, {}, {}, arrays, True, 1.0)


def test_effects_are_told_beside_the_bars_and_in_words(pane):
    told = {name: [row * 5 for row in rows] for name, rows in CHANGES.items()}
    pane._show_effects(explanation(told).effects)
    loudness, tonality, roughness, laeq = pane.table.columns
    assert loudness.numbers[0][:2] == ["", "-2.5"]
    assert loudness.numbers[1][:2] == ["", "-7.5"]
    assert tonality.numbers[1][1] == "+5.0"
    assert not any("".join(ear) for ear in roughness.numbers)
    assert (laeq.shares, laeq.numbers[1][1]) == (None, "-2.0")
    assert pane.note.text() == (
        "3 dB less at 63 Hz in the right ear: loudness -7.5 %, tonality +5.0 %, LAeq -2.0 dB"
    )
    pane.beside.setCurrentIndex(2)
    assert [ear[1] for ear in pane.table.columns[0].numbers] == ["", "-10.0"]
    assert pane.table.columns[3].numbers == [["", "-2.0"] * 5]
    pane.beside.setCurrentIndex(0)
    assert len(pane.table.columns) == 3
    # Of a lower sampling rate, and of one channel.
    few = {name: [rows[0]] for name, rows in CHANGES.items()}
    pane._show_effects(explanation(few).effects)
    assert pane.table.columns[0].numbers == [["", "-10.0", *[""] * 8]]
    assert pane.note.text().startswith("3 dB less at 63 Hz: loudness -10.0 %")
    assert not pane.table.grab().isNull()


def test_effects_need_sound_in_memory(pane):
    pane.button.click()
    assert pane.note.text().startswith("No sound is in memory: turn that on in File > Settings")
    assert pane.button.text() == "Try 3 dB less"


@pytest.fixture
def remembering(qtbot, tmp_path):
    """A pane of a measurement with its sound in memory."""
    preset = Preset(("ecma",))
    models = preset.models(FS, 2)
    sound = Sound("made", FS, (1, 2), [Calibration(100.0)], None)
    table = Table(preset, models, sound, RowSettings())
    keeper = SoundKeeper(tmp_path, table, fs=FS, channels=2)
    source = SignalSource(SOUND, FS, 1.2, paced=False)
    with Engine(source, models, [keeper], calibration=Calibration(100.0)) as engine:
        assert engine.wait(60)
    view = ViewState.at(engine, None)
    pane = SharesPane(view)
    qtbot.addWidget(pane)
    yield pane
    pane.leave()
    keeper.close(10)


def test_a_run_can_be_canceled(remembering):
    remembering.button.click()
    assert remembering.button.text() == "Cancel"
    run = remembering._run
    assert run.running
    process = run.worker
    remembering.button.click()
    assert not run.running
    assert not process.running
    assert remembering.note.text() == ""


@pytest.mark.soak
def test_3_db_less_has_the_effects_that_explain_finds(qtbot, remembering):
    remembering.button.click()
    qtbot.waitUntil(lambda: remembering.effects is not None, timeout=300_000)
    changes = remembering.effects.changes
    # 4 kHz in the right ear, which has the higher LAeq.
    assert changes["laeq"][2, 7] == pytest.approx(-3, abs=0.1)
    assert changes["loudness"][2, 7] < -3 < changes["loudness"][1, 7] + 3
    assert changes["roughness"][2, 7] < -2
    assert remembering.note.text().startswith("3 dB less at ")
