"""The auditory model of Osses Vecchi & Kohlrausch (2021)."""

from typing import ClassVar

import torch

from amt_stream.models.auditory import Arguments, ModulationModel
from amt_stream.stages.adaptation import AdaptLoop
from amt_stream.stages.gammatone import GammatoneFilterbank
from amt_stream.stages.hair_cell import IHCEnvelope
from amt_stream.stages.modulation import ModulationFilterbank
from amt_stream.stages.outer_middle_ear import HeadphoneFilter, MiddleEarFilter
from amt_stream.streaming import Stage


class Osses2021(ModulationModel):
    """Sound (..., time), RMS 1 at 100 dB SPL, to modulation filters, one list entry per band.

    Headphones on the ear, the middle ear of Jepsen et al. (2008) at gain 1, gammatone filters, hair
    cells after Breebaart et al. (2001), adaptation loops with overshoot limit 5, and modulation
    filters after Jepsen et al. (2008) (Osses Vecchi & Kohlrausch 2021).

    Arguments as of `Dau1997`; phase_type: of the ear filters, "minimum", which delays nothing, or
    "linear". `latency` holds their delay. Unlike `torch_amt` it is causal and gives as many samples
    as it takes.
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
        common = {"fs": fs, "learnable": learnable, "dtype": dtype}
        ear = {"phase_type": phase_type, **common}
        bands = {"fc": (flow, fhigh), **common, **(filterbank_kwargs or {})}
        filterbank = GammatoneFilterbank(**bands)
        middle_ear = {"filter_type": "jepsen2008", **ear, **(middleear_kwargs or {})}
        hair_cells = {"method": "breebaart2001", **common, **(ihc_kwargs or {})}
        loops = {"preset": "osses2021", **common, **(adaptation_kwargs or {})}
        filters = {"preset": "jepsen2008", **common, **(modulation_kwargs or {})}
        stages: dict[str, Stage] = {
            "headphone": HeadphoneFilter(**{**ear, **(headphone_kwargs or {})}),
            "middleear": MiddleEarFilter(**middle_ear),
            "filterbank": filterbank,
            "ihc": IHCEnvelope(**hair_cells),
            "adaptation": AdaptLoop(**loops),
            "modulation": ModulationFilterbank(fc=filterbank.design("centers"), **filters),
        }
        super().__init__(fs, learnable, return_stages, dtype, stages)
