"""How numbers are written."""

import math
from collections.abc import Callable
from functools import cache

from amt_stream.meters.rows import HIGHEST_PHON

NONE = "---"
"""What is written where there is no reading."""


def tenths(value: float) -> str:
    """Two digits after a rounding to tenths never read -0.0."""
    return f"{round(value, 1) + 0.0:.1f}"


def sone_text(sone: float) -> str:
    """Three digits or so: 0.052, 1.00, 12.3, 123."""
    decimals = 3 if sone < 0.0995 else 2 if sone < 9.995 else 1 if sone < 99.95 else 0
    return f"{sone:.{decimals}f}"


def table_phon(phon: float) -> str:
    """Loudness level by a table that ends at 120 phon."""
    return f">{HIGHEST_PHON:.0f}" if phon >= HIGHEST_PHON else tenths(phon)


def signed_text(level_lu: float) -> str:
    """A loudness relative to the target, with its sign."""
    return f"{round(level_lu, 1) + 0.0:+.1f}"


def hundredths(value: float) -> str:
    return f"{value:.2f}"


def whole(value: float) -> str:
    return f"{value:.0f}"


def frequency(hz: float) -> str:
    """Tenths below 1 kHz."""
    return tenths(hz) if hz < 999.95 else whole(hz)


BY_UNIT: dict[str, Callable[[float], str]] = {
    "sone": sone_text,
    "phon": table_phon,
    "lu": signed_text,
    "acum": hundredths,
    "s": whole,
    "hz": frequency,
}


@cache
def _writer_of(name: str) -> Callable[[float], str]:
    """How a reading of that name is written: tenths where its unit asks for nothing else."""
    if name == "lra_lu" or (name.startswith("zwicker") and name.endswith("phon")):
        return tenths
    return BY_UNIT.get(name.rpartition("_")[2], tenths)


def number_text(name: str, value: float | None) -> str:
    """A reading, or that there is none."""
    if value is None or not math.isfinite(value):
        return NONE
    return _writer_of(name)(value)
