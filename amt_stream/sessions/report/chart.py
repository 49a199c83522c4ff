"""A chart over time as SVG, with only simple elements that all programs draw alike."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise

import numpy as np

from amt_stream.core.safe_text import plain
from amt_stream.sessions.report.curves import Curve
from amt_stream.sessions.report.times import Clock

INK, SECOND, GRID, ACCENT, PALE = "#16181d", "#5b616e", "#d9dce2", "#0a66c2", "#86b4e0"
RED, HATCH, AMBER = "#cf222e", "#9aa1ad", "#d08700"
THIRD = ("#0a66c2", "#c2570a", "#6a2c91")
"""Colors of the main curves."""

DASHES = "5 3"
"""Dashes of the curves after the first, so that color is not the only difference."""

FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
SIZE = 11.0
LETTER = 0.54 * SIZE
NAME_ROOM = 39.0
"""Margin around the name of a curve."""

LEFT, RIGHT, TOP, BOTTOM, BARE = 46.0, 12.0, 20.0, 20.0, 4.0
"""Margins of the plot: for the scale, the top, the names of curves, the times, and none."""

HATCH_PX, LINE_PX = 5.0, 4.0
RISING, SMALLEST = 0.01, 1.0


@dataclass(frozen=True)
class Chart:
    """A chart of curves of one unit.

    unit: unit of the scale
    clock: formats times
    begin_s, end_s: range of the time axis
    limits: values of limits, each with its label
    band: lower and upper bound of a curve
    hatched: times that were not measured, each with a word
    lined: times that were measured, and are doubtful
    marks: times of marks, numbered from 1
    zero: whether the scale includes 0
    times: whether the time axis is labeled
    """

    unit: str
    curves: Sequence[Curve]
    clock: Clock
    begin_s: float
    end_s: float
    limits: Sequence[tuple[float, str]] = ()
    band: tuple[Curve, Curve] | None = None
    hatched: Sequence[tuple[float, float, str]] = ()
    lined: Sequence[tuple[float, float]] = ()
    marks: Sequence[float] = ()
    width: float = 720.0
    height: float = 170.0
    zero: bool = False
    times: bool = True

    def svg(self) -> str:
        """The chart as SVG, with a title."""
        words = ", ".join(one.words for one in self.curves)
        title = plain(f"{words} in {self.unit} against time")
        return drawing(title, self.width, self.height, self._parts())

    @property
    def _inside(self) -> tuple[float, float, float, float]:
        return LEFT, TOP, self.width - RIGHT, self.height - (BOTTOM if self.times else BARE)

    @cached_property
    def scale(self) -> tuple[float, float, float]:
        """Lowest and highest value of the scale, and the step between lines."""
        found = [self.band[0].low, self.band[1].high] if self.band else []
        found += [array for one in self.curves for array in (one.low, one.high)]
        values = np.concatenate([*found, [0.0] if self.zero else []])
        values = values[np.isfinite(values)]
        # Without the rise from silence at the start, which would compress everything else.
        low, high = (np.quantile(values, RISING), values.max()) if len(values) else (0.0, 1.0)
        kept = [value for value, _ in self.limits]
        low, high = float(min(low, *kept, high)), float(max(high, *kept, low))
        if high - low < SMALLEST:
            low, high = (low + high - SMALLEST) / 2, (low + high + SMALLEST) / 2
        air = 0.06 * (high - low)
        return low - air, high + air, rounded(high - low, max(2, int(self.height / 24)))

    def _x(self, time_s: float) -> float:
        left, _, right, _ = self._inside
        wide = max(self.end_s - self.begin_s, 1e-9)
        return left + (right - left) * (time_s - self.begin_s) / wide

    def _y(self, value: float) -> float:
        _, top, _, bottom = self._inside
        low, high, _ = self.scale
        y = bottom - (bottom - top) * (value - low) / (high - low)
        return float(min(max(y, top), bottom))

    def _parts(self) -> Iterator[str]:
        yield from self._grid()
        yield from (part for span in self.hatched for part in self._hatch(*span))
        yield from (self._underline(*span) for span in self.lined)
        if self.band is not None:
            yield from self._between(self.band[0], self.band[1], PALE, 0.35)
        strong = 0
        for one in self.curves:
            color = THIRD[strong % len(THIRD)] if one.strong else PALE
            yield from self._line(one, color, DASHES if one.strong and strong else "")
            strong += one.strong
        for value, _ in self.limits:
            y = self._y(value)
            yield segment(LEFT, y, self.width - RIGHT, y, RED, 1.2, "6 3")
        yield from self._limit_words()
        yield from self._marks()
        yield from self._names()

    def _grid(self) -> Iterator[str]:
        left, top, right, bottom = self._inside
        low, high, step = self.scale
        for k in range(math.ceil(low / step), math.floor(high / step) + 1):
            value = k * step
            y = self._y(value)
            yield segment(left, y, right, y, GRID, 1.0)
            yield text(left - 6, y + 4, _number(value, step), SECOND, "end")
        for time_s, words in self.clock.ticks(self.begin_s, self.end_s, int(self.width / 90)):
            x = self._x(time_s)
            yield segment(x, top, x, bottom, GRID, 1.0)
            anchor = "end" if x > right - 14 else "start" if x < left + 6 else "middle"
            if self.times:
                yield text(x, self.height - 5, words, SECOND, anchor)
        yield text(left - 6, top - 8, self.unit, INK, "end")

    def _between_times(self, begin_s: float, end_s: float) -> tuple[float, float]:
        """Left and right end of a time, at least far enough apart to be visible."""
        left, _, right, _ = self._inside
        x0, x1 = max(left, self._x(begin_s)), min(right, self._x(end_s))
        return (x0, x1) if x1 - x0 >= 3 else ((x0 + x1) / 2 - 1.5, (x0 + x1) / 2 + 1.5)

    def _underline(self, begin_s: float, end_s: float) -> str:
        x0, x1 = self._between_times(begin_s, end_s)
        return _patch(x0, self._inside[3] - LINE_PX, x1 - x0, LINE_PX, AMBER, 1.0)

    def _hatch(self, begin_s: float, end_s: float, word: str) -> Iterator[str]:
        """Hatching, with its word where there is room."""
        _, top, _, bottom = self._inside
        x0, x1 = self._between_times(begin_s, end_s)
        high = bottom - top
        yield _patch(x0, top, x1 - x0, high, "#eceef1", 1.0)
        x = x0 - high + HATCH_PX / 2
        while x < x1:
            begin, end = max(x, x0), min(x + high, x1)
            yield segment(begin, bottom - (begin - x), end, bottom - (end - x), HATCH, 0.8)
            x += HATCH_PX
        wide = LETTER * len(word)
        if wide + 4 < x1 - x0:
            middle, foot = (x0 + x1) / 2, bottom - LINE_PX - 4
            yield _patch(middle - wide / 2 - 1, foot - SIZE + 1, wide + 2, SIZE + 2)
            yield text(middle, foot, word, SECOND, "middle")

    def _line(self, one: Curve, color: str, dashes: str) -> Iterator[str]:
        wide = 1.6 if one.strong else 1.0
        yield from self._between(one, one, color, 0.45 if one.strong else 0.8)
        for part in _runs(np.isfinite(one.mean)):
            points = _points((self._x(one.time_s[k]), self._y(one.mean[k])) for k in part)
            yield (
                f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{wide:g}" '
                f'stroke-linejoin="round"{_dashed(dashes)}/>'
            )

    def _between(self, low: Curve, high: Curve, color: str, opacity: float) -> Iterator[str]:
        for part in _runs(np.isfinite(low.low) & np.isfinite(high.high)):
            edge = [(self._x(high.time_s[k]), self._y(high.high[k])) for k in part]
            edge += [(self._x(low.time_s[k]), self._y(low.low[k])) for k in reversed(part)]
            yield f'<polygon points="{_points(edge)}" fill="{color}" fill-opacity="{opacity:g}"/>'

    def _limit_words(self) -> Iterator[str]:
        below = -math.inf
        right = self.width - RIGHT - 4
        for value, words in sorted(self.limits, reverse=True):
            y = self._y(value)
            y = max(y - 4 if y - 4 - SIZE > TOP else y + SIZE + 1, below + SIZE)
            below = y
            wide = LETTER * len(words)
            yield _patch(right - wide, y - SIZE + 1, wide + 2, SIZE + 1)
            yield text(right, y, words, RED, "end")

    def _marks(self) -> Iterator[str]:
        _, top, _, bottom = self._inside
        for number, time_s in enumerate(self.marks, 1):
            x = self._x(time_s)
            yield segment(x, top, x, bottom, INK, 1.0, "1 3")
            yield (
                f'<circle cx="{x:.1f}" cy="{top + 7:g}" r="7" fill="#ffffff" stroke="{INK}" '
                'stroke-width="1"/>'
            )
            yield text(x, top + 11, str(number), INK, "middle")

    def _names(self) -> Iterator[str]:
        words = [
            one.words if one.words == one.symbol else f"{one.words} ({one.symbol})"
            for one in self.curves
        ]
        if sum(NAME_ROOM + LETTER * len(one) for one in words) > self.width - LEFT - RIGHT:
            words = [one.symbol for one in self.curves]
        x, strong = LEFT + 6, 0
        for one, name in zip(self.curves, words, strict=True):
            color = THIRD[strong % len(THIRD)] if one.strong else PALE
            dashes = DASHES if one.strong and strong else ""
            strong += one.strong
            wide = 2.4 if one.strong else 1.6
            yield segment(x, TOP - 11, x + 16, TOP - 11, color, wide, dashes)
            yield text(x + 21, TOP - 7, name, INK)
            x += NAME_ROOM + LETTER * len(name)


def drawing(title: str, width: float, height: float, parts: Iterable[str]) -> str:
    """A picture with these parts as SVG."""
    title = escape(title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" aria-label="{title}" '
        f'font-family="{FONT}" font-size="{SIZE:g}"><title>{title}</title>'
        f"{''.join(parts)}</svg>"
    )


def rounded(wide: float, most: int) -> float:
    """The smallest round step for at most `most` steps."""
    tens = 10.0 ** math.floor(math.log10(wide / most))
    return next(each for k in (1, 2, 5, 10) if wide / (each := k * tens) <= most)


def _number(value: float, step: float) -> str:
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value + 0.0:.{decimals}f}" if value else "0"


def _runs(there: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Iterator[list[int]]:
    """Yield runs of consecutive indices."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], there, [False]])))
    yield from ([*range(a, b)] for a, b in list(pairwise(edges))[::2])


def _points(points: Iterator[tuple[float, float]] | Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def segment(
    x0: float,
    y0: float,
    x1: float,
    y1: float,
    color: str = GRID,
    wide: float = 1.0,
    dashes: str = "",
) -> str:
    """A straight line as SVG."""
    more = _dashed(dashes)
    return (
        f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{color}" '
        f'stroke-width="{wide:g}"{more}/>'
    )


def _dashed(dashes: str) -> str:
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _patch(
    x: float, y: float, wide: float, high: float, color: str = "#ffffff", opacity: float = 0.85
) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{color}" '
        f'fill-opacity="{opacity:g}"/>'
    )


def text(x: float, y: float, words: str, color: str, anchor: str = "start") -> str:
    """Text as SVG, escaped."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" text-anchor="{anchor}">'
        f"{escape(plain(words))}</text>"
    )
