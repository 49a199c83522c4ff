"""Checks of the roughness of ECMA-418-2:2025."""

from functools import partial
from typing import Any

from amt_stream.meters.rows.models.ecma418 import ROUGHNESS
from amt_stream.meters.signals import Tone
from amt_stream.offline.selftest import ecma418
from amt_stream.offline.selftest.requirement import Requirement, published, read

PROGRAMS = "two other programs, tests/data/ecma418_2_roughness.json"
R = read("ecma_roughness_r10_asper")


def rate(y: Any) -> float:
    """The modulation rate of the roughest band in Hz, at the end."""
    return float(y.values.hz[0, -1])


def _r(asper: float) -> Requirement:
    return Requirement("R", R, asper, "asper", 2.0, PROGRAMS, scale="%")


def _hz(hz: float) -> Requirement:
    return Requirement("modulation rate", rate, hz, "Hz", 0.002, "the rate of the sound")


UNIT = published("R", R, 1.0, "asper", 1.0, ecma418.DEFINITION, "%")

STEADY = Requirement(
    "highest R", read("ecma_roughness_max_asper"), 0.0, "asper", 0.0, "a steady tone is not rough"
)

# Modulated so little that the noise reduction passes a part of it.
NOISY = (
    *(3000, 3207, 3355, 3614, 3769, 3877, 4137, 4365, 4624, 4806, 5050, 5374, 5653, 5888),
    *(6161, 6495, 6739, 7136, 7433, 7869, 8098, 8583, 8987, 9441, 9795, 10338, 10865),
    *(11351, 11841),
)

_at = ecma418.calculated_at(ROUGHNESS, "asper", 0.1, ecma418.PLAIN_MODULATION)
# Blocks begin at other samples.
_at_44100 = ecma418.calculated_at(ROUGHNESS, "asper", 0.5, ecma418.PLAIN_MODULATION)
# Envelopes of an end are not those of analytic signals.
_after_end = ecma418.calculated_at(ROUGHNESS, "asper", 1.5, ecma418.PLAIN_MODULATION)
_tone = partial(ecma418.unramped, "ecma_roughness", duration=1.2)

CHECKS = (
    _tone(1000, 60, UNIT, _hz(70), modulation=70),
    _tone(250, 60, _r(0.47395), _hz(40), modulation=40),
    _tone(500, 60, _r(0.62751), _hz(50), modulation=50),
    _tone(4000, 60, _r(0.54036), _hz(100), modulation=100),
    _tone(1000, 60, STEADY),
    _tone(1000, 60, _r(1.0048), modulation=70, field="diffuse"),
    _tone(1000, 60, UNIT, modulation=70, fs=44100),
    _tone(8000, 60, _at(0.1680015, 0.6), modulation=30),
    # Of one band, the amplitude is just above the least one.
    _tone(8000, 26.5, _at(0.04897928, 0.6), _hz(70), modulation=70),
    ecma418.tones(
        "ecma_roughness",
        "29 tones, 3 to 11.8 kHz, 45 dB SPL each, modulated by 20 %, 70 Hz",
        1.2,
        (Tone(f, level_db=45, modulation=70, depth=0.2) for f in NOISY),
        _at(0.2030408, 0.8),
    ),
    ecma418.tones(
        "ecma_roughness",
        "500, 850, 2500, 7000 Hz, 55 dB SPL each, modulated by 38, 45, 63, 111 Hz, 0.7 s",
        1.6,
        (
            Tone(f, level_db=55, modulation=hz, duration=0.7)
            for f, hz in ((500, 38), (850, 45), (2500, 63), (7000, 111))
        ),
        _at(0.5829167, 0.14),
        _at(0.07526688, 0.5, 5),
        _at(0.1195052, 0.5, 8),
        _at(0.04636402, 0.5, 20.5),
        _after_end(0.4193743, 1.4),
    ),
    # The weaker modulation is just strong enough to count, in its own band or beside the other.
    ecma418.tones(
        "ecma_roughness",
        "1000 Hz, 60 and 47.1 dB SPL, fully modulated by 45 and 90 Hz",
        1.2,
        (Tone(1000, level_db=60, modulation=45), Tone(1000, level_db=47.1, modulation=90)),
        _at(0.6967978, 0.6),
    ),
    ecma418.tones(
        "ecma_roughness",
        "1000 and 6000 Hz, 60 and 29.2 dB SPL, fully modulated by 70 and 110 Hz",
        1.2,
        (Tone(1000, level_db=60, modulation=70), Tone(6000, level_db=29.2, modulation=110)),
        _at(1.004305, 0.6),
    ),
    _tone(1000, 20, _at_44100(0.1384559, 0.8), modulation=50, fs=44100),
)
