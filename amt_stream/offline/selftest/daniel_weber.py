"""Checks of roughness after Daniel & Weber (1997)."""

from functools import partial

from amt_stream.offline.selftest.ecma418 import unramped
from amt_stream.offline.selftest.requirement import Requirement, published, read

CALCULATION = "independent calculation, tests/data/independent_daniel_weber.py"


MEAN = read("daniel_weber_mean_asper")

UNIT = published("R", MEAN, 1.0, "asper", 1.0, "definition of the asper", "%")

STEADY = Requirement("R", MEAN, 0.0, "asper", 0.001, "a steady tone is not rough")


def _heard(asper: float) -> Requirement:
    """The highest roughness of a carrier; the tolerance is the difference just heard, 17 %."""
    source = "Fastl & Zwicker, Psychoacoustics, Fig. 11.2"
    return published("R", MEAN, asper, "asper", 0.17 * asper, source)


def _calculated(asper: float) -> Requirement:
    return Requirement("R", MEAN, asper, "asper", 0.5, CALCULATION, scale="%")


_tone = partial(unramped, "daniel_weber", duration=0.6)

CHECKS = (
    _tone(1000, 60, UNIT, modulation=70),
    _tone(125, 60, _heard(0.334), modulation=30),
    _tone(500, 60, _heard(0.672), modulation=50),
    _tone(2000, 60, _heard(0.840), modulation=70),
    _tone(4000, 60, _heard(0.652), modulation=70),
    _tone(8000, 60, _heard(0.436), modulation=70),
    _tone(250, 60, _calculated(0.38742), modulation=40),
    _tone(4000, 80, _calculated(0.66642), modulation=100),
    _tone(1000, 60, STEADY),
    _tone(1000, 60, UNIT, modulation=70, fs=44100),
)
