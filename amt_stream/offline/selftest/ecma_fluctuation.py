"""Checks of the fluctuation strength of ECMA-418-2:2025."""

from functools import partial

from amt_stream.meters.rows.models.ecma418 import FLUCTUATION
from amt_stream.meters.signals import Tone
from amt_stream.offline.selftest import ecma418
from amt_stream.offline.selftest.requirement import Requirement, published, read

PROGRAMS = "two readings of the standard, tests/data/ecma418_2_fluctuation.json"
F = read("ecma_fluctuation_f10_vacil")


def _f(vacil: float) -> Requirement:
    return Requirement("F", F, vacil, "vacil_HMS", 2.0, PROGRAMS, scale="%")


UNIT = published("F", F, 1.0, "vacil_HMS", 1.0, ecma418.DEFINITION, "%")

STEADY = Requirement(
    "highest F",
    read("ecma_fluctuation_max_vacil"),
    0.0,
    "vacil_HMS",
    0.0,
    "a steady tone does not fluctuate",
)

_at = ecma418.calculated_at(FLUCTUATION, "vacil_HMS", 0.05, ecma418.PLAIN_MODULATION)
_tone = partial(ecma418.unramped, "ecma_fluctuation")

CHECKS = (
    _tone(1000, 60, UNIT, duration=6.5, modulation=4),
    _tone(1000, 60, _f(0.86220), duration=6.5, modulation=8),
    _tone(250, 60, _f(0.90766), duration=6.5, modulation=4),
    _tone(1000, 60, STEADY, duration=2.5),
    # Of one band, the amplitude is just above the least one.
    _tone(12000, 50, _at(0.09358137, 2.0), duration=3.5, modulation=14.83),
    # Twice the slower rate is the faster one, if the search for slow ones finds it.
    ecma418.tones(
        "ecma_fluctuation",
        "1000 Hz, 57 and 55 dB SPL, fully modulated by 1.025 and 2.05 Hz",
        3.5,
        (Tone(1000, level_db=57, modulation=1.025), Tone(1000, level_db=55, modulation=2.05)),
        _at(0.2810210, 2.0),
    ),
)
