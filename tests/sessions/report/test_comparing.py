"""How much louder one measurement is than another, and how sure that is."""

import math
from dataclasses import replace

import numpy as np
import pytest

from amt_stream.meters.calibration import Calibration
from amt_stream.offline.measure import measure
from amt_stream.sessions.compare import NotComparable, compare
from amt_stream.sessions.results import read_results
from tests.sessions.report.conftest import FS, NAMELESS, measure_into

NOISE = 0.02 * np.random.default_rng(2).standard_normal(2 * FS)
KNOWN = Calibration(100.0, "calibrator", "2026-11-01", True, 0.3, 0.4)
OTHER = Calibration(100.0, "calibrator", "2026-11-09", True, 0.3, 0.4)
SOFTER_DB = -6.0


def measured(gain_db=0.0, calibration=KNOWN, models=("moore2016", "spl"), **more):
    sound = NOISE * 10 ** (gain_db / 20)
    return measure(sound, FS, models, calibration=calibration, step_ms=100, **more)


@pytest.fixture(scope="module")
def loud():
    return measured()


@pytest.fixture(scope="module")
def soft():
    return measured(SOFTER_DB)


def by_name(comparison):
    return {one.name: one for one in comparison.differences}


def test_a_level_differs_by_the_gain_and_one_place_cancels_all_doubt(loud, soft):
    found = by_name(compare(loud, soft, same_place=True))
    assert found["laeq_db"].difference == pytest.approx(SOFTER_DB, abs=1e-4)
    assert found["laeq_db"].uncertainty == 0.0
    assert found["laeq_db"].sure


def test_of_one_calibration_the_microphone_is_left_and_of_two_all(loud, soft):
    shared = by_name(compare(loud, soft))["laeq_db"]
    assert shared.uncertainty == pytest.approx(math.hypot(0.4, 0.4))
    for apart in (compare(loud, measured(SOFTER_DB, OTHER)), compare(loud, soft, independent=True)):
        assert not apart.common
        assert by_name(apart)["laeq_db"].uncertainty == pytest.approx(math.sqrt(2) * 0.5)


def test_loudness_is_as_sure_as_the_models_own_bands_say(loud, soft):
    """A calibration that is off by its whole uncertainty moves the difference no further."""
    told = by_name(compare(loud, soft, same_place=True))["max_ltl_phon"]
    off = [measured(gain + 0.5) for gain in (0.0, SOFTER_DB)]
    moved = by_name(compare(*off))["max_ltl_phon"].difference - told.difference
    assert abs(moved) <= told.uncertainty + 2e-3
    assert told.uncertainty < 0.1
    assert told.times == pytest.approx(
        soft.summary["max_ltl_sone"] / loud.summary["max_ltl_sone"], rel=1e-6
    )
    alone = by_name(compare(loud, measured(SOFTER_DB, OTHER)))["max_ltl_phon"]
    one = measured(0.5).summary["max_ltl_phon"] - loud.summary["max_ltl_phon"]
    other = measured(SOFTER_DB + 0.5).summary["max_ltl_phon"] - soft.summary["max_ltl_phon"]
    assert alone.uncertainty == pytest.approx(math.hypot(one, other), rel=0.05)


def test_what_nobody_knows_is_not_told(loud):
    bare = measured(SOFTER_DB, NAMELESS)
    found = compare(loud, bare)
    assert by_name(found)["laeq_db"].uncertainty is None
    assert by_name(found)["laeq_db"].sure is None
    assert "unknown" in found.why
    both = by_name(compare(measured(0.0, NAMELESS), bare, same_place=True))
    assert both["laeq_db"].uncertainty == 0.0
    assert both["max_ltl_phon"].uncertainty is None


def test_loudness_of_programmes_needs_no_calibration():
    pair = [measured(gain, NAMELESS, "bs1770") for gain in (0.0, SOFTER_DB)]
    found = by_name(compare(*pair))["integrated_lufs"]
    assert (found.difference, found.uncertainty) == (pytest.approx(SOFTER_DB, abs=1e-3), 0.0)


def test_the_course_stands_at_the_times_of_both_without_what_settles(loud, soft):
    found = compare(loud, soft, same_place=True)
    course = found.course("laf_db")
    np.testing.assert_allclose(course.difference, SOFTER_DB, atol=1e-3)
    assert len(course.time_s) > 10
    coarse = measure(NOISE, FS, "spl", calibration=KNOWN, step_ms=300)
    assert set(np.diff(compare(loud, coarse).course("laf_db").time_s).round(3)) == {0.3}


def test_other_settings_are_said_and_nothing_in_common_is_refused(loud):
    diffuse = measured(field="diffuse")
    assert compare(loud, diffuse).notes == ["moore2016 has field free in A and diffuse in B"]
    with pytest.raises(TypeError, match="3 cannot be compared: give a path"):
        compare(loud, 3)
    with pytest.raises(NotComparable, match="no reading in common"):
        compare(loud, measured(models="bs1770"))


def test_logs_and_files_are_compared(tmp_path, log):
    other = measure_into(tmp_path / "other", gain=0.005)
    found = by_name(compare(log, other))
    assert found["laeq_db"].difference == pytest.approx(20 * math.log10(0.5), abs=1e-3)
    assert found["laeq_db"].uncertainty == pytest.approx(math.hypot(0.4, 0.4))
    results = read_results(log)
    same = by_name(compare(results, replace(results, name="again")))
    assert {one.difference for one in same.values()} == {0.0}
