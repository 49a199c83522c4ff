"""What the window has kept of a measurement is saved as a session, and is the same there."""

import numpy as np
import pytest

from amt_monitor.live_results import results_of
from amt_monitor.past import Past
from amt_stream.calibration import Calibration
from amt_stream.engine import Engine, PushSource
from amt_stream.limits import limit_from_text
from amt_stream.outputs import FollowedReadings
from amt_stream.presets import Preset
from amt_stream.report import report_page
from amt_stream.results import read_results
from amt_stream.session import save_session
from amt_stream.table import Sound, Table

FS = 48000
LEVEL = Calibration(100.0, "calibrator", "2026-11-01", True, 0.3)


@pytest.fixture(scope="module")
def measured():
    """An engine that has heard 3 s, its readings and what a window keeps of them."""
    preset = Preset(("spl",), limits=(limit_from_text("laf_db>90"),))
    models = preset.models(FS, 2)
    table = Table(preset, models, Sound("noise", FS, (1, 2), [LEVEL], None), 100)
    readings, source = FollowedReadings(table.rows), PushSource(FS, 2, live=False)
    past = Past(table.rows.columns, 0.1)
    noise = 0.01 * np.random.default_rng(6).standard_normal((FS // 10, 2)).astype(np.float32)
    with Engine(source, models, [readings], calibration=LEVEL) as engine, source:
        assert results_of(engine, readings, past) is None
        for _ in range(30):
            source.push(noise)
        engine.mark("end")
        source.close()
        assert engine.wait(60)
    for rows in readings.take():
        past.add(rows)
    return engine, readings, past, table


def test_what_was_in_no_log_is_saved_and_read_again(measured, tmp_path):
    engine, readings, past, table = measured
    results = results_of(engine, readings, past)
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
