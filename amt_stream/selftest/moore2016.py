"""Checks of binaural loudness (ISO 532-3:2023)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from amt_stream.engine.signals import Ear, Tone
from amt_stream.scales import sone_to_phon
from amt_stream.selftest.check import Reading, Sound, Trial, published

PRINTED = "ISO 532-3:2023, Annex C (as transcribed in jmrplens/phonometry)"
FORMULA = "ISO 532-3:2023, clause 7; Moore et al. 2018, JASA 143:1504"
CALCULATED = "independent implementations, tests/data/tvl_cases.json"
PLAIN = "independent calculation, tests/data/independent_loudness.py"
LINEAR = {"fs": 32000, "ear_filter": "linear"}
"""The reference mode, in which what is calculated is held to 0.03 %, or 0.004 phon."""

MAX_STL, MAX_LTL = "max short-term", "max long-term"


def highest(name: str) -> Callable[[Any], float]:
    """The maximum of a field."""
    return lambda y: np.max(getattr(y, name))


def highest_phon(name: str, edition: str = "iso532-3") -> Callable[[Any], float]:
    """The maximum of a field as a loudness level."""
    return lambda y: sone_to_phon(np.max(getattr(y, name)), edition)


def falls_in(name: str, start: int, stop: int) -> Callable[[Any], float]:
    """Time constant in ms of a field that falls exponentially from one frame to another."""

    def of(y: Any) -> float:
        values = getattr(y, name)
        return float((stop - start) / np.log(values[start] / values[stop]))

    return of


def tone(f: float, level_db: float, duration: float = 0.35, **more: Any) -> Tone:
    """A tone with ramps of 20 ms unless told otherwise."""
    return Tone(f, level_db=level_db, duration=duration, **({"ramp": 0.02} | more))


def short(words: str, *tones: Tone) -> Sound:
    """Tones within 0.4 s: short-term loudness settles in them."""
    return Sound(words, 0.4, tones)


def annex_c(f: float, level_db: float, *others: float, ear: Ear = "both") -> Sound:
    """Tones of one level, 1.5 s with ramps of 100 ms."""
    words = ", ".join(f"{hz:g}" for hz in (f, *others)) + f" Hz, {level_db:g} dB SPL"
    tones = tuple(tone(hz, level_db, 1.5, ramp=0.1, ear=ear) for hz in (f, *others))
    return Sound(words + ("" if ear == "both" else f", {ear} ear"), 1.5, tones)


def burst(ms: int, ramp: float = 0.002) -> Sound:
    """1 kHz at 60 dB SPL after 0.1 s, and 0.4 s of silence."""
    seconds = ms / 1000
    on = (tone(1000, 60, seconds, start=0.1, ramp=ramp),)
    return Sound(f"1000 Hz, 60 dB SPL, {ms} ms", 0.5 + seconds, on)


def printed(sone: float, percent: float = 4.0) -> Reading:
    """As printed, some with two digits; 4 % is half a phon."""
    return published(MAX_LTL, highest("ltl"), sone, "sone", percent, PRINTED, "%")


def calculated(
    what: str,
    of: Callable[[Any], float],
    expected: float,
    source: str = PLAIN,
    percent: float = 0.03,
) -> Reading:
    """A loudness in sone that nobody has printed."""
    return Reading(what, of, expected, "sone", percent, source, scale="%")


max_stl = partial(calculated, MAX_STL, highest("stl"))
max_ltl = partial(calculated, MAX_LTL, highest("ltl"))


def phon(expected: float) -> Reading:
    """The scale of Table 5, at a maximum that is printed to 0.01 phon."""
    of = highest_phon("ltl")
    return Reading(MAX_LTL + " level", of, expected, "phon", 0.01, CALCULATED)


def trial(sound: Sound, *readings: Reading, **options: Any) -> Trial:
    return Trial("moore2016", sound, readings, LINEAR | options)


ONSET = Sound("1000 Hz, 60 dB SPL, 500 ms", 1.5, (tone(1000, 60, 0.5, ramp=0.005, start=0.2),))
TURNS = Sound(
    "1000 Hz, 70 dB SPL, left ear, then right",
    0.8,
    (
        tone(1000, 70, 0.3, ear="left"),
        tone(1000, 70, 0.3, start=0.3, ear="right"),
    ),
)
APART = short("250 Hz left, 3150 Hz right, 60 dB SPL", tone(250, 60, ear="left"))
APART = replace(APART, components=(*APART.components, tone(3150, 60, ear="right")))

CHECKS = (
    trial(annex_c(1000, 40), printed(1.0, 0.5), max_stl(1.00049, CALCULATED), phon(40.01)),
    trial(annex_c(1000, 20), printed(0.14), phon(19.98)),
    trial(annex_c(1000, 60), printed(4.1), max_ltl(4.10963, CALCULATED)),
    trial(annex_c(1000, 80), printed(15.4), phon(79.84), max_stl(15.2402, CALCULATED)),
    trial(annex_c(3000, 40), printed(1.9)),
    trial(annex_c(3000, 80), printed(26.4)),
    trial(
        annex_c(4000, 40),
        published(MAX_LTL + " level", highest_phon("ltl"), 48.9, "phon", 1.0, PRINTED),
    ),
    trial(annex_c(1500, 60, 1600, 1700), printed(6.36), max_ltl(6.34933, CALCULATED)),
    trial(annex_c(1000, 40, ear="left"), printed(0.54), field="eardrum"),
    trial(annex_c(1000, 60, ear="left"), printed(2.3), field="eardrum"),
    trial(burst(10), max_stl(2.14664, CALCULATED), max_ltl(0.52637, CALCULATED)),
    trial(burst(100), max_stl(4.18112, CALCULATED), max_ltl(2.46333, CALCULATED)),
    trial(
        ONSET,
        max_stl(4.11022, CALCULATED),
        max_ltl(4.07402, CALCULATED),
        published("short-term falls in", falls_in("stl", 800, 1000), 29.8, "ms", 0.2, FORMULA),
        published("long-term falls in", falls_in("ltl", 1100, 1450), 751, "ms", 1.0, FORMULA),
    ),
    trial(TURNS, max_stl(5.26486, CALCULATED), max_ltl(8.25155, CALCULATED)),
    trial(short("63 Hz, 70 dB SPL", tone(63, 70)), max_stl(1.26505)),
    trial(short("8000 Hz, 60 dB SPL", tone(8000, 60)), max_stl(2.07114)),
    trial(short("3000 Hz, 60 dB SPL, diffuse", tone(3000, 60)), max_stl(6.86297), field="diffuse"),
    trial(short("1000 Hz, 3 dB SPL", tone(1000, 3)), max_stl(0.00238179)),
    trial(short("1000 Hz, 112 dB SPL", tone(1000, 112)), max_stl(161.168)),
    trial(
        short("80 to 4050 Hz, 60 dB SPL", *(tone(f, 60) for f in (80, 500, 1250, 2540, 4050))),
        max_stl(19.4356),
    ),
    trial(APART, max_stl(6.40955)),
)
