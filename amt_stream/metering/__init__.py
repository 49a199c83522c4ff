"""Meters: what accumulates over frames, without torch and without threads."""

from amt_stream.metering.extremes import Event, Events, Hold, Maximum, TimeAbove
from amt_stream.metering.histogram import Histogram, RollingHistogram
from amt_stream.metering.loudness import LoudnessMeter
from amt_stream.metering.programme import EBU_9, EBU_18, ProgrammeLoudness, Scale
from amt_stream.metering.sound_level import SoundLevelMeter

__all__ = [
    "EBU_9",
    "EBU_18",
    "Event",
    "Events",
    "Histogram",
    "Hold",
    "LoudnessMeter",
    "Maximum",
    "ProgrammeLoudness",
    "RollingHistogram",
    "Scale",
    "SoundLevelMeter",
    "TimeAbove",
]
