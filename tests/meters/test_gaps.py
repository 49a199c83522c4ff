"""Rows about a gap, through the real models: none in it, and the first one after it says so."""

import math
import tracemalloc

import numpy as np
import pytest

from amt_stream.engine.sinks.sink_thread import SinkThread
from amt_stream.meters.frames import Event, Fault
from amt_stream.meters.rows import summary as summary_of
from amt_stream.meters.rows.block import is_named
from tests.meters.threadless import FS, MODELS, Meters

LONGEST_FRAME = 1920
"""Samples, of a spectrum: a row tells of all models, so none stands after the last frame of one."""


@pytest.fixture
def noise():
    rng = np.random.default_rng(1)
    return lambda seconds: rng.standard_normal(round(seconds * FS)).astype(np.float32) * 0.01


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "lost", [5, 2399, 2**33, *(pytest.param(n, marks=pytest.mark.soak) for n in (480, 48_480))]
)
def test_no_row_stands_in_a_gap_and_the_next_one_tells_it(noise, lost):
    """At steps of 1 ms, of which some fall into a gap in which no frame of 10 ms stands."""
    meters = Meters(list(MODELS), step_ms=1)
    meters.take(noise(0.5))
    start = 24_000
    meters.take(noise(0.3), lost)
    rows, stop = meters.rows, start + lost
    sample = rows["sample"]
    assert not ((sample >= start) & (sample < stop)).any()
    assert (np.diff(sample) > 0).all()
    assert not (sample % 48).any()
    after = np.flatnonzero(sample >= stop)[0]
    assert sample[after] < stop + 2 * 480
    assert rows["fault"][after] & Fault.GAP
    assert sample[after - 1] >= start - LONGEST_FRAME - 48
    assert not rows["fault"][sample < start - 0.2 * FS].any()


def test_what_is_missing_at_the_end_has_no_rows(noise):
    meters = Meters(["moore2016", "spl"], step_ms=1)
    meters.take(noise(0.5))
    meters.table.event(Event("gap", 24_000, 0.5, math.nan, 4800))
    meters.take(noise(0), 4800)
    for one in meters.measurements:
        one.flush()
    meters.parts.append(meters.table.rest(0.6))
    assert meters.rows["sample"][-1] == 23_952
    assert meters.rows["fault"][-1] == Fault.GAP


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lost", [48_480, 480_000, pytest.param(48_000, marks=pytest.mark.soak)])
def test_a_gap_that_ends_on_a_block_is_marked_in_the_rows_of_every_model(noise, name, lost):
    meters = Meters([name])
    meters.take(noise(0.5))
    meters.take(noise(0.5), lost)
    rows = meters.rows
    after = np.flatnonzero(rows["sample"] >= 24_000 + lost)[0]
    assert rows["fault"][after] & Fault.GAP
    assert rows["settling"][after]


def test_a_gap_of_six_hours_costs_nothing(noise):
    meters = Meters(list(MODELS), step_ms=1)
    meters.take(noise(0.5))
    before = len(meters.rows)
    tracemalloc.start()
    try:
        meters.take(noise(0.1), 6 * 3600 * FS)
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()
    rows = meters.rows
    assert len(rows) - before < 100 + 600
    assert rows["time_s"][-1] > 6 * 3600


def test_statistics_leave_gaps_out_and_what_settles_after_them(noise):
    """Five gaps of 1 s in 25 s of steady noise: the extremes of what smooths are not theirs."""
    names = ("lafmin_db", "lafmax_db", "l99_db", "laeq_db", "zwicker_n99_phon", "zwicker_nmax_phon")
    names += ("integrated_lufs", "max_momentary_lufs")
    x, told = noise(25), []
    for lost in (0, FS):
        meters = Meters(["spl", "zwicker", "bs1770"], 100, names, 100.0)
        for at in range(0, 25 * FS, 5 * FS):
            meters.take(x[at + lost : at + 5 * FS], lost)
        told.append(meters.table)
    free, table = (one.summary() for one in told)
    for name in names:
        assert table[name] == pytest.approx(free[name], abs=0.3), name
    for name, settle_s in (("spl", 0.12), ("zwicker", 1.5), ("bs1770", 0.1)):
        counted = told[1].readings[name].counted_s()
        assert sum(counted.values()) == pytest.approx(25, abs=0.02)
        assert counted["measured_s"] == pytest.approx(5 * (4 - settle_s), abs=0.1)


def test_where_sound_stood_still_nothing_counts_and_nothing_settles(noise):
    meters = Meters(["spl"])
    meters.take(noise(1.0))
    meters.take(noise(0.5), 0, Fault.STALL)
    rows = meters.rows
    assert rows["fault"][rows["fault"] > 0].tolist() == [Fault.STALL]
    assert not rows["settling"][rows["time_s"] > 0.7].any()
    assert np.isfinite(rows["laf_db"][1:]).all()
    counted = meters.table.readings["spl"].counted_s()
    assert counted["excluded_s"] == pytest.approx(0.01)


CLIPS = ("lafmax_db", "laf_db", "laeq_db", "laeq_1s_db", "l10_db", "lceq_minus_laeq_db")


def test_clipped_sound_counts_and_the_readings_that_include_it_are_named(noise):
    """Statistics to the end, a window for its length, and a level until it has forgotten it."""
    meters, plain = Meters(["spl"], columns=CLIPS), Meters(["spl"], columns=CLIPS)
    x = noise(5.0)
    x[FS : FS + 3] = 1.0
    meters.take(x)
    plain.take(np.where(x == 1.0, np.float32(0.999), x))
    rows, summary = meters.rows, meters.table.summary()
    for name, value in plain.table.summary().items():
        assert summary[name] == pytest.approx(value, abs=0.06), name
    assert not rows["settling"][rows["time_s"] > 1.0].any()
    until_s = {"laeq_1s_db": 2.12, "laf_db": 3.1}  # 1 s and what its filters remember; 2.1 s
    for name in CLIPS:
        named = np.array([is_named(name, text) for text in rows["clipped_columns"]])
        times = rows["time_s"][named]
        assert times[0] == pytest.approx(1.01, abs=0.02)
        assert times[-1] == pytest.approx(until_s.get(name, 5.0), abs=0.12)
        assert len(times) == round((times[-1] - times[0]) * 100) + 1
    assert (rows["fault"] == Fault.CLIP).sum() < 10
    assert 0.005 < meters.table.counted.counted_s()["spl"]["clipped_s"] < 0.1
    told = summary_of(meters.table, [], [], {"channels": []})["statistics"]["spl"]
    assert told["clipped_s"] == pytest.approx(meters.table.counted.counted_s()["spl"]["clipped_s"])
    assert told["excluded_s"] == 0.0


def test_a_single_sample_of_full_scale_is_no_clipping_and_counts(noise):
    meters = Meters(["spl", "bs1770"])
    x = noise(1.0)
    x[24_123] = -1.0
    meters.take(x)
    assert not meters.rows["fault"].any()
    assert set(meters.rows["clipped_columns"]) == {""}
    assert meters.table.summary()["sample_peak_dbfs"] == 0.0


def test_sound_in_units_of_full_scale_is_what_it_is_however_it_came_about(noise):
    meters = Meters(["bs1770"])
    x = noise(1.0)
    x[24_000:24_100] = 1.0
    meters.take(x)
    assert (meters.rows["fault"] == Fault.CLIP).any()
    assert set(meters.rows["clipped_columns"]) == {""}
    assert meters.table.counted.counted_s()["bs1770"]["clipped_s"] == pytest.approx(0.02, abs=0.011)


def test_a_reset_and_a_pause_forget_what_was_clipped(noise):
    meters = Meters(["spl"], columns=["laeq_db", "laf_db"])
    x = noise(9.0)
    x[FS // 2 : FS // 2 + 5] = x[4 * FS : 4 * FS + 5] = 1.0
    meters.take(x[: 3 * FS])
    meters.table.event(Event("readings_reset", 3 * FS, 3.0, math.nan))
    meters.table.event(Event("paused", 3 * FS, 3.0, math.nan))
    meters.take(x[3 * FS : 5 * FS])
    meters.table.event(Event("continued", 5 * FS, 5.0, math.nan))
    meters.take(x[5 * FS :])
    rows = meters.rows
    named = np.array([is_named("laeq_db", text) for text in rows["clipped_columns"]])
    assert named[(rows["time_s"] > 0.6) & (rows["time_s"] < 2.9)].all()
    assert not named[rows["time_s"] > 3.1].any()
    heard = np.array([is_named("laf_db", text) for text in rows["clipped_columns"]])
    assert heard[(rows["time_s"] > 4.1) & (rows["time_s"] < 5.9)].all(), "it is of the sound"
    assert meters.table.counted.counted_s()["spl"]["clipped_s"] == 0.0


def test_a_reader_that_pauses_misses_rows_and_gets_no_old_ones(noise):
    """The queue of a sink runs over while it stands still, with two models."""
    got = []
    sink_thread = SinkThread(got.append, limit=20, lossy=True)

    def through_the_queue(frames):
        sink_thread.put(frames)
        if not paused:
            while not sink_thread._queue.empty():
                got.append(sink_thread._queue.get())
        told = list(got)
        got.clear()
        return told

    paused = False
    meters = Meters(["moore2016", "spl"], pass_on=through_the_queue)
    meters.take(noise(1.0))
    paused = True
    meters.take(noise(2.0))
    paused = False
    meters.take(noise(1.0))
    rows = meters.rows
    (hole,) = np.flatnonzero(np.diff(rows["sample"]) > 480)
    assert rows["time_s"][hole] == pytest.approx(1.1, abs=0.1)
    assert rows["time_s"][hole + 1] == pytest.approx(3.0, abs=0.1)
    assert rows["fault"][hole + 1] == Fault.OVERLOAD
    for name in ("stl_phon", "laf_db"):
        assert (np.diff(rows[name][100:]) != 0).all()
