"""Auditory filterbanks and scales, under their torch_amt module name.

`MultiResolutionFFT` and `Moore2016Spectrum` are absent: they need the whole signal. Use the
streaming `amt_stream.RunningSpectrum`.
"""

from amt_stream.dsp.scales import audfiltbw, erb2fc, erbrate2f, erbspacebw, f2erb, f2erbrate, fc2erb
from amt_stream.dsp.stages import (
    DRNLFilterbank,
    ERBIntegration,
    ExcitationPattern,
    FastDRNLFilterbank,
    GammatoneFilterbank,
    Moore2016ExcitationPattern,
)

__all__ = [
    "DRNLFilterbank",
    "ERBIntegration",
    "ExcitationPattern",
    "FastDRNLFilterbank",
    "GammatoneFilterbank",
    "Moore2016ExcitationPattern",
    "audfiltbw",
    "erb2fc",
    "erbrate2f",
    "erbspacebw",
    "f2erb",
    "f2erbrate",
    "fc2erb",
]
