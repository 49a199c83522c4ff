"""The curves of the history plot: readings, colors, scale."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_monitor.plot import PlotAxis
from amt_monitor.reading_captions import caption_of
from amt_monitor.theme import Role

if TYPE_CHECKING:
    from amt_stream.meters.rows import Column

MOST = 4
"""Curves in one plot: more colors could not be told apart."""

FIRST = (
    *("ltl_phon", "stl_phon", "laf_db", "laeq_db", "zwicker_n_phon", "short_term_lufs"),
    *("spectrum_peak_db", "lzf_1000hz_db"),
)
"""The default choice: those with the unit of the first one that exists."""

DECIBELS = ("phon", "dB", "LUFS", "LU", "dBTP")
STEP_DB, LEAST_DB = 10.0, 40.0
TOPS = (1, 2, 5)


class HistoryTrace(NamedTuple):
    """A column as a curve."""

    name: str
    caption: str
    unit: str
    role: Role
    dashed: bool


def symbol_of(name: str) -> str:
    """A short name without unit: "LTL", "LAeq,15min", "gm2002 LTL"."""
    caption = caption_of(name)
    before = next((model for model in ("gm2002", "zwicker") if name.startswith(f"{model}_")), "")
    return f"{before} {caption.symbol}".strip() if caption.symbol else caption.words


def unit_of(name: str) -> str:
    return caption_of(name).unit


def first_of(columns: "Sequence[Column]") -> list[str]:
    names = [column.name for column in columns]
    wanted = [name for name in FIRST if name in names] or names[:1]
    return [name for name in wanted if unit_of(name) == unit_of(wanted[0])][:MOST]


def traces_of(names: Sequence[str]) -> list[HistoryTrace]:
    """Assigns colors: fixed ones by meaning, then the free ones."""
    free: list[tuple[Role, bool]] = [
        *(("accent", False), ("ink", False), ("second", False)),
        *(("ink", True), ("second", True)),
    ]
    traces: list[HistoryTrace] = []
    for name in names:
        wanted = _meaning(name)
        if wanted is None or any((t.role, t.dashed) == wanted for t in traces):
            taken = {(t.role, t.dashed) for t in traces}
            sides = {"left"} & {t.role for t in traces} or any("_left_" in n for n in names)
            wanted = next(
                one for one in free if one not in taken and not (one[0] == "accent" and sides)
            )
        traces.append(HistoryTrace(name, symbol_of(name), unit_of(name), *wanted))
    return traces


def _meaning(name: str) -> tuple[Role, bool] | None:
    parts = name.split("_")
    if "ltl" in parts:
        return "ltl", False
    if "stl" in parts:
        return "stl", False
    if "left" in parts:
        return "left", False
    return ("right", True) if "right" in parts else None


class GrowingScale:
    """A range of round numbers that grows at once, and shrinks only by `reset`."""

    def __init__(self, unit: str = "") -> None:
        self.unit = unit
        self.reset()

    def reset(self) -> None:
        self._low, self._high = math.inf, -math.inf

    def axis(self, values: NDArray[np.float64]) -> PlotAxis:
        known = values[np.isfinite(values)]
        if len(known):
            self._low = min(self._low, float(known.min()))
            self._high = max(self._high, float(known.max()))
        low, high = (self._low, self._high) if self._low <= self._high else (0.0, 0.0)
        if self.unit in DECIBELS:
            high = STEP_DB * math.ceil((high + 2) / STEP_DB)
            low = min(STEP_DB * math.floor(low / STEP_DB), high - LEAST_DB)
            low = max(low, 0.0) if self.unit == "phon" else low
        else:
            low, high = 0.0, top_of(high)
        return PlotAxis(low, high, ticks_of(low, high))


def top_of(high: float) -> float:
    return next(
        top for power in range(-2, 6) for step in TOPS if (top := step * 10.0**power) > 1.02 * high
    )


def ticks_of(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """About five round numbers."""
    rough = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(t * power for t in (1, 2, 5, 10) if t * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple((k * step, f"{k * step:g}") for k in range(first, last + 1))
