"""Names of sound levels: their forms, and what each says."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from amt_stream.meters.names import WINDOW, NameForm

WEIGHTINGS = ("a", "c", "z")
TIMES = ("f", "s", "i")
EXPOSURE = "lex_8h"
"""The exposure level of a day, without its unit."""

TIMED = [f"{weighting}{time}" for weighting in WEIGHTINGS for time in TIMES]
COMPARED = {"c": "", "ai": "lai", "aft3": "laf", "aft5": "laf"}
"""What is compared with LAeq, with the time-weighted level that it is made of."""

_AHEAD = {"of": re.compile(rf"l[acz]eq_{WINDOW}|{EXPOSURE}"), "limit": re.compile(r"\d+(?:p\d+)?")}
_RULES = {"criterion": re.compile(r"\d\d\d?"), "exchange": re.compile("[3-6]")}

FORMS = {
    "now": NameForm("l{weighting}{time}{place}{side}_db", weighting=WEIGHTINGS, time=TIMES),
    "max": NameForm("l{weighting}{time}max{place}{side}_db", weighting=WEIGHTINGS, time=TIMES),
    "min": NameForm("l{weighting}{time}min{place}{side}_db", weighting=WEIGHTINGS, time=TIMES),
    "eq": NameForm("l{weighting}eq{window}{place}{side}_db", weighting=WEIGHTINGS),
    "ieq": NameForm("l{weighting}ieq{place}{side}_db", weighting=WEIGHTINGS),
    "e": NameForm("l{weighting}e{place}{side}_db", weighting=["a"]),
    "peak": NameForm("l{weighting}peak{place}{side}_db", weighting=WEIGHTINGS),
    "intervals": NameForm("l{weighting}ft{seconds}eq{side}_db", weighting=["a"], seconds="35"),
    "difference": NameForm("l{compared}eq_minus_laeq{side}_db", compared=COMPARED),
    "exceeded": NameForm("l{level}{percent}{window}{side}_db", level=["", *TIMED]),
    "day": NameForm(f"{EXPOSURE}{{place}}{{side}}_db"),
    "dose": NameForm("dose_{criterion}_{exchange}{threshold}{side}_percent", **_RULES),
    "twa": NameForm("twa_{criterion}_{exchange}{threshold}{side}_db", **_RULES),
    "allowed": NameForm("{of}{place}_allowed_{limit}{side}_db", **_AHEAD),
    "until": NameForm("{of}{place}_until_{limit}{side}_s", **_AHEAD),
}
"""The form of each kind."""

AHEAD = ("allowed", "until")
CORRECTED = ("a", "c")
"""Weightings of levels that may be of the audience."""


class LevelName(NamedTuple):
    """A name: its kind, as in FORMS, and its parts."""

    kind: str
    parts: Mapping[str, str]

    def part(self, name: str) -> str:
        """A part, "" where names of this kind have none."""
        return self.parts.get(name, "")

    @property
    def timed(self) -> str:
        """The time-weighted level that it is made of, such as "laf"; "" for others."""
        if self.kind == "exceeded":
            return f"l{self.part('level') or 'af'}"
        if self.kind == "intervals":
            return "laf"
        if self.kind == "ieq":
            return f"l{self.part('weighting')}i"
        if self.kind == "difference":
            return COMPARED[self.part("compared")]
        return f"l{self.part('weighting')}{self.part('time')}" if self.part("time") else ""

    @property
    def weighting(self) -> str:
        """Its frequency weighting, "" where it has none of its own."""
        return self.timed[1:2] or self.part("weighting")

    @property
    def has_audience(self) -> bool:
        """Whether there is such a level in the audience: A and C, not differences and doses."""
        return self.kind in (*AHEAD, "day") or (
            "{place}" in FORMS[self.kind].text and self.weighting in CORRECTED
        )

    def with_parts(self, **parts: str) -> str:
        """The name with other parts."""
        return FORMS[self.kind].write(**{**self.parts, **parts})

    @property
    def level_ahead(self) -> "LevelName":
        """The level that a forecast is of."""
        level = read_level(f"{self.part('of')}_db")
        assert level is not None
        return level

    @property
    def of(self) -> str:
        """An equivalent level as the names of its forecasts begin, such as "laeq_15min"."""
        return EXPOSURE if self.kind == "day" else f"l{self.weighting}eq_{self.part('window')}"

    @property
    def plain(self) -> str:
        """The name without side and place, as a meter of one channel has it."""
        return self.with_parts(side="", place="")


def read_level(name: str) -> LevelName | None:
    """What a name says, or None if it is of no sound level."""
    for kind, form in FORMS.items():
        if (parts := form.read(name)) is not None:
            found = LevelName(kind, parts)
            return None if parts.get("place") and not found.has_audience else found
    return None


def forecasts(of: str, limit_db: float, place: str = "", side: str = "") -> tuple[str, str]:
    """Names of both forecasts of a level, without its unit, and a limit."""
    limit = f"{limit_db:g}".replace(".", "p")
    allowed, until = (
        FORMS[kind].write(of=of, limit=limit, place=place, side=side) for kind in AHEAD
    )
    return allowed, until
