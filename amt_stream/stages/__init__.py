"""Stages, one file per place on the auditory path."""

from amt_stream.stages.ear import EarFilter
from amt_stream.stages.excitation import Excitation
from amt_stream.stages.loudness import BinauralLoudness, LoudnessOutput
from amt_stream.stages.resample import Resample
from amt_stream.stages.spectrum import RunningSpectrum

__all__ = [
    "BinauralLoudness",
    "EarFilter",
    "Excitation",
    "LoudnessOutput",
    "Resample",
    "RunningSpectrum",
]
