"""The page of a report: what it says, that nothing from outside does anything in it, its size."""

import base64
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from amt_stream.meters.rows import Rows, column_named
from amt_stream.meters.rows.block import unix_s
from amt_stream.sessions.compare import NotComparable, compare, comparison_page, reports_page
from amt_stream.sessions.report import About, LogoError, report_page
from amt_stream.sessions.report.chart import Chart
from amt_stream.sessions.report.curves import curve
from amt_stream.sessions.report.page import NEXT
from amt_stream.sessions.report.times import Clock, duration, elapsed
from amt_stream.sessions.results import read_results
from amt_stream.sessions.results.sound_clock import SoundClock
from tests.service.browser import Browser
from tests.sessions.report.conftest import NAMELESS, measure_into

EVIL = '<img src="http://example.org/x" onerror=alert(1)>"\'\u202e'


class Words(HTMLParser):
    """The text of a page, and which elements it is made of."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    def handle_data(self, data):
        self.text += data + "\n"


def test_the_page_says_what_was_measured(log):
    results = read_results(log)
    about = About("Evening", "Main hall", "Client & Sons", "E. Noise", "dry\nno wind")
    words = Words(report_page(results, about, UTC)).text
    assert "\nroof <2>, city Graz\n" in words
    for said in ("Evening", "Main hall", "Client & Sons", "E. Noise", "no wind"):
        assert said in words
    summary = results.summary
    for name in ("laeq_db", "lafmax_db", "l10_db"):
        assert f"\n{summary[name]:.1f}\n" in words
    assert "exceeded" in words
    assert "LAF not above 70 dB" in words
    assert "uncertainty 0.5 dB (k = 2: calibration 0.3 dB, microphone 0.4 dB)" in words
    assert "2026-11-01T10:00:00Z" in words
    assert "gap 1 time, 1 s in all: pushed sound lost it" in words
    assert "implements the method of IEC 61672-1" in words
    assert f"intact: {results.proof.parts} closed parts as written, last hash" in words
    assert results.proof.head in words
    assert f"{Clock.of(results).at(0.0):%d %B %Y, %H:%M:%S}".lstrip("0") in words


def test_times_are_those_of_the_place_where_it_was_measured(log):
    results = read_results(log)
    assert results.zone is not None
    away = {**results.settings, "began_local": "2026-11-22T20:00:00+05:30"}
    assert "UTC+05:30" in report_page(replace(results, settings=away))
    assert "UTC+05:30" not in report_page(replace(results, settings={"began_local": "soon"}))
    assert "UTC+05:30" not in report_page(replace(results, settings=away), zone=UTC)


def test_one_that_has_not_ended_says_so(log):
    results = read_results(log)
    broken_off = Words(report_page(replace(results, summary={}))).text
    assert "it was interrupted or is still running" in broken_off
    assert "still running" not in Words(report_page(results)).text


def test_nothing_from_outside_does_anything(log):
    results = read_results(log)
    source = {**results.header["source"], "name": EVIL}
    evil = replace(results, name=EVIL, header={**results.header, "source": source})
    page = report_page(evil, About(EVIL, EVIL, EVIL, EVIL, EVIL))
    found = Words(page)
    assert not found.tags & {"img", "script", "link", "iframe", "object"}
    assert "<script>alert(1)</script>" in found.text
    assert "\u202e" not in page
    assert set(re.findall(r"https?://[^\s\"<]*", re.sub(r"&lt;.*?&gt;", "", page))) == {
        "http://www.w3.org/2000/svg"
    }


def test_its_pictures_are_whole_svg_with_limits_gaps_and_marks(log):
    page = report_page(read_results(log))
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert pictures
    root = ElementTree.fromstring(pictures[0])
    space = "{http://www.w3.org/2000/svg}"
    texts = [one.text for one in root.iter(f"{space}text")]
    assert "LAF limit" in texts
    assert "1" in texts
    dashed = [one for one in root.iter(f"{space}line") if one.get("stroke-dasharray") == "6 3"]
    assert len(dashed) == 2
    assert len(list(root.iter(f"{space}polyline"))) >= 2  # a gap breaks a curve in two


def test_what_is_not_calibrated_looks_so(tmp_path, log):
    bare = measure_into(tmp_path / "bare", calibration=NAMELESS)
    page = report_page(read_results(bare))
    assert "NOT CALIBRATED" in page
    assert 'class="large hatched"' in page
    words = Words(page).text
    assert "NONE. All levels and loudness assume" in words
    assert "not known" in words  # its limits
    assert "NOT CALIBRATED" not in report_page(read_results(log))


def test_it_is_one_page_of_a4_in_a_browser(log, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(report_page(read_results(log), About(place="hall", note="three\nlines\nhere")))
    with Browser(900, 1200) as browser:
        browser.open(path.as_uri())
        wide = browser.evaluate("document.documentElement.scrollWidth")
        told = browser.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
    assert wide <= 900
    assert re.findall(rb"/Count (\d+)", base64.b64decode(told["data"])) == [b"1"]


def test_letter_is_one_page_in_a_browser_too(log, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(report_page(read_results(log), paper="letter"))
    with Browser(900, 1200) as browser:
        browser.open(path.as_uri())
        told = browser.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
    pdf = base64.b64decode(told["data"])
    assert re.findall(rb"/Count (\d+)", pdf) == [b"1"]
    assert re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf) == [(b"612", b"792")]


def test_a_window_of_which_little_was_measured_says_so(tmp_path):
    """4 s of 15 min: the mean of what was measured, and the least that the window can have."""
    limits = ("laeq_15min_db>60", "lex_8h_db>85", "laeq_1s_db>90")
    results = read_results(measure_into(tmp_path / "short", limits=limits))
    words = Words(report_page(results)).text
    assert "last 15min; only 4 s measured, not projected" in words
    assert "projected from 4 s measured, with silence for the rest" in words
    assert "last 1s\n" in words
    (told,) = [one for one in results.limits if one["column"] == "laeq_15min_db"]
    least = told["worst"] + 10 * np.log10(told["heard_s"] / 900)
    assert f"so far, in 5 s of a window of 15 min; projected: at least {least:.1f}" in words
    assert "A: only 4 s measured" in comparison_page(compare(results, results))


SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="3"><script>alert(1)</script></svg>'
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def test_company_and_logo_are_in_the_page(log, tmp_path):
    results = read_results(log)
    for name, data in (("a.svg", SVG.encode()), ("a.png", PNG)):
        (tmp_path / name).write_bytes(data)
        page = report_page(results, About(company="Quiet & Sons", logo=str(tmp_path / name)))
        assert "Quiet &amp; Sons" in page
        (kept,) = re.findall(r'<img class="logo" [^>]*src="data:image/[^;]*;base64,([^"]*)">', page)
        assert base64.b64decode(kept) == data
        assert "<script" not in page


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file"),
        (b"<html/>", "none of a PNG, JPEG and SVG file"),
        (b"GIF89a", "none of a PNG, JPEG and SVG file"),
        (b'<!DOCTYPE svg [<!ENTITY a "b">]><svg>&a;</svg>', "it declares entities"),
        (PNG + bytes(1 << 20), "has more than 1048576 bytes"),
    ],
)
def test_a_logo_that_cannot_be_read_is_refused_in_a_sentence(log, tmp_path, content, why):
    path = tmp_path / "logo.png"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LogoError, match=why):
        report_page(read_results(log), About(logo=str(path)))


def test_several_measurements_are_compared_before_the_page_of_each(log, tmp_path):
    a, b = (
        read_results(log),
        read_results(measure_into(tmp_path / "softer", gain=0.002, models=("spl", "moore2016"))),
    )
    page = reports_page([a, b], About("Two nights", company="Quiet"), UTC)
    first, *each = page.split(NEXT)
    assert len(each) == 2
    assert all("Quiet" in one for one in (first, *each))
    words = Words(first).text
    for one in compare(a, b).differences:
        assert f"\n{one.a:.1f}\n" in words
        assert f"\n{one.b:.1f}\n{one.difference:+.1f} ± {one.uncertainty:.1f}" in words
    assert "LTL" not in words  # which only one of them has
    assert words.index("\nLAeq\n") < words.index("\nLAF10\n")
    assert first.count('class="exceeded"') == 1
    assert "B: softer" in Words(each[1]).text
    with pytest.raises(NotComparable, match="7 measurements: a report has room for 1 to 6"):
        reports_page([a] * 7)


def test_a_picture_keeps_peaks_and_holes_whatever_its_size(log):
    results = read_results(log)
    few = curve(results, "laf_db", 7)
    values = results.rows["laf_db"]
    assert np.nanmax(few.high) == np.nanmax(values)
    assert np.nanmin(few.low) == np.nanmin(values)
    many = curve(results, "laf_db", 10_000)
    assert len(many.time_s) == len(values)
    assert Chart("dB", [few], Clock(None), 0.0, 5.0).svg().count("<polyline") >= 1


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("laeq_db", "LAeq"),
        ("laeq_15min_db", "LAeq,15min"),
        ("lcpeak_left_db", "LCpeak L"),
        ("lex_8h_db", "LEX,8h"),
        ("l10_10min_db", "LAF10,10min"),
        ("gm2002_max_ltl_sone", "LTL max"),
        ("zwicker_nmax_sone", "Nmax"),
        ("integrated_lufs", "I"),
        ("lra_lu", "LRA"),
        ("ltl_low_phon", "Long-term, lower bound"),
        ("sharpness_s5_acum", "S5"),
    ],
)
def test_readings_have_short_names(name, short):
    assert column_named(name).short == short


def since(start):
    """The clock of a sound that began then."""
    return SoundClock(np.zeros(1), unix_s(np.array([start])))


@pytest.mark.parametrize("seconds", [0.5, 5, 59, 61, 299, 3601, 86400 * 3, 86400 * 400])
def test_an_axis_has_a_few_round_times(seconds):
    for start in (None, np.datetime64("2026-11-22T23:59:50.4")):
        ticks = Clock(None if start is None else since(start), UTC).ticks(0.0, seconds, 8)
        assert len(ticks) <= 9
        assert all(-1e-6 <= time <= seconds + 1e-6 for time, _ in ticks)
        assert len(ticks) >= (seconds > 2) + (seconds > 60)


BERLIN = ZoneInfo("Europe/Berlin")


def test_both_offsets_are_told_where_summer_time_ends(log):
    """Five minutes from 02:58 to 02:03, on a night in which the clock is set back by an hour."""
    results = read_results(log)
    begin = np.datetime64("2026-10-25T00:58:00", "ms")
    minutes = np.arange(len(results.rows)) * 300.0 / (len(results.rows) - 1)
    columns = {name: results.rows[name] for name in results.rows.columns}
    columns |= {"time_s": minutes, "utc": begin + (1000 * minutes).astype("timedelta64[ms]")}
    settings = {**results.settings, "zone": "Europe/Berlin"}
    settings["began_local"] = "2026-10-25T02:58:00+02:00"
    night = replace(results, rows=Rows(columns), settings=settings)
    assert night.zone == BERLIN
    for page in (
        report_page(night),
        report_page(replace(night, settings={}), zone=BERLIN),
        comparison_page(compare(night, results)),
    ):
        words = Words(page).text
        assert "25 October 2026, 02:58:00 (UTC+02:00; 2026-10-25 00:58:00 UTC)" in words
        assert "02:03:00 (UTC+01:00), after 5 min" in words
    assert "local time, UTC+02:00, from 25 October, 02:00:00 on UTC+01:00" in report_page(night)
    clock = Clock(since(begin), BERLIN, 300.0)
    assert [clock.moment(s) for s in (60, 180)] == ["02:59:00 +02:00", "02:01:00 +01:00"]
    ticks = clock.ticks(0.0, 300.0, 8)
    assert [words for _, words in ticks] == [
        *("02:58 +02:00", "02:59 +02:00", "02:00 +01:00", "02:01 +01:00"),
        *("02:02 +01:00", "02:03 +01:00"),
    ]
    assert [time_s for time_s, _ in ticks] == pytest.approx([60 * k for k in range(6)], abs=0.01)
    elsewhere = settings | {"began_local": "2026-10-25T02:58:00+03:00"}
    assert replace(night, settings=elsewhere).zone.utcoffset(None) == timedelta(hours=3)


@pytest.mark.parametrize("begin", ["2026-03-28T12:00:17.25", "2026-10-24T12:00:17.25"])
@pytest.mark.parametrize("hours", [13.7, 40, 24 * 9])
def test_an_axis_over_a_change_of_the_clock_has_round_local_times(begin, hours):
    clock = Clock(since(np.datetime64(begin, "ms")), BERLIN, 3600 * hours)
    (change,) = clock.changes
    assert clock.at(change).utcoffset() != clock.at(change - 1).utcoffset()
    ticks = clock.ticks(0.0, clock.end_s, 8)
    assert 3 < len(ticks) <= 10
    for time_s, words in ticks:
        at = clock.at(time_s + 1e-3)
        assert (at.minute, at.second) == (0, 0)
        assert words.startswith(f"{at:%H:%M}") or words == f"{at:%d %b}"


def test_times_are_those_of_the_rows_where_the_clock_was_set(log):
    """A station began with the clock of an earlier day, which was set right after two seconds."""
    results = read_results(log)
    columns = {name: results.rows[name] for name in results.rows.columns}
    columns["utc"] = columns["utc"].copy()
    columns["utc"][columns["time_s"] > 2] += np.timedelta64(30 * 86400 + 7200, "s")
    late = replace(results, rows=Rows(columns))
    begin, end = (
        f"{datetime.fromisoformat(str(columns['utc'][k])):%d %B %Y, %H:%M:%S}".lstrip("0")
        for k in (0, -1)
    )
    words = Words(report_page(late, zone=UTC)).text
    assert f"{begin} (UTC)" in words
    assert f"{end}, after 5 s, in which the clock was set or the computer slept" in words
    assert "in which the clock" not in Words(report_page(results, zone=UTC)).text


def test_times_are_words():
    assert [elapsed(s) for s in (5, 750, 3750)] == ["0:05", "12:30", "1:02:30"]
    assert [duration(s) for s in (1.24, 207.9, 300, 3600, 27000)] == [
        *("1.24 s", "3 min 28 s", "5 min", "1 h", "7 h 30 min")
    ]
    clock = Clock(since(np.datetime64("2026-11-22T14:00:00")), UTC)
    assert clock.moment(61.0) == "14:01:01"
    assert clock.name == "local time, UTC"
