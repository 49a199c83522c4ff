"""Limits that change while a log is written: its rows, its events, its report, and its replay."""

import time

import pytest

from amt_stream.core.formats import LOG_FORMATS
from amt_stream.meters.frames import LIMITS
from amt_stream.meters.limits import Limit
from amt_stream.sessions import Session
from amt_stream.sessions.replay import replay_session
from amt_stream.sessions.report.content import limit_lines
from amt_stream.sessions.report.times import Clock
from amt_stream.sessions.results import read_results
from amt_stream.sessions.verify import verify
from tests.sessions.test_replay import blocks_of, kept

FIRST = Limit("laf_db", 120.0)
LATER = [Limit("laf_db", 60.0, amber=50.0, hysteresis=1.0), Limit("laeq_1min_db", 90.0), FIRST]
NAMES = ("moore2016", "spl")


def told_last(engine):
    return [event.kind for event in engine.events[-1:]] == [LIMITS]


def changed(folder, changes, format="sqlite"):
    """A log of pushed noise, whose limits change before some of its blocks."""
    blocks = blocks_of(1.5)

    def change(number, engine, table):
        if number not in changes:
            return
        heard = sum(map(len, blocks[:number])) - 1000
        while engine.health.samples < heard and not engine.error:
            time.sleep(0.01)
        table.change_limits(changes[number])
        engine.announce(LIMITS, "other limits judge from here on")
        while not (told_last(engine) or engine.error):
            time.sleep(0.01)

    return kept(folder, blocks, NAMES, format=format, limits=(FIRST,), before=change)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "format",
    [
        pytest.param(one, marks=[] if one in ("sqlite", "csv") else pytest.mark.soak)
        for one in LOG_FORMATS
    ],
)
def test_a_log_has_both_and_replay_gives_the_same_rows(tmp_path, format):
    folder = changed(tmp_path / "hall", {70: LATER, 110: [FIRST]}, format)
    rows = [*Session(folder).rows()]
    there = [row.get("limit_laf_60") is not None for row in rows]
    assert 3 < there.index(True) < len(there) - there[::-1].index(True) < len(rows)
    assert {row["limit_laf_120"] for row in rows} == {"unknown", "green"}
    assert [one.kind for one in Session(folder).events()].count(LIMITS) == 2
    again = replay_session(folder)
    assert (again.differs, again.notes, again.absent) == ("", (), 0)
    assert again.same
    assert again.rows == len(rows)
    assert verify(folder).word == "intact"


def test_results_and_report_say_from_when_a_limit_judged(tmp_path):
    folder = changed(tmp_path / "hall", {70: LATER})
    results = read_results(folder)
    by_name = {one["name"]: one for one in results.limits}
    assert by_name.keys() == {"laf_60", "laeq_1min_90", "laf_120"}
    assert "judged_from_s" not in by_name["laf_120"]
    begun_s = by_name["laf_60"]["judged_from_s"]
    assert 0.2 < begun_s < 1.4
    lines = limit_lines(results, Clock(None))
    assert [", judged from " in one.words for one in lines] == [True, True, False]
