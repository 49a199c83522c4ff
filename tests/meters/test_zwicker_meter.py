"""Maximum and percentiles of loudness in sone against those of all values at once."""

import numpy as np
import pytest

from tests.meters.one_quantity import zwicker_meter

COLUMNS = ("n5_sone", "max_sone", "n50_1s_sone", "n95_sone")


def walk(seconds, seed=0):
    """A loudness between 2 and 32 sone, (time_s, sone)."""
    count = round(seconds * 500)
    steps = np.cumsum(np.random.default_rng(seed).normal(0, 0.3, count))
    return np.arange(count) / 500, 2.0 ** (3 + 2 * np.sin(steps / 10))


@pytest.mark.parametrize("size", [1, 7, 441])
def test_columns_and_readings(size):
    time_s, sone = walk(6)
    valid = np.ones(len(sone), bool)
    valid[:250] = False
    sone[:250] = 100
    meter, found = zwicker_meter(COLUMNS), []
    for at in range(0, len(sone), size):
        part = slice(at, at + size)
        found.append(meter.update(time_s[part], sone[part], valid[part]))
    told = dict(zip(COLUMNS, np.concatenate(found, 1), strict=True))
    counted = sone[250:]
    assert np.array_equal(told["max_sone"][250:], np.maximum.accumulate(counted))
    for k in range(300, 3000, 50):
        for name, percent in (("n5_sone", 95), ("n95_sone", 5)):
            expected = np.percentile(sone[250 : k + 1], percent)
            assert told[name][k] == pytest.approx(expected, rel=4e-4)
            assert told[name][k + 49] == told[name][k]
        # Slots of 5 frames: this one has begun the newest.
        last = sone[max(250, k + 1 - 500 + 4) : k + 1]
        assert told["n50_1s_sone"][k] == pytest.approx(np.median(last), rel=1e-3)
    reading = meter.reading()
    assert reading["max_sone"] == counted.max()
    assert reading["t_max_s"] == time_s[250 + counted.argmax()]
    for p in (1, 5, 10, 50, 90, 95, 99):
        expected = np.percentile(counted, 100 - p)
        assert reading[f"n{p}_sone"] == pytest.approx(expected, rel=4e-4)
    assert (reading["measured_s"], reading["excluded_s"]) == (5.5, 0.5)


def test_silence_and_nothing_yet():
    meter = zwicker_meter()
    assert {v for v in meter.reading().values() if v is not None} == {0}
    meter.update(np.arange(10) / 500, np.zeros(10))
    assert meter.reading()["max_sone"] == 0
    assert meter.reading()["n5_sone"] < 1e-3


def test_pause_and_reset():
    time_s, sone = walk(3)
    meter = zwicker_meter(("n50_1s_sone",))
    meter.update(time_s[:500], sone[:500])
    meter.pause()
    before = meter.reading()
    meter.update(time_s[500:1000], sone[500:1000] * 10)
    after = meter.reading()
    assert after.pop("n50_1s_sone") > before.pop("n50_1s_sone")
    assert after == before
    meter.unpause()
    meter.reset()
    meter.update(time_s[1000:], sone[1000:])
    assert meter.reading()["max_sone"] == sone[1000:].max()
    assert meter.reading()["measured_s"] == 1
