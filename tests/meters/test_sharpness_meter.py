"""Mean, maximum and percentiles of sharpness against those of all values at once."""

import numpy as np
import pytest

from tests.meters.one_quantity import sharpness_meter

COLUMNS = ("s5_acum", "mean_acum", "max_acum", "s50_1s_acum")


def walk(seconds, seed=0):
    """A sharpness between 0.5 and 2.5 acum, now and then none, (time_s, acum)."""
    count = round(seconds * 500)
    steps = np.cumsum(np.random.default_rng(seed).normal(0, 0.3, count))
    acum = 1.5 + np.sin(steps / 10)
    acum[count // 3 : count // 3 + 40] = np.nan
    return np.arange(count) / 500, acum


@pytest.mark.parametrize("size", [1, 7, 441])
def test_columns_and_readings(size):
    time_s, acum = walk(4)
    valid = np.arange(len(acum)) >= 250
    meter, found = sharpness_meter(COLUMNS), []
    for at in range(0, len(acum), size):
        part = slice(at, at + size)
        found.append(meter.update(time_s[part], acum[part], valid[part]))
    told = dict(zip(COLUMNS, np.concatenate(found, 1), strict=True))
    assert np.isnan(told["mean_acum"][:250]).all()
    for k in range(300, 2000, 50):
        counted = acum[250 : k + 1]
        there = counted[~np.isnan(counted)]
        assert told["mean_acum"][k] == pytest.approx(there.mean())
        assert told["max_acum"][k] == there.max()
        assert told["s5_acum"][k] == pytest.approx(np.percentile(there, 95), abs=0.0026)
        last = acum[max(250, k + 1 - 500 + 4) : k + 1]
        assert told["s50_1s_acum"][k] == pytest.approx(np.nanmedian(last), abs=0.006)
    counted = acum[250:][~np.isnan(acum[250:])]
    reading = meter.reading()
    assert reading["mean_acum"] == pytest.approx(counted.mean())
    assert reading["t_max_s"] == time_s[250 + np.nanargmax(acum[250:])]
    for p in (1, 5, 10, 50, 90, 95, 99):
        expected = np.percentile(counted, 100 - p)
        assert reading[f"s{p}_acum"] == pytest.approx(expected, abs=0.0026)


def test_pause_and_reset():
    time_s, acum = walk(3)
    meter = sharpness_meter(["s50_1s_acum"])
    meter.update(time_s[:500], acum[:500])
    meter.pause()
    before = meter.reading()
    meter.update(time_s[500:1000], acum[500:1000] + 3)
    after = meter.reading()
    assert after.pop("s50_1s_acum") > before.pop("s50_1s_acum")
    assert after == before
    meter.unpause()
    meter.reset()
    assert meter.reading()["mean_acum"] is None
    meter.update(time_s[1000:], acum[1000:])
    assert meter.reading()["mean_acum"] == pytest.approx(np.nanmean(acum[1000:]))


@pytest.mark.parametrize("size", [1, 7, 441])
def test_the_cut_into_blocks_changes_no_digit(size):
    time_s, acum = walk(4)
    whole, cut = sharpness_meter(), sharpness_meter()
    whole.update(time_s, acum)
    for at in range(0, len(acum), size):
        cut.update(time_s[at : at + size], acum[at : at + size])
    assert cut.reading() == whole.reading()
