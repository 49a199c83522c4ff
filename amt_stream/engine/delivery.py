"""What a source calls with its sound: into the ring, or through the models at once."""

import threading
import time

import numpy as np
import torch

from amt_stream.engine.backlog import Backlog
from amt_stream.engine.course import Course
from amt_stream.engine.health import Arrivals
from amt_stream.engine.resuming import BrokenOff
from amt_stream.engine.sources import Block, Source, as_block, as_lost
from amt_stream.engine.work import Work
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
        lost += self._broken_off.before(len(block))
        late = self._arrivals.note(len(block) + lost)
        late = late and not source.state  # else it is the source that judges what stood still
        if source.live:
            ring.write(block, lost, flags | (Fault.OVERLOAD if late else 0))
            return
        piece = max(1, ring.capacity // 4)
        for at in range(0, len(block), piece):
            part = block[at : at + piece]
            while ring.room < len(part) and not self._course.is_over:
                time.sleep(0.001)
            ring.write(part, lost if at == 0 else 0, flags)


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
        if backlog.skipped:
            lost, flags, backlog.skipped = lost + backlog.skipped, flags | Fault.OVERLOAD, 0
        flags |= Fault.OVERLOAD if late or backlog.overran else 0
        self._work.begin()
        self._work.measure(block, lost, flags)
