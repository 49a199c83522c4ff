"""Frame energies and true peaks for programme loudness (ITU-R BS.1770-5)."""

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.channel_layout import LAYOUTS, Layout, as_layout
from amt_stream.dsp.contract import whole_hertz
from amt_stream.dsp.design import frame_lengths, interpolator, k_weighting
from amt_stream.dsp.functional import programme
from amt_stream.dsp.functional.peak import BOUNDS, ENDLESS, ending, peaks
from amt_stream.dsp.functional.programme import AT, CALLS, filtered_mean_square
from amt_stream.dsp.fused import Fused, FusedStage, HostOutput, Workspace
from amt_stream.dsp.streaming import Shape, Shapes, State, Step, output

FRAME_RATE = 100


@output
class BS1770Output(NamedTuple):
    """Energy and peaks of each 10 ms frame.

    energy: K-weighted mean square (..., frame), weighted and summed over channels
    true_peak, sample_peak: largest magnitude (..., channel, frame), as a fraction of full scale
    """

    energy: Tensor
    true_peak: Tensor
    sample_peak: Tensor


class ProgrammeFrames(Fused):
    """`BS1770` as one compiled call."""

    home = programme.__name__
    kernels = ("to_frames",)
    rows = AT
    axes = 2
    first_output = "energy"
    host_outputs: tuple[HostOutput, ...] = (
        HostOutput("energy", "full scale^2"),
        HostOutput("true_peak", "full scale"),
        HostOutput("sample_peak", "full scale"),
    )
    output: Any = BS1770Output

    def make(self, made: Workspace) -> None:
        meter = self.named[""]
        self.channels = meter.channels
        self.call(made, CALLS, *CALLS)
        self.put_tables(made, meter, "sections", "gains", "phases")
        made.keep("lengths", torch.tensor(meter.lengths))

    def suits(self, lead: Shape) -> bool:
        return lead[-1] == self.channels

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        lines, past = prod(lead), state["past"].shape[-1]
        frames = len(self.named[""].lengths) * time // self.block_size
        workspace.memory |= {"filters": ("filters", (lines, 2, 2)), "past": ("past", (lines, past))}
        workspace.make("joined", self.dtype, lines, past + time)
        squares = workspace.make("squares", torch.float64, prod(lead[:-1]), lead[-1], frames)
        workspace.put("square_lines", squares, lines, frames)
        workspace.expect("energy", prod(lead[:-1]), frames)
        workspace.expect("true_peak", lines, frames)
        workspace.expect("sample_peak", lines, frames)
        workspace.outputs = (*lead[:-1], frames), (*lead, frames), (*lead, frames)


class BS1770(FusedStage):
    """Sound (..., channel, time) as fractions of full scale to `BS1770Output`, 100 frames a second.

    The method of ITU-R BS.1770-5; `ProgrammeLoudness` computes readings from the frames. Never give
    it pascal. Frame n covers n / 100 s to (n + 1) / 100 s; true peaks, from 4x oversampling, are 6
    samples late. Peaks count up to the last sample of a sound whose end is known (`ending`), and
    between samples where all 12 that the interpolation takes are of the sound.

    fs: sampling rate in whole hertz, 8000 or more. If it is no multiple of 100 Hz (22050 Hz),
        frames end at the samples nearest to each 10 ms, and a block holds several
    layout: position of each channel, which gives its weight: a `Layout`, a name such as "5.1", or
        positions in the order of the channels, such as "L C R Ls Rs LFE"; by default "stereo". A
        number stands for the usual layout of so many channels
    weights: weights of your own instead, one for each channel
    dual_mono: counts one channel twice (+3.01 LU), for playback on two loudspeakers
    match_48k: see `design.k_weighting`

    Raises ValueError for an invalid rate, layout or weights.

    >>> import torch
    >>> meter = BS1770(fs=48000, layout="5.1")
    >>> meter(torch.zeros(6, 4800)).true_peak.shape
    torch.Size([6, 10])
    """

    step: Step[BS1770Output]

    fused = ProgrammeFrames
    out_time_dim = BS1770Output(-1, -1, -1)  # type: ignore[arg-type]
    keeps_double = ("sections", "gains", "filters")
    input_unit = "full scale"
    frame_rate = FRAME_RATE
    frames_stand_for_end = True
    # By then the high-pass at 38 Hz has reduced an offset to 1e-9 of its energy.
    settle_s = 0.1
    # The decay after a sound's end takes as long; true peaks are 6 samples late.
    tail_s = 0.1

    def __init__(
        self,
        fs: int = 48000,
        layout: Layout | str | int | None = None,
        weights: Sequence[float] | None = None,
        dual_mono: bool = False,
        match_48k: bool = True,
    ) -> None:
        super().__init__()
        fs = whole_hertz("BS1770", fs, 8000)
        if weights is not None and layout is not None:
            raise ValueError(f"BS1770: layout {layout} and weights are given: give one of them")
        self.layout: Layout | None = None
        if weights is None:
            self.layout = as_layout("stereo" if layout is None else layout)
            weights = _weights_of(self.layout)
        channels = len(weights)
        if not channels or not all(0 <= w < np.inf for w in weights):
            raise ValueError(
                f"BS1770: weights {tuple(weights)}: give one for each channel, 0 or more"
            )
        if dual_mono and channels != 1:
            raise ValueError(f"BS1770: dual_mono is for one channel, not {channels}")
        self.fixed_axes = {-2: channels}
        self.shape_remedy = "make a BS1770 for the layout of the sound"
        self.fs, self.channels, self.dual_mono = fs, channels, dual_mono
        self.lengths = frame_lengths(self.fs, FRAME_RATE)
        self.block_size = sum(self.lengths)
        self.ratio = Fraction(FRAME_RATE, self.fs)
        self.register_table("sections", k_weighting(self.fs, match_48k))
        self.register_table("gains", np.array(weights) * (2.0 if dual_mono else 1.0))
        self.register_table("phases", interpolator(self.fs))

    def initial_state(self, shape: Shape) -> State:
        self.check_shape(shape)
        past = *shape, BOUNDS + self.phases.shape[1] - 1
        return {
            "filters": self.state_like("filters", (*shape, self.sections.shape[0], 2)),
            "past": ending(self.state_like("past", past), ENDLESS),
        }

    def beginning(self, state: State) -> State:
        return state | {"past": ending(state["past"], 0, 0)}

    def ending(self, state: State, samples: int) -> State:
        return state | {"past": ending(state["past"], samples)}

    def unfused_step(self, x: Tensor, state: State) -> tuple[BS1770Output, State]:
        sections, phases, gains = self.registered("sections", "phases", "gains")
        squares, filters = filtered_mean_square(x, sections, self.lengths, state["filters"])
        sample_peak, true_peak, past = peaks(x, phases, self.lengths, state["past"])
        energy = torch.matmul(gains, squares).to(x.dtype)
        after = {"filters": filters, "past": past}
        return BS1770Output(energy, true_peak, sample_peak), after

    def out_shape(self, shape: Shape) -> Shapes:
        return BS1770Output(shape[:-1], shape, shape)  # type: ignore[arg-type]


def _weights_of(layout: Layout) -> tuple[float, ...]:
    """The weights of a layout. Raises ValueError if it does not say what can be heard."""
    if not all(layout.positions):
        raise ValueError(
            f"BS1770: nobody says what the {layout.channels} channels are for: give their layout, "
            f"such as {next(reversed(LAYOUTS))}, or choose some of them"
        )
    if not any(layout.weights):
        raise ValueError(
            f"BS1770: {' and '.join(layout.positions)} has the weight 0 (ITU-R BS.1770-5), so that "
            "there is no loudness: choose other channels, or give the layout M to measure it as a "
            "sound of its own"
        )
    return layout.weights
