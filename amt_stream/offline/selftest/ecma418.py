"""Sounds and readings of the checks of ECMA-418-2."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from amt_stream.core.json_types import JsonMap
from amt_stream.meters.rows.models.ecma418 import Metric
from amt_stream.meters.signals import Tone
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import Of, Requirement
from amt_stream.offline.selftest.sounds import ComponentSound

DEFINITION = "ECMA-418-2:2025, definition of the unit"
PROGRAMS = "two other programs, tests/data/ecma418_2.json"
PLAIN = "independent calculation, tests/data/independent_ecma418.py"
PLAIN_MODULATION = "independent calculation, tests/data/independent_ecma418_modulation.py"

# In some bands of each length of blocks, tones are hardly told from noise.
CROWD = (
    *(61, 73, 88, 97, 113, 124, 139, 151, 310, 337, 359, 388, 412, 431, 463, 489),
    *(1190, 1270, 1310, 1390, 1430, 1510, 1570, 1630),
    *(4130, 4330, 4510, 4730, 4930, 5170, 5390, 5630),
)


def at_time(metric: Metric, time_s: float, bark: float | None = None) -> Of:
    """The value at a time, or the specific value there of a band."""
    if bark is None:
        return lambda y: float(getattr(y.values, metric.letter)[0, y.frame(time_s)])
    return lambda y: float(y.values.specific[0, y.frame(time_s), round(2 * bark) - 1])


def calculated_at(metric: Metric, unit: str, percent: float, source: str) -> Callable[..., Any]:
    """Makes readings from an independent calculation: a value, its time, and its band if any."""
    letter = metric.letter.upper()

    def reading(value: float, time_s: float, bark: float | None = None) -> Requirement:
        of, what = at_time(metric, time_s, bark), f"{letter} at {time_s:g} s"
        if bark is None:
            return Requirement(what, of, value, unit, percent, source, scale="%")
        what = f"{letter}' at {time_s:g} s, {bark:g} Bark"
        return Requirement(what, of, value, f"{unit}/Bark_HMS", percent, source, scale="%")

    return reading


def tones(
    model: str, words: str, duration: float, on: Iterable[Tone], *readings: Requirement
) -> Trial:
    """Tones without ramps, all at once; those of no duration last as long as the sound."""
    components = tuple(replace(tone, duration=tone.duration or duration, ramp=0.0) for tone in on)
    return Trial(model, ComponentSound(words, duration, components, 1), readings)


def crowd(model: str, *readings: Requirement) -> Trial:
    """Tones so close that, in some bands of each length of blocks, they are like noise."""
    words = "32 tones, 61 to 5630 Hz, 45 dB SPL each"
    return tones(model, words, 0.5, (Tone(f, level_db=45) for f in CROWD), *readings)


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
