"""Checks of the prominence of impulses."""

from amt_stream.meters.signals import Tone
from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import Requirement, read
from amt_stream.offline.selftest.sounds import ComponentSound

EXPONENTIAL = "the level F of a step of energy each 20 ms, 3 lg OR + 2 lg LD"


def step(before_db: float, after_db: float) -> ComponentSound:
    """A tone of 1 kHz that grows louder after 2 s."""
    words = f"1000 Hz, {before_db:g} dB SPL, then {after_db:g} dB SPL"
    tones = (
        Tone(1000, level_db=before_db, duration=2.0, ramp=0.0),
        Tone(1000, level_db=after_db, start=2.0, duration=2.0, ramp=0.0),
    )
    return ComponentSound(words, 4.0, tones, 1)


def _step(before_db: float, after_db: float, difference: float, rate: float, ki: float) -> Trial:
    readings = (
        Requirement("LD", read("impulse_ld_db"), difference, "dB", 0.25, EXPONENTIAL),
        Requirement("OR", read("impulse_or_db_s"), rate, "dB/s", 5.0, EXPONENTIAL, scale="%"),
        Requirement("K_I", read("ki_db"), ki, "dB", 0.3, EXPONENTIAL),
        Requirement("begin", read("impulse_s"), 2.0, "s", 0.021, "the sound"),
    )
    return Trial("impulses", step(before_db, after_db), readings)


STEADY = ComponentSound("1000 Hz, 70 dB SPL", 3.0, (Tone(1000, level_db=70.0),), 1)

CHECKS = (
    _step(50, 60, 8.9585, 41.594, 3.1708),
    _step(50, 70, 18.8391, 73.35, 5.6634),
    _step(50, 80, 28.827, 101.186, 7.0829),
    Trial(
        "impulses",
        STEADY,
        (Requirement("K_I", read("ki_db"), 0.0, "dB", 1e-6, "a steady sound has no onset"),),
    ),
)
