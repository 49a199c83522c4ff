"""How loud it may still be, tried out: what is foretold is then heard."""

import numpy as np
import pytest

from amt_stream.meters.accumulators import SoundLevelMeter
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.level_names import forecasts


def frames(level):
    power = 4e-10 * 10 ** (np.asarray(level, np.float64) / 10)
    weighted, timed = np.tile(power, (3, 1)), np.tile(power, (9, 1))
    return weighted, timed, timed, timed, weighted, np.sqrt(weighted)


def wandering(seconds, mean_db, seed=0):
    steps = np.random.default_rng(seed).normal(0, 0.3, seconds * 100)
    return mean_db + 6 * np.sin(np.cumsum(steps) / 40)


def heard(columns, level, valid=None, size=1000):
    meter, parts = SoundLevelMeter(columns), []
    given = frames(level)
    for at in range(0, len(level), size):
        part = slice(at, at + size)
        valid_too = None if valid is None else valid[part]
        parts.append(meter.update(*(v[..., part] for v in given), valid_too))
    return dict(zip(columns, np.concatenate(parts, 1), strict=True))


def rolled(level, valid, window):
    """LAeq of the last `window` frames, what was before the start as silence."""
    power = np.where(valid, 10 ** (level / 10), 0.0)
    sums = np.concatenate([np.zeros(window), np.cumsum(power)])
    counts = np.concatenate([np.arange(-window, 0), np.cumsum(valid)])
    return 10 * np.log10((sums[window:] - sums[:-window]) / (counts[window:] - counts[:-window]))


NAMES = forecasts("laeq_30s", 80)


def test_names():
    assert NAMES == ("laeq_30s_allowed_80_db", "laeq_30s_until_80_s")
    assert forecasts("lex_8h", 99.5)[0] == "lex_8h_allowed_99p5_db"


@pytest.mark.parametrize("seconds", [4, 20, 30, 47, 100])
@pytest.mark.parametrize("gap", [False, True])
def test_what_is_allowed_keeps_the_limit_and_a_little_more_does_not(seconds, gap):
    level = wandering(seconds, 77, seed=seconds)
    valid = np.ones(len(level), bool)
    if gap:
        valid[-320:-150] = False
    level += 79 - rolled(level, valid, 3000)[-1]
    told = heard(NAMES, level, valid)
    allowed = told[NAMES[0]][-1]
    assert np.isfinite(allowed)
    for more, passes in ((-0.02, False), (0.02, True)):
        future = np.concatenate([level, np.full(3000, allowed + more)])
        found = rolled(future, np.concatenate([valid, np.ones(3000, bool)]), 3000)[len(level) :]
        assert (found.max() > 80) == passes


@pytest.mark.parametrize(("seconds", "mean"), [(12, 82), (30, 79), (75, 79.5), (60, 74)])
def test_the_limit_is_passed_when_it_was_foretold(seconds, mean):
    level = wandering(seconds, mean, seed=2)
    until = heard(NAMES, level)[NAMES[1]][-1]
    present = level_db(np.mean(4e-10 * 10 ** (level[-1000:] / 10)))
    future = np.concatenate([level, np.full(3000, present)])
    found = rolled(future, np.ones(len(future), bool), 3000)[len(level) - 1 :]
    if found[0] > 80:
        assert until == 0
    elif found.max() <= 80:
        assert np.isnan(until)
    else:
        assert until == pytest.approx(np.argmax(found > 80) / 100, abs=0.011)


@pytest.mark.parametrize("size", [1, 77, 1000])
def test_forecasts_are_those_of_each_second_however_frames_were_cut(size):
    level = wandering(40, 77)
    names = (*NAMES, *forecasts("lex_8h", 50), "laeq_30s_db")
    whole, cut = heard(names, level, size=4000), heard(names, level, size=size)
    for name in names:
        np.testing.assert_array_equal(whole[name], cut[name])
        if name != "laeq_30s_db":
            held = whole[name][99:3999].reshape(-1, 100)
            np.testing.assert_array_equal(held, np.repeat(held[:, :1], 100, axis=1))


def test_the_present_level_may_go_on_for_four_minutes():
    """10 min at 100 dB, then at 102 dB: the average of a quarter of an hour stays within 101 dB."""
    level = np.concatenate([np.full(90_000, 100.0), np.full(30_000, 102.0)])
    names = "laeq_15min_allowed_101_db", "laeq_15min_until_101_s"
    told = heard(names, level, size=10_000)
    share = (10**10.1 - 10**10.0) / (10**10.2 - 10**10.0)  # of the window that may be at 102 dB
    assert told[names[1]][-1] == pytest.approx(900 * share - 300, abs=0.9)
    assert told[names[0]][-1] == pytest.approx(101.0, abs=1.0)


def test_what_is_left_of_a_day():
    names = (*forecasts("lex_8h", 85), "lex_8h_db")
    level = np.full(360_000, 92.0)
    allowed, until, lex = (v[-1] for v in heard(names, level, size=36_000).values())
    assert lex == pytest.approx(92 - 10 * np.log10(8))
    budget, gone = 8 * 10**8.5, 10**9.2
    assert allowed == pytest.approx(10 * np.log10((budget - gone) / 7))
    assert until == pytest.approx((budget - gone) / gone * 3600)
    louder = heard(names, level + 3, size=36_000)
    assert np.isnan(louder[names[0]][-1])
    assert louder[names[1]][-1] == 0
    assert np.isnan(heard(names, level[:9000] - 10)[names[1]][-1])
