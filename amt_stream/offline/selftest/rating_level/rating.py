"""Checks of the rating level."""

from typing import Any

from amt_stream.meters.accumulators.rating import Rated, rating_level
from amt_stream.meters.signals import Tone
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.rating_level.impulses import step
from amt_stream.offline.selftest.rating_level.tones import noisy
from amt_stream.offline.selftest.requirement import Requirement, read

SUM = "ISO 1996-1:2016: the energy mean of adjusted levels"

EXAMPLE = (
    Rated(55, 0, 0, 900),
    Rated(60, 3, 0, 600),
    Rated(58, 0, 4.2, 300),
    Rated(45, 0, 0, 1800),
)


class RatedIntervals:
    """RatedIntervals that no sound has."""

    words = "four intervals of an hour with adjustments"


def _above(y: Any) -> float:
    """The rating level above LAeq and the adjustments."""
    return y.read("rating_db") - y.read("rating_laeq_db") - y.read("kt_db") - y.read("ki_db")


def _adjusted(*tones: Tone) -> Trial:
    reading = Requirement("above LAeq and adjustments", _above, 0.0, "dB", 1e-6, SUM)
    sound = noisy(*tones, duration=4.0)
    kt = Requirement("K_T", read("kt_db"), 6.0, "dB", 0.001, "ISO 1996-2:2017, Table J.1")
    return Trial("rating", sound, (reading, kt))


CHECKS = (
    Trial(
        "rating",
        RatedIntervals(),
        (Requirement("Lr", float, 57.52595, "dB", 1e-4, SUM),),
        directly=lambda _, __: rating_level(EXAMPLE),
    ),
    _adjusted(Tone(2000, level_db=60)),
    Trial(
        "rating",
        step(50, 70),
        (
            Requirement("LAeq", read("rating_laeq_db"), 67.033, "dB", 0.02, "IEC 61672-1:2013"),
            Requirement("Lr", read("rating_db"), 67.033 + 6 + 5.663, "dB", 0.3, SUM),
        ),
    ),
)
