"""Distributes an engine's events."""

import contextlib
from collections import deque
from dataclasses import replace

from amt_stream.engine.models.running_models import RunningModels
from amt_stream.engine.sinks.sinks import Sinks
from amt_stream.engine.sources import Block
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.meters import frames

EVENTS = 1000
FULL = "the buffer was full"

GAVE_ZEROS = "{} gave exact zeros"
"""The cause of a gap, with the name of the microphone."""


@thread_checked
class EventBus:
    """Sends events to all sinks that take them, and keeps the last thousand."""

    def __init__(self, sinks: Sinks, timeline: Timeline, models: RunningModels) -> None:
        self._source, self.sinks = timeline.source, sinks
        self._timeline, self._models = timeline, models
        self._sent_restored = False
        self._events: deque[frames.Event] = deque(maxlen=EVENTS)
        self._incoming: deque[tuple[str, str] | frames.Event] = deque()
        self._notes: deque[tuple[str, str, str]] = deque()

    @property
    def events(self) -> tuple[frames.Event, ...]:
        """The last events, oldest first [any-thread]."""
        return tuple(self._events.copy())

    def by_source(self, kind: str, text: str) -> None:
        """Queue an event from the source for the model thread [any-thread]."""
        self._incoming.append((kind, text))

    def by_sink(self, event: frames.Event) -> None:
        """Queue an event that a sink found in the sound for the model thread [any-thread].

        One that leaves out an impulse, or counts it, needs only its time.
        """
        self._incoming.append(event)

    def by_person(self, kind: str, text: str, microphone: str) -> None:
        """Queue a person's note; at the end of the sound it needs no further block [any-thread]."""
        self._notes.append((kind, text, microphone))

    def note(self) -> None:
        """Send the next note, as one of the commands [model-thread]."""
        with contextlib.suppress(IndexError):
            self.here(*self._notes.popleft())

    def notes(self) -> None:
        """Send the notes for which no command ran [model-thread]."""
        while self._notes:
            self.note()

    def pass_on(self) -> None:
        """Send the queued events of the source and the sinks [model-thread]."""
        if not self._incoming:  # the usual case
            return
        # With models in the callback, two threads may be here.
        with contextlib.suppress(IndexError):
            while self._incoming:
                event = self._incoming.popleft()
                if isinstance(event, frames.Event):
                    if event.kind in frames.IMPULSE_COUNTING:
                        sample = round(event.time_s * self._source.fs)
                        event = replace(event, sample=sample, utc=self._utc(sample))
                    self._pass(event)
                else:
                    self.here(*event)

    def block(self, block: Block, lost: int, flags: int, dropped: int = 0) -> None:
        """Send the events before a block, and its sound [model-thread].

        dropped: samples of the `lost` ones that this program dropped
        """
        self.sink_notes()
        self.pass_on()
        if self._source.live and (change := self._timeline.utc.change()):
            self.here("clock", change)
        self.gap(lost, flags, dropped)
        self.sound(block, lost, flags)

    def sound(self, block: Block, lost: int, flags: int) -> None:
        """Hand a copy of the sound to every sink that takes sound [model-thread]."""
        if not self.sinks.takes(frames.Chunk):
            return
        sample = self._models.position + lost
        samples = block.copy()
        samples.flags.writeable = False
        self.sinks.give(frames.Chunk(samples, sample, self._utc(sample), lost, flags))

    def sink_notes(self) -> None:
        """Send events about failures of sinks, and what sinks report [model-thread]."""
        for text in self.sinks.reports():
            self.here("sink", text)

    def gap(self, lost: int, flags: int, dropped: int = 0) -> None:
        """Send an event for each cause if samples are missing [model-thread]."""
        if self._timeline.restored and not self._sent_restored:
            self._sent_restored = True
            self._tell("restored", self._timeline.first_sample, text="it resumes where it stopped")
        at = self._models.position
        if lost > dropped:
            why, cause = self._timeline.why_missing(), frames.INTERRUPTED
            if not why:
                cause, name = frames.cause_of_gap(flags & ~frames.Fault.OVERLOAD), self._source.name
                why = GAVE_ZEROS.format(name) if cause == frames.SILENT else f"{name} lost it"
            self._tell("gap", at, lost - dropped, why, cause=cause)
        if dropped:
            self._tell("gap", at + lost - dropped, dropped, FULL, cause=frames.BUFFER)

    def gap_of(self, microphone: str, sample: int, samples: int, faults: int) -> None:
        """Send an event after a gap of one microphone has ended [model-thread]."""
        name, cause = microphone or f"a channel of {self._source.name}", frames.cause_of_gap(faults)
        why = GAVE_ZEROS.format(name) if cause == frames.SILENT else f"{name} had no sound"
        self._tell("gap", sample, samples, why, microphone, cause)

    def here(self, kind: str, text: str, microphone: str = "", cause: str = "") -> None:
        """Send an event at the sample that the models have reached [model-thread]."""
        at = self._models.position
        self._tell(kind, at, text=text, microphone=microphone, cause=cause)

    def _tell(
        self,
        kind: str,
        sample: int,
        samples: int = 0,
        text: str = "",
        microphone: str = "",
        cause: str = "",
    ) -> None:
        time_s, utc = sample / self._source.fs, self._utc(sample)
        self._pass(frames.Event(kind, sample, time_s, utc, samples, text, microphone, cause))

    def _utc(self, sample: int) -> float:
        time_s = sample / self._source.fs
        return self._timeline.epoch(time_s) + time_s

    def _pass(self, event: frames.Event) -> None:
        self._events.append(event)
        self.sinks.give(event)
