"""Times of a measurement as people read them, and round ones for an axis."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np

STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
DAY_S = 86400


@dataclass(frozen=True)
class Clock:
    """What seconds of sound are called: by the clock where it is known, else since the start.

    start: UTC of time 0, or None
    zone: whose clock; by default that of this computer
    """

    start: np.datetime64 | None
    zone: tzinfo | None = None

    def at(self, time_s: float) -> datetime | None:
        """The local time, with its zone; None where nobody knows it."""
        if self.start is None:
            return None
        begin = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            milliseconds=int(self.start.astype("datetime64[ms]").astype(np.int64))
        )
        return (begin + timedelta(seconds=time_s)).astimezone(self.zone)

    @property
    def name(self) -> str:
        """What its times are, in words."""
        begin = self.at(0.0)
        return "since the start" if begin is None else f"local time, {zone_words(begin)}"

    def moment(self, time_s: float) -> str:
        """One moment, to a second."""
        when = self.at(time_s)
        return elapsed(time_s) if when is None else f"{when:%H:%M:%S}"

    def ticks(self, begin_s: float, end_s: float, most: int) -> list[tuple[float, str]]:
        """So many round times at most, each with its words."""
        wide = max(end_s - begin_s, 1e-9)
        days = DAY_S * math.ceil(wide / DAY_S / most)
        step = next((step for step in STEPS_S if wide / step <= most), days)
        when = self.at(begin_s)
        since = begin_s if when is None else _since_midnight(when)
        first = begin_s + math.ceil(since / step - 1e-9) * step - since
        count = math.floor((end_s - first) / step + 1e-6) + 1
        return [(first + k * step, self._tick(first + k * step, step)) for k in range(count)]

    def _tick(self, time_s: float, step: float) -> str:
        when = self.at(time_s)
        if when is None:
            return elapsed(time_s)
        if step >= DAY_S:
            return f"{when:%d %b}"
        return f"{when:%H:%M}" if step >= 60 else f"{when:%H:%M:%S}"


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
