"""Sounds like those of public reports, measured in every way that people have."""

import re
from dataclasses import replace

import pytest

from tests.as_it_comes import full_scale, layouts, lengths, offsets, other_programs
from tests.as_it_comes.answers import WAYS
from tests.as_it_comes.report import ORIGINS

GROUPS = full_scale, layouts, offsets, lengths, other_programs
REPORTS = [report for group in GROUPS for report in group.REPORTS]
CASES = [(report, way) for report in REPORTS for way in report.ways]


@pytest.fixture(scope="module")
def made():
    """The file and the right values of each report, made once."""
    known = {}

    def make(report):
        if report not in known:
            content, heard = report.make()
            known[report] = content, {name: getattr(heard, name)() for name in report.readings}
        return known[report]

    return make


@pytest.mark.cases(40)
@pytest.mark.parametrize(("report", "way"), CASES, ids=str)
def test_a_sound_like_that_of_a_report(report, way, made, tmp_path):
    content, right = made(report)
    path = tmp_path / "sound"
    path.write_bytes(content)
    settings = report.settings
    if report.table:
        (tmp_path / "levels.csv").write_bytes(report.table)
        settings = replace(settings, more=("--calibrations", str(tmp_path / "levels.csv")))
    answer = WAYS[way](path, settings)
    assert answer.status == 0, answer.words
    for name, value in (*right.items(), *report.printed.items()):
        assert answer.summary[name] == pytest.approx(value, **report.tolerance(name)), name
    assert re.fullmatch(report.length, answer.sound.get("length", ""))
    offset = [one for one in answer.sound["offset"] if one is not None]
    assert offset == pytest.approx(report.offset or [0.0] * len(offset), abs=1e-3)
    assert (answer.clipped_s > 0) == report.clipped
    if way == "measure":
        return  # its summary is all that it says
    said = {report.length: True, "has an offset of": report.offset, "is clipped": report.clipped}
    for words, there in said.items():
        assert bool(re.search(words, answer.words)) == bool(there), words


def test_each_report_is_a_place_and_says_where_its_numbers_come_from():
    assert len({str(report) for report in REPORTS}) == len(REPORTS)
    for report in REPORTS:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", report.place)
        assert report.number > 0
        assert report.origin in ORIGINS
        assert report.readings or report.printed
