"""Parts and intervals of a measurement from its rows, against the sound itself."""

import json
import math
from dataclasses import replace
from datetime import timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.core.clock import moment
from amt_stream.meters.frames import Event
from amt_stream.meters.rows import Rows
from amt_stream.sessions.compare import compare
from amt_stream.sessions.report import report_page
from amt_stream.sessions.results import Results, ResultsError
from amt_stream.sessions.results.interval_table import intervals_of
from amt_stream.sessions.results.parts import PartsOfRows, part_of, results_of_part

FS = 48000
BEGAN = "2026-11-20T21:59:50"
BERLIN = ZoneInfo("Europe/Berlin")
GIVEN = {"models": "spl", "calibration": 110.0, "step_ms": 100, "zone": "Europe/Berlin"}


@pytest.fixture(scope="module")
def sound():
    rng = np.random.default_rng(7)
    level = np.interp(np.arange(40 * FS) / FS, np.arange(41), rng.uniform(-50, -20, 41))
    return (rng.standard_normal(40 * FS) * 10 ** (level / 20)).astype(np.float32)


@pytest.fixture(scope="module")
def measured(sound):
    return measure(sound, FS, began=BEGAN, interval="10s", **GIVEN)


@pytest.fixture(scope="module")
def results(measured):
    return Results.of_measured(measured, "night")


def test_intervals_from_rows_are_nearly_those_of_every_frame(measured, results):
    assert intervals_of(results, 10).rows is measured.intervals
    made = intervals_of(replace(results, intervals=None), 10, BERLIN)
    assert made.rows["local"].tolist() == measured.intervals["local"].tolist()
    assert made.rows["partial"].tolist() == [False] * 4
    for name, off in (("laeq_db", 0.005), ("l10_db", 0.5), ("l90_db", 0.5), ("lafmax_db", 1.0)):
        np.testing.assert_allclose(made.rows[name], measured.intervals[name], atol=off)
    assert (made.rows["lafmax_db"] <= measured.intervals["lafmax_db"] + 1e-4).all()
    assert made.rows["lafmax_db"].max() == pytest.approx(measured.summary["lafmax_db"], abs=1e-4)
    assert "laeq_1s_db" in made.how
    assert "laf_db every 100 ms" in made.how


def test_a_part_has_the_readings_of_that_part(sound, results):
    part = results_of_part(results, part_of(results, moment("22:00"), moment("22:00:10"), BERLIN))
    alone = measure(sound, FS, from_s=10.0, to_s=20.0, **GIVEN).summary
    assert part.summary["laeq_db"] == pytest.approx(alone["laeq_db"], abs=0.005)
    assert part.summary["l10_db"] == pytest.approx(alone["l10_db"], abs=0.3)
    assert part.rows["time_s"][[0, -1]].tolist() == [10.0, 20.0]
    page = report_page(part, zone=BERLIN, interval=5)
    assert "22:00:00" in page
    assert "Intervals" in page
    assert "21:59:5" not in page


@pytest.mark.parametrize(
    ("begin", "end", "span"),
    [
        ("10", "20", (10, 20)),
        ("22:00", None, (10, 40)),
        (None, "0m30s", (0, 30)),
        ("22:00", "22:00:30", (10, 40)),
        ("2026-11-20T21:00:05Z", "2026-11-20T22:00:15", (15, 25)),
    ],
)
def test_moments_of_a_measurement(results, begin, end, span):
    given = [None if text is None else moment(text) for text in (begin, end)]
    part = part_of(results, *given, BERLIN)
    assert (part.begin_s, part.end_s) == pytest.approx(span, abs=1e-3)


@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        ("23:00", None, "is from 2026-11-20T21:59:50+01:00 to 2026-11-20T22:00:30+01:00"),
        ("41", None, "--from 41 is outside"),
        (None, "2h", "--to 2h is outside"),
        ("2026-11-19T22:00", None, "is outside"),
        ("20", "20", "--to is not after --from"),
    ],
)
def test_what_is_not_in_a_measurement_is_refused(results, begin, end, said):
    given = [None if text is None else moment(text) for text in (begin, end)]
    with pytest.raises(ResultsError) as refused:
        part_of(results, *given, BERLIN)
    assert said in str(refused.value)


def with_clock(results, ahead_s):
    """The same, with a clock that is further ahead at each row."""
    rows = results.rows
    columns = {name: rows[name] for name in rows.columns}
    ms = np.rint(1000 * ahead_s(rows["time_s"])).astype("timedelta64[ms]")
    return replace(results, rows=Rows(columns | {"utc": rows["utc"] + ms}), intervals=None)


@pytest.mark.parametrize("drift", [3e-4, -3e-4])
def test_intervals_of_a_sound_that_drifts_are_whole(results, drift):
    """The clock of a sound card is never quite that of the computer."""
    made = intervals_of(with_clock(results, lambda time_s: drift * time_s), 10, BERLIN).rows
    began = ["21:59:50", "22:00:00", "22:00:10", "22:00:20"]
    assert [text[11:19] for text in made["local"]][:4] == began
    assert made["partial"].tolist()[:3] == [False] * 3
    long = 10 / (1 + drift)
    np.testing.assert_allclose((made["end_s"] - made["time_s"])[:3], long, atol=0.0015)


def test_intervals_end_where_the_clock_was_set(results):
    """As those do that are counted live: else two o'clock would have the sound of three."""
    made = intervals_of(with_clock(results, lambda time_s: 3600.0 * (time_s > 14)), 10, BERLIN).rows
    assert [text[11:19] for text in made["local"]] == [
        *("21:59:50", "22:00:00", "23:00:04", "23:00:10", "23:00:20"),
    ]
    np.testing.assert_allclose(made["end_s"], [10, 14, 20, 30, 40], atol=1e-4)
    assert made["partial"].tolist() == [False, True, True, False, False]


def test_moments_of_a_clock_that_was_set(results):
    """A month later all at once: a time is where the clock showed it."""
    month_s = 30 * 86400.0
    late = with_clock(results, lambda time_s: month_s * (time_s > 14))
    for begin, end, span in (
        ("22:00:05", None, (15, 40)),
        ("22:00", "22:00:20", (10, 30)),
        ("2026-12-20T22:00:15", None, (25, 40)),
        ("2026-11-20T22:00:02", "30", (12, 30)),
    ):
        given = [None if text is None else moment(text) for text in (begin, end)]
        part = part_of(late, *given, BERLIN)
        assert (part.begin_s, part.end_s) == pytest.approx(span, abs=1e-3)
    with pytest.raises(ResultsError, match="to 2026-12-20T22:00:30"):
        part_of(late, moment("2026-12-20T22:01"), None, BERLIN)


def test_a_clock_is_needed_for_a_time_by_it(sound):
    unknown = Results.of_measured(measure(sound[: 5 * FS], FS, **GIVEN))
    with pytest.raises(ResultsError, match="the start of the sound is unknown"):
        part_of(unknown, moment("22:00"), None)
    made = intervals_of(unknown, 2)
    assert made.rows["local"].tolist() == [None] * 3
    assert made.rows["partial"].tolist() == [False, False, True]


def test_a_pause_is_left_out_of_parts(results):
    events = [Event(kind, t * FS, float(t), 0.0) for kind, t in (("paused", 12), ("continued", 17))]
    told = replace(results, intervals=None, events=events)
    table = intervals_of(told, 10, BERLIN)
    assert table.rows["paused_s"].tolist() == [0, 5, 0, 0]
    assert table.rows["measured_s"] == pytest.approx([10, 5, 10, 10])
    loud = 10 ** (results.rows["laeq_1s_db"][[110, 120, 180, 190, 200]] / 10)
    expected = 10 * math.log10(loud[1:].mean())
    level = PartsOfRows(told).pieces.best().level_db(11, 20)
    assert level == pytest.approx(expected, abs=1e-6)


def test_levels_that_only_count_on_give_the_same_energy(sound):
    given = {**GIVEN, "step_ms": 2000}
    alone = Results.of_measured(measure(sound, FS, columns=["laeq_db", "laf_db"], **given))
    exact = measure(sound, FS, interval=10, **GIVEN).intervals["laeq_db"]
    made = intervals_of(alone, 10)
    np.testing.assert_allclose(made.rows["laeq_db"], exact, atol=0.01)
    assert "changes of laeq_db" in made.how


def test_intervals_of_two_nights_stand_side_by_side(sound):
    first = measure(sound, FS, began=BEGAN, interval="10s", **GIVEN)
    began = "2026-12-24T21:59:52"
    later = measure(0.5 * sound[2 * FS :], FS, began=began, interval="10s", **GIVEN)
    found = compare(first, later, interval=10, zone=timezone(timedelta(hours=1)))
    times = [pair.a["local"][11:19] for pair in found.intervals]
    assert times == ["22:00:00", "22:00:10", "22:00:20"]
    half = 20 * math.log10(0.5)
    for pair in found.intervals:
        assert pair.difference("laeq_db") == pytest.approx(half, abs=0.01)
    told = json.loads(json.dumps(found.to_dict()))["intervals"]
    assert told[0]["b"]["local"].startswith("2026-12-24T22:00:00")
    part = compare(first, later, begin=moment("22:00"), end=moment("22:00:20"), zone=BERLIN)
    (level,) = (one for one in part.differences if one.name == "laeq_db")
    assert level.difference == pytest.approx(half, abs=0.01)
    assert part.course("laf_db").time_s[0] == 0.0
