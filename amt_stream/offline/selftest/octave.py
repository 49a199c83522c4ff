"""Checks of octave levels (IEC 61260-1:2014)."""

from math import log10, pi, sin

from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import Requirement, published
from amt_stream.offline.selftest.sounds import ComponentSound
from amt_stream.offline.selftest.third_octave import (
    BUTTERWORTH,
    DEFINITION,
    MIDBAND,
    PASCAL,
    TABLE_1,
    above,
    band_readings,
    band_tone,
)

LIMITS = {10**0.0375: (-0.4, 0.5), 10**0.075: (-0.4, 0.7), 10**0.1125: (-0.4, 1.4)}
"""Limits of attenuation in dB, by the ratio of frequency to midband frequency."""


def _trial(sound: ComponentSound, *readings: Requirement, fs: int = 48000) -> Trial:
    return Trial("octave", sound, readings, {"fs": fs}, band_readings)


def _midband(nominal: float, exact: float, fs: int = 48000, duration: float = 0.4) -> Trial:
    """A tone at the midband frequency; its level in the band over the last quarter."""
    of = above(nominal, round(25 * duration))
    name = f"level at {nominal:g} Hz"
    return _trial(
        band_tone(exact, duration),
        published(name, of, 0.0, "dB", 0.4, TABLE_1),
        Requirement(name, of, 0.0, "dB", 0.01, MIDBAND),
        fs=fs,
    )


def _limited(nominal: float, exact: float, place: float, up: bool) -> Trial:
    """A tone within a band, where the attenuation has limits on both sides."""
    least, most = LIMITS[place]
    middle, half = (least + most) / 2, (most - least) / 2
    of = published(f"level at {nominal:g} Hz", above(nominal), -middle, "dB", half, TABLE_1)
    return _trial(band_tone(exact * (place if up else 1 / place)), of)


def _attenuated(nominal: float, exact: float, place: float) -> Trial:
    """A tone outside a band far below the sampling rate, attenuated as by the analog filter."""
    narrowed = 10 ** (0.15 * sin(pi / 8) / (pi / 8))
    aside = (place - 1 / place) / (narrowed - 1 / narrowed)
    expected = -10 * log10(1 + aside**8)
    name = f"level at {nominal:g} Hz"
    of = Requirement(name, above(nominal, 10), expected, "dB", 0.15, BUTTERWORTH)
    return _trial(band_tone(exact * place), of)


CHECKS = (
    _trial(
        PASCAL,
        published("LZF", lambda y: y.reading["lzf_1000hz_db"], 93.98, "dB", 0.01, DEFINITION),
    ),
    _midband(31.5, 10**1.5, duration=4.0),
    _midband(1000, 1000.0),
    _midband(16000, 10**4.2),
    _midband(16000, 10**4.2, fs=44100),
    *(_limited(4000, 10**3.6, place, up) for place in LIMITS for up in (False, True)),
    _attenuated(500, 10**2.7, 10**0.3),
    _attenuated(500, 10**2.7, 10**-0.3),
)
