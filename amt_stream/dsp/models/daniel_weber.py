"""Roughness after Daniel & Weber (1997)."""

from amt_stream.dsp.compose import Chain
from amt_stream.dsp.stages.daniel_weber import FS, DanielWeberOutput, DanielWeberRoughness
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.streaming import GivesOutput, Stage


class DanielWeber(GivesOutput[DanielWeberOutput], Chain):
    """Sound pressure (..., time) in pascal at `fs` to `DanielWeberOutput`, 10 frames a second.

    Roughness after Daniel & Weber (1997), in the free field: a tone of 1 kHz, fully modulated by 70
    Hz, with a level of 60 dB has 1 asper. Each channel is measured on its own. Frames stand for the
    middle of 200 ms, and so lag by 100 ms at 48 kHz.

    fs: sampling rate in whole hertz; rates other than 48 kHz are resampled

    Raises ValueError for any other value.

    >>> import torch
    >>> roughness = DanielWeber(fs=48000)
    >>> roughness(torch.zeros(2, 9600)).r.shape
    torch.Size([2, 2])
    """

    # Half a window, and the filter of a resampler.
    settle_s = memory_s = tail_s = 0.11

    def __init__(self, fs: int = FS) -> None:
        front: dict[str, Stage] = {} if fs == FS else {"resample": Resample(fs, FS)}
        super().__init__(**front, roughness=DanielWeberRoughness())
        self.fs = fs
