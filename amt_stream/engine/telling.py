"""What happens in an engine, told as events."""

import contextlib
from collections import deque
from collections.abc import Callable

from amt_stream.engine.outlets import Outlets
from amt_stream.engine.resuming import BrokenOff
from amt_stream.engine.sources import Source
from amt_stream.frames import Event, Fault

EVENTS = 1000


class Telling:
    """Tells every sink that hears events, and keeps the last thousand.

    position: gives the sample that the models have reached
    epoch: gives UTC of the first sample, as known at a time of the sound
    resumed_at: the sample where it goes on with what another engine began, else None
    """

    def __init__(
        self,
        source: Source,
        outlets: Outlets,
        broken_off: BrokenOff,
        position: Callable[[], int],
        epoch: Callable[[float], float],
        resumed_at: int | None,
    ) -> None:
        self._source, self._outlets, self._broken_off = source, outlets, broken_off
        self._position, self._epoch, self._resumed_at = position, epoch, resumed_at
        self._events: deque[Event] = deque(maxlen=EVENTS)
        self._told: deque[tuple[str, str] | Event] = deque()
        self._notes: deque[tuple[str, str, str]] = deque()

    @property
    def events(self) -> tuple[Event, ...]:
        """[any-thread]"""
        return tuple(self._events.copy())

    def by_source(self, kind: str, text: str) -> None:
        """Keep what the source says for the engine's own thread [any-thread]."""
        self._told.append((kind, text))

    def by_sink(self, event: Event) -> None:
        """Keep what a sink has found in the sound for the engine's own thread [any-thread]."""
        self._told.append(event)

    def by_person(self, kind: str, text: str, row: str) -> None:
        """Keep a note; where the sound ends it has no next block to wait for [any-thread]."""
        self._notes.append((kind, text, row))

    def note(self) -> None:
        """Tell of the next thing that a person has noted, among commands [engine-thread]."""
        with contextlib.suppress(IndexError):
            self.here(*self._notes.popleft())

    def notes(self) -> None:
        """Tell of what persons have noted and no command has told of [engine-thread]."""
        while self._notes:
            self.note()

    def pass_on(self) -> None:
        """Tell what the source and sinks have said meanwhile [engine-thread]."""
        if not self._told:  # nearly always so
            return
        # Of a callback, two threads may do this.
        with contextlib.suppress(IndexError):
            while self._told:
                told = self._told.popleft()
                if isinstance(told, Event):
                    self._pass(told)
                else:
                    self.here(*told)

    def sinks(self) -> None:
        """Tell of failures of sinks, and what they say of themselves [engine-thread]."""
        for text in self._outlets.told():
            self.here("sink", text)

    def gap(self, lost: int, flags: int) -> None:
        """Tell that samples are missing, if some are [engine-thread]."""
        if self._resumed_at is not None:
            at, self._resumed_at = self._resumed_at, None
            self._tell("resumed", at, text="it goes on where it stopped")
        if lost:
            cause = f"{self._source.name} lost it"
            if flags & Fault.OVERLOAD:
                cause = "it found no room"
            self._tell("gap", self._position(), lost, self._broken_off.told() or cause)

    def gap_of(self, row: str, sample: int, samples: int) -> None:
        """Tell that samples of one row were missing, once that has ended [engine-thread]."""
        self._tell("gap", sample, samples, f"{row or self._source.name} had no sound", row)

    def here(self, kind: str, text: str, row: str = "") -> None:
        """Tell of something at the sample that the models have reached [engine-thread]."""
        self._tell(kind, self._position(), text=text, row=row)

    def _tell(
        self, kind: str, sample: int, samples: int = 0, text: str = "", row: str = ""
    ) -> None:
        time_s = sample / self._source.fs
        utc = self._epoch(time_s) + time_s
        self._pass(Event(kind, sample, time_s, utc, samples, text, row))

    def _pass(self, event: Event) -> None:
        self._events.append(event)
        self._outlets.tell(event)
