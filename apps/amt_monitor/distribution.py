"""How often each level was read, of the rows that are counted."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from amt_monitor.counted import counted_from, pauses
from amt_monitor.past import CAME, SETTLING, Past
from amt_stream.frames import Event

LOWEST, HIGHEST = -120, 160
"""Classes of one decibel, or phon, from here to there."""


class Distribution:
    """Follows one column of the past: each row once, from the last reset on.

    Rows in a pause do not count, nor do those that settle.
    """

    def __init__(self, past: Past, name: str) -> None:
        self.past, self.name = past, name
        self._clear(0.0)

    def _clear(self, from_s: float) -> None:
        self._from_s, self._next = from_s, max(0, round(from_s / self.past.step_s) + 1)
        self.counts = np.zeros(HIGHEST - LOWEST, np.int64)

    @property
    def counted_s(self) -> float:
        """How much time is counted."""
        return float(self.counts.sum()) * self.past.step_s

    def follow(self, events: Sequence[Event]) -> bool:
        """Count the rows that are new; whether there were some."""
        from_s, newest = counted_from(events), self.past.newest
        if from_s != self._from_s or newest < self._next - 1:
            self._clear(from_s)
        first, self._next = self._next, newest + 1
        if first > newest:
            return False
        cells = self.past.cells([self.name], 0, first, newest + 1)
        values = cells.mean[0]
        counts = (cells.marks & (CAME | SETTLING) == CAME) & ~np.isnan(values)
        times = np.arange(first, newest + 1) * self.past.step_s
        for start_s, end_s in pauses(events):
            counts &= ~((times > start_s) & (times <= end_s))
        classes = np.clip(np.floor(values[counts]), LOWEST, HIGHEST - 1).astype(np.int64)
        self.counts += np.bincount(classes - LOWEST, minlength=len(self.counts))
        return True

    def shown(self) -> tuple[int, NDArray[np.int64]]:
        """The lowest class that has a row, and the counts from there to the highest."""
        there = self.counts.nonzero()[0]
        if not len(there):
            return 0, self.counts[:0]
        return int(there[0]) + LOWEST, self.counts[there[0] : there[-1] + 1]
