"""Roughness and fluctuation strength by the hearing model of ECMA-418-2:2025."""

from collections.abc import Callable

from amt_stream.dsp.functional.ecma418.bands import FS
from amt_stream.dsp.functional.ecma418.envelopes import STEP
from amt_stream.dsp.functional.ecma418.modulation import FRAME
from amt_stream.dsp.fused import FusedChain, HostOutput
from amt_stream.dsp.models.by_metrics import ByMetrics
from amt_stream.dsp.models.ecma418 import resampled
from amt_stream.dsp.stages.ecma418 import ECMAEarFilter, ECMAField
from amt_stream.dsp.stages.ecma418_modulation import (
    ECMAEnvelopes,
    ECMAFluctuationOutput,
    ECMARoughnessOutput,
    ECMASpecificFluctuation,
    ECMASpecificRoughness,
)
from amt_stream.dsp.streaming import GivesOutput, Stage


class _ToRoughness(ByMetrics):
    metric, output = "roughness", ECMARoughnessOutput
    host_outputs = HostOutput("r", "asper"), HostOutput("hz", "Hz")


class _ToFluctuation(ByMetrics):
    metric, output = "fluctuation", ECMAFluctuationOutput
    host_outputs = (HostOutput("f", "vacil_HMS"),)


class _OfEnvelopes(FusedChain):
    """Sound to envelopes of bands, and what a last stage makes of them."""

    def __init__(self, fs: int, field: ECMAField, name: str, last: Callable[[int], Stage]) -> None:
        before, late = resampled(fs, STEP * FRAME)
        ear, stage = ECMAEarFilter(field, late), last(late // (STEP * FRAME))
        super().__init__(**before, ear=ear, envelopes=ECMAEnvelopes(), **{name: stage})
        self.fs = fs


class ECMARoughness(GivesOutput[ECMARoughnessOutput], _OfEnvelopes):
    """Sound pressure (..., time) in pascal at `fs` to `ECMARoughnessOutput`, 50 frames a second.

    The method of ECMA-418-2:2025, clause 7: a tone of 1 kHz, fully modulated by 70 Hz, with a level
    of 60 dB has 1 asper; above 0.2 asper roughness is prominent. Each channel is measured on its
    own. Frames lag by 180 ms at 48 kHz.

    Arguments and errors are those of `ECMALoudness`.

    >>> import torch
    >>> roughness = ECMARoughness(fs=48000)
    >>> roughness(torch.zeros(2, 4800)).r.shape
    torch.Size([2, 5])
    """

    fused = _ToRoughness
    # The frames that the standard leaves out of single values, and a block.
    settle_s = 0.32 + 0.34
    # Blocks reach back 0.34 s and are interpolated over 0.17 s; roughness falls by 1 / e in 0.5 s.
    memory_s = 4.5
    # Blocks pass the end, and the cubic through them.
    tail_s = 0.7

    def __init__(self, fs: int = FS, field: ECMAField = "free") -> None:
        super().__init__(fs, field, "roughness", ECMASpecificRoughness)


class ECMAFluctuation(GivesOutput[ECMAFluctuationOutput], _OfEnvelopes):
    """Sound pressure (..., time) in pascal at `fs` to `ECMAFluctuationOutput`, 50 frames a second.

    The method of ECMA-418-2:2025, clause 9, provisional: open programs and the commercial one
    differ by up to 12 % but for single tones with one rate. A tone of 1 kHz, fully modulated by
    4 Hz, with a level of 60 dB has 1 vacil_HMS; above 0.2 fluctuation is prominent. Each channel is
    measured on its own. Frames lag by 1.46 s at 48 kHz.

    Arguments and errors are those of `ECMALoudness`.

    >>> import torch
    >>> fluctuation = ECMAFluctuation(fs=48000)
    >>> fluctuation(torch.zeros(2, 4800)).f.shape
    torch.Size([2, 5])
    """

    fused = _ToFluctuation
    # The frames that the standard leaves out of single values, and a block.
    settle_s = 0.72 + 1.37
    # Blocks reach back 1.37 s and are interpolated over 0.68 s, and the median over 1.42 s; the
    # strength falls by 1 / e in 0.75 s.
    memory_s = 9.5
    # Blocks pass the end, and the cubic through them, and the median.
    tail_s = 2.8

    def __init__(self, fs: int = FS, field: ECMAField = "free") -> None:
        super().__init__(fs, field, "fluctuation", ECMASpecificFluctuation)
