"""The history of the readings at every scale of time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from amt_monitor.history_pyramid import HistoryPyramid, PyramidCells
from amt_stream.meters.rows import Rows

if TYPE_CHECKING:
    from amt_stream.meters.rows import Column

ROWS, WHOLE = 288_000, 864_000
"""Eight hours of rows at 0.1 s; with the coarser levels, a day."""

MOST = 36
"""Columns at most, as many as there are third octaves; their bounds come on top. Each takes 6 MB
after 8 hours.
"""

FAULTS = 255
SETTLING, UNCALIBRATED, CAME = 256, 512, 1024
"""Marks of a row besides the bits of `Fault`; the last one says that the row exists."""


class ReadingHistory:
    """The rows of one measurement [main-thread].

    columns: of the rows; the useful ones are stored
    step_s: between rows
    """

    def __init__(self, columns: "Sequence[Column]", step_s: float) -> None:
        self.columns, self.step_s = tuple(kept_of(columns)), step_s
        self._place = {column.name: i for i, column in enumerate(self.columns)}
        self.clear()

    def extend(self, columns: "Sequence[Column]") -> None:
        """Store further columns from now on, of rows that have others now."""
        more = tuple(one for one in kept_of(columns) if one.name not in self._place)
        self._pyramid.extend(len(more))
        self.columns += more
        self._place = {column.name: i for i, column in enumerate(self.columns)}

    def clear(self) -> None:
        self._pyramid = HistoryPyramid(len(self.columns), ROWS, WHOLE)
        self._utc = np.zeros(ROWS, np.int64)
        self._row = ""
        self.count = 0
        """Grows with every row."""
        self.first_s = 0.0
        """Time of the first row."""

    @property
    def now_s(self) -> float:
        """Time of the newest row; 0 without rows."""
        return round(max(0.0, self._pyramid.newest * self.step_s), 6)

    @property
    def begin_s(self) -> float:
        """Time of the oldest stored row."""
        return max(0.0, (self._pyramid.oldest - 1) * self.step_s)

    @property
    def has_ranges(self) -> bool:
        """Whether a row has the least and the greatest of its time too."""
        return self._pyramid.has_ranges

    @property
    def newest(self) -> int:
        return self._pyramid.newest

    def add(self, rows: Rows) -> None:
        if len(rows) and "row" in rows.columns:
            # Of several microphones, the first.
            self._row = self._row or str(rows["row"][0])
            rows = rows.where(rows["row"] == self._row)
        if not len(rows):
            return
        numbers = np.rint(rows["time_s"] / self.step_s).astype(np.int64)
        if numbers[-1] < self._pyramid.newest:
            # The sound starts again.
            self.clear()
        marks = rows["fault"].astype(np.uint16)
        marks |= CAME
        marks[rows["settling"]] |= SETTLING
        marks[~rows["calibrated"]] |= UNCALIBRATED
        if not self.count:
            self.first_s = float(rows["time_s"][0])
        shape = len(self.columns), len(rows)  # also without any columns
        absent, there = np.full(len(rows), np.nan), {*rows.columns}
        found = [rows[one.name] if one.name in there else absent for one in self.columns]
        values = np.array(found, np.float64).reshape(shape)
        ranges = None
        if rows.range_of:
            # Of a row that was made from several frames.
            both = np.stack([absent, absent])
            found = [rows.range_of.get(one.name, both) for one in self.columns]
            ranges = np.array(found, np.float64).reshape(shape[0], 2, shape[1])
        self._pyramid.add(numbers, values, marks, ranges)
        self._utc[numbers % ROWS] = rows["utc"].astype("datetime64[ms]").astype(np.int64)
        self.count += len(rows)

    @property
    def main_columns(self) -> "list[Column]":
        return [one for one in self.columns if not one.bound_of]

    def bounds_of(self, name: str) -> list[str]:
        return [one.name for one in self.columns if one.bound_of == name]

    def cells(self, names: Sequence[str], level: int, first: int, end: int) -> PyramidCells:
        places = [self._place[name] for name in names]
        return self._pyramid.cells(level, first, end, places)

    def level_for(self, from_s: float, to_s: float, most: int) -> int:
        first = max(0, round(from_s / self.step_s))
        return self._pyramid.level_for((to_s - from_s) / self.step_s, first, most)

    def utc(self, time_s: float) -> np.datetime64:
        """When a row was heard; NaT if unknown, or no longer stored."""
        number = round(time_s / self.step_s)
        if not max(-1, self.newest - ROWS) < number <= self.newest:
            return np.datetime64("NaT")
        return np.datetime64(int(self._utc[number % ROWS]), "ms")

    def rows(self, names: Sequence[str], from_s: float, to_s: float) -> Rows:
        first = max(0, self.newest - ROWS + 1, int(np.ceil(from_s / self.step_s - 1e-6)))
        end = min(self.newest, int(np.floor(to_s / self.step_s + 1e-6))) + 1
        numbers = np.arange(first, max(first, end))
        cells = self.cells(names, 0, first, max(first, end))
        table: dict[str, NDArray[Any]] = {
            "time_s": np.round(numbers * self.step_s, 6),
            "utc": self._utc[numbers % ROWS].astype("datetime64[ms]"),
        }
        table |= dict(zip(names, cells.mean, strict=True))
        table["fault"] = (cells.marks & FAULTS).astype(np.uint8)
        table["settling"] = cells.marks & SETTLING > 0
        table["calibrated"] = cells.marks & UNCALIBRATED == 0
        return Rows(table).where(cells.marks & CAME > 0)


def kept_of(columns: "Sequence[Column]") -> "list[Column]":
    """The columns worth storing: levels first, instantaneous ones before statistics.

    Bands only where there is nothing else, as there are too many; no forecasts.
    """
    usable = [one for one in columns if one.statistic != "forecast" and (one.unit or one.needs)]
    usable = [one for one in usable if not one.band_hz] or usable
    main = [one for one in usable if not one.bound_of]
    # Loudness in sone comes last, as it is there in phon too.
    main.sort(key=lambda one: (one.unit == "sone", one.statistic != "instantaneous"))
    chosen = {one.name for one in main[:MOST]}
    return main[:MOST] + [one for one in usable if one.bound_of in chosen]
