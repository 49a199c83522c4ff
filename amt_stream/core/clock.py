"""Wall-clock times: time zones, aligned intervals, and times as people write them."""

import math
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from amt_stream.core.errors import Refusal

DAY_S = 86400
SPAN = re.compile(
    r"(?P<seconds>\d+(?:\.\d+)?)s?"
    r"|(?=\d)(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?:in)?)?(?:(?P<s>\d+(?:\.\d+)?)s)?"
)
"""A duration, such as 90, 15min or 1h30m."""

FIRST_YEAR, LAST_YEAR = 1900, 2999

SAME_S = 1e-5
"""Clock times that differ by less are equal: float64 cannot resolve UTC more finely."""

SAME_TIME_S = 1e-6
"""Times that differ by less are equal; those of models may, in the last digit."""


class NoSuchTime(Refusal, ValueError):
    """A text is not a valid time, interval or time zone; the message quotes it."""


def local_zone() -> ZoneInfo | None:
    """This computer's IANA time zone; None if it cannot be determined."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name:
        _, _, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    try:
        return ZoneInfo(name) if name else None
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return None


def zone_name(zone: tzinfo | None, utc_s: float) -> str:
    """The name of a zone, as `zone_of` reads it: "Europe/Berlin", or "UTC+01:00" without a name.

    zone: None for this computer's
    utc_s: Unix time whose offset is taken without a name
    """
    place = zone or local_zone()
    return getattr(place, "key", None) or str(timezone(timedelta(seconds=offset_s(utc_s, place))))


def zone_of(name: object) -> tzinfo | None:
    """The zone of a name by `zone_name`; None for anything else."""
    offset = _OFFSET.fullmatch(name) if isinstance(name, str) else None
    if offset:
        ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-ahead if offset[1] == "-" else ahead)
    try:
        return ZoneInfo(name) if isinstance(name, str) else None
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return None


_OFFSET = re.compile(r"UTC([+-])([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


def zone_named(text: str) -> ZoneInfo:
    """The IANA time zone of this name; raises NoSuchTime for an unknown name."""
    try:
        return ZoneInfo(text)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        raise NoSuchTime(
            f"{text!r} is not a time zone known here: give one such as Europe/Berlin"
        ) from None


def zone_text(zone: tzinfo | None) -> str:
    """The name of a zone; "local time" for None (this computer's zone, name unknown)."""
    return "local time" if zone is None else str(zone)


def local_time(utc_s: float, zone: tzinfo | None) -> datetime:
    """The local time in a zone of seconds since 1970; None means this computer's zone."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=utc_s)).astimezone(zone)


def local_text(utc_s: float, zone: tzinfo | None) -> str:
    """`local_time` in ISO 8601 with its UTC offset, with milliseconds unless they are zero."""
    when = local_time(round(utc_s, 3), zone)
    return when.isoformat(timespec="milliseconds" if when.microsecond else "seconds")


def offset_s(utc_s: float, zone: tzinfo | None) -> float:
    """The offset of a zone from UTC, in seconds."""
    offset = local_time(utc_s, zone).utcoffset()
    return offset.total_seconds() if offset is not None else 0.0


def span_s(text: str) -> float:
    """The seconds in a duration such as 90, 2.5s, 15min or 1h30m; raises NoSuchTime otherwise."""
    found = SPAN.fullmatch(text)
    if found is None:
        raise NoSuchTime(f"{text!r} is not a duration: write it as 90, 15min or 1h30m")
    seconds, hours, minutes, rest = (float(part or 0) for part in found.groups())
    return seconds + 3600 * hours + 60 * minutes + rest


@dataclass(frozen=True)
class Interval:
    """Equal clock intervals, counted from local midnight; times are seconds since 1970.

    zone: the zone whose midnight counts; None for this computer's. On a day of 23 or 25 hours there
        are fewer or more intervals, or one is shorter or longer.

    Raises NoSuchTime for a length that does not divide a day.
    """

    seconds: int
    zone: tzinfo | None = UTC

    def __post_init__(self) -> None:
        if not 1 <= self.seconds <= DAY_S or DAY_S % self.seconds:
            raise NoSuchTime(
                f"an interval of {self.seconds:g} s: give a divisor of a day, from 1s to 24h, "
                "such as 10s, 15min or 1h"
            )

    def begin(self, utc_s: float) -> float:
        """The start of the interval that contains `utc_s`."""
        utc_s += SAME_S
        offset = offset_s(utc_s, self.zone)
        found = self._floor(utc_s + offset) - offset
        if offset_s(found, self.zone) == offset:
            return found
        changed = self._change(found, utc_s)
        offset = offset_s(changed - 1, self.zone)
        return self._floor(changed + offset) - offset

    def end(self, utc_s: float) -> float:
        """The end of the interval that contains `utc_s`: the first boundary after it."""
        utc_s += SAME_S
        offset = offset_s(utc_s, self.zone)
        found = self._floor(utc_s + offset) + self.seconds - offset
        after = offset_s(found, self.zone)
        if after == offset:
            return found
        # The clock is set within this interval: find the first boundary on the new clock.
        changed = self._change(utc_s, found)
        if found <= changed:
            return found
        return self.seconds * math.ceil((changed + after) / self.seconds) - after

    def _floor(self, local_s: float) -> float:
        return self.seconds * math.floor(local_s / self.seconds)

    def _change(self, low: float, high: float) -> float:
        """The second between two times from which the clock has another UTC offset."""
        before = offset_s(low, self.zone)
        first, last = math.floor(low), math.ceil(high)
        while last - first > 1:
            middle = (first + last) // 2
            if offset_s(middle, self.zone) == before:
                first = middle
            else:
                last = middle
        return float(last)


def interval_s(text: str) -> int:
    """The length of an interval such as 15min; raises NoSuchTime for an invalid one."""
    seconds = span_s(text)
    if seconds % 1:
        raise NoSuchTime(f"an interval of {text}: give whole seconds, as 1s, 15min or 24h")
    return Interval(int(seconds)).seconds


@dataclass(frozen=True)
class Moment:
    """A time in a measurement as the user wrote it; exactly one of the last three is set.

    text: as typed
    after_s: seconds since the start
    of_day: a time of day, meaning its first occurrence after the start
    when: a date and time; without a UTC offset, in the zone of the measurement
    """

    text: str
    after_s: float | None = None
    of_day: time | None = None
    when: datetime | None = None

    def time_s(self, start_utc_s: float | None, zone: tzinfo | None, from_s: float = 0.0) -> float:
        """Seconds since the start of a measurement that began at `start_utc_s`.

        from_s: a time of day means its first occurrence after this

        Raises NoSuchTime if the start is unknown, and for a time that the clock skips.
        """
        if self.after_s is not None:
            return self.after_s
        if start_utc_s is None:
            raise NoSuchTime(
                f"{self.text!r} is a clock time, but the start of the sound is unknown: "
                "give seconds since the start, or 1h30m"
            )
        if self.when is not None and self.when.tzinfo is not None:
            return self.when.timestamp() - start_utc_s
        begin = local_time(start_utc_s + from_s, zone)
        if self.when is not None:
            return self._instant(self.when, zone) - start_utc_s
        assert self.of_day is not None
        days = (0, 1) if self.of_day >= begin.time().replace(microsecond=0) else (1,)
        for day in days:
            on = datetime.combine(begin.date() + timedelta(days=day), self.of_day)
            found = self._instant(on, zone) - start_utc_s
            if found >= from_s - 1.0:
                return max(found, 0.0)
        return found

    def _instant(self, local: datetime, zone: tzinfo | None) -> float:
        """UTC of a local time; if the clock shows it twice, the first occurrence."""
        found = local.replace(tzinfo=zone).timestamp() if zone else local.timestamp()
        if local_time(found, zone).replace(tzinfo=None, fold=0) != local:
            raise NoSuchTime(
                f"{self.text!r}: there was no {local:%H:%M} that day, the clock was set forward"
            )
        return found


def moment(text: str) -> Moment:
    """Parse a time: 90 or 1h30m since the start, 22:00, 22:00:30 or 2026-11-20T22:00.

    A date may end with a UTC offset: 2026-11-20T22:00+01:00, or Z. Raises NoSuchTime otherwise.
    """
    if SPAN.fullmatch(text):
        return Moment(text, after_s=span_s(text))
    when = None
    try:
        if re.fullmatch(r"\d\d?:\d\d(:\d\d(\.\d+)?)?", text):
            return Moment(text, of_day=time.fromisoformat(f"0{text}" if text[1] == ":" else text))
        if re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", text):
            when = datetime.fromisoformat(text)
    except ValueError:
        pass
    if when is not None and not FIRST_YEAR <= when.year <= LAST_YEAR:
        raise NoSuchTime(f"{text!r}: give a year from {FIRST_YEAR} to {LAST_YEAR}")
    if when is not None:
        return Moment(text, when=when)
    raise NoSuchTime(
        f"{text!r} is not a time: give seconds or 1h30m since the start, 22:00, or 2026-11-20T22:00"
    )


def date_and_time(text: str) -> Moment:
    """Parse a date and time; raises NoSuchTime for a text without a date."""
    found = moment(text)
    if found.when is None:
        raise NoSuchTime(f"{text!r} has no date: give one as 2026-11-20T22:00:00")
    return found
