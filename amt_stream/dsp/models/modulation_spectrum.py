"""Running modulation spectrum by auditory band and modulation frequency."""

from typing import Any

import torch
from torch import Tensor

from amt_stream.dsp.compose import Chain
from amt_stream.dsp.models.dau1997 import Dau1997
from amt_stream.dsp.models.king2019 import King2019
from amt_stream.dsp.stages.gain import Gain
from amt_stream.dsp.stages.modulation_spectrum import (
    FRAME_MS,
    TIME_CONSTANT,
    ModulationRms,
    ModulationSpectrumOutput,
)
from amt_stream.dsp.streaming import GivesOutput

MODELS: dict[str, Any] = {"king2019": King2019, "dau1997": Dau1997}

# RMS 1 in the models is 100 dB SPL, which is 2 Pa (20 uPa * 10^5).
PER_PASCAL = 0.5


class ModulationSpectrum(GivesOutput[ModulationSpectrumOutput], Chain):
    """Sound pressure (..., time) in pascal to `ModulationSpectrumOutput`, 50 frames per second.

    `rms` (..., frame, band, modulation) is the running RMS of each modulation filter's output, in
    the model's units: for "king2019" compressed amplitude (1 is the RMS of 100 dB SPL before
    compression), for "dau1997" model units of the adaptation loops (a steady sound of 100 dB SPL
    tends to 100).

    fs: sampling rate in whole hertz
    model: "king2019" (King, Varnet & Lorenzi 2019) or "dau1997" (Dau, Kollmeier & Kohlrausch 1997)
    frame_ms, time_constant: of `ModulationRms`

    Raises ValueError for an unknown model and if a stage refuses its arguments.

    >>> import torch
    >>> spectrum = ModulationSpectrum(fs=16000)
    >>> spectrum(torch.zeros(1, 2, 16000)).rms.shape
    torch.Size([1, 2, 50, 31, 5])
    """

    input_unit = "pascal"

    auditory: King2019 | Dau1997
    readings: ModulationRms

    def __init__(
        self,
        fs: int,
        model: str = "king2019",
        frame_ms: float = FRAME_MS,
        time_constant: float = TIME_CONSTANT,
    ) -> None:
        if model not in MODELS:
            raise ValueError(
                f"ModulationSpectrum: model is {model!r}: give one of {', '.join(MODELS)}"
            )
        auditory = MODELS[model](fs=fs)
        readings = ModulationRms(fs, frame_ms, time_constant)
        super().__init__(units=Gain(PER_PASCAL), auditory=auditory, readings=readings)
        self.fs, self.model = fs, model
        self.frame_rate = readings.frame_rate

    @property
    def fc(self) -> Tensor:
        """Center frequencies of the auditory bands in Hz (band,)."""
        return self.auditory.fc

    @property
    def mfc(self) -> Tensor:
        """Center frequencies of the modulation filters in Hz (modulation,); 0 is a low-pass."""
        centers: Any = self.auditory.mfc
        # Bands with fewer filters lack the fastest ones.
        return centers if isinstance(centers, Tensor) else max(centers, key=len)

    @property
    def mask(self) -> Tensor:
        """Which modulation filters each band has, (band, modulation); the others read 0."""
        if isinstance(self.auditory, Dau1997):
            return self.auditory.mask
        return torch.ones(len(self.fc), len(self.mfc), dtype=torch.bool, device=self.device)
