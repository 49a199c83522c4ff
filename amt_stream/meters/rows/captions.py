"""The name of each reading on displays, and what it is."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from amt_stream.meters.names import stem_and_unit
from amt_stream.meters.rows.block import is_named
from amt_stream.meters.rows.column import NEAR_DB, Column
from amt_stream.meters.rows.readings import column_named
from amt_stream.meters.rows.words import SIGNS, reading_text, signed_text

HEADLINES = "ltl_sone", "gm2002_ltl_sone", "zwicker_n_sone", "laeq_db", "integrated_lufs"
"""The window's title and the terminal's large number show the first of these that exists."""

UNCALIBRATED = "uncalibrated"
"""Stands at the unit of a reading without a calibration."""


class Caption(NamedTuple):
    """A reading in words.

    words, symbol: "Loudness, long-term", "LTL"
    unit: as it is written
    sentence: what it is, its time constants, its standard; "" where its column has none
    counted: whether it is made of all that was counted, so that it needs the time beside it
    bound_of: the reading that it is the lower or upper bound of
    """

    words: str
    symbol: str
    unit: str
    sentence: str = ""
    counted: bool = False
    bound_of: str = ""

    @property
    def spoken(self) -> str:
        """Words and symbol, for lists and screen readers."""
        return f"{self.words} ({self.symbol})" if self.symbol else self.words

    @property
    def listed(self) -> str:
        """The same with its unit, if it has one."""
        return f"{self.spoken}, {self.unit}" if self.unit else self.spoken


def row_text(name: str, row: Mapping[str, Any]) -> str:
    """A reading of a row as text, with a sign if it includes clipped sound.

    Near a threshold it is how far the sound is above that in dB, with its sign and unit.
    """
    column = column_named(name)
    over_db = row.get(column.near) if column is not None and column.near else None
    if over_db is not None and abs(over_db) <= NEAR_DB:
        return f"{signed_text(over_db)} dB"
    return reading_text(name, row.get(name), sign_in(name, row))


def sign_in(name: str, row: Mapping[str, Any]) -> str:
    """The sign before a reading of a row, of `SIGNS`; "" if its sound was not clipped."""
    clipped = row.get("clipped_columns")
    return sign_of(column_named(name)) if clipped and is_named(name, clipped) else ""


def sign_of(column: Column | None) -> str:
    """The sign before a reading of this column if its sound was clipped."""
    return SIGNS.get(column.if_clipped, "") if column is not None else ""


UNITS = {"db": "dB", "hz": "Hz", "percent": "%"}
"""Units as names of readings end in them, where they are written otherwise."""


def caption_of(name: str) -> Caption:
    """The caption of the reading's column; without one, words and unit made from the name."""
    column = column_named(name)
    if column is not None:
        return caption_of_column(column)
    stem, unit = stem_and_unit(name)
    return Caption(_words(stem), "", UNITS.get(unit, unit))


def caption_of_column(column: Column) -> Caption:
    """Without a label, as in other packages, its words are made from its name."""
    unit = UNITS.get(column.unit, column.unit)
    stem, end = stem_and_unit(column.name)
    words = column.label or _words(stem if end == column.unit.lower() else column.name)
    return Caption(words, column.symbol, unit, column.about, column.counted, column.bound_of)


def _words(name: str) -> str:
    plain = name.replace("_", " ")
    return plain[:1].upper() + plain[1:]
