"""The auditory model of Dau, Kollmeier & Kohlrausch (1997)."""

from typing import Any, ClassVar

import torch

from amt_stream.dsp.models.auditory import Arguments, ModulationModel, make_stage
from amt_stream.dsp.models.by_filters import ByFilters
from amt_stream.dsp.models.fused import FusedChain
from amt_stream.dsp.stages.adaptation import AdaptLoop
from amt_stream.dsp.stages.gammatone import GammatoneFilterbank
from amt_stream.dsp.stages.hair_cell import IHCEnvelope
from amt_stream.dsp.stages.modulation import ModulationFilterbank
from amt_stream.dsp.streaming import Stage


class Dau1997(ModulationModel, FusedChain):
    """Sound (..., time), RMS 1 at 100 dB SPL, to modulation filters, one list entry per band.

    Gammatone filters, hair cells, adaptation loops with overshoot limit 10, and modulation filters
    up to 150 Hz (Dau, Puschel & Kohlrausch 1996; Dau, Kollmeier & Kohlrausch 1997).

    fs: sampling rate in Hz
    flow, fhigh: lowest and highest center frequency in Hz; bands about 1 ERB apart
    filterbank_kwargs, ...: arguments of the stages, overriding those above

    Causal, with latency 0; its filters' group delay is part of the model. Raises ValueError if a
    stage refuses its arguments.
    """

    fused = ByFilters

    _shown: ClassVar = {"filterbank": "filterbank", "ihc": "ihc", "adaptation": "adaptation"}
    # Four time constants of the slowest adaptation loop.
    settle_s = 2.0

    def __init__(
        self,
        fs: float,
        flow: float = 80.0,
        fhigh: float = 8000.0,
        learnable: bool = False,
        return_stages: bool = False,
        dtype: torch.dtype = torch.float32,
        filterbank_kwargs: Arguments = None,
        ihc_kwargs: Arguments = None,
        adaptation_kwargs: Arguments = None,
        modulation_kwargs: Arguments = None,
    ) -> None:
        common: dict[str, Any] = {"fs": fs, "learnable": learnable, "dtype": dtype}
        bands = make_stage(GammatoneFilterbank, filterbank_kwargs, fc=(flow, fhigh), **common)
        filters = {"fc": bands.design("centers"), "preset": "dau1997", **common}
        stages: dict[str, Stage] = {
            "filterbank": bands,
            "ihc": make_stage(IHCEnvelope, ihc_kwargs, method="dau1996", **common),
            "adaptation": make_stage(AdaptLoop, adaptation_kwargs, preset="dau1997", **common),
            "modulation": make_stage(ModulationFilterbank, modulation_kwargs, **filters),
        }
        super().__init__(fs, learnable, return_stages, dtype, stages)
