"""What is said on standard error of a measurement while it runs."""

import math
import time
from typing import TYPE_CHECKING

from amt_stream.cli.messages import matter, say

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine
    from amt_stream.meters.frames import Event

SAID = ("stall", "lost", "back", "sound_kept")
"""Events that are said: what a device does, and where sound is kept."""

OVERDUE_S = 2.0


class Watch:
    """Says each thing once: what a device does, and the engine's notes."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._began = time.monotonic()
        self._newest: Event | None = None
        self._happened = self._note = ""

    def look(self) -> None:
        """Say what has happened since the last look."""
        new: list[Event] = []
        for event in reversed(self._engine.events):
            if event is self._newest:
                break
            new.append(event)
        for event in reversed(new):
            self._newest = event
            # What ends the measurement is said at its end.
            if event.kind in SAID and event.text != str(self._engine.source.error):
                self._happened = event.text
                say(event.text)
        note = self._engine.health.note
        if note and not self.has_said(note):
            self._note = note
            if self._engine.source.state not in SILENT:  # else it is an event's sentence
                say(note)

    def has_said(self, note: str) -> bool:
        """Whether that is what was last said, of an event or of a note."""
        return matter(note) in (matter(self._note), matter(self._happened))

    def is_overdue(self, duration: float | None) -> bool:
        """Whether so many seconds have passed, and no row tells it as the device is silent."""
        if duration is None or self._engine.source.state not in SILENT:
            return False
        return time.monotonic() - self._began > duration


SILENT = ("stalled", "lost")


def heard_s(engine: "Engine") -> float:
    """Seconds of sound so far, what was lost included."""
    health = engine.health
    return (health.samples + health.lost_samples) / engine.source.fs


class Hanging:
    """Whether what shows or writes a measurement hangs: there is sound enough, and no end."""

    def __init__(self, engine: "Engine", duration: float | None) -> None:
        self._engine = engine
        self._enough_s = math.inf if duration is None else duration
        self._since: float | None = None

    def __call__(self) -> bool:
        if heard_s(self._engine) < self._enough_s:
            return False
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since > OVERDUE_S
