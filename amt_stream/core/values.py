"""Kinds of values for settings. Each describes itself, parses text and checks values.

`str(kind)` completes the sentence "... must be ...", `kind.allows(value)` checks a value from TOML
or JSON, and `kind.parse(text)` parses typed text and raises `NotAllowed` with one sentence.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

from amt_stream.core.clock import span_s
from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import NAME_RULE, fits_tables


class NotAllowed(Refusal, ValueError):
    """A text is not a value of its kind; the message says what is allowed."""


@dataclass(frozen=True)
class Choice:
    """One of a few words, the default first."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return "one of " + ", ".join(f'"{word}"' for word in self.words)

    def allows(self, value: object) -> bool:
        return value in self.words


@dataclass(frozen=True)
class Number:
    """A number within a range; an integer if `whole`."""

    low: float
    high: float
    unit: str = ""
    whole: bool = False

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low:g} to {self.high:.12g} {self.unit}".rstrip()

    def allows(self, value: Any) -> bool:
        kinds = (int,) if self.whole else (int, float)
        # bool is a subclass of int.
        return type(value) in kinds and self.low <= value <= self.high

    def parse(self, text: str) -> Any:
        try:
            value = self.read(text)
        except ValueError:
            value = math.nan
        if not self.low <= value <= self.high:
            raise NotAllowed(f"{text!r} is not {self}")
        return value

    def read(self, text: str) -> float:
        return int(text) if self.whole else float(text)


@dataclass(frozen=True)
class Elapsed(Number):
    """A duration of audio, in seconds or as 1h30m."""

    unit: str = "seconds of sound"

    def __str__(self) -> str:
        return f"{super().__str__()}, nor as 1h30m"

    def read(self, text: str) -> float:
        return span_s(text)


@dataclass(frozen=True)
class Listed:
    """Several values separated by commas, each of a `kind` or out of `words`."""

    kind: Number | None = None
    words: tuple[str, ...] = ()

    def parse(self, text: str) -> tuple[Any, ...]:
        parts = text.split(",")
        found = tuple(parts if self.kind is None else map(self.kind.parse, parts))
        wrong = [part for part in found if self.words and part not in self.words]
        if wrong:
            raise NotAllowed(f"{wrong[0]!r} is none of {', '.join(self.words)}")
        return found


@dataclass(frozen=True)
class Names(Choice):
    """One of a few words, or a list of some of them."""

    several: tuple[str, ...] = ()

    def __str__(self) -> str:
        together = ", ".join(f'"{word}"' for word in self.several)
        return f"{super().__str__()}, or a list of several out of {together}"

    def allows(self, value: object) -> bool:
        if not isinstance(value, list):
            return super().allows(value)
        known = all(word in self.several for word in value)
        return known and bool(value) and len(set(value)) == len(value)


@dataclass(frozen=True)
class Text:
    """Any text."""

    def __str__(self) -> str:
        return "text in quotes"

    def allows(self, value: object) -> bool:
        return isinstance(value, str)


@dataclass(frozen=True)
class Tables:
    """One or more TOML tables, each with a type."""

    def __str__(self) -> str:
        return "one or more tables [[model.stages]], each with a type and its arguments"

    def allows(self, value: Any) -> bool:
        tables = isinstance(value, list) and all(isinstance(table, dict) for table in value)
        return tables and bool(value) and all(isinstance(t.get("type"), str) for t in value)


@dataclass(frozen=True)
class LimitTables:
    """One or more tables that each define a limit, or a list of names of norms and limits."""

    names: bool = True

    def __str__(self) -> str:
        tables = "one or more tables [[limits]], each with a column and its limit"
        return f'{tables}, or a list as ["who-venues", "laf_db>85"]' if self.names else tables

    def allows(self, value: object) -> bool:
        kinds = (dict, str) if self.names else (dict,)
        return isinstance(value, list) and bool(value) and all(isinstance(v, kinds) for v in value)


class EventTables(LimitTables):
    """One or more triggers of sound events, each a table or one line of text."""

    def __str__(self) -> str:
        return (
            "one or more tables [[events]], each with a column and a threshold, or a list as "
            '["laf_db>85"]'
        )


@dataclass(frozen=True)
class MicrophoneChannels:
    """The channels of several named microphones."""

    def __str__(self) -> str:
        return f"one or two channels for each name, as {{ desk = [1, 2], door = [3] }}; {NAME_RULE}"

    def allows(self, value: object) -> bool:
        if not (isinstance(value, dict) and value):
            return False
        return all(_is_microphone(name, channels) for name, channels in value.items())


def _is_microphone(name: str, channels: object) -> bool:
    if not (isinstance(channels, list) and 1 <= len(channels) <= 2):
        return False
    numbers = all(type(c) is int and c >= 1 for c in channels)
    return fits_tables(name) and numbers and len(set(channels)) == len(channels)


@dataclass(frozen=True)
class ColumnNames:
    """Names of columns."""

    def __str__(self) -> str:
        return 'a list of columns, as ["lceq_minus_laeq_db"]'

    def allows(self, value: object) -> bool:
        return isinstance(value, list) and all(isinstance(one, str) and one for one in value)


@dataclass(frozen=True)
class AudienceTable:
    """The correction from the microphone to the audience, of A- and of C-weighted levels."""

    most_db: float

    def __str__(self) -> str:
        return (
            f"{{ a_db = 4.2, c_db = 6.0 }}, numbers from {-self.most_db:g} to {self.most_db:g} dB; "
            'origin = "text" may say where they come from'
        )

    def allows(self, value: object) -> bool:
        if not (isinstance(value, dict) and {"a_db", "c_db"} <= value.keys()):
            return False
        number = Number(-self.most_db, self.most_db)
        numbers = number.allows(value["a_db"]) and number.allows(value["c_db"])
        return numbers and isinstance(value.get("origin", ""), str) and len(value) <= 3


@dataclass(frozen=True)
class OptionTable:
    """Command options by their long names, written with _ or -."""

    def __str__(self) -> str:
        return "options of amt-stream serve by name, each text, a number, true, or a list of them"

    def allows(self, value: object) -> bool:
        if not isinstance(value, dict):
            return False
        lists = [one if isinstance(one, list) else [one] for one in value.values()]
        return all(isinstance(one, str | int | float) for several in lists for one in several)


def parse_path(text: str) -> str:
    """Return the path of a file or folder, which is never empty."""
    if not text:
        raise NotAllowed("'' is not a path: give a file or folder, or . for this folder")
    return text


_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?(MB|GB|TB)")
_POWERS = {"MB": 6, "GB": 9, "TB": 12}


def parse_size(text: str) -> int:
    """Parse a number of bytes of 10 MB or more, such as 500MB or 1.5TB."""
    found = _SIZE.fullmatch(text)
    size = 0 if found is None else round(float(found[1]) * 10 ** _POWERS[found[2]])
    if size < 10**7:
        raise NotAllowed(f"{text!r} is not a size of 10MB or more, such as 500MB, 20GB or 1.5TB")
    return size


ONE_OR_TWO = "give one channel (1), or two different ones as left and right (1,2)"


def parse_channels(text: str) -> tuple[int, ...]:
    """Parse different channel numbers, counted from 1: 1, or 1,2 and more."""
    try:
        channels = tuple(int(part) for part in text.split(","))
    except ValueError:
        channels = ()
    if not channels or min(channels) < 1 or len(set(channels)) < len(channels):
        raise NotAllowed(f"{text!r}: {ONE_OR_TWO}")
    return channels


def parse_ears(text: str) -> tuple[int, ...]:
    """Parse one or two channel numbers."""
    channels = parse_channels(text)
    if len(channels) > 2:
        raise NotAllowed(f"{text!r}: {ONE_OR_TWO}")
    return channels


NamedChannels = tuple[str, tuple[int, ...]]
"""A microphone's name and its channels."""


def parse_microphone(text: str) -> NamedChannels:
    """Parse channel numbers with an optional name=; without a name the numbers name it.

    One with a name is a microphone of one or two channels.
    """
    name, equals, numbers = text.rpartition("=")
    channels = parse_ears(numbers) if equals else parse_channels(numbers)
    if equals and not fits_tables(name):
        raise NotAllowed(f"{text!r}: {NAME_RULE}")
    return name or "+".join(map(str, channels)), channels


EACH = "each"
"""The channels setting that measures each channel on its own."""


def parse_channels_or_each(text: str) -> tuple[int, ...] | str:
    """Parse as `parse_channels` does, or EACH."""
    return EACH if text in (EACH, "all") else parse_channels(text)
