"""Checks of third-octave levels (IEC 61260-1:2014)."""

from functools import partial
from math import log10, pi, sin
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonMap
from amt_stream.dsp.scales import P0, pa_to_db_spl
from amt_stream.meters.accumulators import ThirdOctaveMeter
from amt_stream.meters.signals import Noise, Tone
from amt_stream.offline.selftest.check import Trial, output_blocks
from amt_stream.offline.selftest.requirement import Of, Requirement, published
from amt_stream.offline.selftest.sounds import ComponentSound

TABLE_1 = "IEC 61260-1:2014, Table 1, class 1 (as transcribed in Acoustics.jl)"
MIDBAND = "IEC 61260-1:2014, 5.3, base 10"
DEFINITION = "IEC 61672-1:2013, clause 3"
DECAY = "IEC 61672-1:2013, 5.8"
BUTTERWORTH = "Butterworth filter of order 4, formula"
BANDWIDTH = "effective bandwidth of an ideal filter"

LEVEL_DB = 90.0
HALF = 10**0.05
"""Ratio of the upper band edge to the midband frequency."""

LIMITS = {1.055754: (-0.4, 0.7), 1.087457: (-0.4, 1.4)}
"""Limits of attenuation in dB, by the ratio of frequency to midband frequency."""


class BandReadings(NamedTuple):
    """Readings of the meter at the end, mean squares and F, S (band, frame) in Pa^2; by band."""

    reading: dict[str, float | None]
    mean_square: dict[float, NDArray[np.float64]]
    fast: dict[float, NDArray[np.float64]]
    slow: dict[float, NDArray[np.float64]]


def band_readings(model: Any, sound: Any, options: JsonMap) -> BandReadings:
    """Run the meter on the first channel in blocks of 10 ms."""
    meter, given = ThirdOctaveMeter(model.nominal, fraction=model.fraction), []
    for y in output_blocks(model, sound, options):
        frames = [v.squeeze((0, 1)).numpy() for v in y]
        meter.update(*frames)
        given.append(np.concatenate([frames[0][None], frames[1]]))
    by_band = (
        dict(zip(model.nominal, powers, strict=True)) for powers in np.concatenate(given, -1)
    )
    return BandReadings(meter.reading(), *by_band)


def above(band: float, last: int = 1) -> Of:
    """Level of a band over the last frames, above `LEVEL_DB`."""
    return lambda y: float(10 * log10(y.mean_square[band][-last:].mean() / P0**2) - LEVEL_DB)


def read(name: str) -> Of:
    """A reading of the meter above `LEVEL_DB`."""
    return lambda y: float(y.reading[name]) - LEVEL_DB


def _falls(what: str, band: float, start_s: float, stop_s: float) -> Of:
    """How fast a time-weighted level falls, in dB/s."""

    def value(y: BandReadings) -> float:
        powers = getattr(y, what)[band]
        start, stop = (powers[round(s * 100)] for s in (start_s, stop_s))
        return float(10 * log10(start / stop) / (stop_s - start_s))

    return value


def _trial(
    sound: ComponentSound, *readings: Requirement, model: str = "third_octave", fs: int = 48000
) -> Trial:
    return Trial(model, sound, readings, {"fs": fs}, band_readings)


def band_tone(f: float, duration: float = 0.4) -> ComponentSound:
    on = (Tone(f, level_db=LEVEL_DB, ramp=0.05),)
    return ComponentSound(f"{f:.5g} Hz, {LEVEL_DB:g} dB SPL", duration, on, 1)


def one_pascal(model: str) -> Trial:
    """The definition of the level."""
    sound = ComponentSound("1000 Hz, 1 Pa", 2.2, (Tone(1000, level_db=pa_to_db_spl(1.0)),), 1)
    of = published("LZF", lambda y: y.reading["lzf_1000hz_db"], 93.98, "dB", 0.01, DEFINITION)
    return _trial(sound, of, model=model)


def at_middle(nominal: float, exact: float, duration: float = 0.4, **more: Any) -> Trial:
    """A tone at the midband frequency; its level in the band over the last quarter."""
    name, of = f"level at {nominal:g} Hz", above(nominal, round(25 * duration))
    return _trial(
        band_tone(exact, duration),
        published(name, of, 0.0, "dB", 0.4, TABLE_1),
        Requirement(name, of, 0.0, "dB", 0.01, MIDBAND),
        **more,
    )


def at_side(
    nominal: float, exact: float, place: float, limits: tuple[float, float], **more: Any
) -> Trial:
    """A tone within a band, where the attenuation has limits on both sides."""
    least, most = limits
    middle, half = (least + most) / 2, (most - least) / 2
    of = published(f"level at {nominal:g} Hz", above(nominal), -middle, "dB", half, TABLE_1)
    return _trial(band_tone(exact * place), of, **more)


def outside(
    nominal: float, exact: float, place: float, edge: float, last: int, **more: Any
) -> Trial:
    """A tone outside a band far below the sampling rate, attenuated as by the analog filter.

    edge: ratio of the upper band edge to the midband frequency
    last: number of frames whose mean is read
    """
    narrowed = edge ** (sin(pi / 8) / (pi / 8))
    aside = (place - 1 / place) / (narrowed - 1 / narrowed)
    expected = -10 * log10(1 + aside**8)
    name = f"level at {nominal:g} Hz"
    of = Requirement(name, above(nominal, last), expected, "dB", 0.15, BUTTERWORTH)
    return _trial(band_tone(exact * place), of, **more)


def _midband(nominal: float, **more: Any) -> Trial:
    return at_middle(nominal, 10 ** (round(10 * log10(nominal)) / 10), **more)


def _limited(nominal: float, place: float, **more: Any) -> Trial:
    exact = 10 ** (round(10 * log10(nominal)) / 10)
    limits = LIMITS[place if place > 1 else round(1 / place, 6)]
    return at_side(nominal, exact, place, limits, **more)


_attenuated = partial(outside, 1000, 1000.0, edge=HALF, last=20)


NOISE = ComponentSound(
    "white noise from 500 to 2000 Hz", 3.0, (Noise(low=500, high=2000, level_db=LEVEL_DB),), 1
)
OF_NOISE = 10 * log10(1000 * (HALF - 1 / HALF) / 1500)
BURST = ComponentSound(
    "4000 Hz, 90 dB SPL, 0.2 s",
    0.5,
    (Tone(4000, level_db=LEVEL_DB, start=0.1, duration=0.2, ramp=0.0),),
    1,
)
THEN_SILENCE = ComponentSound(
    "1000 Hz, 90 dB SPL, 1 s, then silence", 2.5, (Tone(1000, level_db=LEVEL_DB, duration=1.0),), 1
)

CHECKS = (
    one_pascal("third_octave"),
    _midband(4000),
    _midband(1000),
    _midband(31.5, duration=4.0),
    _midband(20000),
    _midband(20000, fs=44100),
    _midband(16000, fs=96000),
    _limited(4000, 1.055754),
    _limited(4000, 1.087457),
    _limited(4000, 1 / 1.087457),
    _limited(20000, 1.055754, fs=44100),
    _limited(20000, 1 / 1.087457, fs=44100),
    _attenuated(HALF),
    _attenuated(1.2943741),
    _attenuated(1 / 1.2943741),
    _attenuated(1.8817277),
    _trial(
        BURST,
        published(
            "LZFmax", read("lzfmax_4000hz_db"), -1.0, "dB", 0.12, "IEC 61672-1:2013, Table 4"
        ),
        published(
            "LZSmax", read("lzsmax_4000hz_db"), -7.4, "dB", 0.12, "IEC 61672-1:2013, Table 4"
        ),
        Requirement("LZeq", read("lzeq_4000hz_db"), 10 * log10(0.4), "dB", 0.02, "definition"),
    ),
    _trial(
        THEN_SILENCE,
        published("LZF falls by", _falls("fast", 1000, 1.2, 1.7), 34.7, "dB/s", 0.1, DECAY),
        published("LZS falls by", _falls("slow", 1000, 1.2, 2.2), 4.34, "dB/s", 0.01, DECAY),
    ),
    _trial(NOISE, Requirement("LZeq at 1000 Hz", above(1000, 200), OF_NOISE, "dB", 0.2, BANDWIDTH)),
)
