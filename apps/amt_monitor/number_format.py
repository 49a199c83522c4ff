"""Formats numbers."""

import math
from collections.abc import Callable
from functools import cache

from amt_stream.meters.rows import HIGHEST_PHON

NONE = "---"
"""Stands for a missing reading."""


def tenths(value: float) -> str:
    """One decimal, never "-0.0"."""
    return f"{round(value, 1) + 0.0:.1f}"


def sone_text(sone: float) -> str:
    """Two decimals below 100, so that nothing moves: 0.00, 1.00, 12.34, 123.4."""
    return f"{sone:.{2 if sone < 99.995 else 1}f}"


def table_phon(phon: float) -> str:
    """Loudness level by a table that ends at 120 phon."""
    return f">{HIGHEST_PHON:.0f}" if phon >= HIGHEST_PHON else tenths(phon)


def signed_text(level_lu: float) -> str:
    return f"{round(level_lu, 1) + 0.0:+.1f}"


def frequency(hz: float) -> str:
    """One decimal below 1 kHz."""
    return tenths(hz) if hz < 999.95 else f"{hz:.0f}"


BY_UNIT: dict[str, Callable[[float], str]] = {
    "sone": sone_text,
    "phon": table_phon,
    "lu": signed_text,
    "acum": "{:.2f}".format,
    "s": "{:.0f}".format,
    "hz": frequency,
}


@cache
def _writer_of(name: str) -> Callable[[float], str]:
    """The format of a reading, by its unit; one decimal by default."""
    if name == "lra_lu" or (name.startswith("zwicker") and name.endswith("phon")):
        return tenths
    return BY_UNIT.get(name.rpartition("_")[2], tenths)


def number_text(name: str, value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return NONE
    return _writer_of(name)(value)
