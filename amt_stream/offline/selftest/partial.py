"""Checks of partial loudness. No listening data with numbers is public."""

from dataclasses import dataclass

import numpy as np
import torch

from amt_stream.dsp.models.partial import PartialLoudnessSteady, partial_loudness_from_lines
from amt_stream.dsp.streaming import Stage
from amt_stream.meters.signals import Noise
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import MAX_STL, Requirement, calculated, read
from amt_stream.offline.selftest.sounds import ComponentSound, tone

EQUATIONS = "independent calculation of Moore, Glasberg & Baer (1997), tests/data/partial.json"


@dataclass(frozen=True)
class LinesInNoise:
    """A tone in noise of a line each 10 Hz, from 505 to 1495 Hz, without any windows.

    n0_db: level of the noise per hertz
    """

    f: float
    level_db: float
    n0_db: float

    @property
    def words(self) -> str:
        return (
            f"spectral line, {self.f:g} Hz, {self.level_db:g} dB SPL, in noise of "
            f"{self.n0_db:g} dB per hertz"
        )


def lines_in_noise(model: Stage, sound: LinesInNoise) -> PartialLoudnessSteady:
    hz = np.arange(505.0, 1500.0, 10.0)
    noise_db = torch.full((1, hz.size), sound.n0_db + 10, dtype=torch.float64)
    level = torch.tensor([[sound.level_db]], dtype=torch.float64)
    return partial_loudness_from_lines(level, [sound.f], noise_db, hz)


def _lines(f: float, level_db: float, n0_db: float, sone: float, over_db: float) -> Trial:
    readings = (
        calculated("partial", lambda y: float(y.partial), sone, EQUATIONS, 0.5),
        Requirement("audible", lambda y: float(y.audible_db), over_db, "dB", 0.02, EQUATIONS),
    )
    return Trial(
        "partial",
        LinesInNoise(f, level_db, n0_db),
        readings,
        {"fs": 32000},
        directly=lines_in_noise,
    )


IN_NOISE = ComponentSound(
    "1000 Hz, 75 dB SPL, and in the other channel noise of 40 dB per hertz, 500 to 1500 Hz",
    3.0,
    (
        tone(1000, 75, 3.0, ear="left"),
        Noise(level_db=70.0, low=500.0, high=1500.0, seed=1, ear="right"),
    ),
)

CHECKS = (
    _lines(1000, 40, 20, 0.0508571, 2.1203),
    _lines(1000, 70, 40, 2.33982, 11.507),
    _lines(1000, 80, 40, 10.266, 21.289),
    Trial(
        "partial",
        ComponentSound("1000 Hz, 60 dB SPL, in silence", 0.6, (tone(1000, 60, 0.6, ear="left"),)),
        (calculated(MAX_STL, read("partial_max_stl_sone"), 4.09582, percent=0.05),),
    ),
    Trial(
        "partial",
        IN_NOISE,
        (
            # Windows smear the tone, which costs a decibel.
            Requirement("audible", read("audible_n50_db"), 16.4, "dB", 2.0, EQUATIONS),
            Requirement("audible at", read("audible_hz"), 1000.0, "Hz", 60.0, EQUATIONS),
        ),
    ),
)
