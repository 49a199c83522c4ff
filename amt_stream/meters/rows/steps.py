"""The steps of rows: one every `step_ms` of sound, none in a gap."""

import math

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import SAME_TIME_S
from amt_stream.core.saved_state import Resumable

TOGETHER_MS = 100.0
"""Rows without a deadline are made together for this much sound."""

FOR_EVER = 2**62
"""Number of steps."""


class RowSteps(Resumable):
    """Which steps have rows, and which of them are due.

    step_ms, fs: as of `JoinedRows`
    to_s: end of the part of the sound that has rows
    duration_s: duration of the sound, if known
    wait_s: how long a complete row may wait; None for TOGETHER_MS of rows

    next: the step of the next row
    last: the step that waits for the end of the sound; FOR_EVER if that is not known
    """

    kept = ("next", "_gaps", "_holes")
    growing = ("_gaps", "_holes")

    def __init__(
        self, step_ms: int, fs: float, to_s: float, duration_s: float | None, wait_s: float | None
    ) -> None:
        self.step_ms, self.fs, self.to_s = step_ms, fs, to_s
        known = duration_s is not None and to_s >= duration_s
        end_s = math.inf if duration_s is None else duration_s + SAME_TIME_S
        self.last = self.after(end_s) - 1 if known else FOR_EVER
        self.next = 0
        self._wait_s = max(0.0, (TOGETHER_MS - step_ms) / 1000) if wait_s is None else wait_s
        # Missing samples, and times between two frames of a model with missing frames.
        self._gaps = np.zeros((0, 2), np.int64)
        self._holes = np.zeros((0, 2))

    def after(self, time_s: float) -> int:
        """The first step after a time."""
        if math.isinf(time_s):
            return 0 if time_s < 0 else FOR_EVER
        return max(0, math.floor(time_s * 1000 / self.step_ms) + 1)

    def begin(self, time_s: float) -> None:
        """Have no rows before that time."""
        self.next = max(self.next, math.ceil((time_s - SAME_TIME_S) * 1000 / self.step_ms))

    def samples_of(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The last sample that is not after each step."""
        # In integers, as floats round.
        return steps * (self.step_ms * round(self.fs)) // 1000

    @property
    def last_sample(self) -> int:
        """The sample of the last row so far; -1 before the first."""
        return int(self.samples_of(np.array(self.next - 1))) if self.next else -1

    def is_due(self, reached_s: float) -> bool:
        """Whether a row is to be made now that all models have reached a time."""
        return reached_s >= self.next * self.step_ms / 1000 + self._wait_s - SAME_TIME_S

    def miss(self, start: int, stop: int) -> None:
        """Make no rows in a gap of samples, even if it is too short for a frame to be missing."""
        if not (self._gaps == (start, stop)).all(axis=1).any():
            self._gaps = np.append(self._gaps, [[start, stop]], axis=0)

    @property
    def missed_until_s(self) -> float:
        """The end of the last gap without a row after it; minus infinity if there is none."""
        return float(max(self._gaps[:, 1], default=-math.inf)) / self.fs

    def miss_frames(self, after_s: float, before_s: float) -> None:
        """Make no rows between two frames of a model without the missing ones between them."""
        self._holes = np.append(self._holes, [[after_s, before_s]], axis=0)

    def advance(self, stop: int, reached_s: float) -> NDArray[np.int64]:
        """Go on to the step `stop`; returns the steps until then with sound and frames.

        reached_s: the time that all models have reached
        """
        start, self.next = self.next, stop
        if not len(self._gaps) and not len(self._holes):
            return np.arange(start, stop)
        holes = self._holes.tolist()
        for first, end in self._gaps.tolist():
            # Unknown until there are frames.
            before_s = end / self.fs if reached_s > end / self.fs - SAME_TIME_S else math.inf
            holes.append([first / self.fs - 2 * SAME_TIME_S, before_s])
        parts = []
        for after_s, before_s in sorted(holes):
            begin = self.after(after_s + SAME_TIME_S)
            if begin > start:
                parts.append(np.arange(start, min(begin, stop)))
            start = max(start, self.after(before_s - SAME_TIME_S))
            if start >= stop:
                break
        parts.append(np.arange(start, stop))
        # Gaps that end before the next row are over.
        next_s = stop * self.step_ms / 1000 - SAME_TIME_S
        self._holes = self._holes[self._holes[:, 1] > next_s]
        self._gaps = self._gaps[self._gaps[:, 1] > next_s * self.fs]
        return np.concatenate(parts)
