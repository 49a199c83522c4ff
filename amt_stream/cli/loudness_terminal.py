"""Loudness meter for the terminal."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

import numpy as np

from amt_stream.cli.terminal import (
    BOLD,
    PLAIN,
    Condition,
    TerminalMeter,
    heading,
    level_words,
    status,
)
from amt_stream.core.json_types import JsonDict
from amt_stream.dsp.scales import sone_to_phon
from amt_stream.meters.rows.words import HIGHEST_PHON, band_texts, phon_text

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine

Band = tuple[float, float]
"""The lowest and the highest likely loudness in sone."""

# After a reset, one or two blocks of earlier rows still arrive.
RESET_S = 0.25
LEVELS_DB = (20.0, 130.0)
BAND_OF_LTL = ("ltl_low", "ltl_high")
LABEL = 9


@dataclass(frozen=True, kw_only=True)
class LoudnessSeen(Condition):
    """A reading of loudness in sone."""

    stl: float
    ltl: float
    max_ltl: float
    stl_band: Band | None = None
    ltl_band: Band | None = None
    max_ltl_band: Band | None = None

    def words(self, name: str) -> tuple[str, str]:
        """One loudness by name, in sone and in phon, with its band if it has one."""
        sone, band = getattr(self, name), getattr(self, f"{name}_band")
        texts = ("", "") if band is None else band_texts(sone, *band)
        percent, phon = (f" +- {text}" if text else "" for text in texts)
        return f"{sone:8.3f} sone{percent}", f"{phon_text(sone):>6}{phon} phon"


def line(reading: LoudnessSeen) -> str:
    """A reading in one line of plain text."""
    values = [
        f"{label} {' '.join(reading.words(name))}"
        for label, name in (("LTL", "ltl"), ("STL", "stl"), ("max LTL", "max_ltl"))
    ]
    return "  ".join([f"{reading.time_s:8.1f} s", *values, level_words(reading)])


def screen(reading: LoudnessSeen, width: int, block: str = "█") -> list[str]:
    """A reading as lines for a terminal `width` characters wide."""

    def loudness(label: str, name: str) -> str:
        numbers = " " + "  ".join(reading.words(name))
        share = sone_to_phon(getattr(reading, name)) / HIGHEST_PHON
        bar = _bar(share, width - LABEL - len(numbers) - 2, block)
        return f"{BOLD}{label:<{LABEL}}{numbers}{PLAIN}  {bar}"

    def level(name: str, db: float) -> str:
        low, high = LEVELS_DB
        number = f"{db:9.1f} dB SPL"
        bar = _bar((db - low) / (high - low), width - LABEL - len(number) - 2, block)
        return f"{name:<{LABEL}}{number}  {bar}"

    return [
        heading(reading, width),
        "",
        loudness("LTL", "ltl"),
        loudness("STL", "stl"),
        loudness("max LTL", "max_ltl"),
        "",
        level("in left", reading.level_db[0]),
        level("in right", reading.level_db[1]),
        "",
        *status(reading, width),
    ]


def _bar(share: float, width: int, block: str) -> str:
    return block * round(max(0, width) * min(1.0, max(0.0, share)))


class LoudnessTerminal(TerminalMeter[LoudnessSeen]):
    """Shows short-term, long-term and maximum long-term loudness."""

    def __init__(self, engine: "Engine", stream: TextIO) -> None:
        super().__init__(engine, stream)
        self._seen = 0
        self._highest = self._unreset = Highest()

    def read(self, row: np.record, condition: JsonDict) -> LoudnessSeen:
        history = self._engine.history
        count = history.count
        rows = history.since(self._seen)
        self._seen = count
        rows = rows[rows.time_s <= (-math.inf if self._paused else self._end_s)]
        banded = "ltl_low" in history.fields
        for highest in (self._highest, self._unreset):
            highest.take(rows, ("ltl", *BAND_OF_LTL) if banded else ("ltl",))
        bands: JsonDict = {}
        if banded:
            bands = {
                "stl_band": (float(row["stl_low"]), float(row["stl_high"])),
                "ltl_band": (float(row["ltl_low"]), float(row["ltl_high"])),
                "max_ltl_band": tuple(self._highest.of[name] for name in BAND_OF_LTL),
            }
        stl, ltl = float(row["stl"]), float(row["ltl"])
        return LoudnessSeen(stl=stl, ltl=ltl, max_ltl=self._highest.of["ltl"], **bands, **condition)

    def line(self, reading: LoudnessSeen) -> str:
        return line(reading)

    def screen(self, reading: LoudnessSeen, width: int, height: int) -> list[str]:
        return screen(reading, width, "█" if self._unicode else "#")

    def reset_readings(self) -> None:
        """Restart the maximum."""
        already_reset = self._engine.can_undo_reset()
        super().reset_readings()
        if not already_reset:
            self._unreset = self._highest
        self._highest = Highest()
        self._count_from_here(self._highest)

    def restore_readings(self) -> None:
        self._highest = self._unreset

    def pause(self) -> None:
        super().pause()
        for highest in (self._highest, self._unreset):
            self._count_from_here(highest)

    def _count_from_here(self, highest: "Highest") -> None:
        latest = self._engine.history.latest
        if latest is not None:
            highest.from_s = float(latest.time_s[-1]) + RESET_S


class Highest:
    """Maxima of long-term loudness and of its band after `from_s`, in sone."""

    def __init__(self) -> None:
        self.of = dict.fromkeys(("ltl", *BAND_OF_LTL), 0.0)
        self.from_s = -math.inf

    def take(self, rows: np.recarray, names: Iterable[str]) -> None:
        """Update the maxima with new rows."""
        counted = rows[rows.time_s > self.from_s]
        for name in names:
            self.of[name] = max(self.of[name], float(counted[name].max(initial=0.0)))
