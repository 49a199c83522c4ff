"""Faults of a station, reported on standard error while it measures."""

import asyncio
import time
from typing import TYPE_CHECKING

from amt_stream.cli.messages import matter, say

if TYPE_CHECKING:
    from amt_stream.service.station import Station

LOOK_S = 0.5
GONE_S = 10.0
"""A fault absent for this long is over; if it returns it is reported again."""


class Complaints:
    """Reports each fault of a station once, and when none is left."""

    def __init__(self) -> None:
        self._seen_at: dict[str, float] = {}

    async def follow(self, station: "Station") -> None:
        """Report faults until cancelled [loop-thread]."""
        while True:
            await asyncio.sleep(LOOK_S)
            # The fault that ends the station is reported at its end.
            if station.running:
                self.report(station.why, time.monotonic())

    def report(self, sentences: list[str], now: float) -> None:
        """Say the faults that are new at time `now` in seconds."""
        known, present = self._seen_at, {matter(one): one for one in sentences}
        for key in present.keys() - known.keys():
            say(present[key])
        seen = known | dict.fromkeys(present, now)
        self._seen_at = {key: at for key, at in seen.items() if now - at < GONE_S}
        if known and not self._seen_at:
            say("all is well again")
