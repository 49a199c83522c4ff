"""Messages about a running measurement on standard error."""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from amt_stream.cli.messages import matter, say
from amt_stream.meters.state_signs import AWAY

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine
    from amt_stream.meters.frames import Event

SAID = (
    *("stall", "lost", "silent", "dead_channel", "back", "gain", "calibrated", "offset", "clip"),
    "sound_kept",
)
"""Kinds of events that are reported: states of the input and its gain, and written sound."""

OVERDUE_S = 2.0


class Watch:
    """Reports events of the device and notes of the engine, each once."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._began = time.monotonic()
        self._newest: Event | None = None
        self._happened = self._note = ""

    def look(self) -> None:
        """Report what is new since the last call."""
        new: list[Event] = []
        for event in reversed(self._engine.events):
            if event is self._newest:
                break
            new.append(event)
        for event in reversed(new):
            self._newest = event
            # The error that ends the measurement is reported at its end.
            if event.kind in SAID and event.text != str(self._engine.source.error):
                self._happened = event.text
                say(event.text)
        note = self._engine.health.note
        if note and not self.has_said(note):
            self._note = note
            if self._engine.source.state not in SILENT:  # else the event says the same
                say(note)

    def has_said(self, note: str) -> bool:
        """Whether this was the last note or event reported."""
        return matter(note) in (matter(self._note), matter(self._happened))

    def is_overdue(self, duration: float | None) -> bool:
        """Whether the duration has passed while the device is silent, so that no row shows it."""
        if duration is None or self._engine.source.state not in SILENT:
            return False
        return time.monotonic() - self._began > duration


SILENT = ("stalled", *AWAY)


def heard_s(engine: "Engine") -> float:
    """Seconds of sound so far, including lost samples."""
    health = engine.health
    return (health.samples + health.lost_samples) / engine.source.fs


class Hanging:
    """Whether an output hangs: for OVERDUE_S it was written past the end, without `progress`.

    On a computer that is too slow the last rows are late, but they come.

    is_written_past_end: whether the end of the sound is reached, and the output is being written
    """

    def __init__(
        self, is_written_past_end: Callable[[], bool], progress: Callable[[], float] = float
    ) -> None:
        self._is_written_past_end, self._progress = is_written_past_end, progress
        self._last, self._since = math.nan, math.inf

    def __call__(self) -> bool:
        if not self._is_written_past_end():
            self._last = math.nan
            return False
        progress, now = self._progress(), time.monotonic()
        if progress != self._last:
            self._last, self._since = progress, now
        return now - self._since > OVERDUE_S
