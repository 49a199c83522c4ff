"""The commands of a measurement: the same words over every transport (`docs/wire.md`)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from amt_stream.plain import brief, sentence
from amt_stream.refusal import Refusal

LONGEST_TEXT = 1000


class CommandRefused(Refusal):
    """What was asked for cannot be done; the message is one sentence."""


@dataclass(frozen=True)
class Argument:
    """One value of a command: what it means, and what it may be.

    words: the only ones allowed, if there are any
    low, high: of a number, both allowed
    """

    meaning: str
    kind: type = str
    needed: bool = False
    words: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf

    @property
    def allowed(self) -> str:
        """What it may be, in words."""
        if self.words:
            return " or ".join(self.words)
        if self.kind is float:
            return f"a number from {self.low:g} to {self.high:g}"
        if self.kind is dict:
            return "an object of words"
        return f"text of at most {LONGEST_TEXT} characters"

    def allows(self, value: object) -> bool:
        """Whether a value can be meant."""
        if self.kind is float:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number and self.low <= value <= self.high  # type: ignore[operator]
        if self.kind is dict:
            pairs = value.items() if isinstance(value, dict) else [(0, 0)]
            return all(isinstance(word, str) for pair in pairs for word in pair)
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            return False
        return not self.words or value in self.words


@dataclass(frozen=True)
class Command:
    """What a command does, and its arguments by name."""

    does: str
    arguments: Mapping[str, Argument]


_ROW = Argument("name of one row, where several are heard; by default all of them")

COMMANDS = {
    "start": Command(
        "begin a measurement, where none runs",
        {
            "preset": Argument(
                "name of a preset to go on with, in place of the present one; limits and events "
                "that were typed hold for it too"
            )
        },
    ),
    "stop": Command("end the measurement: its last rows and its summary are sent", {}),
    "pause": Command("averages, maxima and percentiles stand still; sound is heard, rows come", {}),
    "resume": Command("what stood still goes on", {}),
    "reset": Command(
        "forget what was counted, or what the models have heard",
        {
            "what": Argument(
                "readings (default): averages, maxima and percentiles begin anew; models: back "
                "to silence",
                words=("readings", "models"),
            ),
            "row": _ROW,
        },
    ),
    "undo": Command(
        "count again what was forgotten by resets of readings, within 10 s of the last one",
        {"row": _ROW},
    ),
    "mark": Command(
        "an event with words of one's own, at this place of the sound",
        {"text": Argument("the words", needed=True), "row": _ROW},
    ),
    "replay": Command(
        "write the last of the sound to a file, where it is kept; the reply has its path",
        {
            "seconds": Argument(
                "how much of it; by default all that is kept", float, low=0.1, high=3600
            )
        },
    ),
    "calibrate": Command(
        "read with another level of full scale from here on",
        {
            "full_scale_db": Argument(
                "level of a full-scale sine in dB SPL", float, needed=True, low=0, high=250
            ),
            "row": _ROW,
        },
    ),
    "swap": Command(
        "go on with other settings of the models, without a gap",
        {"settings": Argument('by name, as {"field": "diffuse"}', dict, needed=True)},
    ),
    "status": Command("say how it stands", {}),
}


class Asked(NamedTuple):
    """A command that is understood; `id` is what its reply is to carry, if anything."""

    command: str
    arguments: dict[str, Any]
    id: str | int | None


def understood(asked: object) -> Asked:
    """What {"command": NAME, ARGUMENT: VALUE, "id": ...} asks for; raises CommandRefused."""
    if not isinstance(asked, Mapping) or not isinstance(asked.get("command"), str):
        raise CommandRefused(
            f'{_shown(asked)} is no command: send an object, as {{"command": "status"}}'
        )
    name, given = asked["command"], {k: v for k, v in asked.items() if k not in ("command", "id")}
    if name not in COMMANDS:
        raise CommandRefused(f"{_shown(name)} is no command: there are {', '.join(COMMANDS)}")
    arguments = COMMANDS[name].arguments
    for key, value in given.items():
        if key not in arguments:
            there = ", ".join(arguments) or "none"
            raise CommandRefused(f"{name} has no argument {_shown(key)}: there are {there}")
        if not arguments[key].allows(value):
            allowed = arguments[key].allowed
            raise CommandRefused(f"{key} of {name} is {_shown(value)}: give {allowed}")
    for key, argument in arguments.items():
        if argument.needed and key not in given:
            raise CommandRefused(f"{name} needs {key}: {argument.meaning}")
    return Asked(name, given, id_of(asked))


def command_in(asked: object) -> str | None:
    """The name of the command that is asked for, also where it is refused; None of no command."""
    name = asked.get("command") if isinstance(asked, Mapping) else None
    return name if isinstance(name, str) and name in COMMANDS else None


def id_of(asked: object) -> str | int | None:
    """What a reply is to carry, where something was given that can be."""
    found = asked.get("id") if isinstance(asked, Mapping) else None
    if isinstance(found, bool) or not isinstance(found, str | int):
        return None
    small = len(found) <= LONGEST_TEXT if isinstance(found, str) else abs(found) < 2**53
    return found if small else None


def _shown(value: object) -> str:
    return sentence(brief(repr(value)))
