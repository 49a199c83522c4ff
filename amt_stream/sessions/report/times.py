"""Times of a measurement as text, and round times for an axis."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from itertools import pairwise

import numpy as np

from amt_stream.core.clock import DAY_S
from amt_stream.sessions.results import Results
from amt_stream.sessions.results.sound_clock import SoundClock

STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)

CLOSE = 0.75
"""Smallest distance between times on an axis, in steps."""


@dataclass(frozen=True)
class Clock:
    """Formats times of sound: local time if UTC is known, else time since the start.

    sound: UTC of the sound, or None
    zone: time zone; by default that of this computer
    end_s: end of the measurement: if the offset changes before it, as with daylight saving, all
        times have their offset
    """

    sound: SoundClock | None
    zone: tzinfo | None = None
    end_s: float = 0.0

    @classmethod
    def of(cls, results: Results, zone: tzinfo | None = None) -> "Clock":
        """The clock of a measurement, in its own zone unless another one is given."""
        return cls(results.clock, zone or results.zone, results.duration_s)

    def at(self, time_s: float, after: bool = False) -> datetime | None:
        """The local time with its zone, as of `SoundClock.utc`; None if unknown."""
        if self.sound is None:
            return None
        since = timedelta(milliseconds=round(1000 * self.sound.utc(time_s, after)))
        return (datetime(1970, 1, 1, tzinfo=UTC) + since).astimezone(self.zone)

    @cached_property
    def changes(self) -> list[float]:
        """Times of changes of the offset up to `end_s`, in seconds of sound."""
        if self.sound is None:
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
        """The time of a change of the offset between two times, within a millisecond."""
        old = self._offset(before)
        while after - before > 1e-4:
            middle = (before + after) / 2
            before, after = (before, middle) if self._offset(middle) != old else (middle, after)
        return after

    @property
    def name(self) -> str:
        """Description of the times."""
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
        """A time to the second, as text."""
        when = self.at(time_s)
        return elapsed(time_s) if when is None else f"{when:%H:%M:%S}{self._zone_of(when)}"

    def _zone_of(self, when: datetime) -> str:
        """The offset of a time as text, if the clock has several."""
        return f" {zone_words(when).removeprefix('UTC') or 'UTC'}" if self.changes else ""

    def day_and_moment(self, time_s: float) -> str:
        """A time with its day, if known, as text."""
        when = self.at(time_s)
        return self.moment(time_s) if when is None else f"{when:%d %b} {self.moment(time_s)}"

    def ticks(self, begin_s: float, end_s: float, most: int) -> list[tuple[float, str]]:
        """At most `most` round times, with their texts."""
        wide = max(end_s - begin_s, 1e-9)
        days = DAY_S * math.ceil(wide / DAY_S / most)
        step = next((step for step in STEPS_S if wide / step <= most), days)
        set_s = [] if self.sound is None else self.sound.set_s.tolist()
        changes = [one for one in sorted({*self.changes, *set_s}) if begin_s < one < end_s]
        found: list[float] = []
        for since, until in pairwise([begin_s, *changes, end_s]):
            when = self.at(since, after=True)
            passed = since if when is None else round(_since_midnight(when), 3)
            first = since + math.ceil(passed / step - 1e-9) * step - passed
            count = math.floor((until - first) / step + 1e-6) + 1
            times = [self._after(since, first - since + k * step) for k in range(count)]
            # After a change of the offset, round times may come close to earlier ones.
            found += [one for one in times if not found or one - found[-1] >= CLOSE * step]
        return [(time_s, self._tick(time_s, step)) for time_s in found]

    def _after(self, since: float, seconds: float) -> float:
        """The time of sound at which the clock has gone on by so much; sound drifts against it."""
        if self.sound is None:
            return since + seconds
        return self.sound.until(self.sound.utc(since, after=True) + seconds, since)

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
    """A duration as text."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60) if seconds >= 3600 else int(seconds // 60)
    if seconds < 3600:
        rest = round(seconds - 60 * minutes)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
