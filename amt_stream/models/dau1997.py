"""The auditory model of Dau, Kollmeier & Kohlrausch (1997)."""

from typing import ClassVar

import torch

from amt_stream.models.auditory import Arguments, ModulationModel
from amt_stream.models.by_filters import ByFilters
from amt_stream.models.fused import FusedChain
from amt_stream.stages.adaptation import AdaptLoop
from amt_stream.stages.gammatone import GammatoneFilterbank
from amt_stream.stages.hair_cell import IHCEnvelope
from amt_stream.stages.modulation import ModulationFilterbank
from amt_stream.streaming import Stage


class Dau1997(ModulationModel, FusedChain):
    """Sound (..., time), RMS 1 at 100 dB SPL, to modulation filters, one list entry per band.

    Gammatone filters, hair cells, adaptation loops with overshoot limit 10, and modulation filters
    up to 150 Hz (Dau, Puschel & Kohlrausch 1996; Dau, Kollmeier & Kohlrausch 1997).

    fs: sampling rate in Hz
    flow, fhigh: lowest and highest center in Hz; bands about 1 ERB apart
    filterbank_kwargs, ...: arguments of the stages that replace those above

    Causal, of latency 0; the group delay of its filters is part of the model. Raises ValueError for
    what a stage refuses.
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
        common = {"fs": fs, "learnable": learnable, "dtype": dtype}
        bands = {"fc": (flow, fhigh), **common, **(filterbank_kwargs or {})}
        filterbank = GammatoneFilterbank(**bands)
        hair_cells = {"method": "dau1996", **common, **(ihc_kwargs or {})}
        loops = {"preset": "dau1997", **common, **(adaptation_kwargs or {})}
        filters = {"preset": "dau1997", **common, **(modulation_kwargs or {})}
        stages: dict[str, Stage] = {
            "filterbank": filterbank,
            "ihc": IHCEnvelope(**hair_cells),
            "adaptation": AdaptLoop(**loops),
            "modulation": ModulationFilterbank(fc=filterbank.design("centers"), **filters),
        }
        super().__init__(fs, learnable, return_stages, dtype, stages)
