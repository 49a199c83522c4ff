"""Readings that are still shown although nothing has renewed them for long."""

from collections.abc import Mapping
from typing import Any

OLD_S = 10.0
"""Age from which on a tone is old: a spectrum takes 3 s."""

AGE, OF_TONES = "tone_age_s", ("tone_", "kt_")
"""The column of that age, and how the names of readings begin that are as old."""


def old_words(reading: str, values: Mapping[str, Any]) -> str:
    """How old a reading is, as "12 s old"; "" unless it is old."""
    age_s = values.get(AGE)
    if age_s is None or age_s < OLD_S or not reading.startswith(OF_TONES):
        return ""
    return f"{age_s:.0f} s old"
