"""The compiled loops of meters against the same in numpy, however frames are cut."""

import numpy as np
import pytest

from amt_stream.meters.accumulators import Events, Histogram
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.accumulators.rolling import RollingLevel

ODD = np.array([np.nan, np.inf, -np.inf, -1e300, 1e300, 0.0, 139.99, 140.0, 7.05])


def awkward(count, seed=0):
    """Values of which some are no numbers, or beyond all classes."""
    random = np.random.default_rng(seed)
    values = random.uniform(-20, 160, count)
    values[random.integers(0, count, count // 5)] = random.choice(ODD, count // 5)
    return values


def parts(count, size):
    return [slice(at, at + size) for at in range(0, count, size)]


@pytest.mark.parametrize("size", [1, 7, 441])
def test_values_are_counted_in_their_classes(size):
    values = awkward(2000)
    values.flags.writeable = False
    counted = Histogram()
    for part in parts(2000, size):
        counted.add(values[part])
    known = values[~np.isnan(values)]
    places = np.clip(np.floor(known / counted.width), -300 * 20 - 1, 500 * 20)
    expected = np.stack(np.unique(places, return_counts=True)).astype(int)
    assert np.array_equal(counted.used, expected)


@pytest.mark.parametrize("size", [1, 7, 441])
def test_an_event_ends_where_its_level_falls_or_is_unknown(size):
    level = np.full(3000, 60.0)
    level[[100, 700, 2000]] = 10.0, np.nan, 57.9
    level[101:200] = 10.0
    time_s = np.arange(3000) / 500
    events = Events(60.0, hysteresis=2.0, longest_s=2.0)
    for part in parts(3000, size):
        events.add(time_s[part], level[part], level[part])
    starts = [0.0, 0.4, 1.402, 3.402, 4.002]
    assert [one.start_s for one in events.events] + [events.present.start_s] == starts
    assert [one.maximum for one in events.events] == [60.0] * 4


@pytest.mark.parametrize("size", [1, 7, 441])
@pytest.mark.parametrize("window_s", [1, 400])
def test_a_rolling_level_is_that_of_its_window(size, window_s):
    random = np.random.default_rng(1)
    squares = random.uniform(1e-6, 1.0, 1200).astype(np.float32)
    squares[100:250] = np.nan
    level = RollingLevel(window_s, 0.01)
    told = np.concatenate([level.add(squares[part]) for part in parts(1200, size)])
    for k in range(0, 1200, 37):
        last = squares[max(0, k + 1 - 100 * window_s) : k + 1].astype(np.float64)
        known = last[~np.isnan(last)]
        expected = level_db(known.mean()) if len(known) else np.nan
        np.testing.assert_allclose(told[k], expected, rtol=1e-12)
