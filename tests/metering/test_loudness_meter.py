"""Maxima, events and percentiles against the same worked out from all values at once."""

import sys

import numpy as np
import pytest

from amt_stream.metering import Events, Histogram, Hold, LoudnessMeter, RollingHistogram, TimeAbove

FRAME_RATE = 1000


def walk(seconds, seed=0, frame_rate=FRAME_RATE):
    """A loudness level that wanders about 60 phon, (time_s, level)."""
    random = np.random.default_rng(seed)
    count = round(seconds * frame_rate)
    steps = np.cumsum(random.normal(0, 0.3, count))
    return np.arange(count) / frame_rate, 60 + 25 * np.sin(steps / 40)


def fed(meter, time_s, stl, ltl, size=20, **more):
    for at in range(0, len(time_s), size):
        part = slice(at, at + size)
        valid = {key: value[part] for key, value in more.items()}
        meter.update(time_s[part], stl[part], ltl[part], **valid)
    return meter


def test_percentiles_of_eight_hours():
    """Every percentile within half a class of numpy's, in much less than 1 MB."""
    time_s, level = walk(8 * 3600, frame_rate=100)
    level[: len(level) // 3] = 61.234  # a steady sound is the hardest: all in one class
    meter = LoudnessMeter(frame_rate=100)
    for part in np.array_split(np.arange(len(level)), 200):
        meter.update(time_s[part], level[part], level[part])
    exact = np.percentile(level, 100 - np.arange(1, 100))
    got = [meter.histogram.exceeded(p) for p in range(1, 100)]
    assert np.abs(np.array(got) - exact).max() <= 0.025 + 1e-3
    held = sum(counts.nbytes for _, counts in meter.rolling._slots)
    assert meter.histogram.counts.nbytes + held + sys.getsizeof(meter.events.events) < 1e6


@pytest.mark.parametrize("size", [1, 7, 20, 441, 8193])
def test_readings_do_not_depend_on_blocks(size):
    time_s, level = walk(9)
    stl, ltl = level, level - 3
    whole = fed(LoudnessMeter(limit_phon=70), time_s, stl, ltl, len(time_s)).reading()
    assert fed(LoudnessMeter(limit_phon=70), time_s, stl, ltl, size).reading() == whole
    assert whole["max_ltl_phon"] == ltl.max()
    assert whole["t_max_ltl_s"] == time_s[ltl.argmax()]
    assert whole["hold_ltl_phon"] == ltl[-3000:].max()
    assert whole["above_limit_s"] == pytest.approx((ltl > 70).mean() * 9)


def test_nothing_yet():
    reading = LoudnessMeter().reading()
    assert reading["max_ltl_phon"] is None
    assert reading["n5_phon"] is None
    assert reading["counted_s"] == 0


def test_pause_resume_reset():
    time_s, level = walk(3)
    meter = LoudnessMeter()
    fed(meter, time_s[:1000], level[:1000], level[:1000])
    meter.pause()
    before = meter.reading()
    fed(meter, time_s[1000:2000], level[1000:2000] + 50, level[1000:2000] + 50)
    assert meter.reading() == before
    meter.resume()
    fed(meter, time_s[2000:], level[2000:], level[2000:])
    assert meter.reading()["counted_s"] == 2
    meter.reset()
    assert meter.reading() == LoudnessMeter().reading()


def test_frames_that_are_not_valid_are_counted_apart():
    time_s, level = walk(2)
    valid = np.ones(len(level), bool)
    valid[500:800] = False
    level[500:800] = 130
    reading = fed(LoudnessMeter(), time_s, level, level, valid=valid).reading()
    assert reading["max_ltl_phon"] < 90
    assert reading["excluded_s"] == 0.3
    assert reading["counted_s"] == 1.7


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


def test_rolling_forgets():
    rolling = RollingHistogram(period_s=0.1, window_s=120)
    for level in (50, 60, 70, 80):
        rolling.add(np.full(600, float(level)))
    assert rolling.histogram().exceeded(99) == pytest.approx(70, abs=0.025 + 1e-9)
    rolling.add(np.full(300, np.nan))
    assert len(rolling.histogram()) == 1200


def test_histograms_merge_and_are_kept():
    one, two, both = Histogram(), Histogram(), Histogram()
    one.add([10.0, 20, 30])
    two.add([40.0, np.nan, 500])
    both.add([10.0, 20, 30, 40, 500])
    one.merge(two)
    assert (one.counts == both.counts).all()
    assert (Histogram.from_dict(one.to_dict()).counts == one.counts).all()
    assert one.exceeded(0) == pytest.approx(140, abs=0.05)
    with pytest.raises(ValueError, match="same classes"):
        one.merge(Histogram(0, 100))
    with pytest.raises(ValueError, match="give 0 to 100 %"):
        one.exceeded(101)


def test_hold_against_the_values_themselves():
    time_s, level = walk(5, seed=3)
    hold = Hold(0.5)
    for n, (t, v) in enumerate(zip(time_s, level, strict=True), 1):
        hold.add(np.array([t]), np.array([v]))
        if n % 97 == 0:
            assert hold.value == level[(time_s > t - 0.5) & (time_s <= t)].max()


def test_time_above():
    above = TimeAbove(60, 0.01)
    above.add(np.array([59.0, 60, 61, np.nan, 80]))
    assert above.seconds == pytest.approx(0.02)


@pytest.mark.parametrize("count", [2, 7, 100, 1000])
def test_percentiles_of_few_values_lie_between_them(count):
    values = np.random.default_rng(count).uniform(20, 90, count)
    histogram = Histogram()
    histogram.add(values)
    for p in (1, 5, 10, 50, 95):
        assert histogram.exceeded(p) == pytest.approx(np.percentile(values, 100 - p), abs=0.026)
