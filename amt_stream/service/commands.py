"""The commands of a measurement, the same on every transport (`docs/wire.md`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import brief, sentence
from amt_stream.core.values import Number

LONGEST_TEXT = 1000


class CommandRefused(Refusal):
    """A command cannot be done."""


@dataclass(frozen=True)
class ShortText:
    """Short text for logs and screens."""

    def __str__(self) -> str:
        return f"text of at most {LONGEST_TEXT} characters"

    def allows(self, value: object) -> bool:
        return isinstance(value, str) and len(value) <= LONGEST_TEXT


@dataclass(frozen=True)
class Words:
    """A dictionary of texts."""

    def __str__(self) -> str:
        return "an object of words"

    def allows(self, value: object) -> bool:
        return isinstance(value, dict) and all(
            isinstance(word, str) for pair in value.items() for word in pair
        )


@dataclass(frozen=True)
class CommandArgument:
    """An argument of a command: its meaning and its allowed values."""

    meaning: str
    kind: ShortText | Words | Number = field(default_factory=ShortText)
    needed: bool = False


@dataclass(frozen=True)
class Command:
    """A command: what it does, and its arguments by name."""

    does: str
    arguments: Mapping[str, CommandArgument]


_MICROPHONE = CommandArgument("name of one, where several are heard; by default all of them")

_BEGAN = CommandArgument("when it began, as `impulse_s`", Number(0, 1e8), needed=True)

COMMANDS = {
    "start": Command(
        "begin a measurement, if none runs",
        {
            "preset": CommandArgument(
                "name of the preset to use from now on; limits and events from the command line "
                "still apply"
            )
        },
    ),
    "stop": Command("end the measurement: its last rows and its summary are sent", {}),
    "pause": Command("stop averages, maxima and percentiles; models and rows go on", {}),
    "unpause": Command("continue after a pause", {}),
    "reset_readings": Command(
        "clear averages, maxima and percentiles", {"microphone": _MICROPHONE}
    ),
    "reset_filters": Command("set the models back to silence", {"microphone": _MICROPHONE}),
    "undo_reset": Command(
        "undo resets of readings, within 10 s of the last one", {"microphone": _MICROPHONE}
    ),
    "mark": Command(
        "an event with your text, at this place of the sound",
        {"text": CommandArgument("the words", needed=True), "microphone": _MICROPHONE},
    ),
    "leave_out": Command(
        "leave an impulse out of the adjustment for impulses",
        {"time_s": _BEGAN, "text": CommandArgument("why"), "microphone": _MICROPHONE},
    ),
    "take_in": Command(
        "count an impulse again that was left out", {"time_s": _BEGAN, "microphone": _MICROPHONE}
    ),
    "replay": Command(
        "write the last seconds of sound to a file, if they are stored; the reply has its path",
        {
            "seconds": CommandArgument(
                "how much of it; by default all that is stored", Number(0.1, 3600)
            )
        },
    ),
    "calibrate": Command(
        "use another level of full scale from here on",
        {
            "full_scale_db": CommandArgument(
                "level of a full-scale sine in dB SPL", Number(0, 250), needed=True
            ),
            "microphone": _MICROPHONE,
        },
    ),
    "swap": Command(
        "change settings of the models, without a gap",
        {"settings": CommandArgument('by name, as {"field": "diffuse"}', Words(), needed=True)},
    ),
    "status": Command("report the state", {}),
}


class Asked(NamedTuple):
    """A parsed command; `id` is copied to the reply."""

    command: str
    arguments: JsonDict
    id: str | int | None


def understood(asked: object) -> Asked:
    """Parse {"command": NAME, ARGUMENT: VALUE, "id": ...}. Raises CommandRefused."""
    if not isinstance(asked, Mapping) or not isinstance(asked.get("command"), str):
        raise CommandRefused(
            f'{_shown(asked)} is not a command: send an object such as {{"command": "status"}}'
        )
    name, values = asked["command"], {k: v for k, v in asked.items() if k not in ("command", "id")}
    if name not in COMMANDS:
        raise CommandRefused(f"{_shown(name)} is not a command: there are {', '.join(COMMANDS)}")
    arguments = COMMANDS[name].arguments
    for key, value in values.items():
        if key not in arguments:
            there = ", ".join(arguments) or "none"
            raise CommandRefused(f"{name} has no argument {_shown(key)}: there are {there}")
        if not arguments[key].kind.allows(value):
            allowed = arguments[key].kind
            raise CommandRefused(f"{key} of {name} is {_shown(value)}: give {allowed}")
    for key, argument in arguments.items():
        if argument.needed and key not in values:
            raise CommandRefused(f"{name} needs {key}: {argument.meaning}")
    return Asked(name, values, id_of(asked))


def command_in(asked: object) -> str | None:
    """The name of the requested command, even if it is refused; None if there is none."""
    name = asked.get("command") if isinstance(asked, Mapping) else None
    return name if isinstance(name, str) and name in COMMANDS else None


def id_of(asked: object) -> str | int | None:
    """The id for the reply, if a valid one was given."""
    given = asked.get("id") if isinstance(asked, Mapping) else None
    if isinstance(given, bool) or not isinstance(given, str | int):
        return None
    small = len(given) <= LONGEST_TEXT if isinstance(given, str) else abs(given) < 2**53
    return given if small else None


def _shown(value: object) -> str:
    return sentence(brief(repr(value)))
