"""The auditory model of Paulick et al. (2024)."""

from typing import Any, ClassVar

import torch

from amt_stream.core.words import counted
from amt_stream.dsp.contract import whole_hertz
from amt_stream.dsp.models.auditory import Arguments, ModulationModel, make_stage
from amt_stream.dsp.stages.adaptation import AdaptLoop
from amt_stream.dsp.stages.drnl import DRNLFilterbank
from amt_stream.dsp.stages.gain import Gain
from amt_stream.dsp.stages.hair_cell import IHCPaulick2024
from amt_stream.dsp.stages.modulation import ModulationFilterbank
from amt_stream.dsp.stages.outer_middle_ear import OuterMiddleEarFilter
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.streaming import Stage

VELOCITY_PER_PASCAL = 8.235e-9 / (2**0.5 * 20e-6)
"""Peak velocity of the stapes in m/s for a peak of 1 Pa at 1 kHz (Lopez-Poveda & Meddis 2001)."""


class Paulick2024(ModulationModel):
    """Sound pressure (..., time) in pascal to modulation filters at fs / 4, a list entry per band.

    Outer and middle ear, DRNL filters, hair cells, adaptation loops with a minimum for each of 50
    bands, and modulation filters after Jepsen et al. (2008) (Paulick et al. 2024).

    fs: sampling rate in whole hertz, a multiple of 4; the hair cells need 32 kHz or more
    use_outerear: False replaces the outer and middle ear by the gain of the stapes at 1 kHz
    velocity_per_pascal: from pascal after that filter to stapes velocity in m/s. `torch_amt` takes
        pascal for m/s, and bands from 125 Hz, though the 50 minima are for 250 to 8000 Hz

    Each band starts from its own minimum. Causal; `latency` is that of the decimation filter, 120
    dB and linear in phase, plus that of the ear filter. Raises ValueError if a stage refuses its
    arguments, and if the minima do not match the number of bands.
    """

    _shown: ClassVar = {
        "outer_middle_ear": "outerear",
        "drnl": "drnl",
        "ihc": "ihc",
        "adaptation": "adaptation",
        "resampler": "resampled",
    }
    settle_s = 2.0

    def __init__(
        self,
        fs: int = 44100,
        flow: float = 250.0,
        fhigh: float = 8000.0,
        n_channels: int = 50,
        use_outerear: bool = True,
        learnable: bool = False,
        return_stages: bool = False,
        filter_type: str = "efilt",
        dtype: torch.dtype = torch.float32,
        outerear_kwargs: Arguments = None,
        drnl_kwargs: Arguments = None,
        ihc_kwargs: Arguments = None,
        adaptation_kwargs: Arguments = None,
        modulation_kwargs: Arguments = None,
        velocity_per_pascal: float = VELOCITY_PER_PASCAL,
    ) -> None:
        if whole_hertz("Paulick2024", fs) % 4:
            raise ValueError(f"Paulick2024: fs is {fs} Hz: give a multiple of 4, such as 44100")
        common: dict[str, Any] = {"learnable": learnable, "dtype": dtype}
        at_fs = {"fs": fs, **common}
        drnl = make_stage(
            DRNLFilterbank, drnl_kwargs, fc=(flow, fhigh), n_channels=n_channels, **at_fs
        )
        loops = {"preset": "paulick2024", "per_channel_init": True, **at_fs}
        adaptation = make_stage(AdaptLoop, adaptation_kwargs, **loops)
        minima = adaptation.minlvl_per_channel
        if minima is not None and len(drnl.fc) != len(minima):
            raise ValueError(
                f"Paulick2024: {counted(len(drnl.fc), 'band')}, and adaptation loops with minima "
                f"for {len(minima)}: give n_channels={len(minima)}, or other loops in "
                "adaptation_kwargs"
            )
        slow = {"fs": fs // 4, "fc": drnl.design("fc"), "preset": "paulick2024", **common}
        stages: dict[str, Stage] = {}
        if use_outerear:
            stages["outer_middle_ear"] = make_stage(OuterMiddleEarFilter, outerear_kwargs, **at_fs)
        stages |= {
            "stapes": Gain(velocity_per_pascal),
            "drnl": drnl,
            "ihc": make_stage(IHCPaulick2024, ihc_kwargs, **at_fs),
            "adaptation": adaptation,
            "resampler": Resample(fs, fs // 4),
            "modulation": make_stage(
                ModulationFilterbank, modulation_kwargs, filter_type=filter_type, **slow
            ),
        }
        super().__init__(fs, learnable, return_stages, dtype, stages)
        self.fs_resampled = fs // 4
