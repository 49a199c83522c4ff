"""Checks of binaural loudness (ISO 532-3:2023)."""

from amt_stream.meters.signals import Ear
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import (
    BRIEF,
    MAX_LTL,
    Requirement,
    calculated,
    falls_in,
    max_ltl,
    max_stl,
    published,
    read,
)
from amt_stream.offline.selftest.sounds import (
    ComponentSound,
    burst,
    short,
    steady,
    together,
    tone,
    tone_in_pascal,
)

PRINTED = "ISO 532-3:2023, Annex C (as transcribed in jmrplens/phonometry)"
FORMULA = "ISO 532-3:2023, clause 7; Moore et al. 2018, JASA 143:1504"
CASES = "independent implementations, tests/data/tvl_cases.json"


def annex_c(f: float, level_db: float, *others: float, ear: Ear = "both") -> ComponentSound:
    """Tones of one level, 1.5 s with ramps of 100 ms."""
    words = ", ".join(f"{hz:g}" for hz in (f, *others)) + f" Hz, {level_db:g} dB SPL"
    tones = tuple(tone(hz, level_db, 1.5, ramp=0.1, ear=ear) for hz in (f, *others))
    return ComponentSound(words + ("" if ear == "both" else f", {ear} ear"), 1.5, tones)


def _printed(sone: float, percent: float = 4.0) -> Requirement:
    """A printed loudness, some with two digits; 4 % is half a phon."""
    return published(MAX_LTL, read("max_ltl_sone"), sone, "sone", percent, PRINTED, "%")


def _phon(expected: float) -> Requirement:
    """A loudness level on the scale of Table 5."""
    of = read("max_ltl_phon")
    return Requirement(MAX_LTL + " level", of, expected, "phon", 0.01, CASES)


def _trial(sound: ComponentSound, *readings: Requirement, **options: object) -> Trial:
    """A trial in the reference mode, whose latency is longer, unless the options differ."""
    return Trial("moore2016", sound, readings, {"fs": 32000, "ear_filter": "linear"} | options)


ONSET = ComponentSound(
    "1000 Hz, 60 dB SPL, 500 ms", 1.5, (tone(1000, 60, 0.5, ramp=0.005, start=0.2),)
)
TURNS = ComponentSound(
    "1000 Hz, 70 dB SPL, left ear, then right",
    0.8,
    (tone(1000, 70, 0.3, ear="left"), tone(1000, 70, 0.3, start=0.3, ear="right")),
)
# As far apart as binaural inhibition extends.
APART = short(
    "60 dB SPL, 250 Hz left, 3150 Hz right", tone(250, 60, ear="left"), tone(3150, 60, ear="right")
)
# 0.1 dB above the level that the other ear's tone would suppress.
UNEQUAL = short(
    "95 dB SPL, 1000 Hz left, 45.17 dB SPL, 4000 Hz right",
    tone(1000, 95, ear="left"),
    tone(4000, 45.17, ear="right"),
)

CHECKS = (
    _trial(tone_in_pascal(1000, 0.002, 1.5), _printed(1.0, 0.5), fs=48000, ear_filter="mixed"),
    _trial(tone_in_pascal(1000, 0.002, 1.5), _printed(1.0, 0.5), fs=44100, ear_filter="mixed"),
    _trial(annex_c(1000, 20), _printed(0.14), _phon(19.98)),
    _trial(annex_c(1000, 40), _printed(1.0, 0.5), max_stl(1.00049, CASES), _phon(40.006)),
    _trial(annex_c(1000, 60), _printed(4.1), max_ltl(4.10963, CASES)),
    _trial(annex_c(1000, 80), _printed(15.4), max_stl(15.2402, CASES), _phon(79.845)),
    _trial(annex_c(3000, 40), _printed(1.9)),
    _trial(annex_c(3000, 80), _printed(26.4)),
    _trial(
        annex_c(4000, 40),
        published(MAX_LTL + " level", read("max_ltl_phon"), 48.9, "phon", 1.0, PRINTED),
    ),
    _trial(annex_c(1500, 60, 1600, 1700), _printed(6.36), max_ltl(6.34933, CASES)),
    _trial(annex_c(1000, 40, ear="left"), _printed(0.54), field="eardrum"),
    _trial(annex_c(1000, 60, ear="left"), _printed(2.3), field="eardrum"),
    _trial(burst(10), max_stl(2.14664, CASES), max_ltl(0.52637, CASES)).not_as(cd=BRIEF),
    _trial(burst(100), max_stl(4.18112, CASES), max_ltl(2.46333, CASES)),
    _trial(
        ONSET,
        max_stl(4.11022, CASES),
        max_ltl(4.07402, CASES),
        published("short-term falls in", falls_in("stl", 0.8, 1.0), 29.8, "ms", 0.2, FORMULA),
        published("long-term falls in", falls_in("ltl", 1.1, 1.45), 751, "ms", 1.0, FORMULA),
    ),
    _trial(TURNS, max_stl(5.26486, CASES), max_ltl(8.25155, CASES)),
    _trial(steady(63, 70), max_stl(1.26505)),
    _trial(steady(8000, 60), max_stl(2.07114)),
    _trial(steady(3000, 60), max_stl(6.86297), field="diffuse"),
    _trial(steady(1000, 3), max_stl(0.00238202)),
    _trial(steady(1000, 112), max_stl(161.168)),
    # Near the threshold level of a component.
    _trial(steady(1000, -20.88), max_stl(9.15873e-10, percent=2.0)),
    _trial(steady(1000, -20.96), max_stl(6.59044e-11, percent=2.0)),
    # At the flattest slopes of masking.
    _trial(steady(1000, 145), max_stl(1783.2190, percent=0.001)),
    _trial(steady(14900, 80), max_stl(1.42302)),
    _trial(together((80, 500, 1250, 2540, 4050), 60), max_stl(19.4356)),
    _trial(APART, max_stl(6.40955)),
    _trial(
        UNEQUAL,
        calculated("right ear at 330 ms", lambda y: y.values.stl_ears[1, y.frame(0.33)], 0.153588),
        field="eardrum",
    ),
    _trial(annex_c(1000, 40), max_ltl(0.99898, CASES, 0.1), constants="author"),
    _trial(steady(63, 70), max_stl(1.2638), constants="author"),
    _trial(annex_c(1000, 80), max_ltl(15.24017, CASES, 0.3), accuracy="coarse"),
    # Each component separately.
    _trial(together((80, 500, 1250, 2540, 4050), 60), max_stl(19.4356), accuracy="reference"),
    _trial(steady(1000, 145), max_stl(1783.2190, percent=0.001), accuracy="reference"),
)
