"""Maxima, events and percentiles against the same worked out from all values at once."""

import numpy as np
import pytest

from amt_stream.meters.accumulators import Events, Histogram
from tests.meters.one_quantity import loudness_meter

FRAME_RATE = 1000
COLUMNS = ("ltl_n5_phon", "max_phon", "ltl_n90_2s_phon", "ltl_n50_2s_phon")


def walk(seconds, seed=0, frame_rate=FRAME_RATE):
    """A loudness level that wanders about 60 phon, (time_s, level)."""
    random = np.random.default_rng(seed)
    count = round(seconds * frame_rate)
    steps = np.cumsum(random.normal(0, 0.3, count))
    return np.arange(count) / frame_rate, 60 + 25 * np.sin(steps / 40)


def fed(meter, time_s, level, size=20, **more):
    for at in range(0, len(time_s), size):
        part = slice(at, at + size)
        valid = {key: value[part] for key, value in more.items()}
        meter.update(time_s[part], level[part], **valid)
    return meter


def test_percentiles_of_eight_hours():
    """Every percentile within half a class of numpy's, in 22 kB."""
    _, level = walk(8 * 3600, frame_rate=100)
    level[: len(level) // 3] = 61.234  # a steady sound is the hardest: all in one class
    histogram = Histogram()
    for part in np.array_split(level, 200):
        histogram.add(part)
    exact = np.percentile(level, 100 - np.arange(1, 100))
    got = [histogram.exceeded(p) for p in range(1, 100)]
    assert np.abs(np.array(got) - exact).max() <= 0.025 + 1e-3
    assert histogram.counts.nbytes < 40_000


@pytest.mark.parametrize("size", [1, 7, 20, 441, 8193])
def test_readings_do_not_depend_on_blocks(size):
    seconds = 4 if size == 1 else 9
    time_s, level = walk(seconds)
    whole = fed(loudness_meter(COLUMNS), time_s, level, len(time_s)).reading()
    assert fed(loudness_meter(COLUMNS), time_s, level, size).reading() == whole
    assert whole["max_phon"] == level.max()
    assert whole["t_max_s"] == time_s[level.argmax()]


def test_nothing_yet():
    reading = loudness_meter().reading()
    assert reading["max_phon"] is None
    assert reading["ltl_n5_phon"] is None
    assert reading["measured_s"] == 0


def test_pause_unpause_reset():
    time_s, level = walk(3)
    meter = loudness_meter()
    fed(meter, time_s[:1000], level[:1000])
    meter.pause()
    before = meter.reading()
    fed(meter, time_s[1000:2000], level[1000:2000] + 50)
    assert meter.reading() == before
    meter.unpause()
    fed(meter, time_s[2000:], level[2000:])
    assert meter.reading()["measured_s"] == 2
    meter.reset()
    assert meter.reading() == loudness_meter().reading()


def test_frames_that_are_not_valid_are_counted_apart():
    time_s, level = walk(2)
    valid = np.ones(len(level), bool)
    valid[500:800] = False
    level[500:800] = 130
    reading = fed(loudness_meter(), time_s, level, valid=valid).reading()
    assert reading["max_phon"] < 90
    assert reading["excluded_s"] == 0.3
    assert reading["measured_s"] == 1.7


@pytest.mark.parametrize("size", [1, 7, 20, 12000])
def test_events(size):
    """A sound of 1 s, one of 7 s, which is two of at most 5 s, and one that goes on."""
    time_s = np.arange(12000) / FRAME_RATE
    stl, ltl = np.full(12000, 10.0), np.full(12000, 5.0)
    for start, stop, level in ((1000, 2000, 50), (3000, 10000, 60), (11000, 12000, 40)):
        stl[start:stop], ltl[start:stop] = level, np.linspace(0, level - 1, stop - start)
    events = Events(above=20)
    for at in range(0, 12000, size):
        part = slice(at, at + size)
        events.add(time_s[part], stl[part], ltl[part])
    assert [(e.start_s, e.end_s) for e in events.events] == [(1, 1.999), (3, 7.999), (8, 9.999)]
    assert events.events[0].maximum == 49
    assert events.present.start_s == 11
    assert events.present.maximum == 39


@pytest.mark.parametrize("size", [1, 7, 20, 441, 8193])
def test_columns(size):
    """After each frame: maxima of all so far; percentiles of all so far and of the last 2 s.

    Percentiles are renewed with each 100th frame; the window is short of 2 s by up to 20 ms.
    """
    time_s, level = walk(5, seed=1)
    time_s += 0.5
    valid = np.ones(len(level), bool)
    valid[:300] = valid[2500:2600] = False
    level[:300] = level[2500:2600] = 130
    meter = loudness_meter(columns=COLUMNS)
    found = []
    for at in range(0, len(level), size):
        part = slice(at, at + size)
        found.append(meter.update(time_s[part], level[part], valid[part]))
    told = dict(zip(COLUMNS, np.concatenate(found, 1), strict=True))
    counted = np.where(valid, level, np.nan)
    assert np.array_equal(told["max_phon"][300:], np.fmax.accumulate(counted)[300:])
    assert np.isneginf(told["max_phon"][:300]).all()
    assert np.isnan(told["ltl_n5_phon"][:300]).all()
    for k in range(400, 5000, 100):
        for shown in (told["ltl_n5_phon"][k], told["ltl_n5_phon"][k + 99]):
            assert shown == pytest.approx(np.nanpercentile(counted[: k + 1], 95), abs=0.026)
        # Slots of 20 frames: this one has begun the newest.
        last = counted[max(0, k + 1 - 2000 + 19) : k + 1]
        for column, percent in (("ltl_n90_2s_phon", 10), ("ltl_n50_2s_phon", 50)):
            assert told[column][k] == pytest.approx(np.nanpercentile(last, percent), abs=0.026)
    reading = meter.reading()
    assert reading["ltl_n5_phon"] == pytest.approx(np.nanpercentile(counted, 95), abs=0.026)
    assert reading["ltl_n90_2s_phon"] == pytest.approx(
        np.percentile(counted[-2000:], 10), abs=0.026
    )
    assert reading["measured_s"] == 4.6


def test_every_statistic_is_of_the_same_frames():
    """A level that rises to 80 phon: the rise, not valid, is in no statistic, nor is the fall."""
    time_s = np.arange(4000) / FRAME_RATE
    level = 80 + 0.1 * np.sin(time_s * 50)
    level[:1000], level[3000:] = np.linspace(0, 80, 1000), np.linspace(120, 0, 1000)
    valid = (time_s >= 1) & (time_s < 3)
    reading = fed(loudness_meter(), time_s, level, valid=valid).reading()
    told = [v for name, v in reading.items() if name.startswith(("max", "ltl_n"))]
    assert len(told) == 8
    assert np.abs(np.array(told) - 80).max() < 0.15
    assert (reading["measured_s"], reading["excluded_s"]) == (2, 2)


def test_a_rolling_window_goes_on_through_a_pause_and_a_reset():
    time_s, level = walk(3)
    meter = loudness_meter(columns=("ltl_n50_1s_phon", "ltl_n50_phon"))
    fed(meter, time_s[:1500], level[:1500])
    meter.pause()
    meter.reset()
    fed(meter, time_s[1500:], level[1500:])
    reading = meter.reading()
    assert reading["ltl_n50_1s_phon"] == pytest.approx(np.median(level[-1000:]), abs=0.026)
    assert reading["ltl_n50_phon"] is None


@pytest.mark.parametrize(("window", "hours"), [("0s", "0s"), ("25h", "25h")])
def test_windows_out_of_range(window, hours):
    with pytest.raises(ValueError, match=f"a window of {hours}: give 1s to 24h"):
        loudness_meter([f"ltl_n5_{window}_phon"])


def test_histograms_are_kept():
    one = Histogram()
    one.add([10.0, 20, 30])
    one.add([40.0, np.nan, 1e9, -1e9])
    assert len(one) == 6
    again = Histogram()
    again.load_state_dict(one.state_dict())
    assert (again.used == one.used).all()
    assert one.exceeded(0) is None
    assert one.exceeded(100) == -np.inf
    assert one.exceeded(20) == pytest.approx(40, abs=0.026)
    with pytest.raises(ValueError, match="give 0 to 100 %"):
        one.exceeded(101)


@pytest.mark.parametrize("count", [2, 7, 100, 1000])
def test_percentiles_of_few_values_lie_between_them(count):
    values = np.random.default_rng(count).uniform(20, 90, count)
    histogram = Histogram()
    histogram.add(values)
    for p in (1, 5, 10, 50, 95):
        assert histogram.exceeded(p) == pytest.approx(np.percentile(values, 100 - p), abs=0.026)
