"""Checks of the tonality of ECMA-418-2:2025."""

from functools import partial
from typing import Any

import numpy as np

from amt_stream.meters.rows.models.ecma418 import TONALITY
from amt_stream.offline.selftest import ecma418
from amt_stream.offline.selftest.requirement import Requirement, published, read

T = read("ecma_tonality_mean_tu")


def frequency(y: Any) -> float:
    """The median frequency of the strongest tone in Hz."""
    return float(np.median(y.values.hz[0, y.frame(TONALITY.rule.start_s) :]))


def _t(tu: float) -> Requirement:
    return Requirement("T", T, tu, "tu_HMS", 1.0, ecma418.PROGRAMS, scale="%")


def _hz(hz: float) -> Requirement:
    return Requirement("frequency", frequency, hz, "Hz", 0.01, ecma418.PROGRAMS)


_at = ecma418.calculated_at(TONALITY, "tu_HMS", 0.03, ecma418.PLAIN)
_tone = partial(ecma418.unramped, "ecma_tonality")

CHECKS = (
    _tone(1000, 40, published("T", T, 1.0, "tu_HMS", 0.5, ecma418.DEFINITION, "%"), _hz(999.023)),
    _tone(1000, 20, _t(0.31907), _hz(999.023)),
    _tone(1000, 80, _t(4.3719), _hz(999.023)),
    _tone(125, 60, _t(1.0167), _hz(123.047)),
    _tone(4000, 80, _t(6.8893), _hz(3999.02)),
    _tone(1000, 60, _t(1.3367), modulation=70),
    _tone(1000, 40, _t(1.0091), field="diffuse"),
    _tone(1000, 40, published("T", T, 1.0, "tu_HMS", 0.5, ecma418.DEFINITION, "%"), fs=44100),
    ecma418.crowd(
        "ecma_tonality",
        _at(0.4178542, 0.08),
        _at(0.8769056, 0.4),
        _at(0.03318845, 0.4, 1.5),
        _at(0.1081132, 0.4, 4.5),
        _at(0.2241885, 0.4, 11.5),
        _at(0.03077126, 0.4, 14.5),
    ),
)
