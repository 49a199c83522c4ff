"""Speech intelligibility by the STIPA test signal."""

from collections.abc import Callable

from amt_stream.dsp.compose import Chain
from amt_stream.dsp.contract import whole_hertz
from amt_stream.dsp.stages.levels.stipa import StipaCells, StipaOutput
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.stipa_signal import FS, LEAST_FS
from amt_stream.dsp.streaming import Step


class Stipa(Chain):
    """Sound pressure (..., time) in pascal at `fs` to `StipaOutput`, 10 frames a second.

    Each channel is measured on its own. What the STI is computed of, if the sound is the STIPA test
    signal of IEC 60268-16.

    fs: sampling rate in whole hertz, 22050 or more; any but 48 kHz is resampled

    Raises ValueError for another rate.

    >>> import torch
    >>> Stipa(fs=48000)(torch.zeros(2, 9600)).cells.shape
    torch.Size([2, 2, 7, 5])
    """

    step: Step[StipaOutput]
    __call__: Callable[..., StipaOutput]

    frame_rate = StipaCells.frame_rate

    def __init__(self, fs: int = FS) -> None:
        fs = whole_hertz("Stipa", fs, LEAST_FS)
        before = {} if fs == FS else {"resample": Resample(fs, FS)}
        super().__init__(**before, cells=StipaCells())
        self.fs = fs
