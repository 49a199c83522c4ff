"""Readings of a sound level meter against the same worked out from all frames at once."""

import json

import numpy as np
import pytest

from amt_stream.meters.accumulators import SoundLevelMeter
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.accumulators.sound_level import LEVELS


def frames(seconds, seed=0):
    """Frames of a sound that wanders between 35 and 85 dB, as `update` takes them."""
    random = np.random.default_rng(seed)
    count = round(seconds * 100)
    level = 60 + 25 * np.sin(np.cumsum(random.normal(0, 0.05, count)))
    power = 4e-10 * 10 ** (level / 10)
    timed = power * 10 ** (np.arange(9)[:, None] / 20)
    weighted = power * np.array([[1], [2], [3]])
    return weighted, timed, timed * 1.2, timed / 1.2, 4 * weighted, 9 * np.sqrt(weighted)


def fed(meter, given, size=20, valid=None):
    for at in range(0, given[-1].shape[-1], size):
        part = slice(at, at + size)
        meter.update(*(v[..., part] for v in given), None if valid is None else valid[part])
    return meter


RISEN = {"f": 63, "s": 500, "i": 18}
"""Frames in five time constants of F, S and I."""


@pytest.mark.parametrize("size", [1, 7, 441])
def test_readings(size):
    given = frames(30)
    mean_square, power, highest, lowest, _, peak = given
    reading = fed(SoundLevelMeter(), given, size).reading()
    assert json.loads(json.dumps(reading, allow_nan=False)) == reading
    for k, weighting in enumerate("acz"):
        level = level_db(mean_square[k].mean())
        assert reading[f"l{weighting}eq_db"] == pytest.approx(level, abs=1e-9)
    assert reading["lae_db"] == pytest.approx(reading["laeq_db"] + 10 * np.log10(30))
    assert reading["lcpeak_db"] == pytest.approx(20 * np.log10(peak[1].max() / 20e-6))
    assert (reading["measured_s"], reading["excluded_s"]) == (30, 0)
    for k, name in enumerate(LEVELS):
        assert reading[f"{name}_db"] == level_db(power[k, -1])
        assert reading[f"{name}max_db"] == level_db(highest[k].max())
        risen = RISEN[name[-1]] - 1
        assert reading[f"{name}min_db"] == level_db(lowest[k, risen:].min())


def test_all_powers_are_written():
    """Rolling levels too, whether they are asked for or their forecasts are."""
    meter = SoundLevelMeter(["laeq_5s_db", "laeq_30s_until_80_s", "l10_1min_db"])
    given = frames(1)
    count = given[-1].shape[-1]
    powers = np.full((meter.told, count), -1.0)
    valid = np.ones(count, bool)
    meter.measure(given, valid, valid, np.full(count, np.inf), None, powers)
    assert not (powers == -1.0).any(), "a row that nothing wrote"


@pytest.mark.parametrize("size", [1, 7, 441, 6000])
def test_columns(size):
    """After each frame, of all so far and of windows, however the frames were cut."""
    given = frames(60, seed=1)
    mean_square, power, highest, lowest, _, peak = given
    valid = np.ones(6000, bool)
    valid[:200] = valid[3000:3010] = False
    mean_square[:, ~valid], highest[:, ~valid], peak[:, ~valid] = np.nan, 1e9, 1e9
    names = ("laeq_1s_db", "lae_db", "lcpeak_db", "lafmax_db", "lasmin_db", "lceq_db", "l10_db")
    names += ("lzeq_20s_db", "l90_10s_db", "l10_10s_db")
    meter, found = SoundLevelMeter(names), []
    for at in range(0, 6000, size):
        part = slice(at, at + size)
        found.append(meter.update(*(v[..., part] for v in given), valid[part]))
    told = dict(zip(names, np.concatenate(found, -1), strict=True))

    sums = np.nancumsum(mean_square, 1)
    expected = level_db(sums[1, 200:] / np.cumsum(valid)[200:])
    np.testing.assert_allclose(told["lceq_db"][200:], expected, atol=1e-9)
    np.testing.assert_allclose(told["lae_db"][200:], level_db(sums[0, 200:] / 100), atol=1e-9)
    np.testing.assert_allclose(
        told["lcpeak_db"][200:],
        level_db(np.maximum.accumulate(np.where(valid, peak[1], 0)) ** 2)[200:],
    )
    # After what was not heard levels may have to fall by 50 dB.
    settled = valid.copy()
    settled[200:411] = settled[3010:3221] = False
    fast = np.maximum.accumulate(np.where(settled, highest[0], 0))
    assert np.array_equal(told["lafmax_db"][411:], level_db(fast)[411:])
    slow = np.where(valid, lowest[3], np.inf)
    slow[200:1809] = slow[3010:4619] = np.inf
    assert np.array_equal(told["lasmin_db"][1809:], level_db(np.minimum.accumulate(slow))[1809:])
    level = np.where(settled, level_db(power[0]), np.nan)
    for k in range(499, 6000, 173):
        assert told["laeq_1s_db"][k] == pytest.approx(
            level_db(np.nanmean(mean_square[0, k - 99 : k + 1])), abs=1e-9
        )
        assert told["lzeq_20s_db"][k] == pytest.approx(
            level_db(np.nanmean(mean_square[2, max(0, k - 1999) : k + 1])), abs=1e-9
        )
        renewed = (k + 1) // 10 * 10
        assert told["l10_db"][k] == pytest.approx(np.nanpercentile(level[:renewed], 90), abs=0.026)
        last = level[max(0, renewed - 1000) : renewed]
        assert told["l90_10s_db"][k] == pytest.approx(np.nanpercentile(last, 10), abs=0.026)
        assert told["l10_10s_db"][k] == pytest.approx(np.nanpercentile(last, 90), abs=0.026)
    assert not np.isfinite(told["lceq_db"][:200]).any()
    assert not np.isfinite(told["lafmax_db"][:411]).any()
    reading = meter.reading()
    for name in names:
        assert reading[name] == pytest.approx(told[name][-1], abs=1e-9), name
    assert (reading["measured_s"], reading["excluded_s"]) == (57.9, 2.1)


def test_statistics_of_a_level_are_of_the_same_time():
    """Of steady noise that begins: the lowest is not above a percentile, nor that above another."""
    random = np.random.default_rng(0)
    powers = np.empty((9, 1500))
    squares = 0.01 * random.chisquare(20, 1500) / 20
    state = np.zeros(9)
    smoothing = -np.expm1(-0.01 / np.array([0.125, 0.125, 0.125, 1, 1, 1, 0.035, 0.035, 0.035]))
    for k, square in enumerate(squares):
        state += smoothing * (square - state)
        powers[:, k] = state
    weighted = np.tile(squares, (3, 1))
    given = weighted, powers, powers, powers, powers[6:], np.sqrt(weighted)
    reading = fed(SoundLevelMeter(), given).reading()
    percents = (1, 5, 10, 50, 90, 95, 99)
    levels = [reading["lafmax_db"], *(reading[f"l{p}_db"] for p in percents), reading["lafmin_db"]]
    assert (np.diff(levels) <= 0.05).all()
    assert levels[0] - levels[-1] < 3
    assert reading["lasmax_db"] - reading["lasmin_db"] < 1


@pytest.mark.parametrize("count", [1, 30, 62, 63, 64, 499, 501])
def test_a_sound_shorter_than_its_rise_counts_whole(count):
    given = frames(count / 100)
    reading = fed(SoundLevelMeter(), given).reading()
    assert reading["lafmax_db"] == level_db(given[2][0].max())
    assert reading["lasmax_db"] == level_db(given[2][3].max())
    for k, name, risen in ((0, "laf", 62), (3, "las", 499)):
        # Of the rise, what each frame has reached at its end.
        there = given[1][k] if count <= risen else given[3][k, risen:]
        assert reading[f"{name}min_db"] == level_db(there.min())


def test_where_the_sound_stands_may_be_told():
    """A meter that joins after the rise of F counts all minima of F, and those of S in its rise."""
    given = frames(8)
    meter = SoundLevelMeter(("l90_db",))
    for at in range(100, 800, 50):
        part = slice(at, at + 50)
        meter.update(*(v[..., part] for v in given), begin_s=at / 100 + 0.01)
    reading = meter.reading()
    assert reading["lafmin_db"] == level_db(given[3][0, 100:].min())
    assert reading["lasmin_db"] == level_db(given[3][3, 499:].min())
    assert reading["l90_db"] == pytest.approx(
        np.percentile(level_db(given[1][0, 100:]), 10), abs=0.026
    )


def test_frames_left_out_that_were_heard_well():
    """The levels have settled in them, so that they count from the first frame that may."""
    given = frames(24)
    valid = np.arange(2400) >= 600
    meter, other = SoundLevelMeter(), SoundLevelMeter()
    meter.update(*given, valid, since_s=np.full(2400, np.inf))
    other.update(*given, valid)
    assert meter.reading()["lasmin_db"] == level_db(given[3][3, 600:].min())
    assert other.reading()["lasmin_db"] == level_db(given[3][3, 2209:].min())
    assert meter.reading()["l99_db"] == pytest.approx(
        np.percentile(level_db(given[1][0, 600:]), 1), abs=0.026
    )


def test_percentiles():
    """Every percentile of an hour within half a class of numpy's, and in their order; in 24 kB."""
    given = frames(3600)
    level = level_db(given[1][0])
    assert level[:62].min() > level.min()
    meter = fed(SoundLevelMeter(), given, 10_000)
    histogram = meter.percentiles["laf"].histogram
    percents = np.arange(1, 100)
    got = np.array([histogram.exceeded(p) for p in percents])
    assert np.abs(got - np.percentile(level, 100 - percents)).max() <= 0.03
    assert (np.diff(got) <= 0).all()
    assert histogram.counts.nbytes < 24_000


def test_hours_are_summed_as_exactly_as_seconds():
    powers = np.full((9, 14_400), 0.1)
    meter = SoundLevelMeter()
    for _ in range(100):
        meter.update(powers[:3], powers, powers, powers, powers[:3], powers[:3])
    assert meter.reading()["laeq_db"] == pytest.approx(level_db(0.1), abs=1e-9)
    assert meter.reading()["measured_s"] == 14_400


def test_pause_unpause_reset():
    given = frames(6)
    louder = tuple(v * 1e4 for v in given)
    meter = SoundLevelMeter(("laeq_1s_db",))
    fed(meter, given)
    before = meter.reading()
    meter.pause()
    fed(meter, louder)
    during = meter.reading()
    for name, value in before.items():
        runs_on = name == "laeq_1s_db" or name in {f"{level}_db" for level in LEVELS}
        assert (during[name] != value) == runs_on, name
    meter.unpause()
    fed(meter, given)
    assert meter.reading()["measured_s"] == 12
    assert meter.reading()["laeq_db"] == pytest.approx(before["laeq_db"], abs=1e-9)
    meter.reset()
    after = meter.reading()
    assert after["laeq_1s_db"] == before["laeq_1s_db"]
    assert after["laf_db"] == before["laf_db"]
    for name in ("laeq_db", "lae_db", "lcpeak_db", "lafmax_db", "lafmin_db", "l10_db"):
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
    counts = np.r_[62:1000, 1100 + 211 : 2000]
    assert reading["lafmin_db"] == level_db(given[3][0, counts].min())


def test_nothing_yet():
    reading = SoundLevelMeter().reading()
    assert {v for name, v in reading.items() if name.endswith("_db")} == {None}
    assert reading["measured_s"] == 0


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("laeqs_db", "SoundLevelMeter has no reading 'laeqs_db': the nearest is 'laeq_db'"),
        ("laeq_15m_db", "the nearest is 'laeq_15min_db'"),
        ("laeq_0min_db", "a window of 0min: give 1s to 24h"),
    ],
)
def test_columns_that_there_are_not(column, message):
    with pytest.raises(ValueError, match=message):
        SoundLevelMeter((column,))


def steady(level_db, seconds):
    """Frames of a level that stands still, all weightings alike."""
    power = np.full(round(seconds * 100), 4e-10 * 10 ** (level_db / 10))
    weighted, timed = np.tile(power, (3, 1)), np.tile(power, (9, 1))
    return weighted, timed, timed, timed, weighted, np.sqrt(weighted)


@pytest.mark.parametrize("size", [1, 77, 6000])
def test_what_is_heard_in_a_day(size):
    """LEX,8h (ISO 1999), dose and TWA (ANSI S1.25) worked out from all frames at once."""
    given = frames(60, seed=4)
    valid = np.ones(6000, bool)
    valid[1000:1500] = False
    names = ["lex_8h_db", "dose_90_5_percent", "twa_90_5_db", "dose_85_3_80_percent"]
    meter, found = SoundLevelMeter(names), []
    for at in range(0, 6000, size):
        part = slice(at, at + size)
        found.append(meter.update(*(v[..., part] for v in given), valid[part]))
    lex, dose, twa, low = np.concatenate(found, 1)
    heard = given[0][0, valid].sum() / 100
    assert lex[-1] == pytest.approx(10 * np.log10(heard / 28_800 / 4e-10), abs=1e-9)
    slow = level_db(given[1][LEVELS.index("las")])
    for told, criterion, exchange, floor in ((dose, 90, 5, 0), (low, 85, 3, 80)):
        counts = valid & (slow >= floor)
        share = np.where(counts, 2 ** ((slow - criterion) / exchange), 0).cumsum() / 2_880_000
        np.testing.assert_allclose(told, 100 * share, rtol=1e-9)
    assert twa[-1] == pytest.approx(90 + 16.61 * np.log10(dose[-1] / 100), abs=0.002)
    reading = meter.reading()
    assert [reading[name] for name in names] == pytest.approx([lex[-1], dose[-1], twa[-1], low[-1]])


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("level", "hours", "dose", "twa"),
    [
        (90, 8, 100, 90),
        (95, 4, 100, 90),
        *(
            pytest.param(*one, marks=pytest.mark.soak)
            for one in ((100, 2, 100, 90), (85, 8, 50, 85), (90, 2, 25, 80))
        ),
    ],
)
def test_the_table_of_a_dosimeter(level, hours, dose, twa):
    """29 CFR 1910.95, table G-16: hours at a level that are 100 %; and half of it at 85 dB."""
    meter = SoundLevelMeter(["dose_90_5_80_percent", "twa_90_5_80_db", "dose_88_3_percent"])
    for _ in range(6 * hours):
        told = meter.update(*steady(level, 600))
    assert told[0, -1] == pytest.approx(dose, rel=1e-9)
    assert told[1, -1] == pytest.approx(twa, abs=0.03)
    assert told[2, -1] == pytest.approx(100 * hours / 8 * 2 ** ((level - 88) / 3), rel=1e-9)
