"""The curves of the history plot: readings, colors, scale."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_monitor.base.theme import Role
from amt_monitor.plot.plot import PlotAxis
from amt_stream.meters.rows import Column, column_named
from amt_stream.meters.rows.captions import caption_of
from amt_stream.meters.rows.column import LONG_TERM

MOST = 4
"""The most curves in one plot: more colors could not be distinguished."""

Style = tuple[Role, bool]
"""A color, and whether a line is dashed."""
OF_QUANTITY: dict[str, Role] = {
    **dict.fromkeys(LONG_TERM, "ltl"),
    **dict.fromkeys(("stl", "stl_low", "stl_high"), "stl"),
}
"""Colors of loudness of the Moore family, by `Column.of`."""
OF_SIDE: dict[str, Style] = {"left": ("left", False), "right": ("right", True)}
STYLES: dict[str, Style] = {
    "laf_db": ("level", False),
    "las_db": ("level", True),
    "laeq_db": ("average", False),
    "lcf_db": ("ink", False),
    "lcs_db": ("ink", True),
    "lzf_db": ("second", False),
    "lzs_db": ("second", True),
    "momentary_lufs": ("level", False),
    "short_term_lufs": ("level", True),
    "integrated_lufs": ("average", False),
}
"""Those of readings that are often shown together; others are `style_of` their statistic."""
SPARE: tuple[Style, ...] = (
    *(("level", False), ("average", False), ("ink", False), ("second", False)),
    *(("ink", True), ("level", True), ("average", True), ("second", True)),
)

FIRST = (
    *("ltl_phon", "stl_phon", "laf_db", "laeq_db", "zwicker_n_phon", "short_term_lufs"),
    *("spectrum_peak_db", "lzf_1000hz_db", "sti"),
)
"""The usual readings: those with the unit of the first one that exists."""

DECIBELS = ("phon", "dB", "LUFS", "LU", "dBTP")
STEP_DB, LEAST_DB = 10.0, 40.0
FLOOR = 20.0
"""Of the axis of levels, in dB and phon: a curve below it is below the range."""
TOPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
SHRINKS_S = 5.0


class HistoryTrace(NamedTuple):
    """A column as a curve."""

    name: str
    caption: str
    unit: str
    role: Role
    dashed: bool


def symbol_of(name: str) -> str:
    """A short name without unit: "LTL", "LAeq,15min", "gm2002 LTL", as another model has an LTL."""
    caption, column = caption_of(name), column_named(name)
    before = "gm2002 " if column is not None and column.model == "gm2002" else ""
    return f"{before}{caption.symbol}" if caption.symbol else caption.words


def unit_of(name: str) -> str:
    return caption_of(name).unit


def first_of(columns: Sequence[Column], limited: Iterable[str] = ()) -> list[str]:
    """The default choice: the readings of limits, and the usual ones of the unit of the first."""
    names = [column.name for column in columns]
    usual = [name for name in FIRST if name in names] or names[:1]
    wanted = [*dict.fromkeys([name for name in limited if name in names] + usual)]
    return [name for name in wanted if unit_of(name) == unit_of(wanted[0])][:MOST]


def traces_of(names: Sequence[str]) -> list[HistoryTrace]:
    """The curves of columns, each in the style of its quantity.

    Of two with one style the second by name has another one.
    """
    styles: dict[str, Style] = {}
    for name in sorted(names, key=lambda one: (one not in STYLES, caption_of(one).counted, one)):
        same = style_of(name)
        others = (one for one in SPARE if one not in styles.values())
        styles[name] = next(others) if same in styles.values() else same
    return [HistoryTrace(name, symbol_of(name), unit_of(name), *styles[name]) for name in names]


def style_of(name: str) -> Style:
    """The color of a column and whether it is dashed, in whatever order columns are chosen."""
    column = column_named(name)
    if column is None:
        return "level", False
    if (of := OF_QUANTITY.get(column.of)) is not None:
        return of, column.model == "gm2002"
    if column.side:
        return OF_SIDE[column.side]
    if name in STYLES:
        return STYLES[name]
    is_third_octave = column.model == "third_octave"
    rolls = column.model == "spl" and column.window_s and column.kind != "exceeded"
    if rolls or (is_third_octave and column.kind == "eq"):
        return "average", True
    if column.counted:
        is_share = column.percent or column.kind in ("dose", "twa")
        return ("second", True) if is_share else ("average", False)
    if is_third_octave:
        return SPARE[round(3 * math.log2(column.band_hz / 1000.0)) % len(SPARE)]
    return "level", False


class GrowingScale:
    """A range of round numbers: it grows at once, and shrinks after 5 s."""

    def __init__(self, unit: str = "") -> None:
        self.unit = unit
        self.reset()

    def reset(self) -> None:
        self._range: tuple[float, float] | None = None
        self._smaller_since: float | None = None

    def axis(self, values: NDArray[np.float64], now_s: float) -> PlotAxis:
        """The axis for the visible values; `now_s` is the time of the newest one."""
        low, high = range_of(self.unit, values)
        if self._range is not None:
            before_low, before_high = self._range
            if low <= before_low and high >= before_high:
                self._smaller_since = None
            else:
                since = now_s if self._smaller_since is None else self._smaller_since
                self._smaller_since = since
                if 0 <= now_s - since < SHRINKS_S:
                    low, high = min(low, before_low), max(high, before_high)
                else:
                    self._smaller_since = None
        self._range = low, high
        return PlotAxis(low, high, ticks_of(low, high))


def range_of(
    unit: str, values: NDArray[np.float64], floor: bool = True, least_db: float = LEAST_DB
) -> tuple[float, float]:
    """Round numbers around values, from 0; levels in whole tens.

    floor: whether the range of levels above 20 dB begins there
    least_db: its least extent
    """
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    if unit not in DECIBELS:
        return 0.0, top_of(high)
    high = STEP_DB * math.ceil((high + 2) / STEP_DB)
    if floor and (unit == "phon" or high > FLOOR):
        return FLOOR, max(high, FLOOR + least_db)
    return min(STEP_DB * math.floor(low / STEP_DB), high - least_db), high


def top_of(high: float) -> float:
    """The lowest round number above a value."""
    return next(
        top for power in range(-2, 6) for step in TOPS if (top := step * 10.0**power) > 1.02 * high
    )


def ticks_of(low: float, high: float, count: int = 6) -> tuple[tuple[float, str], ...]:
    """About so many round numbers."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(t * power for t in (1, 2, 5, 10) if t * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple((k * step, f"{k * step:g}") for k in range(first, last + 1))
