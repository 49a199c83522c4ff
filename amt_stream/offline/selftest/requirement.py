"""Required readings of sounds, with tolerances and sources."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

Of = Callable[[Any], float]
"""Gets a number from what was read of a sound (`Heard`)."""

MAX_STL, MAX_LTL = "max short-term", "max long-term"
LOUDNESS = "independent calculation, tests/data/independent_loudness.py"
BRIEF = "calculated at 32 kHz, and so brief that it matters when each frame of 1 ms begins"


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


def read(name: str, above: float = 0.0) -> Of:
    """A statistic of the whole sound, or another column at its end, above a level."""
    return lambda y: y.read(name) - above


max_stl = partial(calculated, MAX_STL, read("max_stl_sone"))
max_ltl = partial(calculated, MAX_LTL, read("max_ltl_sone"))


def falls(name: str, start_s: float, stop_s: float) -> Of:
    """How fast a level falls, in dB/s."""

    def of(y: Any) -> float:
        start, stop = (y.rows[name][y.row(time_s)] for time_s in (start_s, stop_s))
        return float((start - stop) / (stop_s - start_s))

    return of


def falls_in(name: str, start_s: float, stop_s: float) -> Of:
    """Time constant in ms of a field that falls exponentially from one time to another."""

    def of(y: Any) -> float:
        start, stop = (getattr(y.values, name)[y.frame(time_s)] for time_s in (start_s, stop_s))
        return float(1000 * (stop_s - start_s) / np.log(start / stop))

    return of
