"""What a source calls with its sound: into the ring, or through the models at once."""

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch

from amt_stream.engine.backlog import Backlog
from amt_stream.engine.course import Course
from amt_stream.engine.health import Arrivals
from amt_stream.engine.intake import Intake
from amt_stream.engine.resuming import BrokenOff
from amt_stream.engine.sources import Block, Source, as_block, as_lost
from amt_stream.engine.work import Delivered, Work
from amt_stream.frames import Fault
from amt_stream.functional.threads import flushing_denormals


class IntoRing:
    """Copies into the ring; a source that is not live is made to wait for room."""

    def __init__(
        self,
        source: Source,
        backlog: Backlog,
        arrivals: Arrivals,
        broken_off: BrokenOff,
        course: Course,
    ) -> None:
        self._source, self._ring, self._arrivals = source, backlog.ring, arrivals
        self._broken_off, self._course = broken_off, course
        self._no_sound = np.zeros((0, source.channels), np.float32)

    def __call__(self, block: Block | None, lost: int = 0, flags: int = 0) -> None:
        """[audio-thread]"""
        source, ring = self._source, self._ring
        try:
            lost = as_lost(lost)
            if block is None:
                ring.write(self._no_sound, lost, flags)
                self._course.ended.set()
                ring.wake()
                return
            block = as_block(block, source.channels)
        except (TypeError, ValueError) as error:
            self._course.fail(error)
            raise
        lost, flags = self._noted(block, lost, flags)
        if source.live:
            ring.write(block, lost, flags)
            return
        piece = max(1, ring.capacity // 4)
        for at in range(0, len(block), piece):
            part = block[at : at + piece]
            while ring.room < len(part) and not self._course.is_over:
                time.sleep(0.001)
            ring.write(part, lost if at == 0 else 0, flags)

    def held(self, intake: Intake, tell: Callable[[str, str], None]) -> Iterator[Delivered]:
        """What an intake has kept, as `Intake.held`; later sound comes here [engine-thread]."""
        for block, lost, flags, came_at in intake.held(self, tell):
            yield (block, *self._noted(block, lost, flags, came_at))

    def _noted(
        self, block: Block, lost: int, flags: int, came_at: float | None = None
    ) -> tuple[int, int]:
        """What is missing before a block, and its faults."""
        lost += self._broken_off.before(len(block), came_at)
        late = self._arrivals.note(len(block) + lost, came_at) and self._source.live
        # Else it is the source that judges what stood still.
        late = late and not self._source.state
        return lost, flags | (Fault.OVERLOAD if late else 0)


class InCallback:
    """Runs the models right here, in the source's thread."""

    def __init__(
        self,
        source: Source,
        backlog: Backlog,
        arrivals: Arrivals,
        broken_off: BrokenOff,
        course: Course,
        work: Work,
        lock: threading.Lock,
    ) -> None:
        self._source, self._backlog, self._arrivals = source, backlog, arrivals
        self._broken_off, self._course = broken_off, course
        self._work, self._lock = work, lock

    def __call__(self, block: Block | None, lost: int = 0, flags: int = 0) -> None:
        """[audio-thread]"""
        with self._lock:
            if self._course.is_over or self._course.ended.is_set():
                return
            try:
                # The thread is not ours: it goes on as it was.
                with flushing_denormals(), torch.inference_mode():
                    self._hear(block, as_lost(lost), flags)
            except BaseException as error:
                self._course.fail(error)

    def _hear(self, block: Block | None, lost: int, flags: int) -> None:
        backlog = self._backlog
        if block is None:
            flags |= Fault.OVERLOAD if backlog.skipped else 0
            self._work.finish(lost + backlog.skipped, flags)
            return
        block = as_block(block, self._source.channels)
        lost += self._broken_off.before(len(block))
        late = self._arrivals.note(len(block) + lost) and self._source.live
        if backlog.skip(len(block) + lost):
            return
        lost, flags = backlog.taken_up(lost, flags)
        flags |= Fault.OVERLOAD if late or backlog.overran else 0
        self._work.begin()
        self._work.measure(block, lost, flags)
