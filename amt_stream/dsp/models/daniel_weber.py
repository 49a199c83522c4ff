"""Roughness after Daniel & Weber (1997)."""

from math import prod

import torch

from amt_stream.dsp.functional import daniel_weber
from amt_stream.dsp.functional.daniel_weber import (
    AT,
    CALLS,
    CHANNELS,
    FS,
    HOP,
    TABLE_SHAPES,
    TURN,
)
from amt_stream.dsp.fused import Fused, FusedChain, HostOutput, Workspace
from amt_stream.dsp.stages.daniel_weber import DanielWeberOutput, DanielWeberRoughness
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.streaming import GivesOutput, Shape, Stage, State


class _ByWindows(Fused):
    """`DanielWeberRoughness`, after an optional resampler."""

    home = daniel_weber.__name__
    kernels = ("to_roughness",)
    rows = AT
    first_output = "r"
    host_outputs = (HostOutput("r", "asper"),)
    output = DanielWeberOutput

    def make(self, made: Workspace) -> None:
        self.resample(made, CALLS)
        self.call(made, CALLS, "to_rough")
        self.put_tables(made, self.named["roughness"], *TABLE_SHAPES)
        made.keep("turn", torch.from_numpy(TURN))

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        rows = prod(lead)
        time = self.resampled(workspace, rows, time)
        workspace.memory["roughness/past"] = "past", (rows, HOP)
        workspace.make("joined", self.dtype, rows, HOP + time)
        workspace.expect("r", rows, time // HOP)
        workspace.expect("specific", rows, time // HOP, CHANNELS)
        workspace.outputs = (*lead, time // HOP), (*lead, time // HOP, CHANNELS)


class DanielWeber(GivesOutput[DanielWeberOutput], FusedChain):
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

    fused = _ByWindows
    # Half a window, and the filter of a resampler.
    settle_s = memory_s = tail_s = 0.11

    def __init__(self, fs: int = FS) -> None:
        front: dict[str, Stage] = {} if fs == FS else {"resample": Resample(fs, FS)}
        super().__init__(**front, roughness=DanielWeberRoughness())
        self.fs = fs
