"""A sink and its thread."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

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
    Snapshot,
)

Sink = Callable[[Frames], object]
Handed = Frames | Chunk | Event | Snapshot
"""What a sink may be given."""

FAILURES_IN_A_ROW = 5
GRACE_S = 1.0
EVENTS_WAIT = 1000

log = logging.getLogger("amt_stream")


def sink_name(sink: Callable[..., object]) -> str:
    """What a sink is called in a message."""
    return str(getattr(sink, "__qualname__", type(sink).__qualname__))


class Missed:
    """What a sink missed of one model, to be told with the next frames."""

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
            # What stood between them was missed as well, and this may go on for long.
            self._gaps = ((gaps[0][0], gaps[-1][1]),)

    def before(self, frames: Frames) -> Frames:
        """The next frames, and that they come after all this."""
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
    """Calls one sink from a thread of its own, behind a queue of bounded length.

    So a sink that is slow, or hangs for a while on a disk or a network, delays neither the model
    nor another sink. When its queue is full a live stream goes on without it: the rows are counted,
    and the next ones it gets say how many it missed and carry Fault.OVERLOAD. A source that can
    wait (a file read as fast as it goes) is made to wait instead: `lossy=False`. The arrays of
    the frames are the sink's own: it may change them, unless it says that it `only_reads` them.
    Those after the end of the sound it gets where it says that it `hears_tail`.

    finish: called last, in the sink's thread, and told whether the sink was still wanted
    failed: told in a sentence of the first failure of the sink, and when it is dropped
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
        self._sink, self._finish, self._failed = sink, finish, failed
        self._event = sink.event if isinstance(sink, HearsEvents) else None
        self._sound = sink.sound if isinstance(sink, HearsSound) else None
        self._snapshot = sink.snapshot if isinstance(sink, HearsSnapshots) else None
        self._only_reads = getattr(sink, "only_reads", False)
        self._hears_tail = getattr(sink, "hears_tail", False)
        self._noted = sink if isinstance(sink, HasNote) else None
        # Sound comes beside frames, about as often.
        self._limit, self._lossy = limit * (2 if self._sound else 1), lossy
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
        """Call the sink with what came before it was there; only before `start` [any-thread]."""
        for frames in past:
            if self._hears_tail or not frames.after_end:
                self._hand_on(frames)

    def put(self, frames: Frames) -> None:
        """Hand on rows; never waits when lossy [model-thread]."""
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

    @property
    def hears_sound(self) -> bool:
        return self._sound is not None and not self.retired

    @property
    def note(self) -> str:
        """What the sink says of itself [any-thread]."""
        return self._noted.note if self._noted is not None else ""

    def hear(self, chunk: Chunk) -> None:
        """Hand on sound, to a sink that hears it; never waits when lossy [model-thread]."""
        if not self._room():
            self._unheard_before_next += len(chunk) + chunk.lost
            return
        if self._unheard_before_next:
            chunk = replace(chunk, missed=self._unheard_before_next)
            self._unheard_before_next = 0
        if not self.retired:
            self._queue.put(chunk)

    def _room(self) -> bool:
        """Whether there is room in the queue; a source that can wait waits for it."""
        while self._queue.qsize() >= self._limit and not self.retired:
            if self._lossy or self._hurried_at is not None:
                return False
            time.sleep(0.001)
        return True

    def tell(self, event: Event) -> None:
        """Hand on an event, to a sink that hears them [model-thread].

        None is missed, unless a sink stands still while a thousand wait.
        """
        if self._event is None or self.retired:
            return
        if self._queue.qsize() < self._limit + EVENTS_WAIT:
            self._queue.put(event)

    @property
    def hears_snapshots(self) -> bool:
        """Whether a snapshot is wanted, and there is room for one [any-thread]."""
        return not (self._snapshot is None or self.retired or self._queue.qsize() >= self._limit)

    def keep(self, snapshot: Snapshot) -> None:
        """Hand on a snapshot, to a sink that hears them [model-thread]."""
        if self.hears_snapshots:
            self._queue.put(snapshot)

    def hurry(self) -> None:
        """What waits is delivered for another second at most [any-thread]."""
        self._hurried_at = self._hurried_at or time.monotonic()

    def close(self) -> None:
        """Nothing more comes; what waits is still delivered [any-thread]."""
        self._queue.put(None)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the sink has had everything; False when it has not in time [any-thread]."""
        if self.thread.ident is None or self.thread is threading.current_thread():
            return True
        if self._over.wait(timeout):
            self.thread.join()
        return self._over.is_set()

    def is_left(self) -> bool:
        """Whether the sink has not returned, to be asked once all has ended [any-thread]."""
        return not self.join(0.0)

    def retire(self) -> None:
        """Want nothing more: nobody waits for this sink from now on [any-thread]."""
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
                # To hear of its own failure is no success, nor are frames that complete no row.
                in_a_row = 0 if worked and not isinstance(frames, Event) else in_a_row
            except BaseException as error:  # SystemExit would end this thread without a word
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
        """Whether the sink had something to do; one that returns False had not."""
        if isinstance(given, Frames):
            return self._sink(given if self._only_reads else given.copy()) is not False
        if isinstance(given, Event):
            assert self._event is not None
            self._event(given)
        elif isinstance(given, Chunk):
            assert self._sound is not None
            self._sound(given)
        else:
            assert self._snapshot is not None
            self._snapshot(given)
        return True
