"""Checks of the narrow-band spectrum."""

from math import log10
from typing import Any

from amt_stream.dsp.scales import pa_to_db_spl
from amt_stream.meters.signals import Noise, Tone
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import Of, Requirement, published, read
from amt_stream.offline.selftest.sounds import ComponentSound

HANN = "Harris (1978), Table I, Hann window"
DEFINITION = "IEC 61672-1:2013, clause 3"
DECAY = "IEC 61672-1:2013, 5.8"
TRANSFORM = "definition of the Fourier transform"
OTHER_BINS = "the frequencies of the bins are those of 48 kHz"

LEVEL_DB = 80.0
PASCAL_DB = pa_to_db_spl(1.0)
BIN_HZ = 48_000 / 8192


def at(k: int) -> Of:
    """The level in a bin, at the end."""
    return lambda y: float(y.values.level_db[0, -1, k])


def _falls(k: int, start_s: float, stop_s: float) -> Of:
    """How fast the level in a bin falls, in dB/s."""

    def value(y: Any) -> float:
        start, stop = (y.values.level_db[0, y.frame(s), k] for s in (start_s, stop_s))
        return float((start - stop) / (stop_s - start_s))

    return value


def mean_level(y: Any) -> float:
    """Level of all bins together after 0.8 s, corrected for the bandwidth of the window."""
    power = 10 ** (y.values.level_db[0, y.frame(0.8) + 1 :] / 10)
    return float(10 * log10(power.sum(-1).mean() / 1.5))


def _trial(sound: ComponentSound, *readings: Requirement, fs: int = 48000) -> Trial:
    return Trial("spectrum", sound, readings, {"fs": fs})


def _tone(f: float, level_db: float = LEVEL_DB, words: str = "") -> ComponentSound:
    words = words or f"{f:.6g} Hz, {level_db:g} dB SPL"
    return ComponentSound(words, 1.6, (Tone(f, level_db=level_db),), 1)


def found(f: float, fs: int) -> Trial:
    """A tone between bins: its line stands where it is."""
    return _trial(
        _tone(f),
        Requirement("frequency of the line", read("spectrum_peak_hz"), f, "Hz", 0.01, TRANSFORM),
        Requirement("level of the line", read("spectrum_peak_db"), LEVEL_DB, "dB", 0.01, TRANSFORM),
        fs=fs,
    )


NOISE = ComponentSound(
    "white noise from 100 to 20000 Hz, 80 dB SPL",
    4.0,
    (Noise(low=100, high=20_000, level_db=LEVEL_DB),),
    1,
)
THEN_SILENCE = ComponentSound(
    "1002 Hz, 80 dB SPL, 1 s, then silence",
    2.4,
    (Tone(171 * BIN_HZ, level_db=LEVEL_DB, duration=1.0),),
    1,
)

CHECKS = (
    _trial(
        _tone(171 * BIN_HZ, PASCAL_DB, "1002 Hz, 1 Pa"),
        published("level in its bin", at(171), 93.98, "dB", 0.01, DEFINITION),
        published("more than beside it", lambda y: at(171)(y) - at(172)(y), 6.02, "dB", 0.01, HANN),
    ).not_as(cd=OTHER_BINS),
    _trial(
        _tone(171.5 * BIN_HZ),
        published("level between two bins", at(171), LEVEL_DB - 1.42, "dB", 0.01, HANN),
    ).not_as(cd=OTHER_BINS),
    found(1000.0, 48000),
    found(30.5, 48000),
    found(1000.0, 44100),
    found(15_000.0, 96000),
    _trial(
        THEN_SILENCE, published("level falls by", _falls(171, 1.4, 2.2), 34.7, "dB/s", 0.1, DECAY)
    ),
    _trial(NOISE, published("level of noise", mean_level, LEVEL_DB, "dB", 0.1, HANN)),
)
