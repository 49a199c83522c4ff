"""The auditory model of Osses Vecchi & Kohlrausch (2021)."""

from typing import Any, ClassVar

import torch

from amt_stream.dsp.models.auditory import Arguments, ModulationModel, make_stage
from amt_stream.dsp.stages.adaptation import AdaptLoop
from amt_stream.dsp.stages.gammatone import GammatoneFilterbank
from amt_stream.dsp.stages.hair_cell import IHCEnvelope
from amt_stream.dsp.stages.modulation import ModulationFilterbank
from amt_stream.dsp.stages.outer_middle_ear import HeadphoneFilter, MiddleEarFilter
from amt_stream.dsp.streaming import Stage


class Osses2021(ModulationModel):
    """Sound (..., time), RMS 1 at 100 dB SPL, to modulation filters, one list entry per band.

    Headphone filter, middle ear of Jepsen et al. (2008) with gain 1, gammatone filters, hair cells
    after Breebaart et al. (2001), adaptation loops with overshoot limit 5, and modulation filters
    after Jepsen et al. (2008) (Osses Vecchi & Kohlrausch 2021).

    Arguments are those of `Dau1997`, and phase_type of the ear filters: "minimum" has no delay;
    "linear" has a delay, which is in `latency`. Unlike `torch_amt` it is causal and gives as many
    samples as it takes.
    """

    _shown: ClassVar = {
        name: name for name in ("headphone", "middleear", "filterbank", "ihc", "adaptation")
    }
    settle_s = 2.0

    def __init__(
        self,
        fs: float,
        flow: float = 80.0,
        fhigh: float = 8000.0,
        phase_type: str = "minimum",
        learnable: bool = False,
        return_stages: bool = False,
        dtype: torch.dtype = torch.float32,
        headphone_kwargs: Arguments = None,
        middleear_kwargs: Arguments = None,
        filterbank_kwargs: Arguments = None,
        ihc_kwargs: Arguments = None,
        adaptation_kwargs: Arguments = None,
        modulation_kwargs: Arguments = None,
    ) -> None:
        common: dict[str, Any] = {"fs": fs, "learnable": learnable, "dtype": dtype}
        ear = {"phase_type": phase_type, **common}
        bands = make_stage(GammatoneFilterbank, filterbank_kwargs, fc=(flow, fhigh), **common)
        filters = {"fc": bands.design("centers"), "preset": "jepsen2008", **common}
        stages: dict[str, Stage] = {
            "headphone": make_stage(HeadphoneFilter, headphone_kwargs, **ear),
            "middleear": make_stage(
                MiddleEarFilter, middleear_kwargs, filter_type="jepsen2008", **ear
            ),
            "filterbank": bands,
            "ihc": make_stage(IHCEnvelope, ihc_kwargs, method="breebaart2001", **common),
            "adaptation": make_stage(AdaptLoop, adaptation_kwargs, preset="osses2021", **common),
            "modulation": make_stage(ModulationFilterbank, modulation_kwargs, **filters),
        }
        super().__init__(fs, learnable, return_stages, dtype, stages)
