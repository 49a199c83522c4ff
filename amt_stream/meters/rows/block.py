"""Consecutive rows: columns of numbers, read as arrays or row by row."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.safe_text import brief
from amt_stream.core.words import counted
from amt_stream.meters.frames import Fault
from amt_stream.meters.names import limit_in
from amt_stream.meters.rows.words import FAULT_NAMES

Cell = str | float | None
"""The value of a cell; None if there is none."""

BEFORE = ("time_s", "utc", "sample")
"""Columns before the readings: time in the sound, UTC, and input sample."""

MICROPHONE = "row"
"""The column with the name of the microphone, if there are several."""

AFTER = ("fault", "settling", "settling_columns", "clipped_columns", "calibrated")
"""Columns after the readings, for all sound since the row before."""

ALL = "all"
"""Stands for all readings."""

KINDS = {
    "utc": "datetime64[ms]",
    "sample": "int64",
    MICROPHONE: "O",
    "local": "O",
    "partial": "bool",
    "fault": "uint8",
    "settling": "bool",
    "settling_columns": "O",
    "clipped_columns": "O",
    "calibrated": "bool",
}
"""Types of these columns; states of limits are text, and other columns float64."""

NAT = -(2.0**63)
"""NaT as a number."""

_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z?", re.ASCII)

# Texts of the column of faults, by bits.
FAULT_TEXTS = [
    " ".join(name for bit, name in FAULT_NAMES.items() if fault & bit)
    for fault in range(sum(Fault) + 1)
]
FAULTS_OF = {text: fault for fault, text in reversed([*enumerate(FAULT_TEXTS)])}


def column_type(name: str) -> str:
    return KINDS.get(name, "O" if limit_in(name) else "float64")


class Rows:
    """A block of rows: `rows["ltl_phon"]` is a column, and iterating yields each row as a dict.

    `rows[-1]` is one row as a dict, and `rows[:10]` further rows.

    A column of readings is (row,), float64 in seven digits, NaN without a reading. `time_s` is
    float64, `utc` datetime64[ms] or NaT, `sample` int64, `fault` uint8 with the bits of `Fault`,
    `settling` and `calibrated` bool, and `settling_columns`, `clipped_columns` and states of limits
    text. In a dict, missing values are None, and `utc` (RFC 3339) and faults are text.

    range_of: for a display, the least and the greatest of each reading (2, row) in all frames since
        the row before
    """

    def __init__(
        self,
        columns: Mapping[str, np.ndarray],
        range_of: Mapping[str, NDArray[np.float64]] | None = None,
    ) -> None:
        self._before, self._after = dict(columns), dict[str, np.ndarray]()
        self.range_of = dict(range_of or {})
        # Between them the readings in one array (row, reading), which is faster.
        self._names: Sequence[str] = ()
        self._table: NDArray[np.float64] | None = None

    @classmethod
    def around(
        cls,
        before: Mapping[str, np.ndarray],
        names: Sequence[str],
        table: NDArray[np.float64],
        after: Mapping[str, np.ndarray],
    ) -> Self:
        """Make rows from columns before the readings, readings (row, name), and columns after."""
        rows = cls(before)
        rows._names, rows._table, rows._after = names, table, dict(after)
        return rows

    @cached_property
    def _columns(self) -> dict[str, np.ndarray]:
        readings = () if self._table is None else zip(self._names, self._table.T, strict=True)
        return {**self._before, **dict(readings), **self._after}

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return (*self._before, *self._names, *self._after)

    @overload
    def __getitem__(self, which: str) -> np.ndarray: ...
    @overload
    def __getitem__(self, which: SupportsIndex) -> dict[str, Cell]: ...
    @overload
    def __getitem__(self, which: slice) -> Self: ...
    def __getitem__(
        self, which: str | SupportsIndex | slice
    ) -> np.ndarray | dict[str, Cell] | Self:
        if isinstance(which, str):
            return self._columns[which]
        if isinstance(which, slice):
            return self.where(which)
        try:
            place = range(len(self))[which]
        except IndexError:
            raise IndexError(f"there is no row {which} among {counted(len(self), 'row')}") from None
        return next(iter(self.where(slice(place, place + 1))))

    def __len__(self) -> int:
        return len(self._before["time_s"])

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        names = self.columns
        return (dict(zip(names, row, strict=True)) for row in self.tuples())

    def tuples(self) -> Iterator[tuple[Cell, ...]]:
        """Yield each row as a tuple, with values as in a dict."""
        columns = [python_values(name, v) for name, v in self._before.items()]
        if self._table is not None:
            columns += without_nan(self._table.T)
        columns += [python_values(name, v) for name, v in self._after.items()]
        return zip(*columns, strict=True)

    @classmethod
    def concatenated(cls, parts: Sequence["Rows"], columns: Sequence[str]) -> Self:
        """Concatenate parts; without parts, empty rows with these columns."""
        if not parts:
            return cls({name: np.zeros(0, column_type(name)) for name in columns})
        return cls({name: np.concatenate([part[name] for part in parts]) for name in columns})

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, object]]) -> Self:
        """Make rows from dicts with equal columns, at least one."""
        return cls({name: _column(name, [row[name] for row in rows]) for name in rows[0]})

    def within(self, from_s: float, to_s: float) -> Self:
        """The rows between two times, inclusive."""
        there = (self["time_s"] >= from_s) & (self["time_s"] <= to_s)
        return self if there.all() else self.where(there)

    def where(self, there: np.ndarray | slice) -> Self:
        """A selection of rows."""
        return type(self)(
            {name: column[there] for name, column in self._columns.items()},
            {name: both[:, there] for name, both in self.range_of.items()},
        )


def python_values(name: str, column: np.ndarray) -> list[Any]:
    """A column as Python values, None for missing ones."""
    kind = column.dtype.kind
    if name == "fault":
        return [FAULT_TEXTS[fault] for fault in column.tolist()]
    if kind == "M":
        texts = np.datetime_as_string(column, "ms", "UTC").tolist()
        return [None if text == "NaT" else text for text in texts]
    return without_nan(column) if kind == "f" else column.tolist()


def without_nan(numbers: NDArray[np.float64]) -> list[Any]:
    """Numbers (n,) or (n, k) as lists, None for NaN."""
    if numbers.ndim == 1:
        return [None if v != v else v for v in numbers.tolist()]
    if not np.isnan(numbers).any():
        return numbers.tolist()
    return [[None if v != v else v for v in row] for row in numbers.tolist()]


def _column(name: str, values: list[Any]) -> np.ndarray:
    if name == "fault":
        values = [FAULTS_OF[text] for text in values]
    elif name == "utc":
        values = ["NaT" if text is None else _utc(text) for text in values]
    return np.array(values, column_type(name))


def _utc(text: object) -> str:
    """A time of `utc` in numpy's form. Raises ValueError if it is invalid."""
    if not isinstance(text, str) or _UTC.fullmatch(text) is None:
        raise ValueError(f"utc is {brief(repr(text))}")
    return text.removesuffix("Z")


def is_named(name: str, names: object) -> bool:
    """Whether a column of names, such as `settling_columns`, names a reading."""
    return isinstance(names, str) and (names == ALL or name in names.split())


def names_of(marked: NDArray[np.bool_], names: Sequence[str]) -> NDArray[np.object_]:
    """The marked names of each row (n, name), separated by spaces, or `ALL`."""
    texts = np.array([""] * len(marked), object)
    if not np.count_nonzero(marked):
        return texts
    texts_of = {bytes(len(names)): "", bytes([1]) * len(names): ALL}
    for row, one in enumerate(marked):
        key = one.tobytes()
        if key not in texts_of:
            texts_of[key] = " ".join(name for name, there in zip(names, one, strict=True) if there)
        texts[row] = texts_of[key]
    return texts


def all_of(there: NDArray[np.bool_]) -> bool:
    """`there.all()`, in a tenth of the time for short arrays."""
    return int(np.count_nonzero(there)) == there.size


def in_seven_digits(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Readings rounded to seven digits, as they are written; NaN without a reading."""
    from amt_stream.meters.accumulators import loops  # compiles; a reader of rows need not

    loops.compile_loops()
    rounded = np.array(values, np.float64, order="C")
    loops.round_digits(rounded.reshape(-1))
    return rounded


def utc_text(utc_s: float) -> str:
    """Unix time as RFC 3339 text, to the millisecond."""
    return str(np.datetime_as_string(in_utc(np.array([utc_s]))[0], "ms", timezone="UTC"))


def unix_s(utc: Any) -> Any:
    """A `datetime64`, or an array of them, as Unix time; NaN if unknown."""
    found = utc.astype("datetime64[ms]").astype(np.int64) / 1000
    return np.where(np.isnat(utc), np.nan, found)


def in_utc(epoch_s: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """Unix time as datetime64[ms]; NaT for NaN."""
    ms = np.rint(epoch_s * 1000)
    known = np.isfinite(ms)
    if not all_of(known):
        ms[~known] = NAT
    return ms.astype(np.int64).view("datetime64[ms]")
