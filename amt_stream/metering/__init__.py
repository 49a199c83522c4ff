"""Meters: what accumulates over frames, without torch and without threads."""

from amt_stream.metering.extremes import Event, Events, Hold, Maximum, TimeAbove
from amt_stream.metering.histogram import Histogram, RollingHistogram
from amt_stream.metering.loudness import LoudnessMeter
from amt_stream.metering.percentiles import PERCENTS
from amt_stream.metering.programme import EBU_9, EBU_18, DisplayScale, ProgrammeLoudness
from amt_stream.metering.rolling import RollingLevel
from amt_stream.metering.sharpness import SharpnessMeter
from amt_stream.metering.sound_level import SoundLevelMeter
from amt_stream.metering.third_octave import ThirdOctaveMeter
from amt_stream.metering.zwicker import ZwickerMeter

__all__ = [
    "EBU_9",
    "EBU_18",
    "PERCENTS",
    "DisplayScale",
    "Event",
    "Events",
    "Histogram",
    "Hold",
    "LoudnessMeter",
    "Maximum",
    "ProgrammeLoudness",
    "RollingHistogram",
    "RollingLevel",
    "SharpnessMeter",
    "SoundLevelMeter",
    "ThirdOctaveMeter",
    "TimeAbove",
    "ZwickerMeter",
]
