"""The last minute at the resolution of a screen."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from amt_stream.engine import History


class Columns(NamedTuple):
    """Columns of time: where they begin in the stream's time, the least and greatest value of each
    field `(field, column)`, NaN where nothing was measured, and whether any row was marked.
    """

    start_s: NDArray[Any]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    fault: NDArray[np.uint8]
    settling: NDArray[np.bool_]


class Envelope:
    """Least and greatest value of each column of time, so that no peak is lost to the display.

    Columns stand still in the stream's time (column k begins at k * column_s): a curve that moves
    across the screen keeps its shape.
    """

    def __init__(self, fields: tuple[str, ...], seconds: float, column_s: float) -> None:
        self.fields, self.column_s = fields, column_s
        size = round(seconds / column_s) + 1
        self._low = np.full((len(fields), size), np.nan)
        self._high = self._low.copy()
        self._fault = np.zeros(size, np.uint8)
        self._settling = np.zeros(size, np.bool_)
        self._history: History | None = None
        self.clear()

    def clear(self) -> None:
        self._rows = 0
        self._column = -1
        self.now_s = 0.0
        self._blank(np.arange(len(self._fault)))

    def follow(self, history: "History") -> None:
        """Take in the rows that came since the last call; another history begins anew."""
        if history is not self._history:
            self._history = history
            self.clear()
        # Rows that are written between these two lines come twice, which changes no extreme.
        count = history.count
        rows = history.since(self._rows)
        self._rows = count
        if len(rows):
            self._add(rows)

    def _add(self, rows: np.recarray) -> None:
        # 0.7 / 0.1 is 6.999...: a frame on the edge belongs to the column that begins there.
        column = np.floor(rows["time_s"] / self.column_s + 1e-6).astype(np.int64)
        size = len(self._fault)
        newest = int(column[-1])
        self._blank(np.arange(max(self._column, newest - size) + 1, newest + 1) % size)
        self._column = max(self._column, newest)
        self.now_s = float(rows["time_s"][-1])
        starts = np.flatnonzero(np.diff(column, prepend=-1))
        at = column[starts] % size
        for i, name in enumerate(self.fields):
            values = rows[name]
            self._low[i, at] = np.fmin(self._low[i, at], np.minimum.reduceat(values, starts))
            self._high[i, at] = np.fmax(self._high[i, at], np.maximum.reduceat(values, starts))
        self._fault[at] |= np.bitwise_or.reduceat(rows["fault"], starts)
        self._settling[at] |= np.logical_or.reduceat(rows["settling"], starts)

    def _blank(self, at: NDArray[np.int64]) -> None:
        self._low[:, at] = self._high[:, at] = np.nan
        self._fault[at] = 0
        self._settling[at] = False

    def columns(self) -> Columns:
        """All columns, oldest first."""
        size = len(self._fault)
        order = np.arange(self._column + 1 - size, self._column + 1)
        at = order % size
        return Columns(
            order * self.column_s,
            self._low[:, at],
            self._high[:, at],
            self._fault[at],
            self._settling[at],
        )


def stretches(marked: NDArray[np.bool_], join: int) -> list[tuple[int, int]]:
    """First and last index of each run of True; runs fewer than `join` apart are one."""
    places = np.flatnonzero(marked)
    if not len(places):
        return []
    breaks = np.flatnonzero(np.diff(places) >= join)
    first = places[np.r_[0, breaks + 1]]
    last = places[np.r_[breaks, len(places) - 1]]
    return list(zip(first.tolist(), last.tolist(), strict=True))
