"""Checks of sound level (IEC 61672-1:2013)."""

from collections.abc import Iterator
from math import exp, log10, sqrt

from amt_stream.dsp.scales import pa_to_db_spl
from amt_stream.meters.signals import Tone
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import Requirement, falls, published, read
from amt_stream.offline.selftest.sounds import ComponentSound

TABLE_3 = "IEC 61672-1:2013, Table 3 (as transcribed in jmrplens/phonometry)"
TABLE_4 = "IEC 61672-1:2013, Table 4"
ANNEX_E = "IEC 61672-1:2013, Annex E, formula"
INTERPOLATED = "independent calculation, with the interpolator of ITU-R BS.1770-5"
DEFINITION = "IEC 61672-1:2013, clause 3"
FORMULA = "IEC 61672-1:2013, formula"
IMPULSE = "IEC 60651:1979, formula"
OWN_RATE = "its tolerance is that of another sampling rate; another check has 44.1 kHz"


def c_weighting(f: float) -> float:
    """C in dB at `f` Hz, as Annex E has it; 0.062 dB of it make 1 kHz 0."""
    return (
        20 * log10(12194.217**2 * f**2 / ((f**2 + 20.598997**2) * (f**2 + 12194.217**2))) + 0.061902
    )


def a_weighting(f: float) -> float:
    """A in dB at `f` Hz, as Annex E has it."""
    more = f**2 / sqrt((f**2 + 107.65265**2) * (f**2 + 737.86223**2))
    return c_weighting(f) - 0.061902 + 20 * log10(more) + 1.999656


def _trial(sound: ComponentSound, *readings: Requirement, fs: int = 48000) -> Trial:
    return Trial("spl", sound, readings, {"fs": fs}, ("lceq_1s_db", "lcf_db", "lzf_db"))


def _weighted(f: float, a: float, c: float, fs: int = 48000, tolerance: float = 0.03) -> Trial:
    """Frequency weightings at a nominal frequency: as printed, and close to their formula."""
    exact = 10 ** (round(10 * log10(f)) / 10)
    tone = Tone(exact, level_db=90.0)
    now_a, now_c = read("laeq_1s_db", 90.0), read("lceq_1s_db", 90.0)
    return _trial(
        ComponentSound(f"{f:g} Hz", 2.0, (tone,), 1),
        published("A", now_a, a, "dB", 0.1, TABLE_3),
        published("C", now_c, c, "dB", 0.1, TABLE_3),
        Requirement("A", now_a, a_weighting(exact), "dB", tolerance, ANNEX_E),
        Requirement("C", now_c, c_weighting(exact), "dB", tolerance, ANNEX_E),
        fs=fs,
    )


def burst_rise(duration: float, constant: float) -> float:
    """Highest level of a burst above that of the steady tone."""
    return 10 * log10(1 - exp(-duration / constant))


def _burst(ms: int, fast: float, slow: float, exposure: float) -> Trial:
    """Of 4 kHz; levels above that of the steady tone."""
    tone = Tone(4000, level_db=90.0, start=0.1, duration=ms / 1000, ramp=0.0)
    seconds, steady = ms / 1000, 90.0 + a_weighting(4000)
    f, s, e = (read(f"{name}_db", steady) for name in ("lafmax", "lasmax", "lae"))
    return _trial(
        ComponentSound(f"4000 Hz, {ms} ms, above the steady tone", 0.5 + seconds, (tone,), 1),
        published("LAFmax", f, fast, "dB", 0.12, TABLE_4),
        published("LASmax", s, slow, "dB", 0.12, TABLE_4),
        published("LAE", e, exposure, "dB", 0.12, TABLE_4),
        Requirement("LAFmax", f, burst_rise(seconds, 0.125), "dB", 0.05, FORMULA),
        Requirement("LASmax", s, burst_rise(seconds, 1.0), "dB", 0.05, FORMULA),
        Requirement(
            "LAImax", read("laimax_db", steady), burst_rise(seconds, 0.035), "dB", 0.05, IMPULSE
        ),
    )


def pascal() -> Iterator[Requirement]:
    """1 Pa is 93.98 dB by definition, its peak 3.01 dB more."""
    for name in ("laf", "lcf", "lzf"):
        yield published(name.upper(), read(f"{name}_db"), 93.98, "dB", 0.01, DEFINITION)
    for name in ("LApeak", "LCpeak", "LZpeak"):
        yield published(name, read(f"{name.lower()}_db"), 96.99, "dB", 0.02, DEFINITION)
    # Between the samples, of which the highest is 96.979 dB.
    yield Requirement("LCpeak", read("lcpeak_db"), 96.995, "dB", 0.005, INTERPOLATED)


ONSET = ComponentSound(
    "1000 Hz, 90 dB SPL, 1 s, then silence", 2.5, (Tone(1000, level_db=90.0, duration=1.0),), 1
)
TWO = ComponentSound(
    "1000 Hz, 80 dB SPL for 3 s, then 60 dB SPL",
    6.0,
    (
        Tone(1000, level_db=80.0, duration=3.0, ramp=0.0),
        Tone(1000, level_db=60.0, start=3.0, duration=3.0, ramp=0.0),
    ),
    1,
)

LAIEQ_OF_TWO = 80 + 10 * log10((3 - 0.035 + 1.5 * (1 - exp(-3 / 1.5))) / 6)
"""Of 80 dB that I rises to and then falls from, in 3 s not as far as 60 dB."""

CHECKS = (
    _trial(
        ComponentSound("1000 Hz, 1 Pa", 2.2, (Tone(1000, level_db=pa_to_db_spl(1.0)),), 1),
        *pascal(),
    ),
    _weighted(25, -44.7, -4.4),
    _weighted(100, -19.1, -0.3),
    _weighted(250, -8.6, 0.0),
    _weighted(630, -1.9, 0.0),
    _weighted(2500, 1.3, -0.3),
    _weighted(10000, -2.5, -4.4),
    _weighted(16000, -6.6, -8.5),
    _weighted(16000, -6.6, -8.5, fs=44100),
    _weighted(12500, -4.3, -6.2, fs=44100, tolerance=0.035),
    _weighted(10000, -2.5, -4.4, fs=32000, tolerance=0.02).not_as(cd=OWN_RATE),
    _weighted(12500, -4.3, -6.2, fs=32000, tolerance=0.02).not_as(cd=OWN_RATE),
    _weighted(16000, -6.6, -8.5, fs=88200, tolerance=0.006).not_as(cd=OWN_RATE),
    _weighted(16000, -6.6, -8.5, fs=96000, tolerance=0.006).not_as(cd=OWN_RATE),
    # A rate that has no filter in store.
    _weighted(10000, -2.5, -4.4, fs=64000),
    _burst(200, -1.0, -7.4, -7.0),
    _burst(10, -11.1, -20.0, -20.0),
    _trial(
        ONSET,
        published(
            "LAF falls by", falls("laf_db", 1.2, 1.7), 34.7, "dB/s", 0.1, "IEC 61672-1:2013, 5.8"
        ),
        published(
            "LAS falls by", falls("las_db", 1.2, 2.2), 4.34, "dB/s", 0.01, "IEC 61672-1:2013, 5.8"
        ),
        published("LAI falls by", falls("lai_db", 1.2, 2.2), 2.9, "dB/s", 0.03, "IEC 60651:1979"),
    ),
    _trial(
        ComponentSound("100 Hz", 2.0, (Tone(100.0, level_db=90.0),), 1),
        published("LCeq less LAeq", read("lceq_minus_laeq_db"), 18.8, "dB", 0.15, TABLE_3),
    ),
    _trial(
        TWO,
        # The second 3 s begin with what is left of the first 80 dB.
        Requirement("LAFT3", read("laft3eq_db"), 80.0, "dB", 0.05, "definition"),
        Requirement("LAFT5", read("laft5eq_db"), 80.0, "dB", 0.05, "definition"),
        Requirement(
            "LAFT3 less LAeq", read("laft3eq_minus_laeq_db"), 2.97, "dB", 0.02, "definition"
        ),
        Requirement("LAIeq", read("laieq_db"), LAIEQ_OF_TWO, "dB", 0.03, IMPULSE),
        Requirement("LAF10", read("l10_db"), 80.0, "dB", 0.05, "definition"),
        Requirement("LAF90", read("l90_db"), 60.0, "dB", 0.05, "definition"),
    ),
)
