"""Models of a rating level: audible tones, impulses, and both with the A-weighted level."""

from fractions import Fraction
from typing import Any, Literal, NamedTuple

from torch import Tensor

from amt_stream.dsp.compose import Chain, parted, prefixed
from amt_stream.dsp.contract import whole_hertz
from amt_stream.dsp.stages.rating import (
    FRAME_RATE,
    STEP_S,
    ImpulseOnsets,
    ImpulseOutput,
    ToneAudibility,
    ToneOutput,
    ToneSpectrum,
)
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.streaming import GivesOutput, Shape, Stage, State, output

FS = 48000

Combine = Literal["sum", "max"]


def at_rate(owner: str, fs: int) -> tuple[dict[str, Stage], int]:
    """A resampler to 48 kHz, for a rate of which 20 ms are no whole number of samples; the rate."""
    fs = whole_hertz(owner, fs, 8000)
    return ({"resample": Resample(fs, FS)}, FS) if fs * STEP_S % 1 else ({}, fs)


class TonalAudibility(GivesOutput[ToneOutput], Chain):
    """Sound pressure (..., time) in pascal at `fs` to `ToneOutput`, 10 frames a second.

    Each channel is measured on its own. Every 3 s a frame completes a spectrum, and has the tone
    that stands out most of its noise by the engineering method of ISO/PAS 20065:2016.

    fs: sampling rate in whole hertz, 8000 or more; one that is no multiple of 50 Hz is resampled

    Attributes: `frequencies` of the lines of the spectrum in Hz; `spectrum_s`, duration of one.

    Raises ValueError for another rate.

    >>> import torch
    >>> TonalAudibility(fs=48000)(torch.zeros(2, 9600)).audibility.shape
    torch.Size([2, 2])
    """

    frame_rate = FRAME_RATE
    memory_s = 3.1

    def __init__(self, fs: int = FS) -> None:
        before, rate = at_rate("TonalAudibility", fs)
        spectrum = ToneSpectrum(rate)
        super().__init__(**before, spectrum=spectrum, tones=ToneAudibility(spectrum.frequencies))
        self.fs, self.spectrum_s, self.frequencies = fs, spectrum.spectrum_s, spectrum.frequencies


class Impulses(GivesOutput[ImpulseOutput], Chain):
    """Sound pressure (..., time) in pascal at `fs` to `ImpulseOutput`, 10 frames a second.

    Each channel is measured on its own. Onsets by the method of ISO/PAS 1996-3:2022, NT ACOU 112.

    fs: sampling rate in whole hertz, 8000 or more; one that is no multiple of 50 Hz is resampled

    Raises ValueError for another rate.

    >>> import torch
    >>> Impulses(fs=48000)(torch.zeros(2, 9600)).mean_square.shape
    torch.Size([2, 2])
    """

    frame_rate = FRAME_RATE

    def __init__(self, fs: int = FS) -> None:
        before, rate = at_rate("Impulses", fs)
        super().__init__(**before, onsets=ImpulseOnsets(rate))
        self.fs = fs


@output
class RatingOutput(NamedTuple):
    """`ToneOutput` and `ImpulseOutput` in one, by the same names."""

    complete: Tensor
    audibility: Tensor
    hz: Tensor
    level: Tensor
    noise: Tensor
    uncertainty: Tensor
    tones: Tensor
    spectrum: Tensor
    mean_square: Tensor
    fast: Tensor
    onsets: Tensor


class _Both(Stage):
    """Tones and impulses of one sound: `RatingOutput`."""

    input_unit = "pascal"
    per_channel = True
    frames_stand_for_end = True
    settle_s, tail_s = ImpulseOnsets.settle_s, ImpulseOnsets.tail_s
    memory_s = TonalAudibility.memory_s
    out_time_dim = RatingOutput(*ToneAudibility.out_time_dim, *ImpulseOnsets.out_time_dim)

    def __init__(self, fs: int) -> None:
        super().__init__()
        self.tones, self.impulses = TonalAudibility(fs), ImpulseOnsets(fs)
        self.block_size, self.fs = self.impulses.block_size, fs
        self.ratio = Fraction(1, self.block_size)
        members = ("tones", self.tones), ("impulses", self.impulses)
        self.keeps_double = tuple(f"{name}/{key}" for name, s in members for key in s.keeps_double)

    def initial_state(self, shape: Shape) -> State:
        state = prefixed("tones", self.tones.initial_state(shape))
        return state | prefixed("impulses", self.impulses.initial_state(shape))

    def step(self, x: Tensor, state: State) -> tuple[RatingOutput, State]:
        parts = parted(state)
        tones, after = self.tones.step(x, parts["tones"])
        impulses, later = self.impulses.step(x, parts["impulses"])
        state = prefixed("tones", after) | prefixed("impulses", later)
        return RatingOutput(*(*tones, *impulses)), state

    def out_shape(self, shape: Shape) -> Any:
        parts = (*self.tones.out_shape(shape), *self.impulses.out_shape(shape))
        return RatingOutput(*parts)


class Rating(GivesOutput[RatingOutput], Chain):
    """Sound pressure (..., time) in pascal at `fs` to `RatingOutput`, 10 frames a second.

    What a rating level is made of: the A-weighted level, tones as by `TonalAudibility` and impulses
    as by `Impulses`. Each channel is measured on its own.

    fs: sampling rate in whole hertz, 8000 or more; one that is no multiple of 50 Hz is resampled
    combine: how readings combine the adjustments for tones and for impulses: "sum" adds both, "max"
        the greater

    Raises ValueError for any other value.

    >>> import torch
    >>> Rating(fs=48000)(torch.zeros(2, 9600)).mean_square.shape
    torch.Size([2, 2])
    """

    frame_rate = FRAME_RATE

    def __init__(self, fs: int = FS, combine: Combine = "sum") -> None:
        if combine not in ("sum", "max"):
            raise ValueError(f"Rating: combine is {combine!r}: give 'sum' or 'max'")
        before, rate = at_rate("Rating", fs)
        both = _Both(rate)
        super().__init__(**before, both=both)
        self.fs, self.combine = fs, combine
        self.spectrum_s, self.frequencies = both.tones.spectrum_s, both.tones.frequencies
