"""What was wrong with the sound in the history, when, and what that means for its readings."""

from typing import NamedTuple

from amt_stream.meters.frames import Fault
from amt_stream.meters.rows import FAULT_WORDS


class PlotState(NamedTuple):
    """A state of the sound in a plot over time.

    word: on screens
    sign: the key in `SIGNS` of its color and its shape; "" for a state that needs no strip
    about: what it means for the curves, and what to do
    missing: whether nothing was measured, which is hatched
    """

    word: str
    sign: str
    about: str
    missing: bool = False


GAP = PlotState("gap", "samples lost", "Sound is missing: nothing was measured.", True)
SILENT = PlotState(
    FAULT_WORDS[Fault.SILENT],
    "silent",
    "The device gave exact zeros, which are no sound: nothing was measured.",
    True,
)
OFF = PlotState(
    FAULT_WORDS[Fault.OFF],
    "too slow",
    "The computer was too slow for this model: measure with fewer models, or close other programs.",
    True,
)
PAUSED = PlotState("not counted", "paused", "Averages and maxima stood still.")
STARTING = PlotState(
    "settling", "settling", "The readings still remember the silence before the start."
)
SETTLING = PlotState(
    "settling",
    "settling",
    "The grey curve still remembers a gap in the sound, another fault or a reset of the filters; "
    "it does not count in averages and maxima.",
)
BELOW = PlotState("below range", "", "All curves are below the lowest value of the axis.")
OF_FAULT = {
    Fault.NON_FINITE: PlotState(
        FAULT_WORDS[Fault.NON_FINITE],
        "bad samples",
        "The input gave samples that are not numbers: 0 stands for them.",
    ),
    Fault.CLIP: PlotState(
        FAULT_WORDS[Fault.CLIP],
        "clipped",
        "The input was at full scale, and readings are at least so high: turn the input down.",
    ),
    Fault.STALL: PlotState(
        FAULT_WORDS[Fault.STALL],
        "stalled",
        "The input stalled; what came late does not count in averages and maxima.",
    ),
    Fault.OVERLOAD: PlotState(
        FAULT_WORDS[Fault.OVERLOAD],
        "too slow",
        "The computer does not keep up: measure with fewer models, or close other programs.",
    ),
}
"""States in which there is sound, from the worst one on."""
