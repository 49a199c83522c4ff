"""Readings of third octaves against those of all frames at once."""

import numpy as np
import pytest

from amt_stream.meters.accumulators import ThirdOctaveMeter

NOMINAL = (31.5, 1000.0)
COLUMNS = ("lzeq_31_5hz_db", "lzeq_1000hz_db", "lzfmax_1000hz_db", "lzsmax_31_5hz_db")
COLUMNS += ("lzf_1000hz_db", "lzs_31_5hz_db", "lzeq_1000hz_2s_db")


def db(power):
    return 10 * np.log10(power / 4e-10)


def frames(count, seed=0):
    rng = np.random.default_rng(seed)
    power = 4e-10 * 10 ** (rng.uniform(4, 8, (2, count)))
    timed = 4e-10 * 10 ** (rng.uniform(4, 8, (2, 2, count)))
    return power, timed, 1.5 * timed


def fed(meter, given, size, valid, since_s=None):
    found = []
    for at in range(0, given[0].shape[-1], size):
        part = slice(at, at + size)
        since = None if since_s is None else since_s[part]
        found.append(meter.update(*(v[..., part] for v in given), valid[part], since))
    return dict(zip(meter.columns, np.concatenate(found, 1), strict=True))


@pytest.mark.parametrize("size", [1, 7, 441])
def test_columns_and_readings(size):
    power, timed, highest = given = frames(900)
    # A fault ends at 300; 1000 Hz waits 4 frames, 31.5 Hz 102.
    valid = np.ones(900, bool)
    valid[290:301] = False
    meter = ThirdOctaveMeter(NOMINAL, COLUMNS)
    told = fed(meter, given, size, valid)
    number = np.arange(900)
    since = np.where(number > 300, number - 300, np.where(number >= 290, 0, np.inf))
    waits = {0: 102, 1: 4}
    for k, name in ((0, "lzeq_31_5hz_db"), (1, "lzeq_1000hz_db")):
        counts = since >= waits[k]
        for at in (50, 295, 303, 350, 899):
            there = power[k, : at + 1][counts[: at + 1]]
            assert told[name][at] == pytest.approx(db(there.mean())), (name, at)
    # F of 1 kHz forgets for 2 s and 32 cycles.
    counts = since >= 203
    assert told["lzfmax_1000hz_db"][0] == pytest.approx(db(highest[0, 1, 0]))
    assert told["lzfmax_1000hz_db"][-1] == pytest.approx(db(highest[0, 1][counts].max()))
    np.testing.assert_allclose(told["lzf_1000hz_db"][valid], db(timed[0, 1])[valid])
    assert np.isnan(told["lzf_1000hz_db"][~valid]).all()
    window = power[1, 700:900]
    assert told["lzeq_1000hz_2s_db"][-1] == pytest.approx(db(window.mean()))
    reading = meter.reading()
    assert reading["lzeq_31_5hz_db"] == told["lzeq_31_5hz_db"][-1]
    assert reading["lzsmax_1000hz_db"] is None or reading["lzsmax_1000hz_db"] > 0
    assert reading["measured_s"] == pytest.approx((since >= 4).sum() / 100)
    assert reading["excluded_s"] == pytest.approx(0.11)


def test_how_long_ago_a_fault_was_may_be_told():
    given, valid = frames(900), np.ones(900, bool)
    valid[290:301] = False
    number = np.arange(900)
    since_s = np.where(number > 300, number - 300, np.where(number >= 290, 0, np.inf)) / 100
    one, other = (ThirdOctaveMeter(NOMINAL, COLUMNS) for _ in range(2))
    a, b = fed(one, given, 10, valid), fed(other, given, 10, valid, since_s)
    for name in COLUMNS:
        np.testing.assert_array_equal(a[name], b[name])


def test_pause_and_reset():
    power, timed, highest = frames(1200)
    meter = ThirdOctaveMeter(NOMINAL, ["lzeq_1000hz_1s_db"])
    meter.update(power[:, :400], timed[..., :400], highest[..., :400])
    meter.pause()
    before = meter.reading()
    meter.update(*(3 * v[..., 400:800] for v in (power, timed, highest)))
    after = meter.reading()
    of_the_moment = [n for n in before if n.startswith(("lzf_", "lzs_")) or "_1s_" in n]
    assert all(after.pop(name) != before.pop(name) for name in of_the_moment)
    assert after == before
    meter.unpause()
    meter.reset()
    assert meter.reading()["lzeq_1000hz_db"] is None
    meter.update(*(v[..., 800:] for v in (power, timed, highest)))
    assert meter.reading()["lzeq_31_5hz_db"] == pytest.approx(db(power[0, 800:].mean()))


@pytest.mark.parametrize("name", ["lzeq_2000hz_db", "lzf_1000hz_1s_db", "laeq_1000hz_db"])
def test_a_column_that_there_is_not(name):
    with pytest.raises(ValueError, match=f"ThirdOctaveMeter has no reading '{name}': the nearest"):
        ThirdOctaveMeter(NOMINAL, (name,))


@pytest.mark.parametrize("size", [1, 7, 441])
def test_the_cut_into_blocks_changes_no_digit(size):
    given, valid = frames(900), np.ones(900, bool)
    whole, cut = ThirdOctaveMeter(NOMINAL, COLUMNS), ThirdOctaveMeter(NOMINAL, COLUMNS)
    told = fed(whole, given, 900, valid)
    for name, values in fed(cut, given, size, valid).items():
        np.testing.assert_array_equal(values, told[name], err_msg=name)
    assert cut.reading() == whole.reading()
