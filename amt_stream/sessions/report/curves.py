"""Readings over time, reduced to the points of a chart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.rows import Column
from amt_stream.sessions.results import Results

UNITS = ("dB", "phon", "LUFS", "sone")
"""Units with a separate chart; sone only if there is no phon."""

PREFERRED = ("laf_db", "las_db", "stl_phon", "ltl_phon", "momentary_lufs", "short_term_lufs")
MOST = 2
"""Largest number of instantaneous curves in a chart, besides those with limits."""


Numbers = NDArray[np.float64]
Summed = tuple[Numbers, Numbers, Numbers, Numbers]


@dataclass(frozen=True)
class Curve:
    """A reading over time: minimum, mean and maximum in each of n parts of the time.

    time_s: middle of each part, (n,); the others are NaN without a reading
    words, symbol: full and short name
    strong: whether it is the main curve of its chart
    """

    name: str
    words: str
    symbol: str
    time_s: NDArray[np.float64]
    low: NDArray[np.float64]
    mean: NDArray[np.float64]
    high: NDArray[np.float64]
    strong: bool = False


def curve(results: Results, name: str, parts: int, strong: bool = False) -> Curve:
    """The curve of a column in a number of parts."""
    column = results.columns[name]
    time_s, values = results.rows["time_s"], results.rows[name]
    found = summed_up(time_s, values, parts)
    return Curve(name, words_of(column), column.short, *found, strong)


def summed_up(time_s: NDArray[np.float64], values: NDArray[np.float64], parts: int) -> Summed:
    """Middle, minimum, mean and maximum of each part of the time."""
    place, middle = _places(time_s, parts)
    finite = np.isfinite(values)
    place, values = place[finite], values[finite]
    low, mean, high = np.full((3, len(middle)), np.nan)
    if len(values):
        begins = np.flatnonzero(np.diff(place, prepend=-1))
        there = place[begins]
        low[there] = np.minimum.reduceat(values, begins)
        high[there] = np.maximum.reduceat(values, begins)
        mean[there] = np.add.reduceat(values, begins) / np.diff([*begins, len(values)])
    return middle, low, mean, high


def _places(time_s: NDArray[np.float64], parts: int) -> tuple[Any, NDArray[np.float64]]:
    """The part of each row, and the middle of each part."""
    parts = max(1, min(parts, len(time_s)))
    wide = max(float(time_s[-1] - time_s[0]), 1e-9)
    place = ((time_s - time_s[0]) / wide * parts).astype(np.int64)
    middle = time_s[0] + (np.arange(parts) + 0.5) * wide / parts
    return np.minimum(place, parts - 1), middle


def words_of(column: Column) -> str:
    """The full description of a column."""
    quantity = column.quantity.partition(", higher of")[0]
    more = column.statistic.removeprefix("equivalent").removeprefix("exposure").removeprefix(", ")
    return quantity if more in ("instantaneous", "") else f"{quantity}, {more}"


def is_followed(column: Column) -> bool:
    """Whether to hold the history of a reading in memory; not for many bands."""
    return not column.band_hz and column.statistic != "forecast"


def is_drawn(column: Column) -> bool:
    """Whether a reading is instantaneous, and suits a chart."""
    now = column.unit in UNITS and column.statistic == "instantaneous"
    return now and not (column.band_hz or (column.side and column.unit == "dB"))


def drawn(columns: Iterable[Column], limited: Sequence[str]) -> dict[str, list[str]]:
    """Names of the readings in the chart of each unit, the main one last.

    limited: columns with limits
    """
    charts: dict[str, list[str]] = {}
    columns = list(columns)
    for unit in UNITS:
        if unit == "sone" and "phon" in charts:
            continue
        own = [one for one in columns if one.unit == unit]
        moving = [one.name for one in own if is_drawn(one) and not one.bound_of]
        first = [name for name in PREFERRED if name in moving] or moving
        # A maximum would only rise in steps.
        kept = [one.name for one in own if one.name in limited and one.statistic != "maximum"]
        names = [*first[: 1 if unit == "dB" else MOST], *kept]
        if names:
            charts[unit] = list(dict.fromkeys(names))
    return charts
