"""Levels and histograms of moving windows against the same worked out from the window itself."""

import numpy as np
import pytest

from amt_stream.meters.accumulators import RollingHistogram, RollingLevel
from amt_stream.meters.accumulators.level import level_db


def energies(count, seed=0):
    """Mean squares that wander over 100 dB."""
    steps = np.random.default_rng(seed).normal(0, 0.4, count)
    return 4e-10 * 10 ** (5 + 5 * np.sin(np.cumsum(steps) / 50))


def levels(rolling, squares, size):
    parts = [rolling.add(squares[at : at + size]) for at in range(0, len(squares), size)]
    return np.concatenate(parts)


def plain(squares, window):
    """Level of the last `window` frames, or of all where there are fewer, at each frame."""
    sums = [squares[max(0, k + 1 - window) : k + 1] for k in range(len(squares))]
    counts = [np.count_nonzero(~np.isnan(s)) for s in sums]
    found = np.array([np.nansum(s) / c if c else np.nan for s, c in zip(sums, counts, strict=True)])
    return level_db(found)


@pytest.mark.parametrize("window", [100, 137, 700])
def test_a_level_of_every_frame(window):
    squares = energies(2500)
    squares[300:450] = squares[1200:1210] = np.nan
    rolling = RollingLevel(window / 100, 0.01)
    np.testing.assert_allclose(levels(rolling, squares, 77), plain(squares, window), atol=1e-9)
    assert rolling.covered_s == pytest.approx(window / 100)


@pytest.mark.parametrize("size", [1, 10, 441, 8193])
def test_a_level_does_not_depend_on_how_frames_were_cut(size):
    squares = energies(5000, seed=1)
    whole = levels(RollingLevel(3.0, 0.01), squares, len(squares))
    assert np.array_equal(levels(RollingLevel(3.0, 0.01), squares, size), whole)


def test_a_level_of_15_minutes():
    """Exact at each 0.1 s, of a slot of 0.1 s less between; more than two windows of it."""
    squares = energies(200_000, seed=2)
    squares[50_000:60_000] = np.nan
    rolling = RollingLevel(900.0, 0.01)
    found = levels(rolling, squares, 1000)
    for k in range(9, 200_000, 9370):
        assert found[k] == pytest.approx(level_db(np.nanmean(squares[max(0, k - 89_999) : k + 1])))
    for k in range(3, 200_000, 9373):
        begun = (k // 10 + 1) * 10 - 90_000
        assert found[k] == pytest.approx(level_db(np.nanmean(squares[max(0, begun) : k + 1])))
    assert rolling.covered_s == 900


def test_what_a_level_covers():
    rolling = RollingLevel(10.0, 0.01)
    rolling.add(np.full(300, np.nan))
    assert rolling.covered_s == 0
    assert np.isnan(rolling.add(np.array([np.nan]))).all()
    assert rolling.add(np.array([4e-10])) == pytest.approx(0)
    rolling.add(np.ones(400))
    assert rolling.covered_s == pytest.approx(4.01)
    assert rolling.add(np.empty(0)).shape == (0,)


def test_a_quiet_window_after_a_loud_one():
    """20 dB after an hour at 140 dB is 20 dB: nothing is left of sums that were subtracted."""
    rolling = RollingLevel(1.0, 0.01)
    for _ in range(36):
        rolling.add(np.full(10_000, 4e4))
    found = rolling.add(np.full(100, 4e-8))
    assert found[-1] == pytest.approx(20, abs=1e-9)
    assert np.isneginf(rolling.add(np.zeros(100))[-1])


def test_a_level_takes_so_much_memory():
    day = RollingLevel(24 * 3600.0, 0.01)
    assert day._rest.nbytes + day._slots.nbytes < 3e6
    with pytest.raises(ValueError, match=r"a window of 86400\.5 s: give a multiple of 1 s"):
        RollingLevel(86_400.5, 0.01)
    with pytest.raises(ValueError, match=r"give a multiple of 0\.01 s"):
        RollingLevel(0.015, 0.01)


@pytest.mark.parametrize("size", [1, 7, 441, 8193])
@pytest.mark.parametrize(("period_s", "window_s"), [(0.01, 1.0), (0.002, 3.0), (0.001, 2.5)])
def test_a_histogram(size, period_s, window_s):
    """It holds the last window, less what of its newest slot has not come yet."""
    values = np.random.default_rng(0).normal(60, 5, 3100)
    values[400:500] = np.nan
    rolling = RollingHistogram(period_s, window_s)
    window = round(window_s / period_s)
    slot = window // 100
    for at in range(0, len(values), size):
        rolling.add(values[at : at + size])
        end = min(at + size, len(values))
        if end % 97 < size:
            begun = max(0, -(-end // slot) * slot - window)
            held = values[begun:end]
            assert len(rolling.histogram) == np.count_nonzero(~np.isnan(held))
            expected = np.nanpercentile(held, [95, 50, 10])
            assert rolling.percentiles([5, 50, 90]) == pytest.approx(expected, abs=0.026)


def test_a_histogram_of_ten_minutes_forgets():
    rolling = RollingHistogram(0.01, 600.0)
    for level in (50, 60, 70, 80):
        rolling.add(np.full(20_100, float(level)))
    assert rolling.histogram.exceeded(100) == pytest.approx(60, abs=0.026)
    assert rolling.histogram.exceeded(0) == pytest.approx(80, abs=0.026)
    assert len(rolling.histogram) == 60_000


def test_a_histogram_takes_little_memory():
    """An hour of values a millisecond apart: of each slot only what was there is kept."""
    rolling = RollingHistogram(0.001, 3600.0)
    steps = np.random.default_rng(0).normal(0, 0.3, 36_000)
    for k in range(120):
        rolling.add(60 + 25 * np.sin(np.cumsum(steps) / 40 + k))
    kept = sum(places.nbytes + counts.nbytes for places, counts in rolling._slots)
    assert kept + rolling.histogram.counts.nbytes < 2e6


@pytest.mark.parametrize("window_s", [0.5, 0, -1, float("inf"), float("nan")])
def test_a_window_that_is_refused(window_s):
    with pytest.raises(ValueError, match="give 1 s or more"):
        RollingHistogram(0.01, window_s)
