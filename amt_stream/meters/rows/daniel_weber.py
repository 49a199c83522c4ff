"""Readings of roughness after Daniel & Weber (1997)."""

from amt_stream.meters.accumulators.ecma418 import Metric
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows.ecma418 import MetricReadings, Shown

SHOWN = Shown(
    "daniel_weber",
    Metric("r", "asper", 10, 0.1),
    "roughness",
    "asper",
    0.11,
    "How rough the sound is at this moment, as fast modulation makes it: a tone of 1 kHz and 60 "
    "dB, fully modulated by 70 Hz, has 1 asper.",
    "The mean of all that was counted.",
    ("r10", "max"),
    binaural=False,
    fields=("r", "specific"),
    method="After Daniel & Weber (1997).",
)


class DanielWeberReadings(MetricReadings):
    """Of `DanielWeber`: statistics of the windows within the sound.

    The edge of a sound in a window would read as rough: the model has it for steady sounds.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, SHOWN)

    def tail(self, frames: Frames) -> None:
        pass
