"""Quantities over time that models give, declared once, and readings of them."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.meters.accumulators.statistics import CountingRule, Statistic, Statistics
from amt_stream.meters.frames import Frames
from amt_stream.meters.names import NameForm, place_of, sides_of
from amt_stream.meters.rows.block import all_of
from amt_stream.meters.rows.column import (
    EXCEEDED,
    HIGHEST,
    QUANTITIES,
    RENEWED,
    Column,
    Meaning,
    counting,
    rising,
)
from amt_stream.meters.rows.readings import Earlier, Readings, Summary, higher

NOW, MEAN, SHARE = "now", "mean", "exceeded"
"""Kinds of statistics, as in `Column.kind`."""

Values = Mapping[str, NDArray[np.floating]]
"""Values (series, n) of quantities by key."""


class ColumnWords(NamedTuple):
    """One statistic of a quantity as a column.

    form: of its name
    statistic, label, symbol, about, note: as in `Column`; {noun} stands for the quantity as its
        unit says it, such as "loudness level", and {percent} for the percentage
    """

    form: str
    statistic: str
    label: str
    symbol: str
    about: str = ""
    note: str = ""

    @classmethod
    def maximum(cls, form: str, label: str, symbol: str) -> Self:
        return cls(form, "maximum", label, symbol, HIGHEST)

    @classmethod
    def percentile(cls, form: str, label: str, symbol: str) -> Self:
        return cls(form, "exceeded {percent} % of the time", label, symbol, EXCEEDED, RENEWED)


Converter = Callable[[Any], Any]


class Unit(NamedTuple):
    """A unit, as it is written, and how it follows from the counted one."""

    written: str
    convert: Converter | None = None


@dataclass(frozen=True)
class Quantity:
    """One quantity over time: how its columns are named, described and counted.

    of: its key, as in `Column.of`
    noun: what it is called; {noun} as in `ColumnWords`
    units: by the end of names; the first is the one that is counted
    words: its statistics by kind, in the order of the summary
    method: sentence on the method, after that of the statistic
    settle_s: seconds after a fault until the sound before it no longer matters
    rule: how its statistics are counted, if it has any
    both: what a column of both channels adds to the noun
    optional: whether it is computed only if it has a column
    bound_of: the quantity that it is a bound of
    near: as in `Column`
    """

    of: str
    noun: str
    units: Mapping[str, Unit]
    words: Mapping[str, ColumnWords]
    method: str
    settle_s: float
    rule: CountingRule | None = None
    both: str = higher(2)
    optional: bool = False
    bound_of: "Quantity | None" = None
    near: str = ""

    @property
    def rise_s(self) -> float:
        return 0.0 if self.rule is None else self.rule.rise_s

    def name(self, kind: str, **parts: object) -> str:
        return self._form(kind).write(**parts)

    def read(self, name: str) -> tuple[str, dict[str, str]] | None:
        """The kind and the parts of a name, or None if it is none of these."""
        for kind in self.words:
            if (parts := self._form(kind).read(name)) is not None:
                return kind, parts
        return None

    def _form(self, kind: str) -> NameForm:
        return _form(self.words[kind].form, tuple(self.units))

    def column(self, model: str, channels: int, kind: str, **parts: str | int) -> Column:
        """The column of a statistic. Raises ValueError for a rolling window out of range."""
        side, unit = str(parts.get("side", "")), str(parts.get("unit", next(iter(self.units))))
        percent, window = parts.get("percent", 0), str(parts.get("window", ""))
        noun = QUANTITIES.get(unit, "")
        told = {"noun": noun, "Noun": noun.capitalize(), "percent": percent}
        of = self.words[kind]
        meaning = Meaning(
            self.noun.format(**told),
            of.statistic.format(percent=int(percent)),
            of.label.format(**told),
            of.symbol.format(**told),
            f"{of.about.format(**told)} {self.method}".lstrip(),
            of.note,
        )
        both = self.both if channels == 2 else ""
        name = self.name(kind, **parts)
        column = meaning.column(name, self.units[unit].written, model, side, window, both)
        near = self.near if kind == NOW else ""
        column = replace(column, of=self.of, kind=kind, percent=int(percent), near=near)
        column = rising(replace(column, settle_s=self.settle_s), self.rise_s)
        if self.bound_of is not None:
            column = replace(column, bound_of=self.bound_of.name(kind, **parts))
        return column if kind == NOW else counting(column, self.settle_s, window)

    def columns(self, model: str, channels: int) -> Iterator[Column]:
        """Those that are offered: of each statistic, side and unit."""
        for kind in self.words:
            for percent in PERCENTS if kind == SHARE else (0,):
                for side in sides_of(channels):
                    for unit in self.units:
                        yield self.column(
                            model, channels, kind, percent=percent, side=side, unit=unit
                        )


@lru_cache(maxsize=256)
def _form(text: str, units: tuple[str, ...]) -> NameForm:
    return NameForm(text, unit=units)


class QuantityReadings(Readings):
    """The readings of a model, from a table of its quantities.

    quantities: all that it may have; the first that has percentiles tells what was counted
    channels: 1 for a model that has one value for both ears
    own_both: whether both channels have a value of their own; if not, it is the higher one of each
        statistic of both
    usual: names of the default columns

    A subclass says what the values are.
    """

    kept = (*Readings.kept, "_statistics")

    def __init__(
        self,
        model: str,
        channels: int,
        quantities: Sequence[Quantity],
        usual: Iterable[str],
        own_both: bool = False,
    ) -> None:
        # Columns name their model, while `Readings` is not made yet.
        self.model = model
        self._channels, self.table, self._own_both = channels, tuple(quantities), own_both
        self._series = len(sides_of(channels)) if own_both else channels
        super().__init__(model, self.ordered(self._columns_offered()), usual)

    def _columns_offered(self) -> list[Column]:
        return [one for q in self.table for one in q.columns(self.model, self._channels)]

    def ordered(self, offered: list[Column]) -> list[Column]:
        """The offered columns, as the usual ones are ordered."""
        return offered

    @property
    def quantities(self) -> list[str]:
        """Keys of the quantities."""
        return [one.of for one in self.table]

    @abstractmethod
    def values(self, frames: Frames) -> Values:
        """The values (series, n) of all quantities that are computed, NaN for none."""

    def named(self, name: str) -> Column | None:
        for quantity in self.table:
            if (read := quantity.read(name)) is not None:
                kind, parts = read
                if parts.get("side") and self._channels < 2:
                    return None
                return quantity.column(self.model, self._channels, kind, **parts)
        return None

    def _places_of(self, side: str) -> tuple[int, int]:
        """The series of a side; two for the higher one of both channels."""
        if self._own_both or side:
            place = place_of(side) - (not self._own_both)
            return place, place
        return 0, self._series - 1

    def renew(self) -> None:
        chosen = {column.of for column in self.columns}
        self._active = {q.of: q for q in self.table if not q.optional or q.of in chosen}
        own = [(k, c) for k, c in enumerate(self.columns) if c.of in self._active]
        # Of every side, as the summary has them all.
        wanted = dict.fromkeys(
            Statistic(c.of, series, c.kind, c.percent, c.window)
            for _, c in own
            if c.kind != NOW
            for series in range(self._series)
        )
        now = [Statistic(of, series, NOW) for of in self._active for series in range(self._series)]
        places = {one: place for place, one in enumerate([*now, *wanted])}
        rows = [
            [
                places[Statistic(c.of, series, c.kind, c.percent, c.window)]
                for series in self._places_of(c.side)
            ]
            for _, c in own
        ]
        # Where each column is in the values and the statistics, and what converts it.
        self._rows = np.array(rows, np.int64).reshape(-1, 2).T
        self._own = [k for k, _ in own]
        converted: dict[Converter, list[int]] = {}
        for place, (_, column) in enumerate(own):
            units = self._active[column.of].units.values()
            convert = next(one.convert for one in units if one.written == column.unit)
            if convert is not None:
                converted.setdefault(convert, []).append(place)
        self._converted = [(convert, np.array(places)) for convert, places in converted.items()]
        rules = {of: q.rule for of, q in self._active.items() if q.rule is not None}
        self._statistics = Statistics(rules, self._series, list(wanted))
        # The first with classes, if any.
        self._main = max(rules, key=lambda of: rules[of].width > 0)

    def take(self, frames: Frames) -> NDArray[np.float64]:
        values = self.values(frames)
        self._statistics.paused = self.paused
        told = self._statistics.update(frames.time_s, values, self._counted_of(frames))
        table = np.concatenate([*(values[of] for of in self._active), told], dtype=np.float64)
        one, other = self._rows
        found = table[one] if self._series == 1 else np.fmax(table[one], table[other])
        for convert, places in self._converted:
            found[places] = convert(found[places])
        if len(found) == len(self.columns):
            return found.T
        # What needs other models too, such as annoyance, is of `JoinedRows`.
        every = np.full((len(frames), len(self.columns)), np.nan)
        every[:, self._own] = found.T
        return every

    def _counted_of(self, frames: Frames) -> dict[str, NDArray[np.bool_]]:
        """Which frames count for each quantity."""
        settle_s = {of: q.settle_s for of, q in self._active.items()}
        slowest = self.counted(frames, max(settle_s.values()))
        if all_of(slowest):
            return dict.fromkeys(settle_s, slowest)
        counted = {s: self.counted(frames, s) for s in set(settle_s.values())}
        return {of: counted[s] for of, s in settle_s.items()}

    def tail(self, frames: Frames) -> None:
        self._statistics.paused = self.paused
        values = self.values(frames)
        self._statistics.tail(frames.time_s, values, self._counted_of(frames))

    def reset(self) -> None:
        self._statistics.reset()

    def skip(self, count: int) -> None:
        self._statistics.paused = self.paused
        self._statistics.skip(count)

    def counted_s(self) -> Summary:
        measured_s, excluded_s = self._statistics.counted_s(self._main)
        return {"measured_s": measured_s, "excluded_s": excluded_s}

    def earlier(self, column: Column) -> Earlier:
        known = column.needs or column.of in self._active
        return super().earlier(column) if known else Earlier()

    def summary(self) -> Summary:
        summary: Summary = {}
        for quantity in self._active.values():
            for kind in quantity.words:
                if kind != NOW:
                    summary |= self._summary_of(quantity, kind)
        return summary

    def _summary_of(self, quantity: Quantity, kind: str) -> Summary:
        """The usual statistics of one kind, and those with a column."""
        wanted = [(percent, "") for percent in (PERCENTS if kind == SHARE else (0,))]
        wanted += [
            (c.percent, c.window) for c in self.columns if (c.of, c.kind) == (quantity.of, kind)
        ]
        summary: Summary = {}
        for percent, window in dict.fromkeys(wanted):
            for side in sides_of(self._channels):
                value = self._reading(quantity.of, kind, percent, window, side)
                for unit, (_, convert) in quantity.units.items():
                    parts = {"percent": percent, "window": window, "side": side, "unit": unit}
                    number = value
                    if value is not None and convert is not None:
                        number = float(convert(value))
                    summary[quantity.name(kind, **parts)] = number
        return summary

    def _reading(self, of: str, kind: str, percent: int, window: str, side: str) -> float | None:
        each = {
            self._statistics.reading(Statistic(of, series, kind, percent, window))
            for series in self._places_of(side)
        }
        return max((one for one in each if one is not None), default=None)
