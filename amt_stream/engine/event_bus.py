"""What happens in an engine, told as events."""

import contextlib
from collections import deque

from amt_stream.engine.running_models import RunningModels
from amt_stream.engine.sinks import Sinks
from amt_stream.engine.sources import Block
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.meters.frames import Chunk, Event, Fault

EVENTS = 1000


@thread_checked
class EventBus:
    """Tells every sink that hears events, and keeps the last thousand."""

    def __init__(self, sinks: Sinks, timeline: Timeline, models: RunningModels) -> None:
        self._source, self.sinks = timeline.source, sinks
        self._timeline, self._models = timeline, models
        self._told_restored = False
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

    def by_person(self, kind: str, text: str, microphone: str) -> None:
        """Keep a note; where the sound ends it has no next block to wait for [any-thread]."""
        self._notes.append((kind, text, microphone))

    def note(self) -> None:
        """Tell of the next thing that a person has noted, among commands [model-thread]."""
        with contextlib.suppress(IndexError):
            self.here(*self._notes.popleft())

    def notes(self) -> None:
        """Tell of what persons have noted and no command has told of [model-thread]."""
        while self._notes:
            self.note()

    def pass_on(self) -> None:
        """Tell what the source and sinks have said meanwhile [model-thread]."""
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

    def block(self, block: Block, lost: int, flags: int) -> None:
        """Tell what there is to be told before a block of sound, and of that [model-thread]."""
        self.sink_notes()
        self.pass_on()
        if self._source.live and (change := self._timeline.utc.change()):
            self.here("clock", change)
        self.gap(lost, flags)
        self.sound(block, lost, flags)

    def sound(self, block: Block, lost: int, flags: int) -> None:
        """Hand a copy of the sound to every sink that hears it [model-thread]."""
        if not self.sinks.hear_sound:
            return
        sample = self._models.position + lost
        samples = block.copy()
        samples.flags.writeable = False
        self.sinks.hear(Chunk(samples, sample, self._utc(sample), lost, flags))

    def sink_notes(self) -> None:
        """Tell of failures of sinks, and what they say of themselves [model-thread]."""
        for text in self.sinks.told():
            self.here("sink", text)

    def gap(self, lost: int, flags: int) -> None:
        """Tell that samples are missing, if some are [model-thread]."""
        if self._timeline.restored and not self._told_restored:
            self._told_restored = True
            self._tell("restored", self._timeline.first_sample, text="it goes on where it stopped")
        if lost:
            cause = f"{self._source.name} lost it"
            if flags & Fault.OVERLOAD:
                cause = "it found no room"
            self._tell("gap", self._models.position, lost, self._timeline.why_missing() or cause)

    def gap_of(self, microphone: str, sample: int, samples: int) -> None:
        """Tell that samples of one microphone were missing, once that has ended [model-thread]."""
        self._tell(
            "gap", sample, samples, f"{microphone or self._source.name} had no sound", microphone
        )

    def here(self, kind: str, text: str, microphone: str = "") -> None:
        """Tell of something at the sample that the models have reached [model-thread]."""
        self._tell(kind, self._models.position, text=text, microphone=microphone)

    def _tell(
        self, kind: str, sample: int, samples: int = 0, text: str = "", microphone: str = ""
    ) -> None:
        time_s, utc = sample / self._source.fs, self._utc(sample)
        self._pass(Event(kind, sample, time_s, utc, samples, text, microphone))

    def _utc(self, sample: int) -> float:
        time_s = sample / self._source.fs
        return self._timeline.epoch(time_s) + time_s

    def _pass(self, event: Event) -> None:
        self._events.append(event)
        self.sinks.tell(event)
