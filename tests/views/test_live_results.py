"""What the window has kept of a measurement is saved as a session, and is the same there."""

import numpy as np
import pytest

from amt_stream.dsp.models import TonalAudibility
from amt_stream.engine import Engine, PushSource
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.limits import limit_from_text
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import reading_text
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import save_session
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.sessions.report import report_page
from amt_stream.sessions.results import read_results
from amt_stream.views.live_results import results_of
from amt_stream.views.reading_history import ReadingHistory
from amt_stream.views.view_state import ViewState
from tests.data.synth import render

FS = 48000
LEVEL = Calibration(100.0, "calibrator", "2026-11-01", True, 0.3)


@pytest.fixture(scope="module")
def measured():
    """An engine that has heard 3 s, its readings and what a window keeps of them."""
    preset = Preset(("spl",), limits=(limit_from_text("laf_db>90"),))
    models = preset.models(FS, 2)
    table = Table(preset, models, Sound("noise", FS, (1, 2), [LEVEL], None), RowSettings(100))
    readings, source = FollowedReadings(table.rows), PushSource(FS, 2, live=False)
    history = ReadingHistory(table.rows.columns, 0.1)
    noise = 0.01 * np.random.default_rng(6).standard_normal((FS // 10, 2)).astype(np.float32)
    with Engine(source, models, [readings], calibration=LEVEL) as engine, source:
        assert results_of(engine, readings, history) is None
        for _ in range(30):
            source.push(noise)
        engine.mark("end")
        source.close()
        assert engine.wait(60)
    for rows in readings.take():
        history.add(rows)
    return engine, readings, history, table


def heard(sound, *names):
    """An engine that has heard a sound (time, channel), and what a window keeps of it."""
    source = PushSource(FS, sound.shape[1], live=False)
    models = Preset(names).models(FS, sound.shape[1])
    engine = Engine(source, models, calibration=LEVEL)
    readings = FollowedReadings(engine.new_rows())
    engine.attach(readings)
    history = ReadingHistory(readings.rows.columns, 0.1)
    with engine, source:
        for at in range(0, len(sound), 480):
            source.push(sound[at : at + 480])
        source.close()
        assert engine.wait(60)
    for rows in readings.take():
        history.add(rows)
    return engine, readings, history


def test_a_burst_at_the_start_is_in_what_the_window_tells():
    """Nmax of 50 ms of 1 kHz at 70 dB as ISO 532-1:2017, Annex B.4, signal 11, prints it."""
    pulse = {"kind": "gauss_tone", "frequency": 1000, "level_db_spl": 70, "sigma": 0.0011855}
    pulse |= {"on": 0.014, "off": 0.064, "duration": 1.0}
    pascal = render({"duration": 1.0, "components": [pulse]}, FS)[:, :1].astype(np.float32)
    engine, readings, history = heard(pascal / np.float32(2 * np.sqrt(2)), "zwicker")
    results = results_of(engine, readings, history)
    assert results.summary["zwicker_nmax_sone"] == pytest.approx(5.9746, rel=5e-4)
    assert readings.of("zwicker")["zwicker_nmax_sone"] == pytest.approx(5.9746, rel=5e-4)


def test_a_maximum_between_two_rows_is_in_the_history():
    """Bursts of 30 ms that begin at any time between rows, as sharp as a click of a door."""
    sound = np.zeros((3 * FS, 2), np.float32)
    tone = 0.1 * np.sin(2 * np.pi * 1000.0 * np.arange(1440) / FS)
    for start_s, gain in ((0.731, 0.2), (1.247, 1.0), (2.008, 0.5)):
        sound[round(start_s * FS) :][:1440] = gain * tone[:, None]
    _, readings, history = heard(sound, "moore2016", "spl")
    told = readings.rows.summary()
    maxima = {"laf_db": "lafmax_db", "laf_left_db": "lafmax_left_db"}
    maxima |= {f"{one}_phon": f"max_{one}_phon" for one in ("stl", "ltl")}
    for name, most in maxima.items():
        for level in range(3):
            high = history.cells([name], level, 0, 31).high
            assert reading_text(name, np.nanmax(high)) == reading_text(most, told[most])
        seen = history.cells([name], 0, 0, 31)
        assert not (seen.low[0] > seen.mean[0] + 1e-5).any()
    shown = history.rows(["laf_db"], 0.0, 3.0)["laf_db"]
    assert np.nanmax(shown) < told["lafmax_db"] - 0.5, "rows themselves are readings of their time"


def test_what_was_in_no_log_is_saved_and_read_again(measured, tmp_path):
    engine, readings, history, table = measured
    results = results_of(engine, readings, history)
    assert results.summary["laeq_db"] == table.summary()["laeq_db"]
    assert [one["exceeded"] for one in results.limits] == [False]
    path = save_session(
        tmp_path / "kept",
        results.rows,
        results.header,
        summary=results.summary,
        events=results.events,
        settings=results.settings,
    )
    again = read_results(path)
    np.testing.assert_array_equal(again.rows["laf_db"], results.rows["laf_db"])
    assert again.summary == results.summary
    assert again.limits == results.limits
    assert [mark.text for mark in again.marks] == ["end"]
    assert again.header["models"] == results.header["models"]
    page = report_page(again)
    assert f"{results.summary['laeq_db']:.1f}" in page
    assert "calibrator, 2026-11-01" in page
    assert "Input" in page


def test_a_tone_that_was_not_renewed_for_long_is_old():
    """Spectra with a fault are thrown away: K_T stays, and is grey from 10 s on."""
    fs, rng = 8000, np.random.default_rng(1)
    sound = (0.01 * rng.standard_normal((15 * fs, 1))).astype(np.float32)
    sound[4 * fs : 14 * fs : fs] = np.nan
    source = PushSource(fs, 1, live=False)
    engine = Engine(source, TonalAudibility(fs), calibration=LEVEL)
    readings = FollowedReadings(engine.new_rows())
    engine.attach(readings)
    with engine, source:
        source.push(sound)
        source.close()
        assert engine.wait(60)
    view = ViewState.at(engine, readings)
    assert view.values["kt_db"] == 0
    for name in ("kt_db", "tone_dl_db"):
        status = view.number_status(name, "tonal_audibility")
        assert status.grey
        assert status.old == f"{view.values['tone_age_s']:.0f} s old"
