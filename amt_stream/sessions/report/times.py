"""Times of a measurement as people read them, and round ones for an axis."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from itertools import pairwise

import numpy as np

STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
DAY_S = 86400

CLOSE = 0.75
"""Times of an axis are not nearer to one another than that, in steps."""


@dataclass(frozen=True)
class Clock:
    """What seconds of sound are called: by the clock where it is known, else since the start.

    start: UTC of time 0, or None
    zone: whose clock; by default that of this computer
    end_s: until when it is read: where the clock is set meanwhile, as at the end of summer time,
        every time is told with its offset
    """

    start: np.datetime64 | None
    zone: tzinfo | None = None
    end_s: float = 0.0

    def at(self, time_s: float) -> datetime | None:
        """The local time, with its zone; None where nobody knows it."""
        if self.start is None:
            return None
        begin = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            milliseconds=int(self.start.astype("datetime64[ms]").astype(np.int64))
        )
        return (begin + timedelta(seconds=time_s)).astimezone(self.zone)

    @cached_property
    def changes(self) -> list[float]:
        """When the clock is set to another offset, in seconds of sound, up to `end_s`."""
        if self.start is None:
            return []
        days = [*np.arange(0.0, self.end_s, DAY_S), self.end_s]
        return [
            self._change(before, after)
            for before, after in pairwise(days)
            if self._offset(before) != self._offset(after)
        ]

    def _offset(self, time_s: float) -> timedelta | None:
        when = self.at(time_s)
        return None if when is None else when.utcoffset()

    def _change(self, before: float, after: float) -> float:
        """When the offset changes between two times, to less than a millisecond."""
        old = self._offset(before)
        while after - before > 1e-4:
            middle = (before + after) / 2
            before, after = (before, middle) if self._offset(middle) != old else (middle, after)
        return after

    @property
    def name(self) -> str:
        """What its times are, in words."""
        begin = self.at(0.0)
        if begin is None:
            return "since the start"
        words = f"local time, {zone_words(begin)}"
        for change in self.changes:
            at = self.at(change)
            assert at is not None
            words += f", from {at:%d %B, %H:%M:%S} on {zone_words(at)}"
        return words

    def moment(self, time_s: float) -> str:
        """One moment, to a second."""
        when = self.at(time_s)
        return elapsed(time_s) if when is None else f"{when:%H:%M:%S}{self._zone_of(when)}"

    def _zone_of(self, when: datetime) -> str:
        """Its offset, where the clock has several."""
        return f" {zone_words(when).removeprefix('UTC') or 'UTC'}" if self.changes else ""

    def day_and_moment(self, time_s: float) -> str:
        """One moment with its day, where that is known."""
        when = self.at(time_s)
        return self.moment(time_s) if when is None else f"{when:%d %b} {self.moment(time_s)}"

    def ticks(self, begin_s: float, end_s: float, most: int) -> list[tuple[float, str]]:
        """So many round times at most, each with its words."""
        wide = max(end_s - begin_s, 1e-9)
        days = DAY_S * math.ceil(wide / DAY_S / most)
        step = next((step for step in STEPS_S if wide / step <= most), days)
        changes = [change for change in self.changes if begin_s < change < end_s]
        found: list[float] = []
        for since, until in pairwise([begin_s, *changes, end_s]):
            when = self.at(since)
            passed = since if when is None else round(_since_midnight(when), 3)
            first = since + math.ceil(passed / step - 1e-9) * step - passed
            count = math.floor((until - first) / step + 1e-6) + 1
            times = [first + k * step for k in range(count)]
            # After the clock was set, round times stand elsewhere: none is to lie on another.
            found += [one for one in times if not found or one - found[-1] >= CLOSE * step]
        return [(time_s, self._tick(time_s, step)) for time_s in found]

    def _tick(self, time_s: float, step: float) -> str:
        when = self.at(time_s)
        if when is None:
            return elapsed(time_s)
        if step >= DAY_S:
            return f"{when:%d %b}"
        words = f"{when:%H:%M}" if step >= 60 else f"{when:%H:%M:%S}"
        return f"{words}{self._zone_of(when)}"


def _since_midnight(when: datetime) -> float:
    midnight = when.replace(hour=0, minute=0, second=0, microsecond=0)
    return (when - midnight).total_seconds()


def zone_words(when: datetime) -> str:
    """The zone of a local time, such as "UTC+01:00"."""
    offset = f"{when:%z}"
    return "UTC" if offset == "+0000" else f"UTC{offset[:3]}:{offset[3:5]}"


def elapsed(time_s: float) -> str:
    """Seconds as 0:05, 12:30 or 1:02:30."""
    whole = round(time_s)
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def duration(seconds: float) -> str:
    """How long something was, in words."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60) if seconds >= 3600 else int(seconds // 60)
    if seconds < 3600:
        rest = round(seconds - 60 * minutes)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
