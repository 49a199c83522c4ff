"""Readings as text, equal on all displays."""

import math
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from amt_stream.dsp.scales import phon_to_sone, sone_to_phon
from amt_stream.meters.frames import Fault
from amt_stream.meters.names import NameForm, stem_and_unit
from amt_stream.meters.rows.column import AT_LEAST, AT_MOST, UNCERTAIN
from amt_stream.meters.rows.readings import column_named

FAULT_NAMES = {bit: str(bit.name).lower() for bit in Fault}
"""Words of faults in rows."""

FAULT_WORDS = {
    Fault.GAP: "gap",
    Fault.CLIP: "clipped",
    Fault.NON_FINITE: "bad samples",
    Fault.OVERLOAD: "too slow",
    Fault.STALL: "delayed",
    Fault.OFF: "switched off",
    Fault.SILENT: "silent",
}
"""Words of faults on screens: "overload" would mean clipping to a sound engineer."""

HIGHEST_PHON = 120.0

ZWICKER_PHON = NameForm("zwicker_n{statistic}_phon", statistic=re.compile(r"\w*"))

NO_READING = "---"
"""Stands for a missing reading."""


def fault_words(fault: int) -> list[str]:
    """The faults of a frame as words."""
    return [word for bit, word in FAULT_WORDS.items() if fault & bit]


SIGNS = {AT_LEAST: "\N{GREATER-THAN OR EQUAL TO} ", AT_MOST: "\N{LESS-THAN OR EQUAL TO} "}
SIGNS |= {UNCERTAIN: "\N{ALMOST EQUAL TO} "}
"""Before a reading that includes clipped sound, by `Column.if_clipped`."""


def reading_text(name: str, value: float | None, sign: str = "") -> str:
    """A reading as text, by the unit in the name of its column; tenths in most units.

    A number whose column has no unit is written as one, such as an index.

    sign: one of SIGNS, or "" if the sound was not clipped
    """
    if value is None or not math.isfinite(value):
        return NO_READING
    return with_sign(_writer_of(name)(value), sign)


def with_sign(text: str, sign: str) -> str:
    """A number with a sign before it; one beyond a scale has its own."""
    return text if text.startswith(">") else sign + text


def duration_text(seconds: float) -> str:
    """A duration as text, as "0.25 s", "45 s", "14 min" or "2.5 h"."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 9.5 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@cache
def _writer_of(name: str) -> Callable[[float], str]:
    # A range is no difference from a target, and the scale of Zwicker's loudness has no end.
    if name == "lra_lu" or ZWICKER_PHON.read(name) is not None:
        return _tenths
    return _unit_text(NO_UNIT if is_index(name) else stem_and_unit(name)[1]).write


def is_index(name: str) -> bool:
    """Whether a column is of a number without a unit, and no count."""
    if stem_and_unit(name)[1] in UNIT_TEXTS:
        return False
    column = column_named(name)
    return column is not None and not column.unit


def widest_text(unit: str) -> str:
    """The widest text of a reading in a unit, as columns write it."""
    return _unit_text(unit.lower().removesuffix("_hms")).widest


def _unit_text(ending: str) -> "UnitText":
    return UNIT_TEXTS.get(ending, UnitText())


def _tenths(value: float) -> str:
    """One decimal, never "-0.0"."""
    return f"{round(value, 1) + 0.0:.1f}"


def sone_text(sone: float) -> str:
    """Two decimals below 100, so that nothing moves: 0.00, 1.00, 12.34, 123.4."""
    return f"{sone:.{2 if sone < 99.995 else 1}f}"


def _table_phon(phon: float) -> str:
    return f">{HIGHEST_PHON:.0f}" if phon >= HIGHEST_PHON else _tenths(phon)


def signed_text(level_lu: float) -> str:
    """A level relative to a target."""
    return f"{round(level_lu, 1) + 0.0:+.1f}"


def _frequency(hz: float) -> str:
    return _tenths(hz) if hz < 999.95 else f"{hz:.0f}"


class UnitText(NamedTuple):
    """How readings in a unit are written, and their widest text: by default, far below 0 dB."""

    write: Callable[[float], str] = _tenths
    widest: str = "-188.8"


NO_UNIT = ""
"""The unit of a column of numbers without one; its name ends in no unit."""

UNIT_TEXTS = {
    NO_UNIT: UnitText("{:.2f}".format, "188.88"),
    "sone": UnitText(sone_text, "88.88"),
    "phon": UnitText(_table_phon, "188.8"),
    "db": UnitText(widest="188.8"),
    "lu": UnitText(signed_text),
    "acum": UnitText("{:.2f}".format, "8.88"),
    "tu": UnitText("{:.2f}".format, "88.88"),
    "asper": UnitText("{:.2f}".format, "8.88"),
    "vacil": UnitText("{:.2f}".format, "8.88"),
    "s": UnitText("{:.0f}".format),
    "hz": UnitText(_frequency, "18888"),
    "n": UnitText("{:.0f}".format),
    "p": UnitText(),
    "sd": UnitText("{:.3f}".format),
    "valid": UnitText("{:.0f}".format),
    "reasons": UnitText("{:.0f}".format),
}
"""By the end of a column's name; of others in a unit it is `UnitText()`."""


def phon_text(sone: float) -> str:
    """Loudness level of `sone`; the standard's table ends at 120 phon."""
    if sone > phon_to_sone(HIGHEST_PHON):
        return f">{HIGHEST_PHON:.0f}"
    return f"{sone_to_phon(sone):.1f}"


def band_texts(sone: float, low: float, high: float) -> tuple[str, str]:
    """The larger distance of `low` and `high` from `sone`, in percent and in phon.

    Empty if the standard's table has no phon for `sone`.
    """
    phon = sone_to_phon(sone)
    if not 0.0 < phon < HIGHEST_PHON:
        return "", ""
    percent = 100.0 * max(high / sone - 1.0, 1.0 - low / sone)
    wide = max(sone_to_phon(high) - phon, phon - sone_to_phon(low))
    return f"{percent:.{0 if percent >= 0.95 else 1}f} %", f"{wide:.1f}"
