"""All sinks of an engine."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator

from amt_stream.engine.run_state import RunState
from amt_stream.engine.sinks.sink_thread import SinkThread
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.meters.frames import Chunk, Event, Frames, Snapshot


@thread_checked
class Sinks:
    """Hands everything to all sinks; a sink that joins later first gets the last seconds.

    recent_s: seconds of frames kept for that
    """

    def __init__(self, state: RunState, timeline: Timeline, recent_s: float) -> None:
        self.failures: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._state, self._timeline = state, timeline
        self._all: tuple[SinkThread, ...] = ()
        self._notes: dict[SinkThread, str] = {}
        self._recent: deque[Frames] = deque()
        self._recent_s, self._recent_is_all = recent_s, True
        self._started = False
        self._lock = threading.RLock()

    def __iter__(self) -> Iterator[SinkThread]:
        return iter(self._all)

    def add(self, sink_thread: SinkThread) -> None:
        """Add a sink whose notes are reported [before start]."""
        self._all = (*self._all, sink_thread)
        self._notes[sink_thread] = ""

    def start(self, then: Callable[[], None]) -> None:
        """Start all sinks, and then their input by `then()` [main-thread]."""
        with self._lock:
            self._started = True
            for sink_thread in self._all:
                sink_thread.start()
            then()

    def join(self, sink_thread: SinkThread, begin: Callable[[float, float], None]) -> None:
        """Add a sink while the engine runs; it first gets the last seconds [any-thread].

        begin: called first with the earliest and the latest time of these, if there was sound
            before them
        """
        with self._lock:
            recent = tuple(self._recent)
            self._all = (*self._all, sink_thread)
            started = self._started
            if self._state.is_over:
                sink_thread.close()
        if recent and not (self._recent_is_all and self._timeline.first_sample == 0):
            begin(recent[0].begin_s, recent[-1].begin_s)
        if started:
            sink_thread.replay(recent)
            sink_thread.start()

    def part(self, sink_thread: SinkThread) -> None:
        """Drop a sink that joined [any-thread]."""
        sink_thread.retire()
        self.leave(sink_thread)

    def leave(self, sink_thread: SinkThread) -> None:
        """Remove a sink; it still gets what is queued [any-thread]."""
        with self._lock:
            self._all = tuple(one for one in self._all if one is not sink_thread)
        sink_thread.close()

    def end(self) -> tuple[SinkThread, ...]:
        """End: no more input; returns the sinks to be closed [model-thread]."""
        with self._lock:
            self._state.done.set()
            return self._all

    def forget(self, model: str) -> None:
        """Forget a model's recent frames, for sinks that join later [model-thread]."""
        with self._lock:
            self._recent = deque(one for one in self._recent if one.model != model)
            self._recent_is_all = False

    def recent(self, model: str, microphone: str, after_s: float) -> list[Frames]:
        """Recent frames of a model that end after `after_s` [any-thread]."""
        found: list[Frames] = []
        with self._lock:
            for frames in reversed(self._recent):
                if (frames.model, frames.microphone) == (
                    model,
                    microphone,
                ) and not frames.after_end:
                    if frames.end_s <= after_s:
                        break
                    found.append(frames)
        return found[::-1]

    def put(self, frames: Frames) -> None:
        """Hand on frames [model-thread]."""
        with self._lock:
            self._recent.append(frames)
            end_s = min(frames.end_s, frames.ended_s)
            while self._recent[0].begin_s < end_s - self._recent_s:
                self._recent.popleft()
                self._recent_is_all = False
            threads = self._all
        for sink_thread in threads:
            sink_thread.put(frames)

    def takes(self, kind: type[Chunk | Snapshot]) -> bool:
        """Whether any sink takes sound, or takes snapshots and has room for one [any-thread]."""
        return any(sink_thread.takes(kind) for sink_thread in self._all)

    def give(self, thing: Event | Chunk | Snapshot) -> None:
        """Hand it on to the sinks that take its kind [model-thread]."""
        for sink_thread in self._all:
            sink_thread.give(thing)

    @property
    def needed(self) -> set[str]:
        """Models that the sinks need."""
        return {model for sink_thread in self._all for model in sink_thread.needed}

    def reports(self) -> Iterator[str]:
        """Failures and new notes of sinks, each once [model-thread]."""
        while not self.failures.empty():
            yield self.failures.get()
        for sink_thread, before in self._notes.items():
            note = sink_thread.note
            if note != before:
                self._notes[sink_thread] = note
                if note:
                    yield note
