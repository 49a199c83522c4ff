"""What is missing of the sound of one microphone."""

from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable

LONGEST_FILLED_GAP_S = 1.0

MISSING_BITS = np.uint32(0x7FC0_6A70)
MISSING = MISSING_BITS.view(np.float32)
"""Stands for a sample that is missing in some channels of a block and not in all: a NaN that no
device gives. A comparison does not tell it from another one: `is_missing` does."""


def is_missing(block: NDArray[np.float32]) -> NDArray[np.bool_]:
    """At which samples `block` (time, channel) has MISSING in some channel."""
    missing: NDArray[np.bool_] = np.any(block.view(np.uint32) == MISSING_BITS, axis=1)
    return missing


NO_HOLE = (-1, -1)


class Gap(NamedTuple):
    """Input samples [start, stop) that are missing, and with which faults."""

    fault: int
    start: int
    stop: int


class Gaps(Resumable):
    """Samples that are missing, until frames have told of them.

    lost: how many there were
    starts_anew: after many the model begins its next block in silence
    """

    kept: ClassVar[tuple[str, ...]] = ("lost", "starts_anew", "noted", "_passed", "_hole")
    growing = ("noted",)

    def __init__(self) -> None:
        self.lost = 0
        self.starts_anew = False
        # Those that no frame has told of yet; the frames that some stood in have passed.
        self._noted: list[Gap] = []
        self._passed = 0
        # Samples that are missing in this one alone, while they are.
        self._hole = NO_HOLE

    @property
    def noted(self) -> NDArray[np.int64]:
        """Fault, start and stop (n, 3) of those that no frame has told of."""
        return np.array(self._noted, np.int64).reshape(-1, 3)

    @noted.setter
    def noted(self, given: NDArray[np.int64]) -> None:
        self._noted = [Gap(*gap) for gap in given.tolist()]

    @property
    def missing(self) -> bool:
        """Whether there is no sound of this microphone just now [any-thread]."""
        return self._hole != NO_HOLE

    def open(self, position: int) -> None:
        """From here on samples are missing in this one alone."""
        if self._hole == NO_HOLE:
            self._hole = position, position

    def add(self, fault: int, start: int, stop: int) -> None:
        """Samples [start, stop) are missing: a gap, or more of the one that has not ended."""
        if self._hole[1] == start:
            self._hole = self._hole[0], stop
        before = self._noted[-1] if self._noted else None
        if self._hole[1] == stop and before is not None and before.stop == start:
            fault, start = fault | self._noted.pop().fault, before.start
        self._noted.append(Gap(fault, start, stop))

    def close(self, longest: float) -> tuple[int, int] | None:
        """What was missing has ended: its start and its stop, if anything was.

        longest: samples after which the model starts anew
        """
        start, stop = self._hole
        if start < 0:
            return None
        self._hole = NO_HOLE
        self.starts_anew |= stop - start > longest
        return start, stop

    def pieces(
        self, first: int, stop: int, end: int | None, within: Callable[[Gap], tuple[int, int]]
    ) -> Iterator[tuple[int, int]]:
        """Of frames [first, stop) those that stand in sound, one range after another.

        end: where the sound has ended, if it has
        within: gives the range of frames that stand within a gap
        """
        while self._passed < len(self._noted) and first < stop:
            gap = self._noted[self._passed]
            begin, behind = within(gap)
            if begin >= stop:
                break
            if first < begin:
                yield first, begin
            first = max(first, behind)
            # What is missing at the very end has nothing after it.
            if first >= stop or (gap.stop == end):
                return
            self._passed += 1
        if first < stop:
            yield first, stop

    def passed(self) -> list[Gap]:
        """Those before the frames that come next, told once."""
        told, self._noted, self._passed = (
            self._noted[: self._passed],
            self._noted[self._passed :],
            0,
        )
        return told
