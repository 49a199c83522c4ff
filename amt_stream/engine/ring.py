"""The one place where the device's thread and the engine's thread meet."""

import threading
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.frames import Fault

NOTES = 64
NOBODY = 2**62
"""Samples that nobody waits for."""


class Read(NamedTuple):
    """What `SampleRing.read` found: `lost` samples are missing before those it copied."""

    copied: int
    lost: int
    flags: int


@thread_checked
class SampleRing:
    """Samples `(time, channel)` from one writing thread to one reading thread, without a lock.

    The writer alone changes `_stored` and `_noted`, the reader alone `_taken` and `_seen`, and each
    is changed only after the data it announces; so neither ever waits for the other. They are
    Python integers, which do not wrap.

    A sample that finds no room is dropped, never an older one: its place is kept as a note (the
    stored sample it comes before, how many are missing, fault flags). Notes have fixed room too;
    when it is used up, the gap under way simply grows, so the count stays right whatever happens.

    Whoever reads sleeps until there is a block for it: to look every few milliseconds costs it more
    than all else that it does for a block. The writer wakes it by letting go of a lock that only
    the reader takes, which waits for nothing, and does so once a block.
    """

    def __init__(self, fs: int, channels: int, capacity_s: float = 1.0) -> None:
        self.capacity = max(1, round(fs * capacity_s))
        self.overflows = 0
        self.lost = 0
        self._data = np.zeros((self.capacity, channels), np.float32)
        self._notes = np.zeros((NOTES, 3), np.int64)
        self._stored = self._taken = 0
        self._noted = self._seen = 0
        self._lost_before_next = self._flags_of_next = 0
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
        """Samples that have arrived since the start, lost ones included [any-thread]."""
        return self._stored + self.lost

    def write(self, block: NDArray[np.float32], lost: int = 0, flags: int = 0) -> None:
        """Copy `block` `(time, channel)`, after `lost` samples [audio-thread, model-thread]."""
        if lost:
            self.lost += lost
            self._lost_before_next += lost
            flags |= Fault.GAP
        self._flags_of_next |= flags
        room = self.capacity - (self._stored - self._taken)
        if self._flags_of_next and room and len(block):
            if self._noted - self._seen < NOTES:
                self._notes[self._noted % NOTES] = (
                    self._stored,
                    self._lost_before_next,
                    self._flags_of_next,
                )
                self._noted += 1
                self._lost_before_next = self._flags_of_next = 0
            elif self._lost_before_next:
                room = 0
        count = min(len(block), room)
        at = self._stored % self.capacity
        head = min(count, self.capacity - at)
        self._data[at : at + head] = block[:head]
        self._data[: count - head] = block[head:count]
        self._stored += count
        if count < len(block):
            dropped = len(block) - count
            self.overflows += 1
            self.lost += dropped
            self._lost_before_next += dropped
            self._flags_of_next |= Fault.GAP | Fault.OVERLOAD
        if self._stored - self._taken >= self._wanted:
            self.wake()

    def wake(self) -> None:
        """End the reader's `wait`, or the next one where it does not wait [any-thread]."""
        with suppress(RuntimeError):  # it is awake
            self._bell.release()

    def wait(self, samples: int, timeout_s: float) -> None:
        """Sleep until so many samples can be read, but no longer than that [model-thread]."""
        # Before the look: whoever writes after that finds it.
        self._wanted = samples
        if self.fill < samples:
            self._bell.acquire(timeout=timeout_s)
        self._wanted = NOBODY

    def read(self, out: NDArray[np.float32]) -> Read:
        """Copy what waits into `out`, as much as fits and up to the next note [model-thread]."""
        end = self._stored  # before the notes: a note is written before the samples that follow it
        lost = flags = 0
        if self._seen < self._noted and self._notes[self._seen % NOTES, 0] == self._taken:
            _, lost, flags = self._notes[self._seen % NOTES].tolist()
            self._seen += 1
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
        lost, flags = self._lost_before_next, self._flags_of_next
        self._lost_before_next = self._flags_of_next = 0
        return Read(0, lost, flags)
