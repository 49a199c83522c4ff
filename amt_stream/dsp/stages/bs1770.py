"""Frame energies and true peaks for programme loudness (ITU-R BS.1770-5)."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.contract import whole_hertz
from amt_stream.dsp.design import frame_lengths, interpolator, k_weighting
from amt_stream.dsp.functional.peak import BOUNDS, ENDLESS, ending, peaks
from amt_stream.dsp.functional.programme import filtered_mean_square
from amt_stream.dsp.streaming import Shape, Shapes, Stage, State, output

FRAME_RATE = 100

SURROUND = 1.41

LAYOUTS: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (1.0, 1.0),
    3: (1.0, 1.0, 1.0),
    4: (1.0, 1.0, SURROUND, SURROUND),
    5: (1.0, 1.0, 1.0, SURROUND, SURROUND),
    6: (1.0, 1.0, 1.0, 0.0, SURROUND, SURROUND),
}
"""Weights of L R, L R C, L R Ls Rs, L R C Ls Rs, L R C LFE Ls Rs (ITU-R BS.1770-5, Table 3)."""


@output
class BS1770Output(NamedTuple):
    """Energy and peaks of each 10 ms frame.

    energy: K-weighted mean square (..., frame), weighted and summed over channels
    true_peak, sample_peak: largest magnitude (..., channel, frame), as a fraction of full scale
    """

    energy: Tensor
    true_peak: Tensor
    sample_peak: Tensor


class BS1770(Stage):
    """Sound (..., channel, time) as fractions of full scale to `BS1770Output`, 100 frames a second.

    The method of ITU-R BS.1770-5; `ProgrammeLoudness` computes readings from the frames. Never give
    it pascal. Frame n covers n / 100 s to (n + 1) / 100 s; true peaks, from 4x oversampling, are 6
    samples late. Peaks count up to the last sample of a sound whose end is known (`ending`), and
    between samples where all 12 that the interpolation takes are of the sound.

    fs: sampling rate in whole hertz, 8000 or more. If it is no multiple of 100 Hz (22050 Hz),
        frames end at the samples nearest to each 10 ms, and a block holds several
    channels: 1 to 6: mono, L R, L R C, L R Ls Rs, L R C Ls Rs, L R C LFE Ls Rs
    weights: channel weights for other layouts, also of more channels
    dual_mono: counts one channel twice (+3.01 LU), for playback on two loudspeakers
    match_48k: see `design.k_weighting`

    Raises ValueError for an invalid rate, number of channels or weights.

    >>> import torch
    >>> meter = BS1770(fs=48000, channels=2)
    >>> meter(torch.zeros(2, 4800)).true_peak.shape
    torch.Size([2, 10])
    """

    out_time_dim = BS1770Output(-1, -1, -1)  # type: ignore[arg-type]
    keeps_double = ("sections", "weights", "filters")
    input_unit = "full scale"
    frame_rate = FRAME_RATE
    frames_stand_for_end = True
    # By then the high-pass at 38 Hz has reduced an offset to 1e-9 of its energy.
    settle_s = 0.1
    # The decay after a sound's end takes as long; true peaks are 6 samples late.
    tail_s = 0.1

    sections: Tensor
    weights: Tensor
    phases: Tensor

    def __init__(
        self,
        fs: int = 48000,
        channels: int = 2,
        weights: Sequence[float] | None = None,
        dual_mono: bool = False,
        match_48k: bool = True,
    ) -> None:
        super().__init__()
        fs = whole_hertz("BS1770", fs, 8000)
        if weights is None:
            if channels not in LAYOUTS:
                raise ValueError(
                    f"BS1770: {channels} channels: give 1 to {max(LAYOUTS)}, or their weights"
                )
            weights = LAYOUTS[channels]
        if len(weights) != channels or not all(0 <= w < np.inf for w in weights):
            raise ValueError(
                f"BS1770: weights {tuple(weights)} for {channels} channels: give one for each, "
                "0 or more"
            )
        if dual_mono and channels != 1:
            raise ValueError(f"BS1770: dual_mono is for one channel, not {channels}")
        self.fixed_axes = {-2: channels}
        self.shape_remedy = "make a BS1770 for as many channels as there are"
        self.fs, self.channels, self.dual_mono = fs, channels, dual_mono
        self.lengths = frame_lengths(self.fs, FRAME_RATE)
        self.block_size = sum(self.lengths)
        self.ratio = Fraction(FRAME_RATE, self.fs)
        self.register_table("sections", k_weighting(self.fs, match_48k))
        self.register_table("weights", np.array(weights) * (2.0 if dual_mono else 1.0))
        self.register_table("phases", interpolator(self.fs))

    def initial_state(self, shape: Shape) -> State:
        self.check_shape(shape)
        past = *shape, BOUNDS + self.phases.shape[1] - 1
        return {
            "filters": self.state_like("filters", (*shape, self.sections.shape[0], 2)),
            "past": ending(self.state_like("past", past), ENDLESS),
        }

    def ending(self, state: State, samples: int) -> State:
        return state | {"past": ending(state["past"], samples)}

    def step(self, x: Tensor, state: State) -> tuple[BS1770Output, State]:
        sections, phases, weights = self.registered("sections", "phases", "weights")
        squares, filters = filtered_mean_square(x, sections, self.lengths, state["filters"])
        sample_peak, true_peak, past = peaks(x, phases, self.lengths, state["past"])
        energy = torch.matmul(weights, squares).to(x.dtype)
        after = {"filters": filters, "past": past}
        return BS1770Output(energy, true_peak, sample_peak), after

    def out_shape(self, shape: Shape) -> Shapes:
        return BS1770Output(shape[:-1], shape, shape)  # type: ignore[arg-type]
