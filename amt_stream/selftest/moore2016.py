"""Checks of binaural loudness (ISO 532-3:2023)."""

from functools import partial
from typing import Any

from amt_stream.selftest.check import Trial
from amt_stream.selftest.requirement import (
    Requirement,
    calculated,
    falls_in,
    highest,
    highest_phon,
    published,
)
from amt_stream.selftest.sounds import Sound, burst, in_pascal, short, steady, together, tone
from amt_stream.signals import Ear

PRINTED = "ISO 532-3:2023, Annex C (as transcribed in jmrplens/phonometry)"
FORMULA = "ISO 532-3:2023, clause 7; Moore et al. 2018, JASA 143:1504"
CASES = "independent implementations, tests/data/tvl_cases.json"
MAX_STL, MAX_LTL = "max short-term", "max long-term"

max_stl = partial(calculated, MAX_STL, highest("stl"))
max_ltl = partial(calculated, MAX_LTL, highest("ltl"))


def annex_c(f: float, level_db: float, *others: float, ear: Ear = "both") -> Sound:
    """Tones of one level, 1.5 s with ramps of 100 ms."""
    words = ", ".join(f"{hz:g}" for hz in (f, *others)) + f" Hz, {level_db:g} dB SPL"
    tones = tuple(tone(hz, level_db, 1.5, ramp=0.1, ear=ear) for hz in (f, *others))
    return Sound(words + ("" if ear == "both" else f", {ear} ear"), 1.5, tones)


def printed(sone: float, percent: float = 4.0) -> Requirement:
    """As printed, some with two digits; 4 % is half a phon."""
    return published(MAX_LTL, highest("ltl"), sone, "sone", percent, PRINTED, "%")


def phon(expected: float) -> Requirement:
    """The scale of Table 5."""
    of = highest_phon("ltl")
    return Requirement(MAX_LTL + " level", of, expected, "phon", 0.01, CASES)


def trial(sound: Sound, *readings: Requirement, **options: Any) -> Trial:
    """In the reference mode, whose latency is longer, unless the options say otherwise."""
    return Trial("moore2016", sound, readings, {"fs": 32000, "ear_filter": "linear"} | options)


ONSET = Sound("1000 Hz, 60 dB SPL, 500 ms", 1.5, (tone(1000, 60, 0.5, ramp=0.005, start=0.2),))
TURNS = Sound(
    "1000 Hz, 70 dB SPL, left ear, then right",
    0.8,
    (tone(1000, 70, 0.3, ear="left"), tone(1000, 70, 0.3, start=0.3, ear="right")),
)
# As far apart as one ear inhibits the other.
APART = short(
    "60 dB SPL, 250 Hz left, 3150 Hz right",
    tone(250, 60, ear="left"),
    tone(3150, 60, ear="right"),
)
# 0.1 dB above what the other ear's tone would drop.
UNEQUAL = short(
    "95 dB SPL, 1000 Hz left, 45.17 dB SPL, 4000 Hz right",
    tone(1000, 95, ear="left"),
    tone(4000, 45.17, ear="right"),
)

CHECKS = (
    trial(in_pascal(1000, 0.002, 1.5), printed(1.0, 0.5), fs=48000, ear_filter="minimum"),
    trial(in_pascal(1000, 0.002, 1.5), printed(1.0, 0.5), fs=44100, ear_filter="minimum"),
    trial(annex_c(1000, 20), printed(0.14), phon(19.98)),
    trial(annex_c(1000, 40), printed(1.0, 0.5), max_stl(1.00049, CASES), phon(40.006)),
    trial(annex_c(1000, 60), printed(4.1), max_ltl(4.10963, CASES)),
    trial(annex_c(1000, 80), printed(15.4), max_stl(15.2402, CASES), phon(79.845)),
    trial(annex_c(3000, 40), printed(1.9)),
    trial(annex_c(3000, 80), printed(26.4)),
    trial(
        annex_c(4000, 40),
        published(MAX_LTL + " level", highest_phon("ltl"), 48.9, "phon", 1.0, PRINTED),
    ),
    trial(annex_c(1500, 60, 1600, 1700), printed(6.36), max_ltl(6.34933, CASES)),
    trial(annex_c(1000, 40, ear="left"), printed(0.54), field="eardrum"),
    trial(annex_c(1000, 60, ear="left"), printed(2.3), field="eardrum"),
    trial(burst(10), max_stl(2.14664, CASES), max_ltl(0.52637, CASES)),
    trial(burst(100), max_stl(4.18112, CASES), max_ltl(2.46333, CASES)),
    trial(
        ONSET,
        max_stl(4.11022, CASES),
        max_ltl(4.07402, CASES),
        published("short-term falls in", falls_in("stl", 800, 1000), 29.8, "ms", 0.2, FORMULA),
        published("long-term falls in", falls_in("ltl", 1100, 1450), 751, "ms", 1.0, FORMULA),
    ),
    trial(TURNS, max_stl(5.26486, CASES), max_ltl(8.25155, CASES)),
    trial(steady(63, 70), max_stl(1.26505)),
    trial(steady(8000, 60), max_stl(2.07114)),
    trial(steady(3000, 60), max_stl(6.86297), field="diffuse"),
    trial(steady(1000, 3), max_stl(0.00238179)),
    trial(steady(1000, 112), max_stl(161.168)),
    # Next to where a component reaches the level below which nothing is heard.
    trial(steady(1000, -20.88), max_stl(9.15873e-10, percent=2.0)),
    trial(steady(1000, -20.96), max_stl(6.59044e-11, percent=2.0)),
    # The slopes of masking are at their flattest.
    trial(steady(1000, 145), max_stl(1783.2015, percent=0.001)),
    trial(steady(14900, 80), max_stl(1.42302)),
    trial(together((80, 500, 1250, 2540, 4050), 60), max_stl(19.4356)),
    trial(APART, max_stl(6.40955)),
    trial(
        UNEQUAL,
        calculated("right ear at 330 ms", lambda y: y.stl_ears[1, 330], 0.153588),
        field="eardrum",
    ),
    trial(annex_c(1000, 40), max_ltl(0.99898, CASES, 0.1), constants="author"),
    trial(steady(63, 70), max_stl(1.2638), constants="author"),
    trial(annex_c(1000, 80), max_ltl(15.24017, CASES, 0.3), accuracy="coarse"),
    # Each component by itself.
    trial(together((80, 500, 1250, 2540, 4050), 60), max_stl(19.4356), accuracy="reference"),
    trial(steady(1000, 145), max_stl(1783.2015, percent=0.001), accuracy="reference"),
)
