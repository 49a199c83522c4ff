"""A pyramid of readings: hours at every scale of time, in fixed memory."""

import mmap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

FACTOR = 4
"""Cells of one level in a cell of the next."""

LEVELS = 6
"""The coarsest cell has 4^5 rows: a day at 0.1 s has 844 cells."""

AT_MOST = 512
"""Rows that are summed up together, unless cells are read: a group costs as much as one row."""


class PyramidCells(NamedTuple):
    """Cells of a level, in order.

    low, mean, high: (column, cell), NaN where there is none
    marks: bits that any of the rows has
    """

    low: NDArray[np.float64]
    mean: NDArray[np.float64]
    high: NDArray[np.float64]
    marks: NDArray[np.uint64]


def _zeros(rows: int, columns: int, dtype: DTypeLike) -> NDArray[Any]:
    """Zeros that take memory when they are written.

    Where `numpy.zeros` gets memory that was freed before, such as that of another measurement, it
    writes all of it: 150 MB and a third of a second for each new measurement.
    """
    pages = mmap.mmap(-1, max(1, rows * columns * np.dtype(dtype).itemsize))
    return np.frombuffer(pages, dtype, rows * columns).reshape(rows, columns)


class _CellRing:
    """A ring buffer: cell k is at k modulo its size."""

    def __init__(self, columns: int, size: int, finest: bool) -> None:
        self.size, self.newest = size, -1
        # The system assigns memory in pages of 2 MB when they are written. Where the columns of a
        # cell lie together, and nothing is copied, memory grows with the measurement.
        self.marks = _zeros(size, 1, np.uint64)[:, 0]
        self.count = _zeros(size, columns, np.uint8 if finest else np.uint16).T
        self.total = _zeros(size, columns, np.float64 if finest else np.float32).T
        self.low = self.high = self.total
        if not finest:
            self.separate()

    @property
    def is_separate(self) -> bool:
        return self.low is not self.total

    def separate(self) -> None:
        """Let minima and maxima differ from the sum, as in rows of several frames."""
        columns = len(self.total)
        self.low, self.high = (_zeros(self.size, columns, np.float32).T for _ in range(2))
        written = slice(min(self.newest + 1, self.size))
        for ends in (self.low, self.high):
            ends[:, written] = self.total[:, written]

    def extend(self, more: int) -> None:
        """Add columns without values."""
        written = slice(min(self.newest + 1, self.size))

        def wider(part: NDArray[Any]) -> NDArray[Any]:
            wide = _zeros(self.size, len(part) + more, part.dtype).T
            wide[: len(part), written] = part[:, written]
            return wide

        separate = self.is_separate
        self.count, self.total = wider(self.count), wider(self.total)
        ends = (wider(self.low), wider(self.high)) if separate else (self.total, self.total)
        self.low, self.high = ends

    def advance(self, newest: int) -> None:
        if newest > self.newest:
            first = max(self.newest + 1, newest - self.size + 1)
            fresh = np.arange(first, newest + 1) % self.size
            self.marks[fresh] = 0
            self.count[:, fresh] = 0
            self.newest = newest

    def there(self, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which cells are in the ring."""
        return (cells >= 0) & (cells <= self.newest) & (cells > self.newest - self.size)


class HistoryPyramid:
    """Minimum, mean and maximum of 1, 4, 16 and so on rows.

    Rows are numbered by their time, so a gap keeps its length. At every scale some level has about
    as many cells as the screen has pixels.

    rows: so many are stored as they are
    whole: so many are covered by the levels above
    """

    def __init__(self, columns: int, rows: int, whole: int) -> None:
        self.columns = columns
        sizes = [rows, *(-(-whole // FACTOR**level) for level in range(1, LEVELS))]
        self._new: list[NDArray[np.int64]] = []
        self._waiting, self._at_most = 0, min(AT_MOST, rows // 2)
        self._levels = [_CellRing(columns, size, level == 0) for level, size in enumerate(sizes)]

    def extend(self, more: int) -> None:
        """Add columns, without values so far."""
        for level in self._levels:
            level.extend(more)
        self.columns += more

    @property
    def newest(self) -> int:
        """Number of the newest row; -1 without rows."""
        return self._levels[0].newest

    @property
    def has_ranges(self) -> bool:
        """Whether rows have a least and a greatest of their own."""
        return self._levels[0].is_separate

    @property
    def oldest(self) -> int:
        """Number of the oldest row in any level, or 0."""
        size = FACTOR ** (LEVELS - 1)
        return int(max(0, (self.newest // size - self._levels[-1].size + 1) * size))

    def add(
        self,
        rows: NDArray[np.int64],
        values: NDArray[np.float64],
        marks: NDArray[np.uint64],
        ranges: NDArray[np.float64] | None = None,
        rising: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add rows by increasing numbers: values (column, row), NaN where there is none.

        ranges: the least and the greatest that each value stands for (column, 2, row)
        rising: which values (column, row) are kept, but are no part of coarser cells
        """
        finest = self._levels[0]
        if not len(rows) or rows[0] <= finest.newest:
            # A row that was added before is skipped.
            later = rows > finest.newest
            rows, values, marks = rows[later], values[:, later], marks[later]
            ranges = None if ranges is None else ranges[..., later]
            rising = None if rising is None else rising[:, later]
            if not len(rows):
                return
        if rows[-1] - self.newest > self._at_most:
            # Waiting rows may no longer be in the ring after this.
            self._sum_up()
        finest.advance(int(rows[-1]))
        kept = rows > finest.newest - finest.size
        places = rows[kept] % finest.size
        values = values[:, kept]
        known = ~np.isnan(values)
        finest.total[:, places] = np.where(known, values, 0.0)
        finest.count[:, places] = known if rising is None else known * (1 + rising[:, kept])
        if ranges is not None and not finest.is_separate:
            finest.separate()
        if finest.is_separate:
            low, high = (values, values) if ranges is None else ranges[..., kept].swapaxes(0, 1)
            finest.low[:, places] = np.where(known, low, 0.0)
            finest.high[:, places] = np.where(known, high, 0.0)
        finest.marks[places] = marks[kept]
        self._new.append(rows[kept])
        self._waiting += len(rows)
        if self._waiting >= self._at_most:
            self._sum_up()

    def _sum_up(self) -> None:
        if not self._new:
            return
        touched = np.concatenate(self._new)
        self._new, self._waiting = [], 0
        touched = touched[touched > self.newest - self._levels[0].size]
        for below, above in zip(self._levels, self._levels[1:], strict=False):
            touched = np.unique(touched // FACTOR)
            _sum_up(below, above, touched, finest=below is self._levels[0])

    def cells(
        self,
        level: int,
        first: int,
        end: int,
        columns: Sequence[int] | None = None,
        risen: bool = False,
    ) -> PyramidCells:
        """Cells `first` to `end - 1` of a level, empty outside the ring.

        columns: by index; None for all
        risen: whether to leave out rising values of the finest level too
        """
        if level:
            self._sum_up()
        ring = self._levels[level]
        cells = np.arange(first, end)
        there = ring.there(cells)
        places = cells % ring.size
        chosen = np.arange(self.columns) if columns is None else np.array(columns, np.int64)
        at = chosen[:, None], places
        count = np.where(there, ring.count[at], 0)
        if level == 0:
            count = (count == 1) if risen else np.minimum(count, 1)
        known = count > 0
        low, high, total = (
            np.where(known, part[at], np.nan).astype(np.float64)
            for part in (ring.low, ring.high, ring.total)
        )
        mean = total / np.where(known, count, 1)
        return PyramidCells(low, mean, high, np.where(there, ring.marks[places], np.uint64(0)))

    def level_for(self, rows: float, first: int, most: int) -> int:
        """The finest level with at most `most` cells in so many rows that still has row `first`."""
        for level, found in enumerate(self._levels):
            kept = first // FACTOR**level > self.newest // FACTOR**level - found.size
            if rows <= most * FACTOR**level and kept:
                return level
        return LEVELS - 1


def _sum_up(below: _CellRing, above: _CellRing, cells: NDArray[np.int64], finest: bool) -> None:
    above.advance(int(cells[-1]))
    cells = cells[cells > above.newest - above.size]
    parts = cells[:, None] * FACTOR + np.arange(FACTOR)
    places, there = parts % below.size, below.there(parts)
    count = np.where(there, below.count[:, places], 0)
    if finest:  # a count of 2 is that of a rising value
        count = (count == 1).astype(count.dtype)
    known = count > 0
    at = cells % above.size
    above.count[:, at] = count.sum(axis=2)
    above.low[:, at] = np.where(known, below.low[:, places], np.inf).min(axis=2)
    above.high[:, at] = np.where(known, below.high[:, places], -np.inf).max(axis=2)
    above.total[:, at] = np.where(known, below.total[:, places], 0.0).sum(axis=2)
    above.marks[at] = np.bitwise_or.reduce(
        np.where(there, below.marks[places], np.uint64(0)), axis=1
    )
