"""A sink and its thread."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from amt_stream.engine.thread_check import runs_as, thread_checked
from amt_stream.meters.frames import (
    Chunk,
    Event,
    Fault,
    Frames,
    HasNote,
    HearsEvents,
    HearsSnapshots,
    HearsSound,
    NeedsModels,
    Snapshot,
)

Sink = Callable[[Frames], object]
Handed = Frames | Chunk | Event | Snapshot
"""Anything that a sink may get."""

FAILURES_IN_A_ROW = 5
GRACE_S = 1.0
EVENTS_WAIT = 1000

log = logging.getLogger("amt_stream")


def sink_name(sink: Callable[..., object]) -> str:
    """A sink's name for messages."""
    return str(getattr(sink, "__qualname__", type(sink).__qualname__))


class Missed:
    """Frames of one model that a sink missed, to be reported with the next ones."""

    def __init__(self) -> None:
        self._fault = int(Fault.OVERLOAD)
        self._frames = self._skipped = 0
        self._gaps: tuple[tuple[int, int], ...] = ()

    def add(self, frames: Frames) -> None:
        if frames.gaps:
            self._fault |= int(frames.fault[0])
        self._frames += len(frames)
        self._skipped += frames.skipped
        if gaps := self._gaps + frames.gaps:
            # Merged, because frames between them were missed too and the list must stay short.
            self._gaps = ((gaps[0][0], gaps[-1][1]),)

    def before(self, frames: Frames) -> Frames:
        """The next frames, with a report of what was missed before them."""
        fault = frames.fault.copy()
        fault[0] |= np.uint8(self._fault)
        return replace(
            frames,
            later=None,
            fault=fault,
            missed=self._frames,
            skipped=self._skipped + frames.skipped,
            gaps=self._gaps + frames.gaps,
        )


@thread_checked
class SinkThread:
    """Calls one sink from its own thread, behind a bounded queue.

    So a slow or hanging sink delays neither the model nor another sink. When the queue is full, a
    live stream goes on without the sink: frames are counted, and the next ones report how many were
    missed and carry Fault.OVERLOAD. With `lossy=False`, a source that can wait waits instead. The
    sink owns the arrays of its frames and may change them, unless it declares `only_reads`. It gets
    frames after the end of the sound if it declares `hears_tail`.

    finish: called last, in the sink's thread, with whether the sink was still wanted
    failed: called with a sentence at the sink's first failure, and when it is dropped
    """

    def __init__(
        self,
        sink: Sink,
        limit: int,
        lossy: bool,
        name: str | None = None,
        finish: Callable[[bool], None] | None = None,
        failed: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.name = name or sink_name(sink)
        self.errors = 0
        self.missed = 0
        self.retired = False
        self._finish, self._failed = finish, failed
        self._calls: dict[type[Handed], Callable[[Any], object]] = {Frames: sink}
        if isinstance(sink, HearsEvents):
            self._calls[Event] = sink.event
        if isinstance(sink, HearsSound):
            self._calls[Chunk] = sink.sound
        if isinstance(sink, HearsSnapshots):
            self._calls[Snapshot] = sink.snapshot
        self._only_reads = getattr(sink, "only_reads", False)
        self._hears_tail = getattr(sink, "hears_tail", False)
        self._noted = sink if isinstance(sink, HasNote) else None
        self._needs = sink if isinstance(sink, NeedsModels) else None
        # Sound chunks come about as often as frames.
        self._limit, self._lossy = limit * (2 if Chunk in self._calls else 1), lossy
        self._missed: dict[tuple[str, str], Missed] = {}
        self._unheard_before_next = 0
        self._queue: queue.SimpleQueue[Handed | None] = queue.SimpleQueue()
        self._hurried_at: float | None = None
        self._over = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"sink {self.name}", daemon=True)

    def start(self) -> None:
        self.thread.start()

    @runs_as("sink-thread")
    def replay(self, past: Iterable[Frames]) -> None:
        """Call the sink with earlier frames; only before `start` [any-thread]."""
        for frames in past:
            if self._hears_tail or not frames.after_end:
                self._hand_on(frames)

    def put(self, frames: Frames) -> None:
        """Queue frames; never waits if lossy [model-thread]."""
        if frames.after_end and not self._hears_tail:
            return
        if not self._room():
            self.missed += len(frames)
            self._missed.setdefault((frames.model, frames.microphone), Missed()).add(frames)
            return
        missed = self._missed.pop((frames.model, frames.microphone), None)
        if missed is not None:
            frames = missed.before(frames)
        if not self.retired:
            self._queue.put(frames)

    def takes(self, kind: type[Handed]) -> bool:
        """Whether the sink takes events, sound or snapshots, and has room for one of these
        [any-thread].
        """
        if kind not in self._calls or self.retired:
            return False
        return kind is not Snapshot or self._queue.qsize() < self._limit

    @property
    def note(self) -> str:
        """The sink's own note [any-thread]."""
        return self._noted.note if self._noted is not None else ""

    @property
    def needed(self) -> Collection[str]:
        """Models that the sink needs [any-thread]."""
        return () if self._needs is None or self.retired else self._needs.needed

    def give(self, thing: Event | Chunk | Snapshot) -> None:
        """Queue it, if the sink takes its kind; never waits if lossy [model-thread].

        No event is lost, unless the sink hangs while a thousand wait.
        """
        if not self.takes(type(thing)):
            return
        if isinstance(thing, Chunk):
            if not self._room():
                self._unheard_before_next += len(thing) + thing.lost
                return
            if self._unheard_before_next:
                thing = replace(thing, missed=self._unheard_before_next)
                self._unheard_before_next = 0
        elif isinstance(thing, Event) and self._queue.qsize() >= self._limit + EVENTS_WAIT:
            return
        if not self.retired:
            self._queue.put(thing)

    def _room(self) -> bool:
        """Whether the queue has room; waits for that if the source can wait."""
        while self._queue.qsize() >= self._limit and not self.retired:
            if self._lossy or self._hurried_at is not None:
                return False
            time.sleep(0.001)
        return True

    def hurry(self) -> None:
        """Deliver what is queued for at most one more second [any-thread]."""
        self._hurried_at = self._hurried_at or time.monotonic()

    def close(self) -> None:
        """End after what is queued [any-thread]."""
        self._queue.put(None)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the sink has had everything; False after the timeout [any-thread]."""
        if self.thread.ident is None or self.thread is threading.current_thread():
            return True
        if self._over.wait(timeout):
            self.thread.join()
        return self._over.is_set()

    def is_left(self) -> bool:
        """Whether the sink has not returned, for use at the end [any-thread]."""
        return not self.join(0.0)

    def retire(self) -> None:
        """Drop the sink: deliver nothing more, and do not wait for it [any-thread]."""
        self.retired = True
        self.close()

    @runs_as("sink-thread")
    def _run(self) -> None:
        try:
            self._call_sink()
            if self._finish is not None:
                self._finish(not self.retired)
        except BaseException:
            self.errors += 1
            log.exception("the sink %s failed at its end", self.name)
        finally:
            self._over.set()

    def _call_sink(self) -> None:
        in_a_row = 0
        while (frames := self._queue.get()) is not None:
            if self.retired:
                continue
            if self._hurried_at is not None and time.monotonic() - self._hurried_at > GRACE_S:
                self.missed += len(frames) if isinstance(frames, Frames) else 0
                continue
            try:
                worked = self._hand_on(frames)
                # Neither its own failure event nor frames without a row count as success.
                in_a_row = 0 if worked and not isinstance(frames, Event) else in_a_row
            except BaseException as error:  # SystemExit would silently end this thread
                self.errors += 1
                in_a_row += 1
                if in_a_row == 1:
                    log.exception("the sink %s failed", self.name)
                if self.errors == 1:
                    self._failed(f"the sink {self.name} failed: {type(error).__name__}: {error}")
                if in_a_row == FAILURES_IN_A_ROW or not isinstance(error, Exception):
                    self.retired = True
                    log.error("the sink %s failed %d times in a row: dropped", self.name, in_a_row)
                    self._failed(f"the sink {self.name} failed {in_a_row} times in a row: dropped")

    def _hand_on(self, given: Handed) -> bool:
        """Call the sink; False if it reports that it had nothing to do."""
        if isinstance(given, Frames) and not self._only_reads:
            given = given.copy()
        done = self._calls[type(given)](given)
        return not (isinstance(given, Frames) and done is False)
