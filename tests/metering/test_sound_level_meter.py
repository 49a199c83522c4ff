"""Readings of a sound level meter against the same worked out from all frames at once."""

import json

import numpy as np
import pytest

from amt_stream.metering import SoundLevelMeter
from amt_stream.metering.sound_level import LEVELS, level_db


def frames(seconds, seed=0):
    """Frames of a sound that wanders between 35 and 85 dB, as `update` takes them."""
    random = np.random.default_rng(seed)
    count = round(seconds * 100)
    level = 60 + 25 * np.sin(np.cumsum(random.normal(0, 0.05, count)))
    power = 4e-10 * 10 ** (level / 10)
    timed = power * 10 ** (np.arange(7)[:, None] / 20)
    return power * np.array([[1], [2], [3]]), timed, timed * 1.2, timed / 1.2, 9 * np.sqrt(power)


def fed(meter, given, size=20, valid=None):
    for at in range(0, len(given[-1]), size):
        part = slice(at, at + size)
        meter.update(*(v[..., part] for v in given), None if valid is None else valid[part])
    return meter


@pytest.mark.parametrize("size", [1, 7, 441])
def test_readings(size):
    given = frames(30)
    mean_square, power, highest, lowest, c_peak = given
    reading = fed(SoundLevelMeter(), given, size).reading()
    assert json.loads(json.dumps(reading, allow_nan=False)) == reading
    for k, weighting in enumerate("acz"):
        assert reading[f"l{weighting}eq_db"] == pytest.approx(
            level_db(mean_square[k].mean()), abs=1e-9
        )
        last = mean_square[k, -100:].mean()
        assert reading[f"short_l{weighting}eq_db"] == pytest.approx(level_db(last), abs=1e-9)
    assert reading["lae_db"] == pytest.approx(reading["laeq_db"] + 10 * np.log10(30))
    assert reading["lcpeak_db"] == pytest.approx(20 * np.log10(c_peak.max() / 20e-6))
    assert reading["measured_s"] == 30
    for k, name in enumerate(LEVELS):
        assert reading[f"{name}_db"] == level_db(power[k, -1])
        assert reading[f"{name}max_db"] == level_db(highest[k].max())
    for k, name in enumerate(LEVELS[:6]):
        begun = 62 if k < 3 else 499
        assert reading[f"{name}min_db"] == level_db(lowest[k, begun:].min())


def test_percentiles():
    """Every percentile of an hour within half a class of numpy's, and in their order; in 24 kB."""
    given = frames(3600)
    level = level_db(given[1][0])
    meter = fed(SoundLevelMeter(), given, 10_000)
    percents = np.arange(1, 100)
    got = np.array([meter.histogram.exceeded(p) for p in percents])
    assert np.abs(got - np.percentile(level, 100 - percents)).max() <= 0.03
    assert (np.diff(got) <= 0).all()
    assert meter.histogram.counts.nbytes == 24_000


def test_hours_are_summed_as_exactly_as_seconds():
    powers = np.full((7, 14_400), 0.1)
    meter = SoundLevelMeter()
    for _ in range(100):
        meter.update(powers[:3], powers, powers, powers, powers[0])
    assert meter.reading()["laeq_db"] == pytest.approx(level_db(0.1), abs=1e-9)
    assert meter.reading()["measured_s"] == 14_400


def test_pause_resume_reset():
    given = frames(6)
    louder = tuple(v * 1e4 for v in given)
    meter = SoundLevelMeter()
    fed(meter, given)
    before = meter.reading()
    meter.pause()
    fed(meter, louder)
    during = meter.reading()
    for name, value in before.items():
        runs_on = name.startswith("short_") or name in {f"{level}_db" for level in LEVELS}
        assert (during[name] != value) == runs_on, name
    meter.resume()
    fed(meter, given)
    assert meter.reading()["measured_s"] == 12
    assert meter.reading()["laeq_db"] == pytest.approx(before["laeq_db"], abs=1e-9)
    meter.reset()
    after = meter.reading()
    assert after["short_laeq_db"] == before["short_laeq_db"]
    assert after["laf_db"] == before["laf_db"]
    for name in ("laeq_db", "lae_db", "lcpeak_db", "lafmax_db", "lafmin_db", "laf10_db"):
        assert after[name] is None
    assert after["measured_s"] == 0
    # The filters ran on, so the lowest level need not wait once more.
    meter.update(*(v[..., :1] for v in given))
    assert meter.reading()["lafmin_db"] is not None


def test_reset_in_a_pause_keeps_it():
    meter = SoundLevelMeter()
    meter.pause()
    meter.reset()
    fed(meter, frames(1))
    assert meter.reading()["measured_s"] == 0


def test_frames_that_are_not_valid_are_counted_apart():
    given = frames(20)
    valid = np.ones(2000, bool)
    valid[1000:1100] = False
    for v in given:
        v[..., 1000:1050] *= 1e9
    given[0][:, 1050:1060] = np.nan
    reading = fed(SoundLevelMeter(), given, 30, valid).reading()
    assert reading["excluded_s"] == 1
    assert reading["measured_s"] == 19
    assert reading["laeq_db"] == pytest.approx(level_db(given[0][0, valid].mean()), abs=1e-9)
    assert reading["lafmax_db"] < 95
    # The lowest levels wait once more until all has settled.
    counts = np.r_[62:1000, 1100 + 62 : 2000]
    assert reading["lafmin_db"] == level_db(given[3][0, counts].min())


@pytest.mark.parametrize("size", [1, 7, 20, 441])
def test_short_levels_stand_on_the_clock(size):
    given = frames(3)
    meter, found = SoundLevelMeter(short_s=0.1), []
    valid = np.ones(300, bool)
    valid[125] = False
    for at in range(0, 300, size):
        if at > 200:
            meter.pause()
        part = slice(at, at + size)
        found.append(meter.update(*(v[..., part] for v in given), valid[part]))
    levels = np.concatenate(found, -1)
    expected = level_db(given[0].reshape(3, 30, 10).mean(-1))
    expected[:, 12] = np.nan
    np.testing.assert_allclose(levels, expected, atol=1e-9)


def test_nothing_yet():
    reading = SoundLevelMeter().reading()
    assert {v for name, v in reading.items() if name.endswith("_db")} == {None}
    assert reading["measured_s"] == 0


@pytest.mark.parametrize("short_s", [0, 0.005, 0.015, -1])
def test_short_levels_that_are_refused(short_s):
    with pytest.raises(ValueError, match=r"give a multiple of 0\.01 s"):
        SoundLevelMeter(short_s=short_s)
