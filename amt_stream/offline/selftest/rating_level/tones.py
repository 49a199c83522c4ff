"""Checks of the audibility of tones."""

from math import log10
from typing import Any

import numpy as np
import torch

from amt_stream.dsp.functional.rating.tones import critical_band, masking_index
from amt_stream.dsp.scales import P0
from amt_stream.dsp.stages.rating import ToneAudibility, a_weights
from amt_stream.meters.signals import Noise, Tone
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import Requirement, published, read
from amt_stream.offline.selftest.sounds import ComponentSound

ANNEX_E = "ISO/PAS 20065:2016, Annex E"
METHOD = "ISO/PAS 20065, of the level of the tone and the noise per hertz"
TABLE = "ISO 1996-2:2017, Table J.1"

LINE_HZ, FIRST = 44100 / 16384, 36
LEVELS_DB = (
    *(49.4, 50.68, 50.09, 53.37, 44.47, 50.91, 51.41, 59.4, 64.54, 57.57, 51.02, 50.76, 59.93),
    *(62.94, 58.49, 65.87, 62.66, 50.25, 51.32, 52.3, 52.58, 53.15, 67.04, 67.27, 57.4, 57.17),
    *(52.56, 51.39, 52.49, 47.68, 51.26, 49.03, 61.42, 59.52, 48.43, 50.84, 48.2, 55.95),
)
"""The printed lines, from 96.9 Hz to 196.5 Hz."""

NOISE_DB, LOW_HZ, HIGH_HZ = 20.0, 20.0, 7000.0
"""Level of the noise per hertz, and its band."""


class Lines:
    """A spectrum that no sound has."""

    words = "the printed spectrum, 38 lines"


def _found(_: Any, __: Any) -> Any:
    stage = ToneAudibility(LINE_HZ * np.arange(FIRST, FIRST + len(LEVELS_DB))).double()
    power = P0**2 * 10 ** (torch.tensor(LEVELS_DB, dtype=torch.float64) / 10)
    return stage(power[None])


def expected_db(f: float, level_db: float) -> float:
    """Audibility of a tone in the noise; the levels of the noise are A-weighted line by line."""
    low, width = critical_band(f)
    weights_db = 10 * np.log10(a_weights(np.array([f, *np.linspace(low, low + width, 200)])))
    mean_db = 10 * log10(np.mean(10 ** (weights_db[1:] / 10)))
    noise_db = mean_db + NOISE_DB + 10 * log10(width)
    return float(level_db + weights_db[0] - noise_db - masking_index(f))


def noisy(*tones: Tone, duration: float, seed: int = 1) -> ComponentSound:
    """Tones in white noise of 20 dB per hertz."""
    level_db = NOISE_DB + 10 * log10(HIGH_HZ - LOW_HZ)
    noise = Noise(level_db=level_db, low=LOW_HZ, high=HIGH_HZ, seed=seed)
    listed = ", ".join(f"{one.frequency:g} Hz, {one.level_db:g} dB SPL" for one in tones)
    words = f"{listed or 'nothing'} in white noise of {NOISE_DB:g} dB per hertz"
    return ComponentSound(words, duration, (noise, *tones), 1)


def _tone(f: float, level_db: float, kt_db: float) -> Trial:
    readings = (
        Requirement("ΔL", read("tone_mean_dl_db"), expected_db(f, level_db), "dB", 0.8, METHOD),
        Requirement("frequency", read("tone_hz"), f, "Hz", 2.0, METHOD),
        Requirement("K_T", read("kt_db"), kt_db, "dB", 0.001, TABLE),
    )
    sound = noisy(Tone(f, level_db=level_db), duration=12.0)
    return Trial("tonal_audibility", sound, readings)


def _level(y: Any) -> float:
    return float(y.level[0])


CHECKS = (
    Trial(
        "tonal_audibility",
        Lines(),
        (published("LT of three tones", _level, 72.15, "dB", 0.01, ANNEX_E),),
        directly=_found,
    ),
    _tone(250, 45, 4),
    _tone(500, 50, 5),
    _tone(2000, 60, 6),
    Trial(
        "tonal_audibility",
        noisy(duration=9.5),
        (Requirement("K_T", read("kt_db"), 0.0, "dB", 0.001, TABLE),),
    ),
)
