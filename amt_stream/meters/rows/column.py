"""Columns of rows: what each is called, and what its numbers are."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from amt_stream.core.json_types import JsonDict
from amt_stream.meters.accumulators.window import window_s

RENEWED = "renewed every 0.1 s of sound, held between"
"""Of a statistic that is dear to tell."""


QUANTITIES = {"sone": "loudness", "phon": "loudness level"}
"""What is told in these units."""

SCALES = {
    "sone": " In sone: twice the number sounds twice as loud.",
    "phon": " In phon: the level of a tone of 1 kHz that is as loud.",
}
TIMES = {
    "f": ("fast", "with a time constant of 125 ms (F)"),
    "s": ("slow", "with a time constant of 1 s (S)"),
    "i": ("impulse", "with 35 ms upwards and 1.5 s downwards (I)"),
}
"""Time weightings on screens: in a word, and in a sentence."""

HIGHEST = "The highest value of all that was counted."
EXCEEDED = "The value that was exceeded in {percent} % of the time."


class NoSuchColumn(ValueError):
    """A column was asked for that no model gives; the message names the nearest."""


@dataclass(frozen=True)
class Column:
    """One column: its name, which ends in its unit, and what its numbers are.

    `statistic` is "instantaneous" for what a model gives at that time, or what was made of all that
    is counted until then. `note` tells what else has to be known, such as how often it is renewed.

    settle_s: seconds of sound after a fault until what was heard before moves the column by no more
        than 0.05 dB or phon, also where the level has fallen by 50 dB; without, as the model says
    window_s: of a rolling window, the part of it that has to be there whole
    rise_s: of a reading that rises from silence, and of its percentiles, means and minima, so many
        seconds from the start in which it can be too low; these leave out what is lower there than
        all that comes after it
    side: "left" or "right" where it is of one channel of two
    label, symbol, about: on screens: its name in words, its symbol, and what it is in a sentence
    bound_of: the column that it is the lower or the upper bound of
    band_hz: nominal frequency of the band that it is of
    """

    name: str
    unit: str
    quantity: str
    model: str = ""
    statistic: str = "instantaneous"
    note: str = ""
    settle_s: float | None = None
    window_s: float = 0.0
    rise_s: float = 0.0
    side: str = ""
    label: str = ""
    symbol: str = ""
    about: str = ""
    bound_of: str = ""
    band_hz: float = 0.0

    @property
    def counted(self) -> bool:
        """Whether it is made of all that was counted, and not of a moment or a rolling window."""
        return self.statistic not in ("instantaneous", "forecast") and not self.window_s

    def to_dict(self) -> JsonDict:
        """As a header tells it."""
        may_be = "note", "settle_s", "rise_s", "side"
        untold = {"window_s", "label", "symbol", "about", "bound_of", "band_hz"}
        untold |= {name for name in may_be if not getattr(self, name)}
        return {key: value for key, value in asdict(self).items() if key not in untold}


class Meaning(NamedTuple):
    """What a column is: `quantity`, `statistic` and `note` in a header, the others on a screen."""

    quantity: str
    statistic: str
    label: str
    symbol: str
    about: str
    note: str = ""

    def column(
        self, name: str, unit: str, model: str, side: str | None, window: str | None, both: str
    ) -> Column:
        """The column of one side, as "_left", and of a rolling window, where it is of these.

        both: what the quantity of a column that is of no side ends in
        """
        quantity, statistic, label, symbol, about, note = self
        if window:
            spaced = re.sub(r"(\d+)", r"\1 ", window)
            statistic += f", last {window}"
            label, symbol = f"{label}, {spaced}", f"{symbol},{window}"
            about += f" Of the last {spaced}."
        side = side[1:] if side else ""
        if side:
            label, symbol = f"{label}, {side}", symbol and f"{symbol} {side[0].upper()}"
            about += f" Of the {side} channel."
        return Column(
            name,
            unit,
            quantity + (f", {side} channel" if side else both),
            model,
            statistic,
            note,
            side=side,
            label=label,
            symbol=symbol,
            about=about + SCALES.get(unit, ""),
        )


def rising(column: Column, rise_s: float) -> Column:
    """The column of what rises from silence, or of a statistic of it that a low reading lowers."""
    lowered = column.statistic.startswith(("instantaneous", "exceeded", "mean", "minimum"))
    return replace(column, rise_s=rise_s) if lowered else column


def counting(column: Column, settle_s: float, window: str | None = None) -> Column:
    """The column of a statistic, of what settles within `settle_s`.

    One that goes on for ever leaves that out and never settles itself; that of a window does, until
    the window is whole again. Raises ValueError for a window that is too short or too long.
    """
    if window is None:
        return replace(column, settle_s=0.0)
    seconds = window_s(window)
    return replace(column, settle_s=round(settle_s + seconds, 2), window_s=seconds)


def no_such_column(name: str, offered: Sequence[str], elsewhere: Sequence[str] = ()) -> str:
    """What to say of a column that is not there, and which other models have it."""
    if elsewhere:
        models = ", ".join(elsewhere)
        return f"no column is called {name!r} here: add a model that has it, {models}"
    near = difflib.get_close_matches(name, offered, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(offered)}"
    return f"no column is called {name!r}: {remedy}"
