"""What a report says of a bad evening: every kind of fault and of event once, with its total."""

import re
from dataclasses import replace
from datetime import UTC
from html import unescape

import numpy as np
import pytest

from amt_stream.meters.frames import Event
from amt_stream.sessions.report import report_page
from amt_stream.sessions.report.happened import doubtful, fault_lines, happened, hatched
from amt_stream.sessions.report.times import Clock
from amt_stream.sessions.results import Results, read_results
from tests.sessions.report.conftest import FS

FULL, LOST = "the buffer was full", "hall <1> lost it"


def event(kind, time_s, text="", samples=0, cause=""):
    sample = round(time_s * FS)
    return Event(kind, sample, time_s, float("nan"), samples, text, "", cause)


@pytest.fixture
def evening(log):
    """One hour of rows, and what the log of a slow computer told in it."""
    results = read_results(log)
    count = 3600
    at = np.linspace(0, len(results.rows) - 1, count).astype(int)
    columns = {name: results.rows[name][at] for name in results.rows.columns}
    time_s = np.arange(1.0, count + 1)
    fault = np.zeros(count, np.uint8)
    events = []
    for k in range(17):  # 17 times 2.5 s by the program, 9 times 1.5 s by the microphone
        events.append(event("gap", 100 + 20 * k, FULL, round(2.5 * FS), "buffer"))
        fault[100 + 20 * k : 103 + 20 * k] |= 1
        if k < 9:
            events.append(event("gap", 110 + 20 * k, LOST, round(1.5 * FS), "device"))
            fault[110 + 20 * k : 112 + 20 * k] |= 1
        events.append(event("overload", 90 + 20 * k, "cannot keep up", cause="others are busy"))
        events.append(event("recovered", 95 + 20 * k, "keeps up again"))
        fault[90 + 20 * k : 95 + 20 * k] |= 8
    for begin_s in (1000.0, 1100.0):
        events.append(event("silent", begin_s, "'hall' gives exact zeros: it is muted"))
        events.append(event("gap", begin_s, "'hall' gave exact zeros", 20 * FS, "silent"))
        events.append(event("back", begin_s + 20, "'hall' gives sound again"))
        fault[int(begin_s) : int(begin_s) + 20] |= 1 | 64
    events.append(event("clip", 2000.0, "hall is clipped: the sound may have been louder"))
    fault[2000:2003] |= 2
    events.append(event("lost", 3000.0, "the device 'hall' is gone"))
    events.append(event("gap", 3000.0, LOST, 30 * FS, "device"))
    events.append(event("back", 3030.0, "the device 'hall' is back after 30.0 s"))
    fault[3000:3030] |= 1
    rows = type(results.rows)(columns | {"time_s": time_s, "fault": fault})
    summary = {"statistics": results.summary["statistics"]}
    events = sorted([*results.marks, *events], key=lambda one: one.time_s)
    return replace(results, rows=rows, events=events, summary=summary, proof=None)


def words_of(page):
    return unescape(re.sub(r"<[^>]+>", "\n", page))


def test_each_kind_has_one_sentence_with_the_total_of_each_cause(evening):
    lost, measured = fault_lines(evening)
    assert lost == [
        "gap 27 times, 1 min 26 s in all: 43.5 s lost by the device or the sound server "
        "(10 times), 42.5 s dropped by this program, whose buffer was full (17 times)",
        "silent 2 times, 40 s in all: 'hall' gives exact zeros: it is muted",
    ]
    assert measured == [
        "too slow 17 times, 1 min 25 s in all: because others are busy",
        "clipped 1 time, 3 s in all: \N{GREATER-THAN OR EQUAL TO} stands before readings that are "
        "at least so high",
    ]
    page = words_of(report_page(evening, zone=UTC))
    assert f"Hatched, not measured: {'; '.join(lost)}." in page
    assert f"Amber line, measured: {'; '.join(measured)}." in page


def test_events_of_one_kind_are_one_line_and_the_longest_come_first(evening):
    lines, more = happened(evening, Clock(None))
    assert more == 0
    assert [words for _, words in lines[1:]] == [
        "processing did not keep up 17 times, 1 min 25 s in all; because others are busy",
        "microphone silent 2 times, 40 s in all; 'hall' gives exact zeros: it is muted",
        "the device 'hall' is gone, 30 s in all",
        "hall is clipped: the sound may have been louder, 3 s in all",
    ]
    assert [when for when, _ in lines[1:]] == [
        *("1:30 to 6:50", "16:40 to 18:20", "50:00", "33:20")
    ]
    assert lines[0][1].startswith("singer"), "marks stay in front"
    assert "more in the log" not in words_of(report_page(evening))


def test_what_differs_is_said_of_the_first_and_the_last(evening):
    texts = [f"the input gain was turned to {gain} %" for gain in (90, 70, 50)]
    events = [event("gain", 60.0 * k, text) for k, text in enumerate(texts, 1)]
    events += [event("paused", 400.0), event("continued", 460.0), event("paused", 3590.0)]
    lines, _ = happened(replace(evening, events=events), Clock(None))
    assert [words for _, words in lines] == [
        "paused 2 times, 1 min 10 s in all",
        f"gain turned 3 times; first: {texts[0]}; last: {texts[2]}",
    ]


def test_only_what_was_not_measured_is_hatched_and_it_says_what_it_is(evening):
    spans = hatched(evening, ["spl"])
    assert {word for *_, word in spans} == {"gap", "silent"}
    assert (3000.0, 3030.0, "gap") in spans
    assert len(doubtful(evening)) == 18
    page = report_page(evening)
    svg = re.search(r"<svg.*?</svg>", page, re.DOTALL)[0]
    assert svg.count('fill="#d08700"') == 18
    few = replace(evening, rows=evening.rows.where(evening.rows["time_s"] <= 120.0))
    assert ">gap</text>" not in report_page(few), "no word where it has no room"
    late = evening.rows.where((evening.rows["time_s"] > 2950) & (evening.rows["time_s"] < 3100))
    part = replace(evening, rows=late, part=(2950.0, 3099.0))
    assert ">gap</text>" in report_page(part)


def test_a_file_of_rows_without_events_has_the_causes_of_its_summary(evening):
    missing = {"device_s": 12.0, "buffer_s": 3.5, "output_s": 2.0}
    bare = replace(evening, events=(), summary=evening.summary | {"missing": missing})
    gap = next(one for one in fault_lines(bare)[0] if one.startswith("gap"))
    assert gap.endswith(
        "in all: 12 s lost by the device or the sound server, 3.5 s dropped by this program, "
        "whose buffer was full"
    )
    assert fault_lines(bare)[0][-1] == "2 s missed by this output, which was too slow"


def test_a_calm_evening_says_so(evening):
    calm = replace(evening, events=(), rows=evening.rows.where(evening.rows["fault"] == 0))
    assert isinstance(calm, Results)
    assert fault_lines(calm) == ([], [])
    assert "No gaps and no faults." in report_page(calm)


def test_a_lost_microphone_is_away_for_as_long_as_its_gap(evening):
    """Whether its return comes after the gap or, as of a live sound, at its beginning."""
    events = [
        event("lost", 99.9, "the device 'hall' is gone"),
        event("back", 100.0, "the device 'hall' is back"),
        event("gap", 100.05, LOST, 30 * FS, "device"),
        event("lost", 200.0, "the device 'hall' is gone"),
        event("gap", 200.0, LOST, 10 * FS, "device"),
        event("back", 210.0, "the device 'hall' is back"),
    ]
    lines, _ = happened(replace(evening, events=events), Clock(None))
    ((_, words),) = lines
    assert words.startswith("microphone lost 2 times, 40 s in all")
