"""Intervals of the clock and moments as people write them, across changes of the clock."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from amt_stream.core.clock import Interval, NoSuchTime, interval_s, local_text, moment, span_s

BERLIN, LORD_HOWE = ZoneInfo("Europe/Berlin"), ZoneInfo("Australia/Lord_Howe")
SPRING, AUTUMN = (
    datetime(2026, 3, 28, 22, 10, tzinfo=UTC),
    datetime(2026, 10, 24, 22, 10, tzinfo=UTC),
)


def walk(seconds, zone, start, hours=30):
    """Begins and lengths of intervals from the one that `start` lies in."""
    intervals, now = Interval(seconds, zone), start.timestamp()
    found = []
    while now < start.timestamp() + 3600 * hours:
        begin, end = intervals.begin(now), intervals.end(now)
        assert begin <= now < end
        assert intervals.begin(end) == end
        assert intervals.end(begin) == end
        assert intervals.begin((begin + end) / 2) == begin
        found.append((local_text(begin, zone), end - begin))
        now = end
    return found


@pytest.mark.parametrize("start", [SPRING, AUTUMN])
@pytest.mark.parametrize("seconds", [1, 10, 900, 1800, 3600])
def test_an_interval_within_the_hour_is_whole_when_the_clock_is_set(seconds, start):
    near = start.replace(hour=0, minute=55) + timedelta(days=1)
    found = walk(seconds, BERLIN, start if seconds > 10 else near, 30 if seconds > 10 else 0.2)
    assert {length for _, length in found} == {seconds}
    if seconds >= 900:
        minutes = {int(text[14:16]) for text, _ in found}
        assert minutes == set(range(0, 60, seconds // 60))


def test_a_day_has_23_or_25_hours_when_the_clock_is_set():
    days = [length / 3600 for start in (SPRING, AUTUMN) for _, length in walk(86400, BERLIN, start)]
    assert days == [24, 23, 24, 25, 24]
    assert [x for x in walk(21600, BERLIN, SPRING) if x[1] != 21600] == [
        ("2026-03-29T00:00:00+01:00", 5 * 3600)
    ]
    assert [x for x in walk(7200, BERLIN, AUTUMN) if x[1] != 7200] == [
        ("2026-10-25T02:00:00+02:00", 3600)
    ]


def test_a_clock_that_is_set_by_half_an_hour():
    start = datetime(2026, 4, 4, 10, 10, tzinfo=UTC)
    assert {length for _, length in walk(900, LORD_HOWE, start)} == {900}
    assert [x for x in walk(3600, LORD_HOWE, start) if x[1] != 3600] == [
        ("2026-04-05T01:30:00+10:30", 1800)
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90", 90), ("2.5", 2.5), ("2.5s", 2.5), ("15min", 900), ("5m", 300), ("0", 0)),
        *(("1h30m", 5400), ("24h", 86400), ("1h0min5s", 3605)),
    ],
)
def test_a_length_of_time(text, seconds):
    assert span_s(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "1h30", "1ms", "-5", "1 h", "nan", "1e3", "15minutes"])
def test_what_is_no_length_of_time(text):
    with pytest.raises(NoSuchTime, match="not a duration"):
        span_s(text)


@pytest.mark.parametrize("text", ["7min", "25h", "0s", "1.5s", "11s", "48h"])
def test_an_interval_divides_a_day(text):
    with pytest.raises(NoSuchTime, match="an interval of"):
        interval_s(text)


BEGAN = datetime(2026, 10, 24, 21, 52, 10, tzinfo=timezone(timedelta(hours=2))).timestamp()


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("1h30m", 1.5),
        ("22:00", 7.5 / 60 + 20 / 3600),
        ("22:00:30", 7.5 / 60 + 50 / 3600),
        ("2:30", 4 + 37.5 / 60 + 20 / 3600),  # the first of two
        ("2026-10-25T02:30+01:00", 5 + 37.5 / 60 + 20 / 3600),
        ("2026-10-25T01:30Z", 5 + 37.5 / 60 + 20 / 3600),
        ("2026-10-25 04:00", 7 + 7.5 / 60 + 20 / 3600),
        ("21:00", 24 + 7.5 / 60 + 20 / 3600),  # a day of 25 hours
    ],
)
def test_a_moment(text, hours):
    assert moment(text).time_s(BEGAN, BERLIN) == pytest.approx(3600 * hours, abs=1e-3)


def test_a_time_of_day_after_another_moment():
    assert moment("22:00").time_s(BEGAN, BERLIN, 600) == pytest.approx(25 * 3600 + 470, abs=1e-3)


def test_moments_that_cannot_be():
    for text in ("", "25:00", "22:0", "noon", "2026-11-31T22:00", "2026-11-20"):
        with pytest.raises(NoSuchTime, match="not a time"):
            moment(text)
    for text in ("9999-12-31T23:59:58", "0001-01-01T00:00", "0001-01-01T00:00+14:00"):
        with pytest.raises(NoSuchTime, match="give a year from 1900 to 2999"):
            moment(text)
    with pytest.raises(NoSuchTime, match="there was no 02:30"):
        moment("2026-03-29T02:30").time_s(BEGAN, BERLIN)
    with pytest.raises(NoSuchTime, match="the start of the sound is unknown"):
        moment("22:00").time_s(None, BERLIN)
