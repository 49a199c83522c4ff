"""Octave and third-octave levels (IEC 61260-1:2014) of sound pressure."""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from amt_stream.dsp import design
from amt_stream.dsp.contract import whole_hertz
from amt_stream.dsp.functional import third_octave
from amt_stream.dsp.functional.third_octave import TIMED, third_octaves
from amt_stream.dsp.fused import FusedStage, HostOutput, Workspace
from amt_stream.dsp.stages.levels.sound_level import FAST, FRAME_RATE, SLOW, RowFrames
from amt_stream.dsp.streaming import Shape, State, Step, output

FLAT = {1: 1.2957, 3: 1.0875}
"""Highest frequency, relative to the midband, where the filter must be flat, by fraction."""


@output
class BandsOutput(NamedTuple):
    """Powers in bands, 100 frames a second, in Pa^2.

    10 lg(power / 4e-10) is a level in dB; silence has none. The axis "timed" is F and S.

    mean_square: over the frame (..., band, frame)
    power: time-weighted, at the last sample of the frame (..., timed, band, frame)
    highest: of that power over all samples of the frame
    """

    mean_square: Any
    power: Any
    highest: Any


class _Powers(RowFrames):
    """`ThirdOctaves` or `Octaves` as one compiled call."""

    functions = third_octave
    table_names = "poles", "gain", "smoothing"
    output = BandsOutput
    fields = third_octave.BandFrames._fields

    def make(self, made: Workspace) -> None:
        super().make(made)
        bands = tuple(map(design.band_name, self.named[""].nominal))
        timed = tuple("fs"), bands
        self.host_outputs = (
            HostOutput("mean_square", "Pa^2", (bands,)),
            HostOutput("power", "Pa^2", timed),
            HostOutput("highest", "Pa^2", timed),
        )


class _Bands(FusedStage):
    """Sound pressure (..., time) in pascal to `BandsOutput`, a frame per 10 ms."""

    fraction: int
    """Bands per octave."""

    step: Step[BandsOutput]

    fused = _Powers
    out_time_dim = BandsOutput(-1, -1, -1)
    keeps_double = ("poles", "gain", "smoothing", "past")
    input_unit = "pascal"
    frame_rate = FRAME_RATE
    frames_stand_for_end = True
    per_channel = True

    def __init__(self, fs: int, low_hz: float, high_hz: float) -> None:
        super().__init__()
        name = type(self).__name__
        self.fs = whole_hertz(name, fs, 8000)
        if not low_hz >= 1:
            raise ValueError(f"{name}: low_hz is {low_hz} Hz: give 1 Hz or more")
        bands = design.octave_midbands(low_hz, high_hz, self.fraction)
        self.midbands = bands[FLAT[self.fraction] * bands < self.fs / 2]
        if not self.midbands.size:
            raise ValueError(
                f"{name}: the band of {low_hz:g} Hz does not fit below half of {fs} Hz: give a "
                "lower low_hz"
            )
        self.nominal = tuple(design.nominal_midband(f) for f in self.midbands)
        self.low_hz, self.high_hz = self.nominal[0], self.nominal[-1]
        self.lengths = design.frame_lengths(self.fs, FRAME_RATE)
        self.block_size = sum(self.lengths)
        self.ratio = Fraction(FRAME_RATE, self.fs)
        # After silence F is then within 0.05 dB; S takes 5 s.
        self.settle_s = 5 * FAST + self.fraction * design.RISES / float(self.midbands[0])
        self.memory_s = 16 * SLOW + self.fraction * design.FORGETS / float(self.midbands[0])
        # A filter decays as fast as it rises. The S level, also of a click, peaks by 7 cycles.
        self.tail_s = self.fraction * design.RISES / float(self.midbands[0])
        sections = np.array([design.octave_band(f, self.fs, self.fraction) for f in self.midbands])
        self.register_table("poles", np.concatenate(sections[:, :, 4:].transpose(1, 2, 0)))
        self.register_table("gain", sections[:, :, 0].prod(1))
        self.register_table("smoothing", -np.expm1(-1 / (self.fs * np.array([FAST, SLOW]))))

    def initial_state(self, shape: Shape) -> State:
        kept = self.poles.shape[0] + TIMED
        return {"past": self.state_like("past", (*shape, kept, self.midbands.size))}

    def unfused_step(self, x: Tensor, state: State) -> tuple[BandsOutput, State]:
        poles, gain, smoothing = self.registered("poles", "gain", "smoothing")
        frames, past = third_octaves(x, self.lengths, poles, gain, smoothing, state["past"])
        return BandsOutput(*frames), {"past": past}

    def out_shape(self, shape: Shape) -> BandsOutput:
        timed = (*shape, TIMED, self.midbands.size)
        return BandsOutput((*shape, self.midbands.size), timed, timed)


class ThirdOctaves(_Bands):
    """Sound pressure (..., time) in pascal to `BandsOutput`, a frame per 10 ms.

    Each channel is analyzed on its own; `accumulators.ThirdOctaveMeter` computes readings from the
    frames. The filters meet class 1 of IEC 61260-1:2014 at any rate from 8 kHz on. They pass as
    much white noise as an ideal filter, within 0.03 dB (0.3 dB less in a topmost band that extends
    beyond fs / 2, such as 20 kHz at 44.1 kHz). All run at the full rate, without decimation or
    aliasing. Errors of microphone and sound card come on top. Frame n covers n / 100 s to (n + 1) /
    100 s; the filters' delay, 0.9 divided by the bandwidth, is not compensated.

    fs: sampling rate in whole hertz, 8000 or more. If it is no multiple of 100 Hz (22050 Hz),
        frames end at the samples nearest to each 10 ms, and a block holds several
    low_hz, high_hz: nominal midband frequencies of the lowest and highest band, at least 1 Hz;
        bands too close to fs / 2 are omitted

    Attributes: `midbands`, exact midband frequencies in hertz; `nominal`, their nominal values.

    Raises ValueError for an invalid rate or invalid bands.

    >>> import torch
    >>> analyzer = ThirdOctaves(fs=48000)
    >>> analyzer(torch.zeros(2, 4800)).mean_square.shape
    torch.Size([2, 36, 10])
    """

    fraction = 3

    def __init__(self, fs: int = 48000, low_hz: float = 6.3, high_hz: float = 20000.0) -> None:
        super().__init__(fs, low_hz, high_hz)


class Octaves(_Bands):
    """Sound pressure (..., time) in pascal to `BandsOutput`, a frame per 10 ms.

    As `ThirdOctaves`, but with octave filters, within the same limits; they pass as much white
    noise as an ideal filter, within 0.12 dB. Sums of third octaves would not do: they read a tone
    at the edge of two thirds 0.47 dB low (near fs / 2 more than class 1 allows), and narrow filters
    take three times as long to rise.

    Arguments, attributes and errors are those of `ThirdOctaves`.

    >>> import torch
    >>> analyzer = Octaves(fs=48000)
    >>> analyzer(torch.zeros(2, 4800)).mean_square.shape
    torch.Size([2, 12, 10])
    """

    fraction = 1

    def __init__(self, fs: int = 48000, low_hz: float = 8.0, high_hz: float = 16000.0) -> None:
        super().__init__(fs, low_hz, high_hz)
