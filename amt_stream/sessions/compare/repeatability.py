"""Repeatability: how much a reading would differ for another part of the same sound.

A measurement is divided into parts of equal length, which are nearly independent. Their spread
gives the standard uncertainty of the mean (JCGM 100:2008, GUM, 4.2.3: type A), s / sqrt(n), and
Student's t for n - 1 degrees of freedom replaces k = 2 (GUM G.3.2, table G.2, 95.45 %). Parts are
ten correlation times long, so that batch means are nearly independent (Law and Carson, Operations
Research 27, 1979).
"""

import math

import numpy as np
from numpy.typing import NDArray

from amt_stream.sessions.results import Results

TIMES = 10.0
"""Length of a part in correlation times."""

SHORTEST_S, FEWEST, MOST = 1.0, 4, 100
"""Shortest part in seconds; the smallest and the largest number of parts."""

STUDENT = {1: 13.97, 2: 4.53, 3: 3.31, 4: 2.87, 5: 2.65, 6: 2.52, 7: 2.43, 8: 2.37, 9: 2.32}
STUDENT |= {10: 2.28, 12: 2.23, 14: 2.20, 16: 2.17, 18: 2.15, 20: 2.13, 30: 2.09, 50: 2.05}
"""Student's t for 95.45 %, by degrees of freedom (GUM, table G.2)."""

ENERGY = {"laeq_db": "laf_db", "lceq_db": "lcf_db", "lzeq_db": "lzf_db"}
"""Equivalent levels, and the instantaneous level whose energy they average."""

Values = NDArray[np.float64]


def repeatability(results: Results, name: str) -> float | None:
    """The uncertainty of a reading in its unit (95.45 %) from the spread of its parts.

    None if the reading is not a mean or a percentile of a column of the rows, such as a maximum, or
    if there are fewer than four parts.
    """
    source, percent = ENERGY.get(name, ""), None
    if not source and (column := results.columns.get(name)):
        if column.kind != "exceeded" or column.window:
            return None
        percent = float(column.percent)
        source = results.source_of(column)
    if source not in results.rows.columns:
        return None
    values = results.rows[source]
    there = np.isfinite(values)
    kept = values[there]
    size = _part(kept, results.step_s)
    count = min(MOST, len(kept) // size) if size else 0
    if count < FEWEST:
        return None
    parts = kept[: count * (len(kept) // count)].reshape(count, -1)
    factor = STUDENT[max(freedom for freedom in STUDENT if freedom <= count - 1)]
    if percent is not None:
        read = np.percentile(parts, 100.0 - percent, axis=1)
        return float(factor * read.std(ddof=1) / math.sqrt(count))
    power = np.mean(10.0 ** (parts / 10.0), axis=1)
    spread = power.std(ddof=1) / power.mean() / math.sqrt(count)
    return float(factor * 10.0 / math.log(10.0) * spread)


def _part(values: Values, step_s: float) -> int:
    """Number of rows per part; 0 if there are too few rows."""
    if len(values) < 2 * FEWEST:
        return 0
    return max(round(SHORTEST_S / step_s), math.ceil(TIMES * _correlated(values)), 1)


def _correlated(values: Values) -> float:
    """The correlation time in rows: the sum of the autocorrelation until it is first below 0."""
    centered = values - values.mean()
    size = 1 << (2 * len(values) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(centered, size)) ** 2
    covariance = np.fft.irfft(spectrum, size)[: len(values)]
    if covariance[0] <= 0:
        return 1.0
    shares = covariance / covariance[0]
    negative = np.flatnonzero(shares < 0)
    until = int(negative[0]) if len(negative) else len(shares)
    return float(2.0 * shares[:until].sum() - 1.0)
