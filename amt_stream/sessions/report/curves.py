"""Readings over time, reduced to the points of a chart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonMap
from amt_stream.sessions.report.names import symbol
from amt_stream.sessions.results import Results

UNITS = ("dB", "phon", "LUFS", "sone")
"""Units with a separate chart; sone only if there is no phon."""

BESIDE = ("third_octave", "octave")
"""Models with too many readings for curves."""

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
    told = results.columns.get(name, {})
    time_s, values = results.rows["time_s"], results.rows[name]
    found = summed_up(time_s, values, parts)
    return Curve(name, words_of(told), symbol(name), *found, strong)


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


def words_of(column: Mapping[str, object]) -> str:
    """The full description of a column."""
    quantity = str(column.get("quantity", "")).partition(", higher of")[0]
    statistic = str(column.get("statistic", "instantaneous"))
    more = statistic.removeprefix("equivalent").removeprefix("exposure").removeprefix(", ")
    if statistic == "instantaneous" or not more:
        return quantity
    return f"{quantity}, {more}"


def is_followed(column: Mapping[str, object]) -> bool:
    """Whether to hold the history of a reading in memory; not for many bands."""
    return column["model"] not in BESIDE and column["statistic"] != "forecast"


def is_drawn(column: Mapping[str, object]) -> bool:
    """Whether a reading is instantaneous."""
    return (
        column.get("unit") in UNITS
        and column.get("statistic") == "instantaneous"
        and column.get("model") not in BESIDE
        and not str(column["name"]).endswith(("_left_db", "_right_db"))
    )


def is_limited(column: Mapping[str, object], limited: Sequence[str]) -> bool:
    """Whether a reading has a limit and suits a chart; a maximum would only rise in steps."""
    return column["name"] in limited and column["statistic"] != "maximum"


def drawn(columns: Sequence[JsonMap], limited: Sequence[str]) -> dict[str, list[str]]:
    """Names of the readings in the chart of each unit, the main one last.

    limited: columns with limits
    """
    charts: dict[str, list[str]] = {}
    for unit in UNITS:
        if unit == "sone" and "phon" in charts:
            continue
        moving = [str(c["name"]) for c in columns if is_drawn(c) and c["unit"] == unit]
        moving = [name for name in moving if not name.rpartition("_")[0].endswith(("low", "high"))]
        first = [name for name in PREFERRED if name in moving] or moving
        kept = [c["name"] for c in columns if c["unit"] == unit and is_limited(c, limited)]
        names = [*first[: 1 if unit == "dB" else MOST], *kept]
        if names:
            charts[unit] = list(dict.fromkeys(names))
    return charts
