"""Checks of third-octave levels (IEC 61260-1:2014)."""

from functools import partial
from math import log10, pi, sin
from typing import Any

from amt_stream.dsp.scales import P0, pa_to_db_spl
from amt_stream.meters.signals import Noise, Tone
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.heard import Heard
from amt_stream.offline.selftest.requirement import Of, Requirement, falls, published, read
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


def above(band: float, last: int = 1) -> Of:
    """Level of a band over the last frames, above `LEVEL_DB`."""

    def value(y: Heard) -> float:
        powers = y.values.mean_square[0, y.model.nominal.index(band), -last:]
        return float(10 * log10(powers.mean() / P0**2) - LEVEL_DB)

    return value


def _trial(
    sound: ComponentSound,
    *readings: Requirement,
    model: str = "third_octave",
    fs: int = 48000,
    columns: tuple[str, ...] = (),
) -> Trial:
    return Trial(model, sound, readings, {"fs": fs}, columns)


def band_tone(f: float, duration: float = 0.4) -> ComponentSound:
    on = (Tone(f, level_db=LEVEL_DB, ramp=0.05),)
    return ComponentSound(f"{f:.5g} Hz, {LEVEL_DB:g} dB SPL", duration, on, 1)


def one_pascal(model: str, column: str) -> Trial:
    """The definition of the level."""
    sound = ComponentSound("1000 Hz, 1 Pa", 2.2, (Tone(1000, level_db=pa_to_db_spl(1.0)),), 1)
    of = published("LZF", read(column), 93.98, "dB", 0.01, DEFINITION)
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
    one_pascal("third_octave", "lzf_1000hz_db"),
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
            "LZFmax",
            read("lzfmax_4000hz_db", LEVEL_DB),
            -1.0,
            "dB",
            0.12,
            "IEC 61672-1:2013, Table 4",
        ),
        published(
            "LZSmax",
            read("lzsmax_4000hz_db", LEVEL_DB),
            -7.4,
            "dB",
            0.12,
            "IEC 61672-1:2013, Table 4",
        ),
        Requirement(
            "LZeq", read("lzeq_4000hz_db", LEVEL_DB), 10 * log10(0.4), "dB", 0.02, "definition"
        ),
    ),
    _trial(
        THEN_SILENCE,
        published("LZF falls by", falls("lzf_1000hz_db", 1.2, 1.7), 34.7, "dB/s", 0.1, DECAY),
        published("LZS falls by", falls("lzs_1000hz_db", 1.2, 2.2), 4.34, "dB/s", 0.01, DECAY),
        columns=("lzs_1000hz_db",),
    ),
    _trial(NOISE, Requirement("LZeq at 1000 Hz", above(1000, 200), OF_NOISE, "dB", 0.2, BANDWIDTH)),
)
