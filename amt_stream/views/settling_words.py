"""Why a reading is settling, in words."""

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
