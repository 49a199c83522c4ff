"""Readings over time, as many points as a picture has room for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonMap
from amt_stream.sessions.report.names import symbol
from amt_stream.sessions.results import Results

UNITS = ("dB", "phon", "LUFS", "sone")
"""That have a chart of their own; of sone only where there is nothing in phon."""

BESIDE = ("third_octave", "octave")
"""Models with too many readings for curves."""

PREFERRED = ("laf_db", "las_db", "stl_phon", "ltl_phon", "momentary_lufs", "short_term_lufs")
MOST = 2
"""Curves of the moment in one chart, beside those that have limits."""


Numbers = NDArray[np.float64]
Summed = tuple[Numbers, Numbers, Numbers, Numbers]


@dataclass(frozen=True)
class Curve:
    """A reading over time: in each of n parts of the time the least, the mean and the highest.

    time_s: in the middle of each part, (n,); the others are NaN where there is no reading
    words, symbol: what it is called, in full and short
    strong: whether it is what matters in its chart
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
    """The column of that name in so many parts of the time."""
    told = results.columns.get(name, {})
    time_s, values = results.rows["time_s"], results.rows[name]
    found = summed_up(time_s, values, parts)
    return Curve(name, words_of(told), symbol(name), *found, strong)


def summed_up(time_s: NDArray[np.float64], values: NDArray[np.float64], parts: int) -> Summed:
    """In each of so many parts of the time: its middle, the least, the mean, the highest value."""
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
    """The part of the time that each row is in, and the middle of each part."""
    parts = max(1, min(parts, len(time_s)))
    wide = max(float(time_s[-1] - time_s[0]), 1e-9)
    place = ((time_s - time_s[0]) / wide * parts).astype(np.int64)
    middle = time_s[0] + (np.arange(parts) + 0.5) * wide / parts
    return np.minimum(place, parts - 1), middle


def words_of(column: Mapping[str, object]) -> str:
    """What a column is, in words that stand alone."""
    quantity = str(column.get("quantity", "")).partition(", higher of")[0]
    statistic = str(column.get("statistic", "instantaneous"))
    more = statistic.removeprefix("equivalent").removeprefix("exposure").removeprefix(", ")
    if statistic == "instantaneous" or not more:
        return quantity
    return f"{quantity}, {more}"


def is_followed(column: Mapping[str, object]) -> bool:
    """Whether the course of a reading is worth its room in memory: of many bands it is not."""
    return column["model"] not in BESIDE and column["statistic"] != "forecast"


def is_drawn(column: Mapping[str, object]) -> bool:
    """Whether a reading is one of those that change from moment to moment."""
    return (
        column.get("unit") in UNITS
        and column.get("statistic") == "instantaneous"
        and column.get("model") not in BESIDE
        and not str(column["name"]).endswith(("_left_db", "_right_db"))
    )


def is_limited(column: Mapping[str, object], limited: Sequence[str]) -> bool:
    """Whether a reading has a limit that a picture can show; of a maximum it would be a stair."""
    return column["name"] in limited and column["statistic"] != "maximum"


def drawn(columns: Sequence[JsonMap], limited: Sequence[str]) -> dict[str, list[str]]:
    """Names of the readings that each unit's chart has, the one that matters last.

    limited: the columns that have limits
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
