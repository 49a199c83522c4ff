"""Checks of all metrics of ECMA-418-2:2025 of one model: the definitions of their units."""

from dataclasses import replace
from functools import partial

from amt_stream.meters.accumulators.ecma418 import (
    FLUCTUATION,
    LOUDNESS,
    ROUGHNESS,
    TONALITY,
    Metric,
)
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.ecma418 import DEFINITION, mean, percentile, unramped
from amt_stream.offline.selftest.requirement import Of, Requirement, published


def _held(metric: Metric) -> Of:
    """The single value of a metric of 50 values a second, each held until the next."""
    return percentile(replace(metric, frame_rate=LOUDNESS.frame_rate), 10)


def _one(name: str, of: Of, unit: str, percent: float) -> Requirement:
    return published(name, of, 1.0, unit, percent, DEFINITION, "%")


_tone = partial(unramped, "ecma", 1000)

CHECKS: tuple[Trial, ...] = (
    _tone(
        40,
        _one("N", mean(LOUDNESS), "sone_HMS", 0.5),
        _one("T", mean(TONALITY), "tu_HMS", 0.5),
    ),
    _tone(60, _one("R", _held(ROUGHNESS), "asper", 1.0), duration=1.2, modulation=70),
    _tone(60, _one("F", _held(FLUCTUATION), "vacil_HMS", 1.0), duration=6.5, modulation=4),
)
