"""The history of the readings at every scale of time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.frames import Fault
from amt_stream.meters.rows import Rows
from amt_stream.meters.rows.block import ALL
from amt_stream.meters.rows.words import is_index
from amt_stream.views.history_pyramid import HistoryPyramid, PyramidCells

if TYPE_CHECKING:
    from amt_stream.meters.rows import Column

ROWS, WHOLE = 288_000, 864_000
"""Eight hours of rows at 0.1 s; with the coarser levels, a day."""

MOST = 36
"""Columns at most, as many as there are third octaves; their bounds come on top. Each takes 6 MB
after 8 hours.
"""

LOOK_BACK = 36_000
"""Rows at most in which the last one before a gap is looked for."""

FAULTS = 255
SETTLING, UNCALIBRATED, CAME = 256, 512, 1024
"""Marks of a row besides the bits of `Fault`; the last one says that the row exists."""

FIRST_COLUMN = 16
"""The bit of a mark that says that the first column is settling; further columns follow."""

RESTARTS = Fault.GAP | Fault.NON_FINITE | Fault.SILENT | Fault.OFF
"""Faults after which a reading rises from silence again."""

RISE_S = 0.5
"""Seconds that the rise of any reading takes at least."""


class _Rises:
    """Follows columns, row by row: which values only rise again, after a gap or a reset.

    At the start, what rises counts in maxima.

    rises_s: how long each column rises
    step_s: between rows

    Attributes: `first`, number of the first row that began such a rise; infinite without one.
    """

    def __init__(self, rises_s: list[float], step_s: float) -> None:
        self._rows = np.maximum(np.array(rises_s), RISE_S)[:, None] / step_s
        # Number of the row from which each column last rose from silence, after the start.
        self._silent_at = np.full((len(rises_s), 1), -np.inf)
        self._was_settling = np.zeros((len(rises_s), 1), bool)
        # Which columns had a value.
        self._has_begun = np.zeros((len(rises_s), 1), bool)
        self.first = np.inf

    def extend(self, more: "_Rises") -> None:
        """Follow further columns too."""
        self._rows = np.vstack((self._rows, more._rows))
        self._silent_at = np.vstack((self._silent_at, more._silent_at))
        self._was_settling = np.vstack((self._was_settling, more._was_settling))
        self._has_begun = np.vstack((self._has_begun, more._has_begun))

    def rising(
        self,
        numbers: NDArray[np.int64],
        newest: int,
        faults: NDArray[np.uint8],
        settling: NDArray[np.bool_],
        known: NDArray[np.bool_],
    ) -> NDArray[np.bool_] | None:
        """Which values (column, row) rise again, or None for none.

        numbers, faults: of the rows; newest: the number of the row before
        settling, known: which values (column, row) are settling, and there
        """
        before = np.hstack((self._was_settling, settling))
        begun = np.logical_or.accumulate(np.hstack((self._has_begun, known)), axis=1)
        self._was_settling, self._has_begun = before[:, -1:], begun[:, -1:]
        if not settling.any():
            return None
        previous = np.append(newest, numbers[:-1])
        restarts = (faults & RESTARTS > 0) | (numbers - previous > 1) | ~before[:, :-1]
        again = settling & restarts & begun[:, :-1]
        silent_at = np.where(again, numbers.astype(float), -np.inf)
        if np.isinf(self.first) and again.any():
            self.first = float(numbers[np.argmax(again.any(axis=0))])
        silent_at = np.maximum.accumulate(np.hstack((self._silent_at, silent_at)), axis=1)[:, 1:]
        self._silent_at = silent_at[:, -1:]
        rising: NDArray[np.bool_] = settling & (numbers - silent_at < self._rows)
        return rising


class ReadingHistory:
    """The rows of one measurement [main-thread].

    columns: of the rows; the useful ones are stored
    step_s: between rows
    """

    def __init__(self, columns: "Sequence[Column]", step_s: float) -> None:
        self.columns, self.step_s = tuple(kept_of(columns)), step_s
        self._index()
        self.clear()

    def extend(self, columns: "Sequence[Column]") -> None:
        """Store further columns from now on, of rows that have others now."""
        more = tuple(one for one in kept_of(columns) if one.name not in self._place)
        self.pyramid.extend(len(more))
        self._rises.extend(self._rises_of(more))
        self.columns += more
        self._index()

    def _rises_of(self, columns: "Sequence[Column]") -> _Rises:
        return _Rises([one.rise_s for one in columns], self.step_s)

    def _index(self) -> None:
        """Note the places of the columns."""
        self._place = {column.name: i for i, column in enumerate(self.columns)}
        self._settling_of: dict[str, NDArray[np.bool_]] = {}

    def clear(self) -> None:
        self.pyramid = HistoryPyramid(len(self.columns), ROWS, WHOLE)
        self._utc = np.zeros(ROWS, np.int64)
        self._row = ""
        self._rises = self._rises_of(self.columns)
        self.count = 0
        """Grows with every row."""
        self.first_s = 0.0
        """Time of the first row."""

    @property
    def now_s(self) -> float:
        """Time of the newest row; 0 without rows."""
        return round(max(0.0, self.pyramid.newest * self.step_s), 6)

    @property
    def begin_s(self) -> float:
        """Time of the oldest stored row."""
        return max(0.0, (self.pyramid.oldest - 1) * self.step_s)

    def add(self, rows: Rows) -> None:
        if len(rows) and "row" in rows.columns:
            # Of several microphones, the first.
            self._row = self._row or str(rows["row"][0])
            rows = rows.where(rows["row"] == self._row)
        if not len(rows):
            return
        numbers = np.rint(rows["time_s"] / self.step_s).astype(np.int64)
        if numbers[-1] < self.pyramid.newest:
            # The sound starts again.
            self.clear()
        marks = rows["fault"].astype(np.uint64)
        marks |= np.uint64(CAME)
        marks[rows["settling"]] |= np.uint64(SETTLING)
        marks[~rows["calibrated"]] |= np.uint64(UNCALIBRATED)
        settling = self._settling(rows)
        for place, of_one in enumerate(settling[:MOST]):
            marks[of_one] |= np.uint64(settling_mark(place))
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
        newest, known = self.pyramid.newest, ~np.isnan(values)
        rising = self._rises.rising(numbers, newest, rows["fault"], settling, known)
        self.pyramid.add(numbers, values, marks, ranges, rising)
        self._utc[numbers % ROWS] = rows["utc"].astype("datetime64[ms]").astype(np.int64)
        self.count += len(rows)

    def _settling(self, rows: Rows) -> NDArray[np.bool_]:
        """Which readings (column, row) are settling."""
        if "settling_columns" not in rows.columns:
            return np.repeat(np.asarray(rows["settling"], bool)[None], len(self.columns), 0)
        found = np.zeros((len(self.columns), len(rows)), bool)
        for place, text in enumerate(rows["settling_columns"].tolist()):
            if text:
                found[:, place] = self._settling_in(text)
        return found

    def _settling_in(self, text: str) -> NDArray[np.bool_]:
        if text not in self._settling_of:
            names = set(text.split())
            those = [ALL in names or one.name in names for one in self.columns]
            self._settling_of[text] = np.array(those, bool)
        return self._settling_of[text]

    @property
    def main_columns(self) -> "list[Column]":
        return [one for one in self.columns if not one.bound_of]

    def bounds_of(self, name: str) -> list[str]:
        return [one.name for one in self.columns if one.bound_of == name]

    def cells(
        self, names: Sequence[str], level: int, first: int, end: int, risen: bool = False
    ) -> PyramidCells:
        """Cells of some columns, as of `HistoryPyramid.cells`.

        risen: whether to leave out values that only rise from silence, as coarser cells do
        """
        places = [self._place[name] for name in names]
        return self.pyramid.cells(level, first, end, places, risen)

    @property
    def disturbed_s(self) -> float:
        """The end of the first fault or reset: values that settle after it do not count."""
        return self._rises.first * self.step_s

    def settling_in(self, cells: PyramidCells, name: str) -> NDArray[np.bool_]:
        """In which cells a column is settling."""
        return cells.marks & np.uint64(settling_mark(self._place[name])) > 0

    def level_for(self, from_s: float, to_s: float, most: int) -> int:
        first = max(0, round(from_s / self.step_s))
        return self.pyramid.level_for((to_s - from_s) / self.step_s, first, most)

    def utc(self, time_s: float) -> np.datetime64:
        """When a row was heard; NaT if unknown, or no longer stored.

        Of a time without a row it follows from the row before.
        """
        number = round(time_s / self.step_s)
        oldest = max(0, self.pyramid.newest - ROWS + 1, number - LOOK_BACK)
        if not oldest <= number <= self.pyramid.newest:
            return np.datetime64("NaT")
        came = self.pyramid.cells(0, oldest, number + 1, []).marks & np.uint64(CAME) > 0
        if not came.any():
            return np.datetime64("NaT")
        row = oldest + int(np.flatnonzero(came)[-1])
        since_ms = round(1000 * (number - row) * self.step_s)
        return np.datetime64(int(self._utc[row % ROWS]), "ms") + np.timedelta64(since_ms, "ms")

    def rows(self, names: Sequence[str], from_s: float, to_s: float) -> Rows:
        first = max(0, self.pyramid.newest - ROWS + 1, int(np.ceil(from_s / self.step_s - 1e-6)))
        end = min(self.pyramid.newest, int(np.floor(to_s / self.step_s + 1e-6))) + 1
        numbers = np.arange(first, max(first, end))
        cells = self.cells(names, 0, first, max(first, end))
        table: dict[str, NDArray[Any]] = {
            "time_s": np.round(numbers * self.step_s, 6),
            "utc": self._utc[numbers % ROWS].astype("datetime64[ms]"),
        }
        table |= dict(zip(names, cells.mean, strict=True))
        table["fault"] = (cells.marks & np.uint64(FAULTS)).astype(np.uint8)
        table["settling"] = cells.marks & SETTLING > 0
        table["calibrated"] = cells.marks & UNCALIBRATED == 0
        return Rows(table).where(cells.marks & CAME > 0)


def missing_in(cells: PyramidCells) -> NDArray[np.bool_]:
    """In which cells nothing was measured of one of their columns."""
    gone = np.isnan(cells.mean).any(axis=0) & (cells.marks & np.uint64(Fault.OFF) > 0)
    faulty = cells.marks & np.uint64(Fault.GAP | Fault.SILENT) > 0
    missing: NDArray[np.bool_] = gone | faulty | (cells.marks & np.uint64(CAME) == 0)
    return missing


def settling_mark(place: int) -> int:
    return 1 << (FIRST_COLUMN + place)


def kept_of(columns: "Sequence[Column]") -> "list[Column]":
    """The columns worth storing: levels first, instantaneous ones before statistics.

    Bands only where there is nothing else, as there are too many; no forecasts.
    """
    usable = [
        one
        for one in columns
        if one.statistic != "forecast" and (one.unit or one.needs or is_index(one.name))
    ]
    usable = [one for one in usable if not one.band_hz] or usable
    main = [one for one in usable if not one.bound_of]
    # Loudness in sone comes last, as it is there in phon too.
    main.sort(key=lambda one: (one.unit == "sone", one.statistic != "instantaneous"))
    chosen = {one.name for one in main[:MOST]}
    return main[:MOST] + [one for one in usable if one.bound_of in chosen]
