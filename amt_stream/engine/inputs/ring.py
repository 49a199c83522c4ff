"""A lock-free ring buffer between the device's thread and the engine's."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.frames import Fault

NOTES = 64
NOBODY = 2**62
"""More samples than a reader can wait for."""


class Read(NamedTuple):
    """Result of `SampleRing.read`: `lost` samples are missing before those copied."""

    copied: int
    lost: int
    flags: int


@thread_checked
class SampleRing:
    """Samples `(time, channel)` from one writing thread to one reading thread, without a lock.

    Only the writer changes `_stored` and `_noted`, only the reader `_taken` and `_seen`, and each
    only after the data it announces; so neither ever waits for the other. They are Python integers,
    which do not overflow.

    A sample that does not fit is dropped, never an older one; a note records its place (the index
    of the next stored sample, numbers of missing samples and of those that this program dropped,
    fault flags). The number of notes is fixed too; when it is exhausted, the current gap grows, so
    that the count stays correct.

    dropped: of the missing samples that the reader knows of, those that this program dropped

    The reader sleeps until a block is complete, because polling every few milliseconds would cost
    more than all its other work per block. The writer wakes it once a block by releasing a lock
    that only the reader acquires.
    """

    def __init__(self, fs: int, channels: int, capacity_s: float = 1.0) -> None:
        self.capacity = max(1, round(fs * capacity_s))
        self.overflows = 0
        self.lost = self.dropped = 0
        self._data = np.zeros((self.capacity, channels), np.float32)
        self._notes = np.zeros((NOTES, 4), np.int64)
        self._stored = self._taken = 0
        self._noted = self._seen = 0
        self._lost_before_next = self._dropped_before_next = self._flags_of_next = 0
        self._wanted = NOBODY
        self._bell = threading.Lock()
        self._bell.acquire()

    @property
    def fill(self) -> int:
        """Samples that wait to be read [any-thread]."""
        return self._stored - self._taken

    @property
    def room(self) -> int:
        """Samples that can be written now without loss [any-thread]."""
        return self.capacity - self.fill

    @property
    def position(self) -> int:
        """Samples that have arrived since the start, including lost ones [any-thread]."""
        return self._stored + self.lost

    def write(
        self, block: NDArray[np.float32], lost: int = 0, flags: int = 0, dropped: int = 0
    ) -> None:
        """Copy `block` `(time, channel)`, after `lost` samples [audio-thread, model-thread].

        dropped: those of them that this program dropped
        """
        if lost:
            self.lost += lost
            self._lost_before_next += lost
            self._dropped_before_next += dropped
            flags |= Fault.GAP
        self._flags_of_next |= flags
        room = self.capacity - (self._stored - self._taken)
        if self._flags_of_next and room and len(block):
            if self._noted - self._seen < NOTES:
                self._notes[self._noted % NOTES] = (
                    self._stored,
                    self._lost_before_next,
                    self._dropped_before_next,
                    self._flags_of_next,
                )
                self._noted += 1
                self._forget_next()
            elif self._lost_before_next:
                room = 0
        count = min(len(block), room)
        at = self._stored % self.capacity
        head = min(count, self.capacity - at)
        self._data[at : at + head] = block[:head]
        self._data[: count - head] = block[head:count]
        self._stored += count
        if count < len(block):
            left = len(block) - count
            self.overflows += 1
            self.lost += left
            self._lost_before_next += left
            self._dropped_before_next += left
            self._flags_of_next |= Fault.GAP | Fault.OVERLOAD
        if self._stored - self._taken >= self._wanted:
            self.wake()

    def _forget_next(self) -> None:
        self._lost_before_next = self._dropped_before_next = self._flags_of_next = 0

    def write_waiting(
        self,
        block: NDArray[np.float32],
        lost: int,
        flags: int,
        is_over: Callable[[], bool],
        dropped: int = 0,
    ) -> None:
        """As `write`, but wait for room, until `is_over()` [audio-thread, model-thread]."""
        piece = max(1, self.capacity // 4)
        for at in range(0, max(1, len(block)), piece):
            part = block[at : at + piece]
            while self.room < len(part) and not is_over():
                time.sleep(0.001)
            self.write(part, *((lost, flags, dropped) if at == 0 else (0, flags)))

    def wake(self) -> None:
        """Wake the reader from `wait`, or skip its next one [any-thread]."""
        with suppress(RuntimeError):  # it is awake
            self._bell.release()

    def wait(self, samples: int, timeout_s: float) -> None:
        """Sleep until `samples` can be read, or until the timeout [model-thread]."""
        # Set before the check, so that a later write wakes it.
        self._wanted = samples
        if self.fill < samples:
            self._bell.acquire(timeout=timeout_s)
        self._wanted = NOBODY

    def read(self, out: NDArray[np.float32]) -> Read:
        """Copy available samples into `out`, up to the next note [model-thread]."""
        end = self._stored  # read before the notes, which are written before later samples
        lost = flags = 0
        if self._seen < self._noted and self._notes[self._seen % NOTES, 0] == self._taken:
            _, lost, dropped, flags = self._notes[self._seen % NOTES].tolist()
            self._seen += 1
            self.dropped += dropped
        if self._seen < self._noted:
            end = min(end, int(self._notes[self._seen % NOTES, 0]))
        count = max(0, min(len(out), end - self._taken))
        at = self._taken % self.capacity
        head = min(count, self.capacity - at)
        out[:head] = self._data[at : at + head]
        out[head:count] = self._data[: count - head]
        self._taken += count
        return Read(count, lost, flags)

    def rest(self) -> Read:
        """What is missing after the last sample, once the writer has ended [model-thread]."""
        rest = Read(0, self._lost_before_next, self._flags_of_next)
        self.dropped += self._dropped_before_next
        self._forget_next()
        return rest
