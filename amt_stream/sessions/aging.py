"""The age of closed parts: time that is known to have passed, whatever date the computer shows."""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from amt_stream.core.clock import DAY_S
from amt_stream.core.json_types import JsonMap
from amt_stream.core.saved_state import Unfitting
from amt_stream.engine.clock import ClockReading

OFF_S = 7 * DAY_S
"""The longest time for which the computer may have been off, and its date still counts."""

FIRST_UTC = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""No date before this one is right: the program did not exist yet."""


class Age(NamedTuple):
    """The age of a part in seconds since it was closed.

    known_s: what is known to have passed
    shown_s: what the dates of the computer show; NaN if the earlier date cannot be right
    """

    known_s: float
    shown_s: float


def reading_in(entry: JsonMap) -> ClockReading | None:
    """The clocks when an entry of a chain was written; None if it does not say."""
    found = entry.get("at")
    if not isinstance(found, Mapping):
        return None
    reading = ClockReading()
    try:
        reading.load_state_dict(found)
    except Unfitting:
        return None
    return reading if math.isfinite(reading.utc) and math.isfinite(reading.boot_s) else None


def known_s(before: ClockReading | None, after: ClockReading | None) -> float:
    """Seconds that are known to have passed between two moments.

    While the computer runs, a clock that nobody can set measures them. While it is off only the
    date can tell, so a long time, which a clock that was reset would show too, does not count.
    """
    if before is None or after is None:
        return 0.0
    passed_s = before.until(after) or 0.0
    return passed_s if before.same_boot(after) or passed_s <= OFF_S else 0.0


def ages(entries: Iterable[JsonMap], now: ClockReading) -> list[Age]:
    """The age of each entry of a whole chain, in order."""
    readings = [*(reading_in(entry) for entry in entries), now]
    found, total_s = [], 0.0
    for before, after in zip(readings[-2::-1], readings[:0:-1], strict=True):
        total_s += known_s(before, after)
        dated = before is not None and before.utc >= FIRST_UTC
        found.append(Age(total_s, now.utc - before.utc if before and dated else math.nan))
    return found[::-1]
