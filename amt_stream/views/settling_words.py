"""Why a reading is settling, or how old it is, in words."""

from collections.abc import Mapping
from typing import Any

SETTLING = "settling"
AFTER_GAP = "settling after a gap"
AGAIN = "settling again"
UNCOUNTED = AFTER_GAP, AGAIN
"""Averages and maxima leave out readings that settle for these reasons."""

ABOUT = {
    SETTLING: "It still remembers the silence before the start.",
    AGAIN: "It still remembers a fault, a reset of the filters or another calibration, and does "
    "not count in averages and maxima: it can be above the highest value.",
    AFTER_GAP: "It still remembers a gap in the sound, and does not count in averages and maxima: "
    "it can be above the highest value.",
}
"""What each reason means, as sentences."""

OLD_S = 10.0
"""Age from which on a tone is old: a spectrum takes 3 s."""

AGE, OF_TONES = "tone_age_s", ("tone_", "kt_")
"""The column of that age, and how the names of readings begin that are as old."""


def old_words(reading: str, values: Mapping[str, Any]) -> str:
    """How old a reading is, as "12 s old", if nothing has renewed it for long; or ""."""
    age_s = values.get(AGE)
    if age_s is None or age_s < OLD_S or not reading.startswith(OF_TONES):
        return ""
    return f"{age_s:.0f} s old"
