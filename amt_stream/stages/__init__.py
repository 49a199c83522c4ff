"""Stages, one file per place on the auditory path."""

from amt_stream.stages.adaptation import AdaptLoop
from amt_stream.stages.binaural import (
    BinauralInhibition,
    Moore2016BinauralLoudness,
    SpatialSmoothing,
)
from amt_stream.stages.bs1770 import BS1770, BS1770Output
from amt_stream.stages.compression import BrokenStickCompression, PowerCompression
from amt_stream.stages.drnl import DRNLFilterbank, FastDRNLFilterbank
from amt_stream.stages.ear import EarFilter
from amt_stream.stages.excitation import Excitation
from amt_stream.stages.excitation_level import (
    ERBIntegration,
    ExcitationPattern,
    Moore2016ExcitationPattern,
)
from amt_stream.stages.filters import ButterworthFilter, IIRFilter, SOSFilter
from amt_stream.stages.gain import Gain
from amt_stream.stages.gammatone import GammatoneFilterbank
from amt_stream.stages.hair_cell import IHCEnvelope, IHCPaulick2024
from amt_stream.stages.integration import (
    LoudnessIntegration,
    Moore2016AGC,
    Moore2016TemporalIntegration,
)
from amt_stream.stages.loudness import (
    BinauralLoudness,
    Glasberg2002Output,
    MonauralLoudness,
    Moore2016Output,
)
from amt_stream.stages.microphone import MicrophoneCorrection
from amt_stream.stages.modulation import (
    FastKing2019ModulationFilterbank,
    FastModulationFilterbank,
    King2019ModulationFilterbank,
    ModulationFilterbank,
)
from amt_stream.stages.modulation_spectrum import ModulationRms
from amt_stream.stages.narrow_band import NarrowBandOutput, NarrowBandSpectrum
from amt_stream.stages.outer_middle_ear import (
    HeadphoneFilter,
    MiddleEarFilter,
    OuterMiddleEarFilter,
)
from amt_stream.stages.resample import Resample
from amt_stream.stages.sharpness import Sharpness
from amt_stream.stages.sound_level import SoundLevel, SoundLevelOutput
from amt_stream.stages.specific_loudness import Moore2016SpecificLoudness, SpecificLoudness
from amt_stream.stages.spectrum import RunningSpectrum
from amt_stream.stages.third_octave import BandsOutput, Octaves, ThirdOctaves
from amt_stream.stages.zwicker import (
    CoreLoudness,
    ThirdOctaveLevels,
    ZwickerLoudness,
    ZwickerOutput,
)

__all__ = [
    "BS1770",
    "AdaptLoop",
    "BS1770Output",
    "BandsOutput",
    "BinauralInhibition",
    "BinauralLoudness",
    "BrokenStickCompression",
    "ButterworthFilter",
    "CoreLoudness",
    "DRNLFilterbank",
    "ERBIntegration",
    "EarFilter",
    "Excitation",
    "ExcitationPattern",
    "FastDRNLFilterbank",
    "FastKing2019ModulationFilterbank",
    "FastModulationFilterbank",
    "Gain",
    "GammatoneFilterbank",
    "Glasberg2002Output",
    "HeadphoneFilter",
    "IHCEnvelope",
    "IHCPaulick2024",
    "IIRFilter",
    "King2019ModulationFilterbank",
    "LoudnessIntegration",
    "MicrophoneCorrection",
    "MiddleEarFilter",
    "ModulationFilterbank",
    "ModulationRms",
    "MonauralLoudness",
    "Moore2016AGC",
    "Moore2016BinauralLoudness",
    "Moore2016ExcitationPattern",
    "Moore2016Output",
    "Moore2016SpecificLoudness",
    "Moore2016TemporalIntegration",
    "NarrowBandOutput",
    "NarrowBandSpectrum",
    "Octaves",
    "OuterMiddleEarFilter",
    "PowerCompression",
    "Resample",
    "RunningSpectrum",
    "SOSFilter",
    "Sharpness",
    "SoundLevel",
    "SoundLevelOutput",
    "SpatialSmoothing",
    "SpecificLoudness",
    "ThirdOctaveLevels",
    "ThirdOctaves",
    "ZwickerLoudness",
    "ZwickerOutput",
]
