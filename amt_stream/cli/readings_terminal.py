"""Readings of several models in the terminal."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

import numpy as np

from amt_stream.cli.terminal import (
    ALARM,
    BOLD,
    PLAIN,
    Condition,
    TerminalMeter,
    heading,
    status,
    truncated,
    warning_words,
)
from amt_stream.core.json_types import JsonDict
from amt_stream.meters.rows import limit_words, reading_text
from amt_stream.sessions.outputs import LatestReadings

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine

NAME, CELL, NUMBER, STATE = 13, 30, 10, 14
COLORS = {"green": "\x1b[30;42m", "amber": "\x1b[30;43m", "red": "\x1b[1;37;41m"}
"""Colors of the states of limits; other words have those of a warning."""


@dataclass(frozen=True, kw_only=True)
class ReadingsSeen(Condition):
    """The readings of each model by name."""

    readings: dict[str, JsonDict]
    limits: tuple[tuple[str, str, str], ...] = ()
    """Name, state and details of each limit."""


def line(reading: ReadingsSeen) -> str:
    """A reading in one line of plain text."""
    known = [
        f"{name} {reading_text(name, value)}"
        for readings in reading.readings.values()
        for name, value in readings.items()
        if value is not None
    ]
    states = [f"{name} {state}" for name, state, _ in reading.limits]
    return "  ".join([f"{reading.time_s:8.1f} s", *known, *states, *warning_words(reading)])


def screen(reading: ReadingsSeen, width: int) -> list[str]:
    """A reading as lines for a terminal `width` characters wide: a block for each model.

    In a narrow terminal the model's name is above its readings, so that no number is cut off.
    """
    beside = width >= NAME + CELL
    indent = NAME if beside else 0
    across = max(1, (width - indent) // CELL)
    name_width = max(1, min(CELL, width + 2) - NUMBER)
    lines = [heading(reading, width), ""]
    for model, readings in reading.readings.items():
        cells = [
            f"{truncated(name, name_width):<{name_width}}"
            f"{reading_text(name, value):>{NUMBER - 2}}  "
            for name, value in readings.items()
        ]
        if not beside:
            lines.append(f"{BOLD}{truncated(model, width)}{PLAIN}")
        for at in range(0, len(cells), across):
            label = "" if at or not beside else model
            text = "".join(cells[at : at + across]).rstrip()
            lines.append(f"{BOLD}{label:<{indent}}{PLAIN}{text}")
        lines.append("")
    if reading.limits:
        lines += [*(_limit(*limit, width) for limit in reading.limits), ""]
    return [*lines, *status(reading, width)]


def _limit(name: str, state: str, words: str, width: int) -> str:
    text = truncated(f" {name}: {words}", max(1, width - STATE))
    return f"{COLORS.get(state, ALARM)}{state:^{STATE}}{PLAIN}{text}"


class ReadingsTerminal(TerminalMeter[ReadingsSeen]):
    """Shows the current readings of each model and its main statistics."""

    def __init__(self, engine: "Engine", stream: TextIO, latest: LatestReadings) -> None:
        super().__init__(engine, stream)
        self._latest = latest

    def read(self, row: np.record, condition: JsonDict) -> ReadingsSeen | None:
        newest = self._latest.row
        if newest is None:
            return None
        readings = {model: self._latest.of(model) for model in self._latest.models}
        limits = tuple(
            (limit.name, newest[limit.state], limit_words(limit, newest))
            for limit in self._latest.limits
        )
        condition |= {"time_s": newest["time_s"], "counted_s": self._latest.measured_s}
        return ReadingsSeen(readings=readings, limits=limits, **condition)

    def line(self, reading: ReadingsSeen) -> str:
        return line(reading)

    def screen(self, reading: ReadingsSeen, width: int, height: int) -> list[str]:
        return screen(reading, width)

    def print_last(self) -> None:
        self._latest.sum_up()
        super().print_last()
