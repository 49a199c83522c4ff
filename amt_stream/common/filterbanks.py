"""Auditory filterbanks and scales, by the name of their module in torch_amt.

`MultiResolutionFFT` and `Moore2016Spectrum`, which need the end of a sound, are not offered:
`amt_stream.RunningSpectrum` takes a sound as it comes.
"""

from amt_stream.dsp.scales import (
    audfiltbw,
    erb2fc,
    erbrate2f,
    erbspacebw,
    f2erb,
    f2erbrate,
    fc2erb,
)
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
