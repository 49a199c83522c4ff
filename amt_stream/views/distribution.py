"""The distribution of a level over the rows that count."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.frames import Event
from amt_stream.sessions.counted_time import counted_from, pauses
from amt_stream.views.reading_history import CAME, FAULTS, SETTLING, ReadingHistory


class Distribution:
    """Counts the rows of one column since the last reset, in classes of a decibel or phon.

    Rows in a pause, and rows that settle after a fault, do not count. While the reading rises from
    silence, rows below all later ones do not count either.
    """

    def __init__(self, history: ReadingHistory, name: str) -> None:
        self.history, self.name = history, name
        self._rise_s = next((one.rise_s for one in history.columns if one.name == name), 0.0)
        self._clear(0.0)

    def _clear(self, from_s: float) -> None:
        from amt_stream.meters.accumulators import Histogram  # numba is slow to import

        self._from_s, self._next = from_s, max(0, round(from_s / self.history.step_s) + 1)
        self._histogram = Histogram(width=1.0)
        # The first row after the rise from silence.
        self._settled: int | None = None

    @property
    def counted_s(self) -> float:
        return len(self._histogram) * self.history.step_s

    def follow(self, events: Sequence[Event]) -> bool:
        """Count new rows; returns whether there were any."""
        from_s, newest = counted_from(events), self.history.pyramid.newest
        if from_s != self._from_s or newest < self._next - 1:
            self._clear(from_s)
        first, self._next = self._next, newest + 1
        if first > newest:
            return False
        cells = self.history.cells([self.name], 0, first, newest + 1)
        numbers, values = np.arange(first, newest + 1), cells.mean[0]
        times = numbers * self.history.step_s
        there = (cells.marks & SETTLING == 0) | (numbers < self._settled_from(newest))
        there &= (cells.marks & CAME > 0) & ~np.isnan(values)
        for start_s, end_s in pauses(events):
            there &= ~((times > start_s) & (times <= end_s))
        rising = np.count_nonzero(there & (times < self._rise_s))
        self._histogram.add(values[there], int(rising))
        return True

    def _settled_from(self, newest: int) -> int:
        if self._settled is None:
            marks = self.history.cells([], 0, 0, newest + 1).marks
            begun = (marks & CAME > 0) & (marks & (SETTLING | FAULTS) != SETTLING)
            if not begun.any():
                return newest + 1
            self._settled = int(np.argmax(begun))
        return self._settled

    def shown(self) -> tuple[int, NDArray[np.int64]]:
        """The lowest class with a row, and the counts from there to the highest."""
        counts = self._histogram.counted
        there = counts.nonzero()[0]
        if not len(there):
            return 0, counts[:0]
        return int(there[0]) + self._histogram.first, counts[there[0] : there[-1] + 1]
