"""Checks of all metrics of ECMA-418-2:2025 of one model: the definitions of their units."""

from functools import partial

from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.ecma418 import DEFINITION, unramped
from amt_stream.offline.selftest.requirement import Requirement, published, read


def _one(name: str, column: str, unit: str, percent: float) -> Requirement:
    return published(name, read(column), 1.0, unit, percent, DEFINITION, "%")


_tone = partial(unramped, "ecma", 1000)

CHECKS: tuple[Trial, ...] = (
    _tone(
        40,
        _one("N", "ecma_loudness_mean_sone", "sone_HMS", 0.5),
        _one("T", "ecma_tonality_mean_tu", "tu_HMS", 0.5),
    ),
    _tone(60, _one("R", "ecma_roughness_r10_asper", "asper", 1.0), duration=1.2, modulation=70),
    _tone(
        60, _one("F", "ecma_fluctuation_f10_vacil", "vacil_HMS", 1.0), duration=6.5, modulation=4
    ),
)
