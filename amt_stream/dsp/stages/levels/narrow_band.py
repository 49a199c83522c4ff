"""Narrow-band spectrum: sound pressure levels in the bins of a running Fourier transform."""

from fractions import Fraction
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.contract import whole_hertz
from amt_stream.dsp.functional.loudness import agc
from amt_stream.dsp.scales import P0
from amt_stream.dsp.stages.levels.sound_level import FAST
from amt_stream.dsp.streaming import Shape, Stage, State, output, with_time

FRAME_S = 0.04
COARSEST_HZ, FINEST_HZ = 12.5, 0.5
SILENT = 1e-20
"""Power in Pa^2 added to each bin, so that silence reads -106.02 dB."""


@output
class NarrowBandOutput(NamedTuple):
    """`level_db` (..., frame, bin) in dB SPL, as `NarrowBandSpectrum` documents."""

    level_db: Any


class NarrowBandSpectrum(Stage):
    """Sound pressure (..., time) in pascal to `NarrowBandOutput`, a frame per 40 ms.

    Each channel is analyzed on its own. A frame is the power spectrum of the last `points` samples
    under a Hann window, averaged with time weighting F (125 ms). Bin k is at k times `bin_hz`, from
    0 Hz to fs / 2; `frequencies` lists all.

    A tone reads its level in its bin, and up to 1.42 dB less between two bins. Noise reads its
    level per hertz plus 10 lg(1.5 `bin_hz`), the noise bandwidth: 9.4 dB at 48 kHz. So the level of
    everything within some bins is that of their summed powers minus 10 lg 1.5 = 1.76 dB, for tones
    too. Silence reads -106.02 dB.

    Frame n ends at (n + 1) times 40 ms, to the nearest sample.

    fs: sampling rate in whole hertz, 8000 or more
    resolution_hz: largest bin width, 0.5 to 12.5 Hz; `points` is the power of two that gives it,
        8192 at 48 kHz

    Raises ValueError for an invalid rate or resolution.

    >>> import torch
    >>> analyzer = NarrowBandSpectrum(fs=48000)
    >>> analyzer.points, analyzer.bin_hz
    (8192, 5.859375)
    >>> analyzer(torch.zeros(2, 4800)).level_db.shape
    torch.Size([2, 3, 4097])
    """

    out_time_dim = NarrowBandOutput(-2)
    input_unit = "pascal"
    frames_stand_for_end = True
    per_channel = True

    fs: int

    def __init__(self, fs: int = 48000, resolution_hz: float = 6.0) -> None:
        super().__init__()
        self.fs = whole_hertz("NarrowBandSpectrum", fs, 8000)
        if not FINEST_HZ <= resolution_hz <= COARSEST_HZ:
            raise ValueError(
                f"NarrowBandSpectrum: resolution_hz is {resolution_hz}: give {FINEST_HZ:g} to "
                f"{COARSEST_HZ:g} Hz"
            )
        self.resolution_hz = resolution_hz
        self.points = 2 ** ceil(log2(self.fs / resolution_hz))
        self.bin_hz = self.fs / self.points
        # At most half a window, so that windows of consecutive frames overlap by half.
        self.block_size = round(self.fs * FRAME_S)
        self.ratio = Fraction(1, self.block_size)
        # By then F is within 0.03 dB of its final value, and 1 % of a power 50 dB higher remains.
        self.settle_s = self.points / self.fs + 5 * FAST
        self.memory_s = self.points / self.fs + 16 * FAST
        # The window passes the end.
        self.tail_s = self.points / self.fs
        turns = np.arange(self.points) / self.points
        # A tone with RMS 1 has power 1 in its bin.
        gain = np.sqrt(8) / self.points
        self.register_table("window", gain * (0.5 - 0.5 * np.cos(2 * np.pi * turns)))
        # The bins at 0 Hz and fs / 2 have no mirror image.
        sides = np.ones(self.points // 2 + 1)
        sides[[0, -1]] = 0.5
        self.register_table("sides", sides)
        pace = -np.expm1(-self.block_size / (self.fs * FAST))
        self.register_table("pace", np.array([pace, pace]))

    @property
    def frame_rate(self) -> float:
        """Frames per second."""
        return self.fs / self.block_size

    @property
    def frequencies(self) -> np.ndarray:
        """Frequency of each bin in Hz (bin,)."""
        return np.arange(self.points // 2 + 1) * self.bin_hz

    def initial_state(self, shape: Shape) -> State:
        return {
            "past": self.state_like("past", with_time(shape, -1, self.points - self.block_size)),
            "power": self.state_like("power", self.out_shape(shape).level_db),
        }

    def step(self, x: Tensor, state: State) -> tuple[NarrowBandOutput, State]:
        window, sides, pace = self.registered("window", "sides", "pace")
        samples = torch.cat((state["past"], x), -1)
        bins = torch.fft.rfft(samples.unfold(-1, self.points, self.block_size) * window)
        power = (bins.real.square() + bins.imag.square()) * sides
        power, last = agc(power, pace, state["power"])
        level_db = torch.log10((power + SILENT) / P0**2) * 10
        return NarrowBandOutput(level_db), {"past": samples[..., x.shape[-1] :], "power": last}

    def out_shape(self, shape: Shape) -> NarrowBandOutput:
        return NarrowBandOutput((*shape, self.points // 2 + 1))
