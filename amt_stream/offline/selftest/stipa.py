"""Checks of the speech transmission index."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.scales import P0
from amt_stream.dsp.stipa_signal import DEPTH, LEVELS_DB, MODULATIONS, OCTAVES
from amt_stream.meters.accumulators.sti import sti
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import Requirement, published, read

PAIRS = "IEC 60268-16, A.2.2, as published by two programs"
UNIFORM = "IEC 60268-16, of one modulation transfer everywhere"
CARRIERS = "IEC 60268-16, C.3.2: modulated sines at the midband frequencies"
DECAY = "m = 1 / sqrt(1 + (2 pi f T60 / 13.8155)^2)"
LEVEL = "masking and threshold of IEC 60268-16, calculated"
SECONDS = 17.0
LEVEL_DB = 70.0


@dataclass(frozen=True)
class Matrix:
    """Modulation transfer values that no sound has."""

    words: str
    m: NDArray[np.float64]
    level_db: Sequence[float] | None = None


def _given(words: str, m: Any, value: float, source: str, level_db: Any = None) -> Trial:
    reading = published("STI", float, value, "", 0.0005, source)
    if level_db is not None:
        reading = Requirement("STI", float, value, "", 1e-5, source)
    return Trial(
        "stipa",
        Matrix(words, np.asarray(m, np.float64), level_db),
        (reading,),
        directly=lambda _, given: sti(given.m, given.level_db)[0],
    )


def _pair(k: int, value: float) -> Trial:
    m = np.zeros((7, 2))
    m[k : k + 2] = 1
    return _given(f"full transfer at {OCTAVES[k]} and {OCTAVES[k + 1]} Hz", m, value, PAIRS)


def _levels(overall_db: float) -> list[float]:
    """Levels of the octaves of the test signal."""
    total = 10 * log10(sum(10 ** (level / 10) for level in LEVELS_DB))
    return [level + overall_db - total for level in LEVELS_DB]


@dataclass(frozen=True)
class ModulatedTones:
    """Tones at the midband frequencies, modulated as the test signal and then as by a hall.

    m: modulation transfer everywhere, or of a decay by 60 dB in `t60` seconds
    """

    words: str
    m: float = 1.0
    t60: float = 0.0
    duration: float = SECONDS

    def samples(self, fs: int) -> NDArray[np.float64]:
        """Pascal (channel, time)."""
        t = np.arange(round(self.duration * fs)) / fs
        sound = np.zeros(t.size)
        for octave, modulations, level_db in zip(
            OCTAVES, MODULATIONS, _levels(LEVEL_DB), strict=True
        ):
            phases = [2 * np.pi * f * self.t60 / 13.8155 for f in modulations]
            slow, fast = (
                self.m / np.sqrt(1 + p * p) * np.sin(2 * np.pi * f * t - np.arctan(p))
                for f, p in zip(modulations, phases, strict=True)
            )
            envelope = np.sqrt(np.maximum(0.0, 1 + DEPTH * (slow - fast)))
            peak = np.sqrt(2) * P0 * 10 ** (level_db / 20)
            sound += peak * envelope * np.sin(2 * np.pi * octave * t)
        return sound[None]


def _tones(sound: ModulatedTones, m: NDArray[np.float64], source: str) -> Trial:
    value, _ = sti(m, _levels(LEVEL_DB))
    readings = (
        Requirement("STI", read("sti_total"), value, "", 0.005, source),
        Requirement("m at 2 kHz", read("m1_2000"), float(m[4, 0]), "", 0.005, source),
        Requirement("level", read("leq_500_db"), _levels(LEVEL_DB)[2], "dB", 0.1, "the sound"),
    )
    return Trial("stipa", sound, readings)


def _reverberant(t60: float) -> NDArray[np.float64]:
    return np.asarray(1 / np.sqrt(1 + (2 * np.pi * np.array(MODULATIONS) * t60 / 13.8155) ** 2))


CHECKS = (
    *(_pair(k, one) for k, one in enumerate((0.127, 0.279, 0.398, 0.531, 0.486, 0.302))),
    _given("transfer 0.20076 everywhere", np.full((7, 2), 0.20076), 0.3, UNIFORM),
    _given("transfer 0.79924 everywhere", np.full((7, 2), 0.79924), 0.7, UNIFORM),
    _given("the signal at 40 dB SPL", np.ones((7, 2)), 0.87551, LEVEL, _levels(40)),
    _given("the signal at 60 dB SPL", np.ones((7, 2)), 0.98919, LEVEL, _levels(60)),
    _tones(ModulatedTones("tones of half the depth", m=0.5), np.full((7, 2), 0.5), CARRIERS),
    _tones(ModulatedTones("tones, decay of 2 s", t60=2.0), _reverberant(2.0), DECAY),
)
