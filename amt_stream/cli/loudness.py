"""Loudness in a terminal."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

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
from amt_stream.outputs.words import HIGHEST_PHON, phon_text
from amt_stream.scales import sone_to_phon

if TYPE_CHECKING:
    from amt_stream.engine.runner import Engine

# After a reset, rows of before are still on their way for a block or two.
RESET_S = 0.25
LEVELS_DB = (20.0, 130.0)
LABEL = 9


@dataclass(frozen=True, kw_only=True)
class Reading(Condition):
    """Loudness in sone, and its condition."""

    stl: float
    ltl: float
    max_ltl: float


def line(reading: Reading) -> str:
    """A reading in one line of plain text."""
    return (
        f"{reading.time_s:8.1f} s  LTL {reading.ltl:8.3f} sone {phon_text(reading.ltl):>6} phon  "
        f"STL {reading.stl:8.3f} sone {phon_text(reading.stl):>6} phon  "
        f"max LTL {reading.max_ltl:8.3f} sone {phon_text(reading.max_ltl):>6} phon  "
        f"{level_words(reading)}"
    )


def screen(reading: Reading, width: int, block: str = "█") -> list[str]:
    """A reading as lines for a terminal `width` characters wide."""

    def loudness(name: str, sone: float) -> str:
        numbers = f"{sone:9.3f} sone  {phon_text(sone):>6} phon"
        bar = _bar(sone_to_phon(sone) / HIGHEST_PHON, width - LABEL - len(numbers) - 2, block)
        return f"{BOLD}{name:<{LABEL}}{numbers}{PLAIN}  {bar}"

    def level(name: str, db: float) -> str:
        low, high = LEVELS_DB
        number = f"{db:9.1f} dB SPL"
        bar = _bar((db - low) / (high - low), width - LABEL - len(number) - 2, block)
        return f"{name:<{LABEL}}{number}  {bar}"

    return [
        heading(reading, width),
        "",
        loudness("LTL", reading.ltl),
        loudness("STL", reading.stl),
        loudness("max LTL", reading.max_ltl),
        "",
        level("in left", reading.level_db[0]),
        level("in right", reading.level_db[1]),
        "",
        *status(reading, width),
    ]


def _bar(share: float, width: int, block: str) -> str:
    return block * round(max(0, width) * min(1.0, max(0.0, share)))


class LoudnessTerminal(TerminalMeter[Reading]):
    """Short-term and long-term loudness, and the highest of the latter."""

    def __init__(self, engine: "Engine", stream: TextIO) -> None:
        super().__init__(engine, stream)
        self._seen = 0
        self._max_ltl = 0.0
        self._max_from_s = -math.inf

    def read(self, row: np.record, condition: dict[str, Any]) -> Reading:
        history = self._engine.history
        count = history.count
        rows = history.since(self._seen)
        self._seen = count
        counted = rows.ltl[(rows.time_s > self._max_from_s) & (rows.time_s <= self._end_s)]
        self._max_ltl = max(self._max_ltl, float(counted.max(initial=0.0)))
        stl, ltl = float(row["stl"]), float(row["ltl"])
        return Reading(stl=stl, ltl=ltl, max_ltl=self._max_ltl, **condition)

    def line(self, reading: Reading) -> str:
        return line(reading)

    def screen(self, reading: Reading, width: int, height: int) -> list[str]:
        return screen(reading, width, "█" if self._unicode else "#")

    def reset(self) -> None:
        """The model back to silence, the maximum forgotten."""
        super().reset()
        latest = self._engine.history.latest
        self._max_ltl = 0.0
        if latest is not None:
            self._max_from_s = float(latest.time_s[-1]) + RESET_S
