"""Columns of rows: names, units and descriptions."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from amt_stream.core.json_types import JsonDict
from amt_stream.meters.level_names import read_level
from amt_stream.meters.names import spaced_window, window_s

RENEWED = "renewed every 0.1 s of sound, held between"
"""The note of statistics that are expensive to compute."""


QUANTITIES = {"sone": "loudness", "phon": "loudness level"}
"""Quantities by unit."""

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

AT_LEAST, AT_MOST, UNCERTAIN = "at least", "at most", "uncertain"
"""What a value that includes clipped sound says of that of the true sound."""

RISING = ("dB", "sone", "sone_HMS", "phon", "percent")
"""Units of readings that louder sound can only raise."""

FULL_SCALE = ("LUFS", "LU", "dBTP", "dBFS")
"""Units of readings of the digital signal itself, which is what it is."""

NEAR_DB = 5.0
"""Closer than this to the masked threshold, the loudness in sone is not reliable."""

EQUIVALENT = "equivalent"
"""The statistic of columns whose parts add up to the whole."""

LONG_TERM = ("ltl", "ltl_low", "ltl_high", "ltl_level")
"""Quantities of long-term loudness of the Moore family, as in `Column.of`."""

HIGHEST = "The highest value of all that was counted."
EXCEEDED = "The value that was exceeded in {percent} % of the time."


class NoSuchColumn(ValueError):
    """No model has this column; the message suggests the nearest."""


@dataclass(frozen=True)
class Column:
    """A column: its name, which ends in its unit, and its description.

    `statistic` is "instantaneous", or the statistic of all sound counted so far. `note` has further
    details, such as how often it is updated.

    settle_s: seconds of sound after a fault until earlier sound changes the column by at most 0.05
        dB or phon, even if the level fell by 50 dB; None uses the model's time
    window_s: length of a rolling window that must be complete
    rise_s: seconds from the start in which a reading that rises from silence can be too low;
        percentiles, means and minima leave out values there that are lower than all later ones
    side: "left" or "right" if it is of one of two channels
    label, symbol, about: on displays: name, symbol, and description as a sentence
    bound_of: column of which it is the lower or the upper bound
    band_hz: nominal frequency of its band
    needs: names of the columns, of any models, that it is computed from
    counts_after_s: of a statistic of all sound, how many seconds after a fault it counts again;
        None for one that covers what its model says
    of: key of its quantity, which all its statistics share: "n", "ltl", "laf"
    kind: its statistic in a word: "now", "max", "mean", "exceeded"
    percent: of "exceeded"
    weighting: "A", "C" or "Z" if it is of a sound level
    place: "audience" if it is of a level there
    window: its rolling window as in its name: "10min"
    near: column of dB above a threshold, which displays show in its place within `NEAR_DB` of 0
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
    needs: tuple[str, ...] = ()
    counts_after_s: float | None = None
    of: str = ""
    kind: str = ""
    percent: int = 0
    weighting: str = ""
    place: str = ""
    window: str = ""
    near: str = ""

    @property
    def counted(self) -> bool:
        """Whether it is made of all that was counted, and not of a moment or a rolling window."""
        return self.statistic not in ("instantaneous", "forecast") and not self.window_s

    @property
    def short(self) -> str:
        """Its symbol; without one, its name in words."""
        return self.symbol or self.label or self.name

    @property
    def if_clipped(self) -> str:
        """What a value that includes clipped sound is: AT_LEAST, AT_MOST, UNCERTAIN or "".

        The true sound was louder, which can only raise levels and loudness, also their minima and
        percentiles, and lower forecasts. It changes a difference or a sharpness in either way, and
        so a band, which overtones of clipping may fill.
        """
        if not self.model or self.unit in FULL_SCALE:
            return ""
        if self.statistic == "forecast":
            return AT_MOST
        # A target is softer in a background that was louder.
        either = self.statistic == "difference" or bool(self.band_hz or self.near)
        either |= self.of == "audible_db"
        return AT_LEAST if self.unit in RISING and not either else UNCERTAIN

    def to_dict(self) -> JsonDict:
        """As a header tells it."""
        may_be = "note", "settle_s", "rise_s", "side", "label", "symbol"
        untold = {"window_s", "about", "bound_of", "band_hz", "needs", "counts_after_s"}
        untold |= {"of", "kind", "percent", "weighting", "place", "window", "near"}
        untold |= {name for name in may_be if not getattr(self, name)}
        data = {key: value for key, value in asdict(self).items() if key not in untold}
        return data | ({"if_clipped": self.if_clipped} if self.if_clipped else {})


class Meaning(NamedTuple):
    """What a column is: as for `Column`; a header tells all but `about`."""

    quantity: str
    statistic: str
    label: str
    symbol: str
    about: str
    note: str = ""

    def column(self, name: str, unit: str, model: str, side: str, window: str, both: str) -> Column:
        """The column of one side, as "left", and of a rolling window, where it is of these.

        both: what the quantity of a column that is of no side ends in
        """
        quantity, statistic, label, symbol, about, note = self
        if window:
            spaced = spaced_window(window)
            statistic += f", last {window}"
            label, symbol = f"{label}, {spaced}", f"{symbol},{window}"
            about += f" Of the last {spaced}."
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
            window=window,
        )


def rising(column: Column, rise_s: float) -> Column:
    """The column of a reading that rises from silence, or of a statistic that this rise lowers."""
    lowered = column.statistic.startswith(("instantaneous", "exceeded", "mean", "minimum"))
    return replace(column, rise_s=rise_s) if lowered else column


def counting(column: Column, settle_s: float, window: str = "") -> Column:
    """The column of a statistic of a reading that settles within `settle_s`.

    A statistic of the whole sound excludes settling values and never settles itself; that of a
    window settles until the window is complete again. Raises ValueError for a window out of range.
    """
    if not window:
        return replace(column, settle_s=0.0, counts_after_s=settle_s)
    seconds = window_s(window)
    return replace(column, settle_s=round(settle_s + seconds, 2), window_s=seconds)


def maxima_of(columns: Iterable[Column], offered: Iterable[Column]) -> dict[str, str]:
    """The name of the maximum, of those offered, of the quantity of each column that has one."""
    maxima = {
        (one.model, one.quantity, one.unit): one.name
        for one in offered
        if one.statistic == "maximum"
    }
    named = ((one.name, maxima.get((one.model, one.quantity, one.unit))) for one in columns)
    return {name: most for name, most in named if most is not None and most != name}


def no_such_column(name: str, offered: Sequence[str], elsewhere: Sequence[str] = ()) -> str:
    """The message for an unknown column, with models that have it."""
    if elsewhere:
        models = ", ".join(elsewhere)
        return f"no column is called {name!r} here: add a model that has it, {models}"
    level = read_level(name)
    if level is not None and level.part("place"):
        return f"no column is called {name!r} without a correction to the audience: give --audience"
    near = difflib.get_close_matches(name, offered, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(offered)}"
    return f"no column is called {name!r}: {remedy}"
