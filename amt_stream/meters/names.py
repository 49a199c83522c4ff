"""Names of columns: the grammar that writes them and reads them."""

import re
from collections.abc import Iterable
from functools import cached_property
from string import Formatter

SIDES = ("left", "right")
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
LONGEST_S = 24 * 3600.0

WINDOW = r"\d+(?:s|min|h)"
PERCENT = r"(?P<percent>\d\d?)"
OPTIONAL = {"window": WINDOW, "side": "|".join(SIDES), "place": "audience", "threshold": r"\d\d\d?"}
"""Parts with a "_" before them that a name may lack, such as "10min" and "left"."""


LIMIT_STATE = "limit_"


def state_column(limit: str) -> str:
    """Name of the column with the state of a limit."""
    return LIMIT_STATE + limit


def limit_in(column: str) -> str:
    """Name of the limit whose state a column holds; "" for another column."""
    return column.removeprefix(LIMIT_STATE) if column.startswith(LIMIT_STATE) else ""


def sides_of(channels: int) -> tuple[str, ...]:
    """The sides in names: "" and, of two channels, each."""
    return ("", *SIDES) if channels == 2 else ("",)


def place_of(side: str) -> int:
    """The place in `sides_of`."""
    return ("", *SIDES).index(side)


class NameForm:
    """A form of names, such as "zwicker_n{percent}{window}{side}_{unit}".

    {percent} is one or two digits; others are as in OPTIONAL or in `choices`.

    choices: the texts that a part may be, or a pattern of them
    """

    def __init__(self, text: str, **choices: Iterable[str] | re.Pattern[str]) -> None:
        self.text = text
        self._choices = choices

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pattern = ""
        for literal, part, *_ in Formatter().parse(self.text):
            pattern += re.escape(literal)
            if part == "percent":
                pattern += PERCENT
            elif part in OPTIONAL:
                pattern += f"(?:_(?P<{part}>{OPTIONAL[part]}))?"
            elif part is not None:
                pattern += f"(?P<{part}>{self._words(part)})"
        return re.compile(pattern)

    def _words(self, part: str) -> str:
        words = self._choices[part]
        return words.pattern if isinstance(words, re.Pattern) else "|".join(map(re.escape, words))

    def read(self, name: str) -> dict[str, str] | None:
        """The parts of a name, "" for one that it lacks; None for a name of another form."""
        found = self._pattern.fullmatch(name)
        return None if found is None else found.groupdict(default="")

    def write(self, **parts: object) -> str:
        """The name with these parts; optional parts that are not given are left out."""
        optional = {part: f"_{text}" if (text := parts.get(part)) else "" for part in OPTIONAL}
        return self.text.format(**parts | optional)


def stem_and_unit(name: str) -> tuple[str, str]:
    """What is before the unit that a name ends in, and that unit."""
    stem, _, unit = name.rpartition("_")
    return stem, unit


def window_s(text: str) -> float:
    """Length in seconds of a window such as `30s`, `15min` or `8h`.

    Raises ValueError for another text, and for a window outside 1 s to 24 h.
    """
    found = re.fullmatch(r"(\d+)(s|min|h)", text)
    if found is None:
        raise ValueError(f"the window {text!r} has no length: write it as 30s, 15min or 8h")
    seconds = int(found[1]) * SECONDS[found[2]]
    if not 1.0 <= seconds <= LONGEST_S:
        raise ValueError(f"a window of {text}: give 1s to {LONGEST_S / 3600:.0f}h")
    return seconds


def spaced_window(text: str) -> str:
    """A window as it is written: "15 min"."""
    return re.sub(r"(\d+)", r"\1 ", text)
