"""The correction from the microphone, as at the mixing desk, to the audience."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import brief
from amt_stream.meters.level_names import AHEAD, read_level
from amt_stream.meters.limits import Limit

MOST_DB = 40.0
"""The largest correction."""

TYPED = "given by the user"


class AudienceError(Refusal, ValueError):
    """A correction is invalid."""


@dataclass(frozen=True)
class Audience:
    """How much louder it is in the audience than at the microphone.

    a_db, c_db: differences of A-weighted and of C-weighted levels; A-weighted ones are corrected by
        the first, C-weighted ones and peaks by the second
    origin: where they come from, such as a measurement with its date

    Raises AudienceError for a difference that is no number from -40 to 40 dB.
    """

    a_db: float
    c_db: float
    origin: str = TYPED

    def __post_init__(self) -> None:
        for name in ("a_db", "c_db"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not -MOST_DB <= value <= MOST_DB:
                raise AudienceError(
                    f"the correction {name} is {brief(value)}: give a number from "
                    f"{-MOST_DB:g} to {MOST_DB:g} dB"
                )

    @classmethod
    def measured(
        cls, here: tuple[float, float], there: tuple[float, float], when: str = ""
    ) -> "Audience":
        """From LAeq and LCeq at the microphone's place and in the audience, of the same sound."""
        a_db, c_db = (round(far - near, 1) for near, far in zip(here, there, strict=True))
        return cls(a_db, c_db, f"measured {when}".rstrip())

    def of(self, weighting: str) -> float:
        """The correction of a level of this weighting; A where it has none of its own."""
        return self.c_db if weighting == "c" else self.a_db

    @property
    def words(self) -> str:
        """As "+4.2 dB (A), +6 dB (C), measured 2026-11-28"."""
        return f"{self.a_db:+g} dB (A), {self.c_db:+g} dB (C), {self.origin}"

    def limit(self, limit: Limit) -> Limit:
        """The limit of the level in the audience, for one of a level at the microphone."""
        one = read_level(limit.column)
        if one is None or one.kind in AHEAD or not one.has_audience or one.part("place"):
            return limit
        return replace(limit, column=one.with_parts(place="audience"), name=limit.given_name)

    def to_dict(self) -> JsonDict:
        return asdict(self)


NO_AUDIENCE = Audience(0.0, 0.0, "none")
"""Stands for no correction, where None is for the present one."""


def at_microphone(limit: Limit) -> Limit:
    """The limit of the level at the microphone, for one of the audience."""
    one = read_level(limit.column)
    if one is None or not one.part("place"):
        return limit
    return replace(limit, column=one.with_parts(place=""), name=limit.given_name)


def as_audience(given: "Audience | Mapping[str, Any] | str | float | None") -> Audience | None:
    """The correction in a table of a preset, in text such as "4.2,6", or one number for both.

    Raises AudienceError.
    """
    if given is None or isinstance(given, Audience):
        return given
    if isinstance(given, Mapping):
        known = {"a_db", "c_db", "origin"}
        if not {"a_db", "c_db"} <= given.keys() <= known or not isinstance(
            given.get("origin", ""), str
        ):
            raise AudienceError(f"{brief(dict(given))} is no correction: give a_db and c_db")
        return Audience(**given)
    parts = str(given).split(",")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2) or not all(map(math.isfinite, numbers)):
        raise AudienceError(
            f"{brief(given)!r} is no correction: give the difference of A-weighted levels, or "
            "those of A and C as 4.2,6"
        )
    return Audience(numbers[0], numbers[-1])
