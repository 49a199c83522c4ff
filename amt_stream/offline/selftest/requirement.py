"""Required readings of sounds, with tolerances and sources."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from amt_stream.dsp.scales import sone_to_phon

Of = Callable[[Any], float]
"""Gets a number from the output of a model."""

MAX_STL, MAX_LTL = "max short-term", "max long-term"
LOUDNESS = "independent calculation, tests/data/independent_loudness.py"


@dataclass(frozen=True)
class Requirement:
    """A required reading.

    tolerance: in `scale`: "%" of the expected value, or the unit of differences if it is not `unit`
    source: place in a standard or paper, or the independent calculation
    published: whether it is printed in the standard or paper
    """

    what: str
    of: Of
    expected: float
    unit: str
    tolerance: float
    source: str
    published: bool = False
    scale: str = ""

    def deviation(self, got: float) -> float:
        """The deviation of `got`, in `deviates_in`."""
        off = got - self.expected
        return 100 * off / self.expected if self.scale == "%" else off

    @property
    def deviates_in(self) -> str:
        return self.scale or self.unit


def published(
    what: str, of: Of, expected: float, unit: str, tolerance: float, source: str, scale: str = ""
) -> Requirement:
    """A reading printed in the standard or paper."""
    return Requirement(what, of, expected, unit, tolerance, source, True, scale)


def calculated(
    what: str, of: Of, sone: float, source: str = LOUDNESS, percent: float = 0.03
) -> Requirement:
    """A loudness from an independent calculation."""
    return Requirement(what, of, sone, "sone", percent, source, scale="%")


def highest(name: str) -> Of:
    """The maximum of a field."""
    return lambda y: np.max(getattr(y, name))


max_stl = partial(calculated, MAX_STL, highest("stl"))
max_ltl = partial(calculated, MAX_LTL, highest("ltl"))


def highest_phon(name: str, edition: str = "iso532-3") -> Of:
    """The maximum of a field as a loudness level."""
    return lambda y: sone_to_phon(np.max(getattr(y, name)), edition)


def falls_in(name: str, start: int, stop: int) -> Of:
    """Time constant in ms of a field that falls exponentially from one frame to another."""

    def of(y: object) -> float:
        values = getattr(y, name)
        return float((stop - start) / np.log(values[start] / values[stop]))

    return of
