"""A header or a summary that somebody has edited: a page, or a refusal in one sentence."""

import copy
import functools
import json
import math
from operator import getitem

import numpy as np
import pytest

from amt_stream.core.errors import Refusal
from amt_stream.offline.measure import measure
from amt_stream.sessions.report import report_page
from amt_stream.sessions.results import read_results

FS = 48000
JUNK = (None, 3, -1e300, math.nan, "x" * 5000, [], {}, [None], {"a": 1}, True)


@pytest.fixture(scope="module")
def told():
    noise = 0.01 * np.random.default_rng(7).standard_normal((FS // 2, 2))
    found = measure(
        noise,
        FS,
        ["bs1770", "spl"],
        calibration=100.0,
        step_ms=100,
        limits=["momentary_lufs>-40,amber=-50"],
    )
    began = np.datetime64("2026-11-22T10:00:00", "ms")
    rows = [{**row, "utc": f"{began + round(1000 * row['time_s'])}Z"} for row in found.rows]
    return {"header": found.header, "summary": found.summary}, rows


def places(value, path=()):
    """Every place in nested data; of a list its first alone."""
    yield path
    if isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, (*path, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def put(data, path, junk):
    edited = copy.deepcopy(data)
    place = edited
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = junk
    return edited


def page_of(edited, rows, path):
    """The page, or the sentence that refuses it."""
    lines = [{"header": edited["header"]}, *rows, {"summary": edited["summary"]}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    try:
        page = report_page(read_results(path))
    except Refusal as refusal:
        return refusal
    assert "</html>" in page
    return page


@pytest.mark.cases(1)
@pytest.mark.parametrize("junk", [1e300, -1e300])
def test_a_number_beyond_all_measure_is_a_page_or_a_sentence(told, tmp_path, junk):
    """A time beyond all calendars ended the report with a traceback."""
    data, rows = told
    numbers = [p for p in places(data) if type(functools.reduce(getitem, p, data)) in (int, float)]
    assert ("summary", "limits", 0, "worst_s") in numbers
    for place in numbers:
        page_of(put(data, place, junk), rows, tmp_path / "rows.jsonl")


@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.soak)])
def test_whatever_is_edited_there_is_a_page_or_a_sentence(told, tmp_path, times):
    """Every place is edited so often, with other junk each time."""
    data, rows = told
    path = tmp_path / "rows.jsonl"
    pages, refusals = 0, []
    every = [place for place in places(data) if place]
    for number, place in enumerate(every * times):
        edited = put(data, place, JUNK[(3 * number + number // len(every)) % len(JUNK)])
        page = page_of(edited, rows, path)
        if isinstance(page, Refusal):
            refusals.append(str(page))
        else:
            pages += 1
    assert pages > 15 * times
    assert len(refusals) > 6 * times
    assert max(map(len, refusals)) < 1500
