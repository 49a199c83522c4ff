"""Gaps in the sound of one microphone."""

from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.frames import Fault

LONGEST_FILLED_GAP_S = 1.0

MISSING_BITS, SILENT_BITS = np.uint32(0x7FC0_6A70), np.uint32(0x7FC0_6A71)
MISSING = MISSING_BITS.view(np.float32)
"""Marks a sample that is missing in some channels of a block: a NaN that no device gives. Compare
it with `is_missing`, as `==` does not work."""

SILENT = SILENT_BITS.view(np.float32)
"""The same, of a device that gives exact zeros."""


def is_missing(block: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which samples of `block` (time, channel) are MISSING or SILENT in some channel."""
    missing: NDArray[np.bool_] = np.any((block.view(np.uint32) | 1) == SILENT_BITS, axis=1)
    return missing


def is_silent(block: NDArray[np.float32]) -> bool:
    """Whether a sample of `block` (time, channel) is SILENT."""
    return bool(np.any(block.view(np.uint32) == SILENT_BITS))


class LongZeros(Resumable):
    """Finds exact zeros of a microphone that last too long to be sound.

    are_sound: whether they are sound all the same
    of_each: whether the zeros of one channel count, or only those of all at once
    run: how many there were until now (channel,)
    """

    kept: ClassVar[tuple[str, ...]] = ("run",)

    def __init__(self, channels: int, are_sound: bool) -> None:
        self._are_sound, self.of_each = are_sound, False
        self.run = np.zeros(channels, np.int64)

    def marked(self, part: NDArray[np.float32], longest: int) -> NDArray[np.float32]:
        """`part` (time, channel) with SILENT for the zeros after the `longest` first of a run."""
        if self._are_sound or not len(part):
            return part
        sounds = part != 0 if self.of_each else part.any(axis=1, keepdims=True)
        if sounds.all() and not self.run.any():  # the usual case
            return part
        at = np.arange(len(part))[:, None]
        run = at - np.maximum.accumulate(np.where(sounds, at, -1 - self.run))
        self.run = run[-1]
        too_long = run.max(axis=1, keepdims=True) > longest
        return np.where(too_long, SILENT, part) if too_long.any() else part


NO_HOLE = (-1, -1)


class Gap(NamedTuple):
    """Input samples [start, stop) that are missing, and their faults."""

    fault: int
    start: int
    stop: int


class Gaps(Resumable):
    """Missing samples, until frames have reported them.

    lost: their total number
    dropped: how many of them this program dropped, because a buffer was full
    starts_anew: after a long gap the model starts its next block from silence
    zeros: finds samples that count as missing
    """

    kept: ClassVar[tuple[str, ...]] = (
        "lost",
        "dropped",
        "starts_anew",
        "noted",
        "_passed",
        "_hole",
        "zeros",
    )
    growing = ("noted",)

    def __init__(self, channels: int, zeros_are_sound: bool) -> None:
        self.zeros = LongZeros(channels, zeros_are_sound)
        self.lost = self.dropped = 0
        self.starts_anew = False
        # Gaps not reported yet; the first `_passed` of them lie before the next frames.
        self._noted: list[Gap] = []
        self._passed = 0
        # The present gap of this microphone alone, or NO_HOLE.
        self._hole = NO_HOLE

    @property
    def noted(self) -> NDArray[np.int64]:
        """Fault, start and stop (n, 3) of the gaps not reported yet."""
        return np.array(self._noted, np.int64).reshape(-1, 3)

    @noted.setter
    def noted(self, given: NDArray[np.int64]) -> None:
        self._noted = [Gap(*gap) for gap in given.tolist()]

    @property
    def missing(self) -> bool:
        """Whether this microphone has no sound at present [any-thread]."""
        return self._hole != NO_HOLE

    @property
    def silent(self) -> bool:
        """Whether its device gives exact zeros at present [any-thread]."""
        last = self._noted[-1:]  # once, as another thread may take it
        return self.missing and any(gap.fault & Fault.SILENT for gap in last)

    def open(self, position: int) -> None:
        """Start a gap of this microphone alone."""
        if self._hole == NO_HOLE:
            self._hole = position, position

    def add(self, fault: int, start: int, stop: int) -> None:
        """Add missing samples [start, stop): a new gap, or more of the present one."""
        if self._hole[1] == start:
            self._hole = self._hole[0], stop
        before = self._noted[-1] if self._noted else None
        if self._hole[1] == stop and before is not None and before.stop == start:
            fault, start = fault | self._noted.pop().fault, before.start
        self._noted.append(Gap(fault, start, stop))

    def close(self, longest: float) -> Gap | None:
        """End the present gap and return it, or None.

        longest: samples after which the model restarts
        """
        start, stop = self._hole
        if start < 0:
            return None
        noted = self._noted[-1] if self._noted else None
        fault = noted.fault if noted is not None and noted.stop == stop else int(Fault.GAP)
        self._hole = NO_HOLE
        self.starts_anew |= stop - start > longest
        return Gap(fault, start, stop)

    def pieces(
        self, first: int, stop: int, end: int | None, frame_at: Callable[[int], int]
    ) -> Iterator[tuple[int, int]]:
        """The ranges of frames within [first, stop) that lie outside gaps.

        end: where the sound has ended, or None
        frame_at: gives the first frame that stands for a position or one after it
        """
        while self._passed < len(self._noted) and first < stop:
            gap = self._noted[self._passed]
            begin, behind = frame_at(gap.start), frame_at(gap.stop)
            if begin >= stop:
                break
            if first < begin:
                yield first, begin
            first = max(first, behind)
            # Nothing follows a gap at the very end.
            if first >= stop or (gap.stop == end):
                return
            self._passed += 1
        if first < stop:
            yield first, stop

    def passed(self) -> list[Gap]:
        """The gaps before the next frames, each reported once."""
        passed, self._noted = self._noted[: self._passed], self._noted[self._passed :]
        self._passed = 0
        return passed
