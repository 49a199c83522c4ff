"""Checks of the loudness of ECMA-418-2:2025."""

from functools import partial

from amt_stream.meters.rows.models.ecma418 import LOUDNESS
from amt_stream.offline.selftest import ecma418
from amt_stream.offline.selftest.requirement import Requirement, published, read

N = read("ecma_loudness_mean_sone")


def _n(sone: float) -> Requirement:
    return Requirement("N", N, sone, "sone_HMS", 0.5, ecma418.PROGRAMS, scale="%")


_at = ecma418.calculated_at(LOUDNESS, "sone_HMS", 0.03, ecma418.PLAIN)
_tone = partial(ecma418.unramped, "ecma_loudness")

CHECKS = (
    _tone(1000, 40, published("N", N, 1.0, "sone_HMS", 0.5, ecma418.DEFINITION, "%")),
    _tone(1000, 20, _n(0.23517)),
    _tone(1000, 80, _n(7.4194)),
    _tone(125, 60, _n(1.0366)),
    _tone(4000, 80, _n(9.0129)),
    _tone(1000, 60, _n(2.3868), modulation=70),
    _tone(1000, 40, _n(1.0123), field="diffuse"),
    _tone(1000, 40, published("N", N, 1.0, "sone_HMS", 0.5, ecma418.DEFINITION, "%"), fs=44100),
    _tone(1000, 95, _at(16.26341, 0.4)),
    ecma418.crowd(
        "ecma_loudness",
        _at(1.864696, 0.08),
        _at(5.308661, 0.4),
        _at(0.1285201, 0.4, 1.5),
        _at(0.2864966, 0.4, 4.5),
        _at(0.3236657, 0.4, 11.5),
        _at(0.04606786, 0.4, 14.5),
    ),
)
