"""Checks of programme loudness and true peak (ITU-R BS.1770-5, EBU Tech 3341 and 3342)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.channel_layout import LAYOUTS
from amt_stream.meters.accumulators import ProgrammeLoudness
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.heard import Heard
from amt_stream.offline.selftest.requirement import Of, Requirement, published, read

TECH_3341 = "EBU Tech 3341 (2023), Table 1, case {}"
TECH_3342 = "EBU Tech 3342 (2023), Table 1, case {}"
ITU = "ITU-R BS.1770-5, Annex 1"
PLAIN = "independent calculation, tests/data/independent_programme.py"
PEAKS = "independent calculation from ITU-R BS.1770-5, Annex 2"
COARSE = "at -71 dBFS, a step of 16 bits is a tenth of the peak"


@dataclass(frozen=True)
class Sines:
    """Consecutive sines, in all channels or in some: peak level in dBFS, seconds.

    A level of None is silence; `per_second` is the change of level per second.
    """

    words: str
    steps: Sequence[tuple[float | None, float]]
    frequency: float = 1000.0
    per_second: float = 0.0
    gains: Sequence[float] = (1.0, 1.0)

    def samples(self, fs: int) -> NDArray[np.float64]:
        parts = []
        for level, seconds in self.steps:
            t = np.arange(round(seconds * fs)) / fs
            peak = 0 * t if level is None else 10 ** ((level + self.per_second * t) / 20)
            parts.append(peak * np.sin(2 * np.pi * self.frequency * t))
        return np.outer(self.gains, np.concatenate(parts))


@dataclass(frozen=True)
class High:
    """A sine with a period in samples, faded in and out over 10 ms, in both channels."""

    period: int
    peak: float
    phase_deg: float

    @property
    def words(self) -> str:
        return f"fs/{self.period}, peak {self.peak:g}, {self.phase_deg:g} deg"

    def samples(self, fs: int) -> NDArray[np.float64]:
        n = np.arange(fs // 5)
        fade = np.minimum(1, np.minimum(n, n[::-1]) / (0.01 * fs))
        x = self.peak * np.sin(2 * np.pi * n / self.period + np.deg2rad(self.phase_deg))
        return np.repeat((fade * x)[None], 2, 0)


@dataclass(frozen=True)
class Click:
    """A few samples between silence, in both channels."""

    words: str
    values: Sequence[float]

    def samples(self, fs: int) -> NDArray[np.float64]:
        x = np.zeros(fs // 50)
        x[fs // 100 :][: len(self.values)] = self.values
        return np.repeat(x[None], 2, 0)


def furthest(name: str, start_s: float, expected: float) -> Of:
    """The value that is furthest from the expected one, of a level that must be constant."""

    def value(y: Heard) -> float:
        values = y.rows[name][y.rows["time_s"] >= start_s]
        return float(values[np.argmax(np.abs(values - expected))])

    return value


NOW, ALL = "momentary_lufs", "integrated_lufs"
MAX_M, MAX_S = "max_momentary_lufs", "max_short_term_lufs"
TRUE_PEAK = read("true_peak_dbtp")
WORDS = {NOW: "momentary", ALL: "integrated", MAX_M: "max momentary", MAX_S: "max short-term"}


def ebu(case: str, name: str) -> Requirement:
    return published(WORDS[name], read(name), -23.0, "LUFS", 0.1, TECH_3341.format(case), "LU")


def lra(case: int, expected: float) -> Requirement:
    """A loudness range; the document allows 1 LU."""
    source = TECH_3342.format(case)
    return published("loudness range", read("lra_lu"), expected, "LU", 0.05, source)


def near(name: str, expected: float) -> Requirement:
    """A loudness that is not printed with enough digits."""
    return Requirement(WORDS[name], read(name), expected, "LUFS", 0.003, PLAIN, scale="LU")


def _trial(
    sound: object, *readings: Requirement, layout: str = "stereo", **options: object
) -> Trial:
    return Trial("bs1770", sound, readings, {"fs": 48000, "layout": layout} | options)


def ranged(sound: Sines, expected: float) -> Trial:
    return _trial(sound, Requirement("loudness range", read("lra_lu"), expected, "LU", 0.02, PLAIN))


def _weighted(f: float, expected: float) -> Trial:
    """A full-scale sine in one channel, with K-weighting."""
    sound = Sines(f"{f:g} Hz, 0 dBFS, mono", [(0.0, 1.0)], f, gains=(1.0,))
    return _trial(sound, near(NOW, expected), layout="mono")


def peak(
    case: int, period: int, of_full: float, phase_deg: float, dbtp: float, near_to: float
) -> Trial:
    """A true peak, with the printed tolerance of +0.2 and -0.4 dB."""
    source = TECH_3341.format(case)
    return _trial(
        High(period, of_full, phase_deg),
        published("true peak", TRUE_PEAK, dbtp, "dBTP", 0.2 if case != 17 else 0.4, source, "dB"),
        Requirement("true peak", TRUE_PEAK, near_to, "dBTP", 0.01, PEAKS, scale="dB"),
    )


def made_most(words: str, signs: str, weights: Sequence[float], dbtp: float) -> Trial:
    """Samples with signs and weights for which every tap of a phase adds to its output."""
    values = [
        0.5 * weight * (1 if sign == "+" else -1)
        for sign, weight in zip(signs, weights, strict=True)
    ]
    reading = Requirement("true peak", TRUE_PEAK, dbtp, "dBTP", 2e-5, PEAKS, scale="dB")
    return _trial(Click(words, values[::-1]), reading)


def _in_one(
    position: str, layout: str, expected: float, words: str = "", tolerance: float = 0.01
) -> Trial:
    """A full-scale sine in the channel of one position."""
    gains = [float(one == position) for one in LAYOUTS[layout].split()]
    words = f"997 Hz, 0 dBFS in {words or f'{position} of {layout}'}"
    sound = Sines(words, [(0.0, 1.0)], 997.0, gains=gains)
    reading = published(WORDS[ALL], read(ALL), expected, "LUFS", tolerance, ITU, "LU")
    return _trial(sound, reading, layout=layout)


FIVE = [10 ** (level / 20) for level in (-28, -28, -24, -30, -30)]

CHECKS = (
    _trial(
        Sines("-23 dBFS, 20 s", [(-23, 20)]),
        ebu("1", MAX_M),
        ebu("1", MAX_S),
        ebu("1", ALL),
        published(
            "integrated, about the target",
            lambda y: ProgrammeLoudness().relative(y.read(ALL)),
            0.0,
            "LU",
            0.1,
            TECH_3341.format(1),
        ),
    ),
    _trial(Sines("-26, -20, -26 dBFS", [(-26, 20), (-20, 20.1), (-26, 20)]), ebu("5", ALL)),
    _trial(Sines("five channels", [(0, 20)], gains=FIVE), ebu("6", ALL), layout="5.0"),
    _trial(
        Sines("-20, -30 dBFS in turn, 3 s", [(-20, 1.34), (-30, 1.66)] * 3),
        published(
            "short-term after 3 s",
            furthest("short_term_lufs", 3.0, -23.0),
            -23.0,
            "LUFS",
            0.1,
            TECH_3341.format(9),
            "LU",
        ),
    ),
    _trial(
        Sines("-20, -30 dBFS in turn, 0.4 s", [(-20, 0.18), (-30, 0.22)] * 6),
        published(
            "momentary after 1 s",
            furthest("momentary_lufs", 1.0, -23.0),
            -23.0,
            "LUFS",
            0.1,
            TECH_3341.format(12),
            "LU",
        ),
    ),
    _trial(
        Sines("-23 dBFS, 3 s after 0.04 s", [(None, 0.04), (-23, 3.0), (None, 0.5)]),
        ebu("10", MAX_S),
        near(MAX_S, -22.9933),
    ),
    _trial(
        Sines("-23 dBFS, 0.4 s after 0.04 s", [(None, 0.04), (-23, 0.4), (None, 0.5)]),
        ebu("13", MAX_M),
        near(MAX_M, -22.9936),
    ),
    _trial(Sines("-20, -30 dBFS, 20 s each", [(-20, 20), (-30, 20)]), lra(1, 10.0)),
    _trial(Sines("-40, -20 dBFS, 20 s each", [(-40, 20), (-20, 20)]), lra(3, 20.0)),
    peak(15, 4, 0.5, 0.0, -6.0, -6.021),
    peak(16, 4, 0.5, 45.0, -6.0, -5.975),
    peak(17, 6, 0.5, 60.0, -6.0, -6.314),
    peak(18, 8, 0.5, 67.5, -6.0, -6.028),
    peak(19, 4, 1.41, 45.0, 3.0, 3.03),
    made_most(
        "12 samples for phase 1", "++-+-++-+-+-", 6 * (0.25,) + (1.0,) + 5 * (0.25,), -5.290601
    ),
    made_most("12 samples for phase 2", "-+-+-++-+-+-", 12 * (1.0,), 0.0985756),
    _in_one("L", "5.0", -3.01, "channel 1 of 5", 0.005),
    _in_one("Ls", "5.0", -1.52, "channel 4 of 5"),
    _in_one("Lss", "7.1", -1.52),
    _in_one("Lrs", "7.1", -3.01),
    _in_one("Cs", "6.1", -3.01),
    _in_one("Ltf", "5.1.4", -3.01),
    _weighted(30.0, -12.0051),
    _weighted(100.0, -4.8348),
    _weighted(2000.0, -0.6300),
    _weighted(10000.0, 0.3406),
    _trial(
        Sines("997 Hz, 0 dBFS, mono", [(0.0, 1.0)], 997.0, gains=(1.0,)),
        published(WORDS[ALL], read(ALL), -3.01, "LUFS", 0.01, ITU, "LU"),
        layout="mono",
        fs=44100,
    ),
    # Near the gates: an error of 2 % would gate wrongly.
    _trial(Sines("-69, -71 dBFS, 2 s each", [(-69, 2), (-71, 2)]), near(ALL, -69.0570)).not_as(
        pcm16=COARSE, cd=COARSE
    ),
    _trial(Sines("-20, -32.9 dBFS, 3 s each", [(-20, 3), (-32.9, 3)]), near(ALL, -20.2043)),
    _trial(Sines("-20, -32.7 dBFS, 3 s each", [(-20, 3), (-32.7, 3)]), near(ALL, -22.7764)),
    ranged(Sines("-20, -43.1 dBFS, 6 s each", [(-20, 6), (-43.1, 6)]), 6.2508),
    ranged(Sines("-20, -42.8 dBFS, 6 s each", [(-20, 6), (-42.8, 6)]), 22.8),
    # 125 and 127 values: an error of 2 % moves a percentile to the next value.
    ranged(Sines("-20 dBFS, falling by 2 dB/s, 15.4 s", [(-20, 15.4)], per_second=-2.0), 21.2),
    ranged(Sines("-20 dBFS, falling by 2 dB/s, 15.6 s", [(-20, 15.6)], per_second=-2.0), 21.4),
)
