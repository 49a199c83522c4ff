"""Triggers of sound events: when a column exceeds a threshold."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief
from amt_stream.meters.limits import OF_TEXT, Limit, LimitError, limit_from_text, limit_of
from amt_stream.meters.names import stem_and_unit

HYSTERESIS = 3.0
HOLD_S = 1.0
"""Default end of an event: this far below the threshold, for this many seconds."""

KEPT_S = 60.0
BEFORE_S, AFTER_S, LONGEST_S = 5.0, 2.0, 600.0
"""Defaults in seconds: sound in memory, and sound before and after an event and of it in a file."""

OVER, FOR = "over_background", "for_s"

LONGEST_FOR_S = 600.0

LIMITS = "limits"
"""Instead of a column: an event lasts as long as any limit is red."""

_BACKGROUND = re.compile(r">\s*background\s*\+\s*(?=[\d.])")
_FOR = re.compile(r",\s*for\s*=\s*(\d+(?:\.\d+)?)\s*(?=,|$)")


class TriggerError(Refusal, ValueError):
    """A trigger is invalid."""


@dataclass(frozen=True)
class Trigger:
    """A trigger of sound events: an event begins when a limit is exceeded.

    It ends when the column has returned by the hysteresis, once it has stayed there for `hold_s`.

    over_background: whether the threshold is relative to the value exceeded for 90 % of the last
        minutes
    for_s: shortest duration of an event
    """

    limit: Limit
    over_background: bool = False
    for_s: float = 0.0

    @property
    def is_alarm(self) -> bool:
        """Whether it begins when any limit turns red."""
        return self.limit.column == LIMITS

    @property
    def words(self) -> str:
        """As it is written in one line."""
        if self.is_alarm:
            return "a limit is red"
        if not self.over_background:
            return self.limit.words
        return f"{self.limit.column} > background + {self.limit.threshold:g}"

    def to_dict(self) -> JsonDict:
        """Data for TOML and headers."""
        limit = self.limit
        if self.is_alarm:
            data = {"name": self.limit.name, "column": LIMITS, "hold_s": limit.hold_s}
        else:
            data = limit.to_dict() | {"hysteresis": limit.hysteresis, "hold_s": limit.hold_s}
        data |= {OVER: True} if self.over_background else {}
        return data | ({FOR: self.for_s} if self.for_s else {})


def trigger_of(table: JsonMap) -> Trigger:
    """Make a trigger from a table of TOML or JSON. Raises TriggerError."""
    given = {"hysteresis": HYSTERESIS, "hold_s": HOLD_S, **table}
    if table.get("column") == LIMITS:
        given = {"name": LIMITS, **_ANY_RED, "hold_s": HOLD_S, **table}
        if not table.keys() <= {"column", "name", "hold_s", FOR}:
            raise TriggerError(f"an event of {LIMITS} may only have a name, hold_s and {FOR}")
    over, for_s = given.pop(OVER, False), given.pop(FOR, 0.0)
    if not isinstance(over, bool):
        raise TriggerError(f"{OVER} is {brief(over)!r}: give true or false")
    if type(for_s) not in (int, float) or not 0 <= for_s <= LONGEST_FOR_S:
        raise TriggerError(f"{FOR} is {brief(for_s)}: give 0 to {LONGEST_FOR_S:g} seconds")
    try:
        for key in ("amber", "at_end"):
            if key in given:
                raise LimitError(f"{key} is only for limits: leave it out")
        return Trigger(_named(limit_of(given), over, "name" in table), over, for_s)
    except LimitError as refusal:
        raise TriggerError(f"an event: {refusal}") from refusal


_ANY_RED = {"column": LIMITS, "above": 0.5}
"""A column with 1 while a limit is red, and 0 otherwise."""


def trigger_from_text(text: str) -> Trigger:
    """Read a trigger such as "laf_db>85,hysteresis=3,hold=1" or "stl_phon>background+15".

    "limits" is an event while a limit is red. Raises TriggerError.
    """
    if text.strip() == LIMITS:
        return trigger_of({"column": LIMITS})
    line, count = _BACKGROUND.subn(">", text)
    lasting = _FOR.search(line)
    line = _FOR.sub("", line)
    try:
        typed = [part.partition("=")[0].strip() for part in line.split(",")[1:]]
        if "amber" in typed:
            raise LimitError("amber is only for limits")
        limit = limit_from_text(line)
    except LimitError as refusal:
        others = ", ".join(f"{key}=" for key in (*OF_TEXT, "for") if key != "amber")
        raise TriggerError(
            f"{brief(text)!r} is not a trigger: write it as laf_db>85 or laf_db>background+15, or "
            f"{LIMITS} for any red limit, optionally followed by {others}, each after a comma"
        ) from refusal
    typed_too = {"hysteresis": limit.hysteresis, "hold": limit.hold_s}
    ways = {"hysteresis": HYSTERESIS, "hold": HOLD_S}
    ways |= {key: value for key, value in typed_too.items() if key in typed}
    table = limit.to_dict() | {OF_TEXT[key]: value for key, value in ways.items()}
    if "name" not in typed:
        del table["name"]
    for_s = float(lasting[1]) if lasting else 0.0
    return trigger_of({**table, OVER: bool(count), FOR: for_s})


def _named(limit: Limit, over_background: bool, has_name: bool) -> Limit:
    if over_background and limit.below:
        raise LimitError(f"{limit.words}: a threshold relative to the background must be above it")
    if over_background and not has_name:
        stem = stem_and_unit(limit.column)[0] or limit.column
        name = f"{stem}_background_{limit.threshold:g}".replace(".", "_")
        return replace(limit, name=name)
    return limit


def refuse_same(triggers: Iterable[Trigger]) -> None:
    """Raise TriggerError for two triggers with the same name."""
    names = [one.limit.name for one in triggers]
    for name in names:
        if names.count(name) > 1:
            raise TriggerError(f"two events are called {name}: rename one of them")
