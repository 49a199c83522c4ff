"""Intensity in octaves and how deep it is modulated, for STIPA (IEC 60268-16)."""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.design import kaiser_low_pass
from amt_stream.dsp.functional.cell_sums import cell_sums
from amt_stream.dsp.functional.filters.fir import fir, polyphase
from amt_stream.dsp.stipa_signal import CELL_S, FS, OCTAVES, WAVES, cell_waves
from amt_stream.dsp.streaming import Shape, Stage, State, output, with_time

BLOCK = round(FS * CELL_S)

HALVINGS = len(OCTAVES) - 1
HALVING_DB = 100.0
"""Attenuation of what a lower rate folds into an octave."""

HALF_TAPS = 96
"""To each side of an octave's filter, at the rate that is six times its midband frequency."""

HALVING_TAPS = 16
BETA = 4.5
WIDER = 0.00183
"""Of each edge, in cycles per sample: it is then 3 dB down, and noise as strong as in an octave."""


@output
class StipaOutput(NamedTuple):
    """Means over cells of 0.1 s (..., frame, band, 5), in Pa^2.

    Of the intensity in each octave, and of it times cosine and sine of both modulation frequencies
    of the octave, from a phase of 0 at the start of each cell.
    """

    cells: Any


def octave_taps() -> np.ndarray:
    """The linear-phase filter of an octave at six times its midband frequency, as at 8 kHz."""
    n = np.arange(-HALF_TAPS, HALF_TAPS + 1)
    low, high = 2**-0.5 / 6 - WIDER, 2**0.5 / 6 + WIDER
    taps = (2 * high * np.sinc(2 * high * n) - 2 * low * np.sinc(2 * low * n)) * np.kaiser(
        n.size, BETA
    )
    return taps / (taps * np.cos(2 * np.pi * n / 6)).sum()


class StipaCells(Stage):
    """Sound pressure (..., time) in pascal at 48 kHz to `StipaOutput`, 10 frames a second.

    Octaves from 125 Hz to 8 kHz by filters of linear phase, which leave modulations as they are:
    each octave at six times its midband frequency, of a sound whose rate is halved six times.

    Raises ValueError for another rate.

    >>> import torch
    >>> StipaCells()(torch.zeros(2, 9600)).cells.shape
    torch.Size([2, 2, 7, 5])
    """

    out_time_dim = StipaOutput(-3)
    input_unit = "pascal"
    per_channel = True
    frames_stand_for_end = True
    block_size = BLOCK
    ratio = Fraction(1, BLOCK)
    latency = Fraction(2 * BLOCK)
    """That of the lowest octave, filled up to two cells."""
    # Filters are of finite length; halls and loudspeakers start in a second.
    settle_s = 1.0
    memory_s = 0.4
    frame_rate = round(1 / CELL_S)

    def __init__(self, fs: int = FS) -> None:
        super().__init__()
        if fs != FS:
            raise ValueError(f"StipaCells: fs is {fs!r}: give {FS}, after a Resample")
        self.fs = FS
        self.register_table("taps", octave_taps())
        # The first halving is longer, so that the delay of each octave is a whole number of its
        # samples, and that of all two cells.
        self.halves = [2 * HALVING_TAPS] + [HALVING_TAPS] * (HALVINGS - 1)
        delays = []
        center = 0
        for k in range(len(OCTAVES)):
            delays.append((int(self.latency) - center) // 2**k - HALF_TAPS)
            if k < HALVINGS:
                low_pass = kaiser_low_pass(self.halves[k], 0.25, HALVING_DB)
                self.register_table(f"low_pass{k}", np.pad(low_pass, (0, 1))[None])
                center += self.halves[k] * 2**k
            waves = cell_waves(HALVINGS - k)
            self.register_table(f"waves{k}", waves / waves.shape[1])
        self.delays = tuple(delays)

    def initial_state(self, shape: Shape) -> State:
        lengths = [2 * HALF_TAPS + delay for delay in self.delays]
        return {
            f"past{k}": self.state_like(f"past{k}", with_time(shape, -1, length))
            for k, length in enumerate(lengths)
        }

    def step(self, x: Tensor, state: State) -> tuple[StipaOutput, State]:
        (taps,) = self.registered("taps")
        bands, after = [], {}
        for k, delay in enumerate(self.delays):
            time, before = x.shape[-1], 2 * HALF_TAPS
            joined = torch.cat([state[f"past{k}"], x], -1)
            after[f"past{k}"] = joined[..., time:]
            late = joined[..., : joined.shape[-1] - delay]
            y, _ = fir(late[..., before:], taps, late[..., :before])
            bands.append(cell_sums(y, *self.registered(f"waves{k}")))
            if k < HALVINGS:
                length = 2 * self.halves[k] + 1
                past = joined[..., joined.shape[-1] - time - length + 1 : -time]
                (bank,) = self.registered(f"low_pass{k}")
                x, _ = polyphase(x, bank, 2, length, past)
        return StipaOutput(torch.stack(bands[::-1], -2)), after

    def out_shape(self, shape: Shape) -> StipaOutput:
        return StipaOutput((*shape, len(OCTAVES), WAVES))
