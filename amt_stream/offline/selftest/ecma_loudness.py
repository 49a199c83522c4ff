"""Checks of the loudness of ECMA-418-2:2025."""

from functools import partial

from amt_stream.meters.accumulators.ecma418 import LOUDNESS
from amt_stream.offline.selftest.ecma418 import DEFINITION, PROGRAMS, mean, unramped
from amt_stream.offline.selftest.requirement import Requirement, published

N = mean(LOUDNESS)


def _n(sone: float, source: str = PROGRAMS) -> Requirement:
    return Requirement("N", N, sone, "sone_HMS", 0.5, source, scale="%")


_tone = partial(unramped, "ecma_loudness")

CHECKS = (
    _tone(1000, 40, published("N", N, 1.0, "sone_HMS", 0.5, DEFINITION, "%")),
    _tone(1000, 20, _n(0.23517)),
    _tone(1000, 80, _n(7.4194)),
    _tone(125, 60, _n(1.0366)),
    _tone(4000, 80, _n(9.0129)),
    _tone(1000, 60, _n(2.3868), modulation=70),
    _tone(1000, 40, _n(1.0123), field="diffuse"),
    _tone(1000, 40, published("N", N, 1.0, "sone_HMS", 0.5, DEFINITION, "%"), fs=44100),
)
