"""How far another part of the sound may read, by the spread of parts: as often right as it says."""

from dataclasses import replace

import numpy as np
import pytest

from amt_stream.meters.rows import Rows
from amt_stream.sessions.compare import compare
from amt_stream.sessions.compare.repeatability import repeatability
from amt_stream.sessions.results import read_results

STEP_S = 0.1


def wandering(rng, count, times_s):
    """A level that forgets itself within some time: 60 dB, and 5 dB of spread."""
    share = np.exp(-STEP_S / times_s)
    steps = rng.standard_normal(count) * 5 * np.sqrt(1 - share**2)
    level, found = rng.standard_normal() * 5, np.empty(count)
    for at, step in enumerate(steps):
        level = share * level + step
        found[at] = 60 + level
    return found


def with_levels(results, levels):
    """These results with other levels, one every 0.1 s."""
    many = np.resize(np.arange(len(results.rows)), len(levels))
    columns = {name: results.rows[name][many] for name in results.rows.columns}
    columns |= {"laf_db": levels, "time_s": STEP_S * np.arange(len(levels))}
    return replace(results, rows=Rows(columns))


@pytest.mark.parametrize(("seconds", "times_s"), [(90.0, 0.3), (600.0, 2.0)])
def test_the_true_level_is_within_it_in_95_of_100(log, seconds, times_s):
    results = read_results(log)
    rng = np.random.default_rng(5)
    true = {"laeq_db": 60 + 25 * np.log(10) / 20, "l90_db": 60 - 1.2816 * 5}
    within = dict.fromkeys(true, 0)
    for _ in range(150):
        levels = wandering(rng, round(seconds / STEP_S), times_s)
        read = {"laeq_db": 10 * np.log10(np.mean(10 ** (levels / 10)))}
        read["l90_db"] = np.percentile(levels, 10)
        made = with_levels(results, levels)
        for name, value in read.items():
            within[name] += abs(value - true[name]) <= repeatability(made, name)
    assert all(0.89 <= count / 150 <= 0.99 for count in within.values()), within


def test_too_few_parts_and_maxima_have_none(log):
    results = read_results(log)
    rng = np.random.default_rng(6)
    assert repeatability(with_levels(results, wandering(rng, 100, 10.0)), "laeq_db") is None
    assert repeatability(with_levels(results, wandering(rng, 3000, 0.3)), "lafmax_db") is None
    short = {one.name: one for one in compare(log, log).differences}
    assert short["l90_db"].repeatability is None
    assert "but not for " in compare(log, log).repeats


def test_no_small_difference_of_a_background_is_sure(log):
    """L90 of two parts of one sound, 0.15 dB apart, by the same calibration at one place."""
    results = read_results(log)
    rng = np.random.default_rng(7)
    made = []
    for shift in (0.0, -0.15):
        one = with_levels(results, wandering(rng, 6000, 0.3) + shift)
        summary = {**one.summary, "l90_db": float(np.percentile(one.rows["laf_db"], 10))}
        made.append(replace(one, summary=summary))
    found = compare(*made, same_place=True)
    (l90,) = [one for one in found.differences if one.name == "l90_db"]
    assert 0.2 < l90.uncertainty == l90.repeatability < 1.5
    assert l90.verdict in ("no significant difference", "A is louder", "B is louder")
    assert (l90.verdict == "no significant difference") == (abs(l90.difference) <= l90.uncertainty)
