"""Sounds and readings of the checks of ECMA-418-2."""

from collections.abc import Callable
from typing import Any

import numpy as np

from amt_stream.core.json_types import JsonMap
from amt_stream.meters.accumulators.ecma418 import Metric
from amt_stream.meters.signals import Tone
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import Of, Requirement
from amt_stream.offline.selftest.sounds import ComponentSound

DEFINITION = "ECMA-418-2:2025, definition of the unit"
PROGRAMS = "two other programs, tests/data/ecma418_2.json"


def values(metric: Metric) -> Callable[[Any], Any]:
    """The values that count of a metric of one channel."""
    return lambda y: getattr(y, metric.letter)[0, round(metric.start_s * metric.frame_rate) :]


def mean(metric: Metric) -> Of:
    """The mean by the standard's rules."""

    def of(y: Any) -> float:
        found = values(metric)(y)
        powers = found[found > metric.above] ** metric.exponent
        return float(np.mean(powers)) ** (1 / metric.exponent) if powers.size else 0.0

    return of


def percentile(metric: Metric, percent: float) -> Of:
    """The value that is exceeded in so many percent of the time."""
    return lambda y: float(np.percentile(values(metric)(y), 100 - percent))


def unramped(model: str, f: float, level_db: float, *readings: Requirement, **more: Any) -> Trial:
    """A tone without ramps, which the model fades in.

    more: its duration, modulation rate and depth, and options of the model
    """
    duration, rate = more.pop("duration", 0.5), more.pop("modulation", None)
    on = Tone(f, level_db=level_db, duration=duration, ramp=0.0, modulation=rate)
    words = f"{f:g} Hz, {level_db:g} dB SPL"
    if rate is not None:
        words += f", fully modulated by {rate:g} Hz"
    options: JsonMap = {"fs": 48000} | more
    return Trial(model, ComponentSound(words, duration, (on,), 1), readings, options)
