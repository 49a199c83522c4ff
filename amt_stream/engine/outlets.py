"""All sinks of an engine together."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator

from amt_stream.engine.course import Course
from amt_stream.engine.outlet import Outlet
from amt_stream.frames import Chunk, Event, Frames, Snapshot


class Outlets:
    """Hands everything to each outlet, and to one that joins later the last seconds first.

    recent_s: how many seconds of frames are kept for those
    recent_is_all: whether the first frames will be those of the beginning
    """

    def __init__(self, course: Course, recent_s: float, recent_is_all: bool) -> None:
        self.failures: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._course = course
        self._all: tuple[Outlet, ...] = ()
        self._notes: dict[Outlet, str] = {}
        self._recent: deque[Frames] = deque()
        self._recent_s, self._recent_is_all = recent_s, recent_is_all
        self._started = False
        self._lock = threading.RLock()

    def __iter__(self) -> Iterator[Outlet]:
        return iter(self._all)

    def add(self, outlet: Outlet) -> None:
        """One whose notes are told too [before start]."""
        self._all = (*self._all, outlet)
        self._notes[outlet] = ""

    def start(self, then: Callable[[], None]) -> None:
        """Start all that are there, and `then` what gives them something [main-thread]."""
        with self._lock:
            self._started = True
            for outlet in self._all:
                outlet.start()
            then()

    def join(self, outlet: Outlet, begin: Callable[[float, float], None]) -> None:
        """Add one while all runs: it hears the last seconds first, then what comes [any-thread].

        begin: called first with the earliest and the latest time of these seconds, where there was
            sound before them
        """
        with self._lock:
            recent = tuple(self._recent)
            self._all = (*self._all, outlet)
            started = self._started
            if self._course.is_over:
                outlet.close()
        if recent and not self._recent_is_all:
            begin(recent[0].begin_s, recent[-1].begin_s)
        if started:
            outlet.replay(recent)
            outlet.start()

    def part(self, outlet: Outlet) -> None:
        """Want nothing more for one that joined [any-thread]."""
        with self._lock:
            self._all = tuple(one for one in self._all if one is not outlet)
        outlet.retire()

    def leave(self, outlet: Outlet) -> None:
        """Give nothing more to one; what waits for it is still delivered [any-thread]."""
        with self._lock:
            self._all = tuple(one for one in self._all if one is not outlet)
        outlet.close()

    def end(self) -> tuple[Outlet, ...]:
        """Nothing more comes; gives those that are to be closed [engine-thread]."""
        with self._lock:
            self._course.done.set()
            return self._all

    def forget(self, model: str) -> None:
        """What a model gave is not told to those that join from here on [engine-thread]."""
        with self._lock:
            self._recent = deque(one for one in self._recent if one.model != model)
            self._recent_is_all = False

    def recent(self, model: str, row: str, after_s: float) -> list[Frames]:
        """Those of a model that end after a time, of the last seconds [any-thread]."""
        found: list[Frames] = []
        with self._lock:
            for frames in reversed(self._recent):
                if (frames.model, frames.row) == (model, row) and not frames.after_end:
                    if frames.end_s <= after_s:
                        break
                    found.append(frames)
        return found[::-1]

    def put(self, frames: Frames) -> None:
        """[engine-thread]"""
        with self._lock:
            self._recent.append(frames)
            end_s = min(frames.end_s, frames.ended_s)
            while self._recent[0].begin_s < end_s - self._recent_s:
                self._recent.popleft()
                self._recent_is_all = False
            outlets = self._all
        for outlet in outlets:
            outlet.put(frames)

    def tell(self, event: Event) -> None:
        """[engine-thread]"""
        for outlet in self._all:
            outlet.tell(event)

    @property
    def hear_sound(self) -> bool:
        """Whether one of them does."""
        return any(outlet.hears_sound for outlet in self._all)

    def hear(self, chunk: Chunk) -> None:
        """Hand on sound to those that hear it [engine-thread]."""
        for outlet in self._all:
            if outlet.hears_sound:
                outlet.hear(chunk)

    @property
    def hear_snapshots(self) -> bool:
        """Whether one of them does, and has room for one."""
        return any(outlet.hears_snapshots for outlet in self._all)

    def keep(self, snapshot: Snapshot) -> None:
        """Hand a snapshot to those that hear them [engine-thread]."""
        for outlet in self._all:
            outlet.keep(snapshot)

    def told(self) -> Iterator[str]:
        """Failures of sinks, and what they say of themselves, each once [engine-thread]."""
        while not self.failures.empty():
            yield self.failures.get()
        for outlet, told in self._notes.items():
            note = outlet.note
            if note != told:
                self._notes[outlet] = note
                if note:
                    yield note
