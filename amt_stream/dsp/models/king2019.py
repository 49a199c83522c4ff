"""The auditory model of King, Varnet & Lorenzi (2019)."""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.models.auditory import Arguments, AuditoryModel, make_stage
from amt_stream.dsp.scales import erb2fc, fc2erb
from amt_stream.dsp.stages.compression import BrokenStickCompression, PowerCompression
from amt_stream.dsp.stages.filters import ButterworthFilter
from amt_stream.dsp.stages.gammatone import GammatoneFilterbank
from amt_stream.dsp.stages.hair_cell import IHCEnvelope
from amt_stream.dsp.stages.modulation import King2019ModulationFilterbank
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.streaming import Stage

COMPRESSIONS: dict[str, Any] = {"brokenstick": BrokenStickCompression, "power": PowerCompression}


class King2019(AuditoryModel):
    """Sound (..., time), RMS 1 at 100 dB SPL, to modulation filters (..., time, band, modulation).

    Gammatone filters, compression, hair cells, a high-pass in place of adaptation, and modulation
    filters of constant Q (King, Varnet & Lorenzi 2019). A stream gives (..., band, modulation,
    time).

    fs: sampling rate in Hz
    flow, fhigh: lowest and highest center frequency in Hz, bands about 1 ERB apart
    basef: center of five bands 1 ERB apart, which replace those
    compression_type: "brokenstick" or "power", with exponent `compression_n` and knee
        `compression_knee_db`, where RMS 1 is `dboffset` dB
    adt_hp_fc, adt_hp_order: of the high-pass, in Hz
    mflow, mfhigh, modbank_nmod, modbank_qfactor: of `King2019ModulationFilterbank`
    lp_150hz: adds a first-order low-pass at 150 Hz before the modulation filters
    subfs: output rate in Hz, by a causal filter whose delay is in `latency`
    filterbank_kwargs, ...: arguments of the stages, overriding those above

    Raises ValueError for an unknown compression_type and if a stage refuses its arguments.
    """

    _shown: ClassVar = {
        "filterbank": "gtone_response",
        "compression": "compressed_response",
        "ihc": "ihc",
        "adaptation_filter": "adapted_response",
    }
    _centered = "filterbank"
    # Four time constants of the slowest modulation filter, 2 Hz wide.
    settle_s = 1.0

    filterbank: GammatoneFilterbank
    modulation_filterbank: King2019ModulationFilterbank

    def __init__(
        self,
        fs: float,
        flow: float = 80.0,
        fhigh: float = 8000.0,
        basef: float | None = None,
        compression_type: str = "brokenstick",
        compression_n: float | Tensor = 0.3,
        compression_knee_db: float = 30.0,
        dboffset: float = 100.0,
        adt_hp_fc: float = 3.0,
        adt_hp_order: int = 1,
        mflow: float = 2.0,
        mfhigh: float = 150.0,
        modbank_nmod: int | None = None,
        modbank_qfactor: float = 1.0,
        lp_150hz: bool = False,
        subfs: int | None = None,
        learnable: bool = False,
        return_stages: bool = False,
        dtype: torch.dtype = torch.float32,
        filterbank_kwargs: Arguments = None,
        compression_kwargs: Arguments = None,
        ihc_kwargs: Arguments = None,
        adaptation_kwargs: Arguments = None,
        modulation_kwargs: Arguments = None,
    ) -> None:
        if compression_type not in COMPRESSIONS:
            raise ValueError(
                f"King2019: compression_type is {compression_type!r}: give "
                f"{' or '.join(COMPRESSIONS)}"
            )
        fc: Any = (flow, fhigh)
        if basef is not None:
            fc = torch.tensor(erb2fc(fc2erb(basef) + np.arange(-2.0, 3.0)))
        common: dict[str, Any] = {"fs": fs, "learnable": learnable, "dtype": dtype}
        knee = {"knee_db": compression_knee_db, "dboffset": dboffset, "channel_dim": -2}
        compression = {**knee, "exponent": compression_n, "learnable": learnable}
        high_pass = {"order": adt_hp_order, "cutoff": adt_hp_fc, "btype": "high", **common}
        bank = {"mflow": mflow, "mfhigh": mfhigh, "qfactor": modbank_qfactor, "nmod": modbank_nmod}
        compressor = COMPRESSIONS[compression_type]
        stages: dict[str, Stage] = {
            "filterbank": make_stage(GammatoneFilterbank, filterbank_kwargs, fc=fc, **common),
            "compression": make_stage(compressor, compression_kwargs, **compression),
            "ihc": make_stage(IHCEnvelope, ihc_kwargs, method="king2019", **common),
            "adaptation_filter": make_stage(ButterworthFilter, adaptation_kwargs, **high_pass),
        }
        if lp_150hz:
            stages["lp150_filter"] = ButterworthFilter(order=1, cutoff=150.0, **common)
        stages["modulation_filterbank"] = make_stage(
            King2019ModulationFilterbank, modulation_kwargs, **bank, **common
        )
        if subfs is not None:
            stages["decimator"] = Resample(int(fs), subfs)
        super().__init__(fs, learnable, return_stages, dtype, stages)
        if not lp_150hz:
            self.lp150_filter = None
        self.subfs = subfs

    @property
    def mfc(self) -> Tensor:
        """Center frequencies of the modulation filters in Hz (modulation,)."""
        return self.modulation_filterbank.mfc

    def documented(self, y: Tensor) -> Tensor:
        return y.movedim(-1, -3)
