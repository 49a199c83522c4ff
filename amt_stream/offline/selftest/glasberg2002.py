"""Checks of loudness after Glasberg & Moore (2002) and ANSI S3.4-2007."""

from dataclasses import dataclass
from functools import partial

import torch

from amt_stream.dsp.models.glasberg2002 import glasberg2002_from_lines
from amt_stream.dsp.streaming import Stage
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import (
    BRIEF,
    MAX_LTL,
    MAX_STL,
    Requirement,
    calculated,
    falls_in,
    published,
    read,
)
from amt_stream.offline.selftest.sounds import (
    ComponentSound,
    burst,
    steady,
    together,
    tone,
    tone_in_pascal,
)

ANSI = "ANSI S3.4-2007, {} (as transcribed in deeuu/loudness)"
PAPER = "Glasberg & Moore 2002, JAES 50:331"

max_stl = partial(calculated, MAX_STL, read("gm2002_max_stl_sone"))
max_ltl = partial(calculated, MAX_LTL, read("gm2002_max_ltl_sone"))


@dataclass(frozen=True)
class SpectralLine:
    """A tone as one spectral line, without any windows."""

    f: float
    level_db: float

    @property
    def words(self) -> str:
        return f"spectral line, {self.f:g} Hz, {self.level_db:g} dB SPL"


def from_lines(model: Stage, line: SpectralLine) -> float:
    """Loudness in sone of a steady sound."""
    level = torch.tensor([[line.level_db]], dtype=torch.float64)
    return glasberg2002_from_lines(level, [line.f]).n.item()


def _printed(f: float, level_db: float, sone: float, where: str, percent: float = 0.5) -> Trial:
    """A row of a table, or an example of two or three digits."""
    reading = published("N", float, sone, "sone", percent, ANSI.format(where), "%")
    return Trial(
        "gm2002", SpectralLine(f, level_db), (reading,), {"fs": 32000}, directly=from_lines
    )


def _trial(sound: ComponentSound, *readings: Requirement, **options: object) -> Trial:
    """A trial in the reference mode, unless the options differ."""
    return Trial("gm2002", sound, readings, {"fs": 32000, "ear_filter": "linear"} | options)


ONSET = ComponentSound(
    "1000 Hz, 60 dB SPL, 500 ms", 1.5, (tone(1000, 60, 0.5, ramp=0.005, start=0.2),), 1
)

CHECKS = (
    _printed(1000, 15, 0.070, "Table 7"),
    _printed(1000, 35, 0.662, "Table 7"),
    _printed(1000, 55, 2.970, "Table 7"),
    _printed(1000, 75, 11.326, "Table 7"),
    _printed(1000, 95, 48.242, "Table 7"),
    _printed(1000, 115, 227.855, "Table 7"),
    _printed(3000, 60, 7.1, "example 2", 1.0),
    _printed(100, 50, 0.345, "example 4", 1.5),
    _trial(
        tone_in_pascal(1000, 0.002, 1.0, channels=1),
        published(
            MAX_STL, read("gm2002_max_stl_sone"), 0.997, "sone", 0.5, ANSI.format("Table 7"), "%"
        ),
        fs=48000,
        ear_filter="mixed",
    ),
    _trial(steady(1000, 20, 1), max_stl(0.136992)),
    _trial(
        steady(1000, 40, 1),
        max_stl(0.996712),
        # Between the rows of 35 phon, 0.662 sone, and 40 phon, 0.997 sone.
        published(
            MAX_STL + " level",
            read("gm2002_max_stl_phon"),
            39.996,
            "phon",
            0.01,
            ANSI.format("Table 7"),
        ),
    ),
    _trial(steady(1000, 60, 1), max_stl(4.09582)),
    _trial(steady(1000, 80, 1), max_stl(15.1995)),
    _trial(burst(10, 0.005, 1), max_stl(1.43822), max_ltl(0.430203)).not_as(cd=BRIEF),
    _trial(burst(100, 0.005, 1), max_stl(4.04126), max_ltl(2.41778)),
    _trial(
        ONSET,
        max_stl(4.0959),
        max_ltl(4.06049),
        published("short-term falls in", falls_in("stl", 0.8, 1.0), 49.5, "ms", 0.3, PAPER),
        published("long-term falls in", falls_in("ltl", 1.2, 1.45), 1999.5, "ms", 5.0, PAPER),
    ),
    _trial(steady(63, 70, 1), max_stl(1.2692)),
    _trial(steady(8000, 60, 1), max_stl(2.0637)),
    _trial(steady(3000, 60, 1), max_stl(6.84041), field="diffuse"),
    _trial(steady(1000, 3, 1), max_stl(0.00236391)),
    _trial(steady(1000, 112, 1), max_stl(160.991)),
    # Near the threshold level of a component.
    _trial(steady(1000, -20.96, 1), max_stl(8.66751e-10, percent=2.0)),
    _trial(steady(1000, -21.05, 1), max_stl(6.20088e-11, percent=2.0)),
    # At the flattest slopes of masking.
    _trial(steady(1000, 145, 1), max_stl(1776.2366, percent=0.001)),
    _trial(steady(14900, 80, 1), max_stl(1.41736)),
    _trial(together((80, 500, 1250, 2540, 4050), 60, 1), max_stl(19.3758)),
    # Each component separately.
    _trial(together((80, 500, 1250, 2540, 4050), 60, 1), max_stl(19.3758), accuracy="reference"),
    _trial(steady(1000, 145, 1), max_stl(1776.2366, percent=0.001), accuracy="reference"),
)
