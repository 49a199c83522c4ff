"""A report without marked spans, against the sound that is left."""

import math
from dataclasses import replace

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.core.clock import moment
from amt_stream.meters.frames import Event
from amt_stream.meters.limits import Limit
from amt_stream.sessions.exclusion import results_without, spans_of
from amt_stream.sessions.report import report_page
from amt_stream.sessions.results import Results, ResultsError
from amt_stream.sessions.results.parts import part_of

FS = 48000
LIMITS = Limit("laeq_10s_db", 75.0), Limit("lcpeak_db", 100.0), Limit("laeq_db", 75.0)
GIVEN = {"models": "spl", "calibration": 110.0, "step_ms": 100, "began": "2026-11-20T21:59:50"}


def event(kind, time_s, text, samples=0):
    return Event(kind, round(time_s * FS), time_s, math.nan, samples, text)


SPEECH = [event("mark", 20.0, "Speech"), event("mark", 30.0, " speech ")]


def sound_of(*levels_db):
    """Noise of these levels in dB re full scale, each for 10 s."""
    noise = np.random.default_rng(3).standard_normal(len(levels_db) * 10 * FS)
    return (noise * np.repeat(10 ** (np.array(levels_db) / 20), 10 * FS)).astype(np.float32)


def results_of(sound, events=(), columns=None, limits=LIMITS):
    measured = measure(sound, FS, limits=limits, columns=columns, zone="UTC", **GIVEN)
    return replace(Results.of_measured(measured, "night"), events=events)


@pytest.fixture(scope="module")
def sound():
    return sound_of(-42, -40, -20, -41, -43, -40)


@pytest.fixture(scope="module")
def results(sound):
    return results_of(sound, SPEECH)


def test_statistics_are_those_of_the_sound_that_is_left(sound, results):
    found = results_without(results, ["speech"])
    left = np.concatenate([sound[: 20 * FS], sound[30 * FS :]])
    alone = measure(left, FS, limits=LIMITS, **GIVEN).summary
    assert results.summary["laeq_db"] > alone["laeq_db"] + 10
    assert found.summary["laeq_db"] == pytest.approx(alone["laeq_db"], abs=0.1)
    for name in ("l10_db", "l50_db", "l90_db"):
        assert found.summary[name] == pytest.approx(alone[name], abs=0.4)
    assert found.summary["lafmax_db"] == pytest.approx(alone["lafmax_db"], abs=1.0)
    assert "lcpeak_db" not in found.summary, "the louder span hides it"
    assert found.part is None
    assert results_without(results, []).summary["laeq_db"] == pytest.approx(
        results.summary["laeq_db"], abs=0.01
    )


def test_limits_are_judged_without_the_span_and_unknown_where_it_hides_a_value(sound, results):
    assert {one["column"]: one["verdict"] for one in results.limits} == {
        "laeq_10s_db": "exceeded",
        "lcpeak_db": "exceeded",
        "laeq_db": "exceeded",
    }
    found = results_without(results, ["speech"])
    by_column = {one["column"]: one for one in found.limits}
    assert by_column["laeq_10s_db"]["verdict"] == by_column["laeq_db"]["verdict"] == "kept"
    assert by_column["lcpeak_db"]["verdict"] == "not known"
    left = np.concatenate([sound[: 20 * FS], sound[30 * FS :]])
    summary = measure(left, FS, limits=LIMITS, **GIVEN).summary
    alone = {one["column"]: one for one in summary["limits"]}
    for name in ("laeq_10s_db", "laeq_db"):
        assert by_column[name]["worst"] == pytest.approx(alone[name]["worst"], abs=0.3)
        assert by_column[name]["red_s"] == 0
    after = (found.rows["time_s"] > 30.5) & (found.rows["time_s"] < 40)
    assert found.rows["laeq_10s_db"][after].max() < 72, "no tail of the span is in the window"


def test_a_louder_sound_outside_stays_exceeded():
    loud = results_of(sound_of(-42, -15, -20, -41, -42, -42), SPEECH)
    found = results_without(loud, ["Speech"])
    by_column = {one["column"]: one for one in found.limits}
    assert {one["verdict"] for one in by_column.values()} == {"exceeded"}
    assert found.summary["lcpeak_db"] == loud.summary["lcpeak_db"], "it is of before the span"
    assert found.summary["lafmax_db"] == loud.summary["lafmax_db"]
    assert by_column["lcpeak_db"]["worst"] == loud.summary["lcpeak_db"]
    later = results_of(sound_of(-42, -42, -20, -41, -15, -42), SPEECH)
    again = results_without(later, ["Speech"])
    assert again.summary["lcpeak_db"] == later.summary["lcpeak_db"], "it rose after the span"


@pytest.mark.parametrize(
    ("events", "label", "spans"),
    [
        (SPEECH, "SPEECH", [(20, 30)]),
        ([event("mark", 5, "talk begin"), event("mark", 9, "talk ends")], "talk", [(5, 9)]),
        ([event("mark", t, "a") for t in (1, 2, 5, 6)], "a", [(1, 2), (5, 6)]),
        ([event("mark", 50, "a"), event("mark", 55, "b")], "a", [(50, 60)]),
        (
            [
                event("sound_begin", 3, "laf_85 begins: laf_db is 86.0, laf_db > 85"),
                event("sound_begin", 4, "laf_8 begins: laf_db is 86.0, laf_db > 8"),
                event("sound_end", 7, "laf_85 has ended after 4.00 s: laf_db was 90 at most", 4),
            ],
            "laf_85",
            [(3, 7)],
        ),
        ([], "10..12.5", [(10, 12.5)]),
        ([], "22:00:00..22:00:10", [(10, 20)]),
        ([], "50..70", [(50, 60)]),
    ],
)
def test_what_a_label_encloses(results, events, label, spans):
    found = spans_of(replace(results, events=events), label)
    assert np.array([(one.begin_s, one.end_s) for one in found]) == pytest.approx(np.array(spans))
    assert all(one.fault == "excluded" for one in found)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("song", "night has no mark and no sound event 'song': its marks are Speech, speech"),
        ("70..80", "night has no sound between 70..80: give other times"),
        ("12..10", "night has no sound between 12..10"),
        ("0..100", "nothing is left of night: exclude less"),
    ],
)
def test_what_cannot_be_excluded_is_refused(results, label, said):
    with pytest.raises(ResultsError, match=said):
        results_without(results, [label])


def test_the_page_says_what_is_excluded_when_and_what_is_not_known(results):
    page = report_page(results_without(results, ["speech"]))
    assert "SPANS EXCLUDED" in page
    assert "speech: 22:00:10 to 22:00:20, 10 s" in page
    assert "not known without it: LCpeak" in page
    assert "excluded from this report 1 time, 10 s in all" in page
    assert "of a longer measurement" not in page
    part = part_of(results, moment("10"), moment("50"))
    page = report_page(results_without(results, ["speech", "40..42"], part))
    assert "of a longer measurement" in page
    assert "40..42: 22:00:30 to 22:00:32, 2" in page
    assert "EXCLUDED" not in report_page(results)


def test_spans_and_pauses_may_overlap(results):
    paused = [event("paused", 5.0, ""), event("continued", 40.0, "")]
    marks = [event("mark", t, text) for t, text in ((20, "a"), (24, "b"), (26, "a"), (30, "b"))]
    limit = "laeq_db"
    both = results_without(replace(results, events=[*marks, *paused]), ["a", "b", "20..30"])
    (of_limit,) = [one for one in both.limits if one["column"] == limit]
    assert of_limit["counted_s"] == pytest.approx(25.0, abs=0.3), "5 s before and 20 s after"
    one = results_without(replace(results, events=marks), ["a", "b", "20..30"])
    (of_limit,) = [found for found in one.limits if found["column"] == limit]
    assert of_limit["counted_s"] == pytest.approx(50.0, abs=0.3)
    assert of_limit["verdict"] == "kept"


def test_a_peak_at_the_end_of_a_span_between_two_rows_is_excluded(sound):
    loud = sound.copy()
    loud[round(30.02 * FS)] = 0.9
    marks = [event("mark", 20.0, "a"), event("mark", 30.04, "a")]
    found = results_without(results_of(loud, marks), ["a"])
    by_column = {one["column"]: one for one in found.limits}
    assert by_column["lcpeak_db"]["verdict"] == "not known"
    assert "lcpeak_db" not in found.summary


def test_the_exposure_of_a_day_is_without_the_span(sound):
    limits = [Limit("lex_8h_db", 60.0)]
    found = results_without(results_of(sound, SPEECH, limits=limits), ["speech"])
    left = np.concatenate([sound[: 20 * FS], sound[30 * FS :]])
    alone = measure(left, FS, limits=limits, **GIVEN).summary["limits"][0]
    assert found.limits[0]["worst"] == pytest.approx(alone["worst"], abs=0.3)
    assert found.limits[0]["verdict"] == alone["verdict"]


def test_an_open_span_lasts_to_the_end_and_says_so(results):
    found = results_without(replace(results, events=SPEECH[:1]), ["speech"])
    assert found.summary["laeq_db"] < 72
    assert "speech, which nothing ends: 22:00:10 to 22:00:50, 40 s" in report_page(found)


def test_a_window_of_which_no_finer_level_is_logged_is_not_known(sound):
    columns, limits = ["laf_db", "lceq_10s_db"], [Limit("lceq_10s_db", 75.0)]
    found = results_without(results_of(sound, SPEECH, columns, limits), ["speech"])
    assert found.limits[0]["verdict"] == "not known"
