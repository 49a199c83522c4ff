"""Limits: what a column of rows is not to be above, or below."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief

GREEN, AMBER, RED = range(3)
STATES = ("green", "amber", "red", "unknown", "uncalibrated")
"""How a column stands to a limit: the first three are told of what is known."""

UNKNOWN, UNCALIBRATED = 3, 4
COLORS = STATES[:UNKNOWN]

STATE = "limit_"
"""Before the name of a limit, that of the column of its state."""

LARGEST = 1e9

KEYS = ("column", "above", "below", "amber", "hysteresis", "hold_s", "at_end", "name", "source")
"""Of the table of a limit in TOML."""

OF_TEXT = {"amber": "amber", "hysteresis": "hysteresis", "hold": "hold_s", "name": "name"}
"""What may follow a limit that is written in one line."""

_TEXT = re.compile(r"(?P<column>\w+)\s*(?P<side>[<>])\s*(?P<threshold>[-+\d.eE]+)")


class LimitError(Refusal, ValueError):
    """A limit cannot be used; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Limit:
    """A column is not to be above a threshold; or below it, as the loudness of a programme.

    column: its name
    threshold: in the unit of the column: red is above it, or below it where that is so
    amber: from where on to be warned, on the near side of the threshold; None for no warning
    hysteresis: how far it has to come back before the state does, in the unit of the column
    hold_s: for how long, without a break; a worse state is told at once
    at_end: what counts is where it ends, as of a programme, and not what it was on the way
    name: letters, digits and _; by default that of the column without its unit, and the threshold
    source: who has set it, and where that is written

    Raises LimitError for what is no number, and for an amber beyond the threshold.
    """

    column: str
    threshold: float
    below: bool = False
    amber: float | None = None
    hysteresis: float = 0.0
    hold_s: float = 0.0
    at_end: bool = False
    name: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        column = self.column
        if not re.fullmatch(r"\w{1,80}", column):
            raise LimitError(f"the column of a limit is {brief(column)!r}: give its whole name")
        numbers = {key: getattr(self, key) for key in ("threshold", "hysteresis", "hold_s")}
        numbers |= {} if self.amber is None else {"amber": self.amber}
        for key, value in numbers.items():
            if type(value) not in (int, float) or not -LARGEST <= value <= LARGEST:
                raise LimitError(f"the {key} of {column} is {brief(value)!r}: give a number")
            if value < 0 and key in ("hysteresis", "hold_s"):
                raise LimitError(f"the {key} of {column} is {value:g}: give 0 or more")
        if self.amber is not None and self.sign * (self.threshold - self.amber) < 0:
            remedy = "more" if self.below else "less"
            raise LimitError(
                f"{self.words}: amber is {self.amber:g}, beyond the limit itself: give {remedy}"
            )
        if not self.name:
            object.__setattr__(self, "name", self._named())
        if not re.fullmatch(r"[a-z0-9_]{1,80}", self.name):
            raise LimitError(
                f"a limit is called {brief(self.name)!r}: give small letters, digits and _"
            )

    def _named(self) -> str:
        """Of what there is to tell it from others."""
        stem = self.column.rpartition("_")[0] or self.column
        side = "_below" if self.below else ""
        number = f"{self.threshold:g}".replace("-", "m").replace(".", "_").replace("+", "")
        return f"{stem}{side}_{number}".lower()

    @property
    def sign(self) -> int:
        """1, or -1 where lower is worse."""
        return -1 if self.below else 1

    @property
    def side(self) -> str:
        """Where it is not to be."""
        return "below" if self.below else "above"

    def is_beyond(self, value: float | None) -> bool:
        """Whether a value is where it is not to be."""
        return value is not None and self.sign * value > self.sign * self.threshold

    @property
    def words(self) -> str:
        """As it is written in one line."""
        return f"{self.column} {'<' if self.below else '>'} {self.threshold:g}"

    @property
    def state(self) -> str:
        """Name of the column that tells the state."""
        return STATE + self.name

    def to_dict(self) -> JsonDict:
        """As a table of TOML says it, and a header tells it: all but what is as usual."""
        told = {"name": self.name, "column": self.column, self.side: self.threshold}
        more = ("amber", "hysteresis", "hold_s", "at_end", "source")
        return told | {key: v for key in more if (v := getattr(self, key)) not in (None, False, "")}


def limit_of(table: JsonMap) -> Limit:
    """The limit that a table of TOML, or of JSON, describes.

    Raises LimitError for what is missing, unknown or of the wrong kind.
    """
    for key in table:
        if key not in KEYS:
            raise LimitError(f"{brief(key)} is nothing of a limit: there are {', '.join(KEYS)}")
    column, sides = table.get("column"), [side for side in ("above", "below") if side in table]
    if not isinstance(column, str) or len(sides) != 1:
        raise LimitError("a limit has a column, and either above or below which it is not to be")
    for key, kind in (("name", str), ("source", str), ("at_end", bool)):
        if key in table and not isinstance(table[key], kind):
            words = "true or false" if kind is bool else "text in quotes"
            raise LimitError(f"{key} of {column} is {brief(table[key])!r}: give {words}")
    given = {key: value for key, value in table.items() if key not in ("column", *sides)}
    return Limit(column, table[sides[0]], below=sides[0] == "below", **given)


def limit_from_text(text: str) -> Limit:
    """The limit in a line such as "laeq_15min_db>100,amber=97,hysteresis=1,hold=2".

    Raises LimitError for what is no limit.
    """
    first, *more = (part.strip() for part in text.split(","))
    found = _TEXT.fullmatch(first)
    pairs = [part.partition("=") for part in more]
    unknown = [key for key, _, _ in pairs if key.strip() not in OF_TEXT]
    if found is None or unknown:
        raise LimitError(
            f"{brief(text)!r} is no limit: write it as laeq_15min_db>100, or with a comma before "
            f"each of {', '.join(f'{key}=' for key in OF_TEXT)}"
        )
    side = "above" if found["side"] == ">" else "below"
    given: dict[str, object] = {"column": found["column"], side: _number(found["threshold"], text)}
    for key, _, value in pairs:
        name = OF_TEXT[key.strip()]
        given[name] = value.strip() if name == "name" else _number(value, text)
    return limit_of(given)


def _number(value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise LimitError(f"{brief(text)!r}: {brief(value)!r} is no number") from None


def refuse_twice(limits: Iterable[Limit]) -> None:
    """Raise LimitError for two limits of one name."""
    names = [limit.name for limit in limits]
    for name in names:
        if names.count(name) > 1:
            raise LimitError(f"two limits are called {name}: give one of them another name")
