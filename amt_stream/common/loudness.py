"""Loudness, under its torch_amt module name."""

from amt_stream.dsp.scales import gaindb
from amt_stream.dsp.stages import (
    BinauralInhibition,
    BrokenStickCompression,
    LoudnessIntegration,
    Moore2016AGC,
    Moore2016BinauralLoudness,
    Moore2016SpecificLoudness,
    Moore2016TemporalIntegration,
    PowerCompression,
    SpatialSmoothing,
    SpecificLoudness,
)

__all__ = [
    "BinauralInhibition",
    "BrokenStickCompression",
    "LoudnessIntegration",
    "Moore2016AGC",
    "Moore2016BinauralLoudness",
    "Moore2016SpecificLoudness",
    "Moore2016TemporalIntegration",
    "PowerCompression",
    "SpatialSmoothing",
    "SpecificLoudness",
    "gaindb",
]
