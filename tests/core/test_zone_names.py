"""Names of time zones in headers: written by one computer, read by another."""

from datetime import timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from amt_stream.core import clock
from amt_stream.core.clock import zone_name, zone_of

JULY = 1_782_000_000.0


@pytest.mark.parametrize(
    ("zone", "name"),
    [
        (ZoneInfo("Europe/Berlin"), "Europe/Berlin"),
        (ZoneInfo("UTC"), "UTC"),
        (timezone(timedelta(hours=5, minutes=45)), "UTC+05:45"),
        (timezone(timedelta(hours=-3)), "UTC-03:00"),
    ],
)
def test_a_zone_comes_back(zone, name):
    assert zone_name(zone, JULY) == name
    again = zone_of(name)
    assert isinstance(again, tzinfo)
    assert clock.offset_s(JULY, again) == clock.offset_s(JULY, zone)


def test_a_computer_whose_zone_has_no_name_gives_its_offset(monkeypatch):
    monkeypatch.setattr(clock, "local_zone", lambda: None)
    found = zone_of(zone_name(None, JULY))
    assert clock.offset_s(JULY, found) == clock.offset_s(JULY, None)


@pytest.mark.parametrize("name", [None, 3, "", "Mars", "UTC+99:00", "local time", "../etc/passwd"])
def test_what_is_no_zone(name):
    assert zone_of(name) is None
