"""Meters: what accumulates over frames, without torch and without threads."""

from amt_stream.metering.extremes import Event, Events, Hold, Maximum, TimeAbove
from amt_stream.metering.histogram import Histogram, RollingHistogram
from amt_stream.metering.loudness import LoudnessMeter

__all__ = [
    "Event",
    "Events",
    "Histogram",
    "Hold",
    "LoudnessMeter",
    "Maximum",
    "RollingHistogram",
    "TimeAbove",
]
