"""Consecutive rows: columns of numbers, read as arrays or row by row."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.safe_text import brief
from amt_stream.meters.frames import Fault
from amt_stream.meters.limits import STATE
from amt_stream.meters.rows.words import FAULT_NAMES

Cell = str | float | None
"""The value of a cell; None if there is none."""

BEFORE = ("time_s", "utc", "sample")
"""Columns before the readings: time in the sound, UTC, and input sample."""

MICROPHONE = "row"
"""The column with the name of the microphone, if there are several."""

AFTER = ("fault", "settling", "settling_columns", "calibrated")
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
    "calibrated": "bool",
}
"""Types of these columns; states of limits are text, and other columns float64."""

DIGITS = 7
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z?", re.ASCII)

# Texts of the column of faults, by bits.
FAULT_TEXTS = np.array(
    [
        " ".join(name for bit, name in FAULT_NAMES.items() if fault & bit)
        for fault in range(sum(Fault) + 1)
    ],
    dtype=object,
)
FAULTS_OF = {text: fault for fault, text in reversed([*enumerate(FAULT_TEXTS)])}


def column_type(name: str) -> str:
    """The type of a column."""
    return KINDS.get(name, "O" if name.startswith(STATE) else "float64")


class Rows:
    """A block of rows: `rows["ltl_phon"]` is a column, and iterating yields each row as a dict.

    A column of readings is (row,), float64 in seven digits, NaN without a reading. `time_s` is
    float64, `utc` datetime64[ms] or NaT, `sample` int64, `fault` uint8 with the bits of `Fault`,
    `settling` and `calibrated` bool, and `settling_columns` and states of limits text. In a dict,
    missing values are None, and `utc` (RFC 3339) and faults are text.
    """

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        self._columns = dict(columns)
        # The readings in one array (row, reading), which is faster, and the column after them.
        self._table: NDArray[np.float64] | None = None
        self._place = 0

    @classmethod
    def around(
        cls,
        before: Mapping[str, np.ndarray],
        names: Sequence[str],
        table: NDArray[np.float64],
        after: Mapping[str, np.ndarray],
    ) -> Self:
        """Make rows from columns before the readings, readings (row, name), and columns after."""
        rows = cls({**before, **dict(zip(names, table.T, strict=True)), **after})
        rows._table, rows._place = table, len(before)
        return rows

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return tuple(self._columns)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __len__(self) -> int:
        return len(self._columns["time_s"])

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.tuples())

    def tuples(self) -> Iterator[tuple[Cell, ...]]:
        """Yield each row as a tuple, with values as in a dict."""
        if self._table is None:
            return zip(*(python_values(name, v) for name, v in self._columns.items()), strict=True)
        columns = [*self._columns.items()]
        before, after = columns[: self._place], columns[self._place + self._table.shape[1] :]
        earlier, later = (
            zip(*(python_values(name, v) for name, v in some), strict=True)
            for some in (before, after)
        )
        return (
            (*a, *readings, *b)
            for a, readings, b in zip(earlier, without_nan(self._table), later, strict=True)
        )

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
        return type(self)({name: column[there] for name, column in self._columns.items()})


def python_values(name: str, column: np.ndarray) -> list[Any]:
    """A column as Python values, None for missing ones."""
    kind = column.dtype.kind
    if name == "fault":
        return FAULT_TEXTS[column].tolist()
    if kind == "M":
        known = ~np.isnat(column)
        if known.all():
            return np.datetime_as_string(column, unit="ms", timezone="UTC").tolist()
        texts = np.full(len(column), None, dtype=object)
        texts[known] = np.datetime_as_string(column[known], unit="ms", timezone="UTC")
        return texts.tolist()
    return without_nan(column) if kind == "f" else column.tolist()


def without_nan(numbers: NDArray[np.float64]) -> list[Any]:
    """Numbers (n,) or (n, k) as lists, None for NaN."""
    if numbers.ndim == 1:
        return [None if v != v else v for v in numbers.tolist()]
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


def names_of(marked: NDArray[np.bool_], names: Sequence[str]) -> NDArray[np.object_]:
    """The marked names of each row (n, name), separated by spaces, or `ALL`."""
    texts = np.full(len(marked), "", dtype=object)
    if not marked.any():
        return texts
    told = {bytes(len(names)): "", bytes([1]) * len(names): ALL}
    for row, one in enumerate(marked):
        key = one.tobytes()
        if key not in told:
            told[key] = " ".join(name for name, there in zip(names, one, strict=True) if there)
        texts[row] = told[key]
    return texts


def in_seven_digits(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Readings rounded to seven digits, as they are written; NaN without a reading."""
    given = np.asarray(values, np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        exponent = np.floor(np.log10(np.abs(given)))
        exponent = np.where(np.isfinite(exponent), exponent, 0.0) - (DIGITS - 1)
        # Powers of ten up to 22 are exact, so one division or product rounds like text.
        scale = 10.0 ** np.abs(exponent)
        shrunk = np.rint(np.where(exponent < 0, given * scale, given / scale))
        rounded = np.where(exponent < 0, shrunk / scale, shrunk * scale)
    # Readings are never beyond those powers.
    rounded = np.where(np.abs(exponent) <= 22, rounded, given)
    return np.where(np.isfinite(given), rounded, np.nan)


def in_utc(epoch_s: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """Unix time as datetime64[ms]; NaT for NaN."""
    known = np.isfinite(epoch_s)
    if known.all():
        return np.rint(epoch_s * 1000).astype(np.int64).view("datetime64[ms]")
    times = np.full(len(epoch_s), "NaT", "datetime64[ms]")
    times[known] = np.rint(epoch_s[known] * 1000).astype(np.int64).astype("datetime64[ms]")
    return times
