"""An impulse that a person left out, in the log of the measurement."""

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.engine import Engine, PushSource
from amt_stream.meters.accumulators.rating import impulse_adjustment
from amt_stream.meters.frames import LEFT_OUT, TAKEN_IN, Event
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import Rows
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import Session, SessionLog
from amt_stream.sessions.compare import compare
from amt_stream.sessions.report.day_levels import HOURS, day_levels, measurements
from amt_stream.sessions.report.happened import happened
from amt_stream.sessions.report.times import Clock
from amt_stream.sessions.results import read_results
from amt_stream.sessions.results.left_out import with_impulses_left_out
from tests.sessions.conftest import LOUD

FS = 8000


def sound():
    """Noise with three hammers, of which the second is the strongest."""
    x = 1e-3 * np.random.default_rng(2).standard_normal((12 * FS, 1))
    for at, strength in ((1.3, 30), (2.2, 100), (7.2, 10)):
        x[round(at * FS) :][: FS // 50] *= strength
    return x


@pytest.fixture
def measured(tmp_path, until):
    """Measures with intervals of 6 s, and tells events when the first has ended."""

    def make(*events, duration_s=12.0):
        preset, x = Preset(("rating",)), sound().astype(np.float32)
        model = preset.models(FS, 1)
        settings = RowSettings(100, interval=6)
        table = Table(preset, model, Sound("a sound", FS, (1,), [LOUD], duration_s), settings)
        source = PushSource(FS, 1, live=True, calibration=LOUD)
        with SessionLog(tmp_path / "night", table) as log:
            engine = Engine(source, model, [log], ring_s=16)
            with engine, source:
                source.push(x[: 8 * FS])
                until(lambda: engine.health.samples >= 7 * FS)
                for event in events:
                    engine.tell_event(event)
                source.push(x[8 * FS :])
                source.close()
                assert engine.wait(60)
        return read_results(tmp_path / "night")

    return make


def test_an_interval_that_had_ended_is_adjusted_by_what_is_left(measured, tmp_path):
    found = measure(sound(), FS, "rating", calibration=LOUD)
    times, first = np.unique(found["impulse_s"], return_index=True)
    first_p, strongest_p, last_p = found["impulse_p"][first[:3]]
    assert strongest_p > first_p > last_p
    results = measured(Event(LEFT_OUT, 0, float(times[1]), 0.0, text="a dog"))
    folder, intervals = tmp_path / "night", results.intervals
    # The log keeps what was counted when, and what a person said about it.
    assert Session(folder).intervals()[0]["impulse_max_p"] == pytest.approx(strongest_p)
    (event,) = (one for one in Session(folder).events() if one.kind == LEFT_OUT)
    assert (event.text, event.sample) == ("a dog", round(times[1] * FS))
    assert intervals["impulse_max_p"] == pytest.approx([first_p, last_p])
    ki_db = [impulse_adjustment(p) for p in (first_p, last_p)]
    assert intervals["ki_db"] == pytest.approx(ki_db, abs=1e-4)
    together = intervals["rating_laeq_db"] + intervals["kt_db"] + intervals["ki_db"]
    np.testing.assert_allclose(intervals["rating_db"], together, atol=1e-4)
    assert results.summary["impulse_max_p"] == pytest.approx(first_p)
    lines, _ = happened(results, Clock(None))
    assert any("impulse left out: a dog" in words for _, words in lines)
    # Columns of the impulses are read for the intervals, whichever are wanted.
    few = read_results(folder, lambda column: column.name == "rating_db")
    np.testing.assert_array_equal(few.intervals["rating_db"], intervals["rating_db"])


def test_day_levels_and_a_comparison_do_not_count_it(measured, tmp_path):
    found = measure(sound(), FS, "rating", calibration=LOUD)
    out = Event(LEFT_OUT, 0, float(np.unique(found["impulse_s"])[1]), 0.0)
    for name, events in (("with", ()), ("without", (out,))):
        # Intervals of a sound that has no end follow the clock, and begin anywhere in it.
        intervals = measured(*events, duration_s=None).intervals
        there = np.isfinite(intervals["rating_db"])
        parts, seconds = (intervals[name][there] for name in ("rating_db", "measured_s"))
        power = np.average(10 ** (parts / 10), weights=seconds)
        levels = day_levels(measurements(tmp_path / "night"), HOURS["eu"], None, True)
        periods = levels.whole.periods.values()
        (level_db,) = (one.level_db for one in periods if one.level_db is not None)
        assert level_db == pytest.approx(10 * np.log10(power), abs=0.05)
        (tmp_path / "night").rename(tmp_path / name)
    compared = compare(tmp_path / "with", tmp_path / "without").differences
    difference = {one.name: one.difference for one in compared}
    summaries = [read_results(tmp_path / name).summary for name in ("with", "without")]
    for name in ("ki_db", "rating_db"):
        expected = summaries[1][name] - summaries[0][name]
        assert difference[name] == pytest.approx(expected)
        assert expected < -1


def test_one_that_is_counted_again_changes_nothing(measured):
    found = measure(sound(), FS, "rating", calibration=LOUD)
    time_s = float(np.unique(found["impulse_s"])[1])
    events = [Event(kind, 0, time_s, 0.0) for kind in (LEFT_OUT, TAKEN_IN)]
    most = measured(*events).intervals["impulse_max_p"][0]
    assert most == pytest.approx(np.nanmax(found["impulse_p"]))


def test_of_a_long_interval_only_the_adjustment_is_known(measured):
    results = measured()
    table, rows = results.intervals, results.rows
    long = Rows({name: table[name] for name in table.columns} | {"end_s": table["end_s"] + 3600})
    out = Event(LEFT_OUT, 0, float(np.unique(rows["impulse_s"])[1]), 0.0)
    found = with_impulses_left_out(long, rows, [out])
    assert found["ki_db"][0] < table["ki_db"][0]
    assert np.isnan(found["rating_db"][0])
