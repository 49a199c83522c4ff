"""Readings of roughness after Daniel & Weber (1997)."""

from amt_stream.meters.frames import Frames
from amt_stream.meters.rows.models.ecma418 import RULE, Metric, MetricReadings, metric_quantity
from amt_stream.meters.rows.models.quantity import Unit

ROUGHNESS = metric_quantity(
    "daniel_weber",
    "r",
    "roughness",
    Unit("asper"),
    0.11,
    "How rough the sound is at this moment, as fast modulation makes it: a tone of 1 kHz and 60 "
    "dB, fully modulated by 70 Hz, has 1 asper.",
    RULE(10, start_s=0.1),
    method="After Daniel & Weber (1997).",
)
METRIC = Metric("r", ROUGHNESS, ("r10", "max"), False, ("r", "specific"))


class DanielWeberReadings(MetricReadings):
    """Of `DanielWeber`: statistics of the windows within the sound.

    The edge of a sound in a window would read as rough: the model has it for steady sounds.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, METRIC)

    def tail(self, frames: Frames) -> None:
        pass
