"""What is wrong with a station, on standard error while it measures."""

import asyncio
import time
from typing import TYPE_CHECKING

from amt_stream.cli.messages import matter, say

if TYPE_CHECKING:
    from amt_stream.service.station import Station

LOOK_S = 0.5
GONE_S = 10.0
"""What has not been so for as long is over, and said anew when it comes back."""


class Complaints:
    """Says each sentence of why a station is not well once, and when none is left."""

    def __init__(self) -> None:
        self._held_at: dict[str, float] = {}

    async def follow(self, station: "Station") -> None:
        """Go on until it is cancelled [loop-thread]."""
        while True:
            await asyncio.sleep(LOOK_S)
            # What ends it is said at its end.
            if station.running:
                self.hear(station.why, time.monotonic())

    def hear(self, sentences: list[str], now: float) -> None:
        """Say what is new of what is wrong at a time in seconds."""
        known, there = self._held_at, {matter(one): one for one in sentences}
        for key in there.keys() - known.keys():
            say(there[key])
        held = known | dict.fromkeys(there, now)
        self._held_at = {key: at for key, at in held.items() if now - at < GONE_S}
        if known and not self._held_at:
            say("all is well again")
