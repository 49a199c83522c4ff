"""RMS of each modulation band per frame."""

from fractions import Fraction
from math import exp
from typing import NamedTuple

import numpy as np
from torch import Tensor

from amt_stream.dsp.functional.loudness import agc
from amt_stream.dsp.streaming import Shape, Shapes, Stage, State, output

FRAME_MS = 20.0
TIME_CONSTANT = 0.2


@output
class ModulationSpectrumOutput(NamedTuple):
    """`rms` (..., frame, band, modulation) in the units of the input."""

    rms: Tensor


class ModulationRms(Stage):
    """Running RMS of `x` (..., band, modulation, time): `ModulationSpectrumOutput`.

    A frame has N = fs * frame_ms / 1000 samples, rounded. Its mean square passes two equal one-pole
    low-passes of `time_constant` seconds. The square of a band that oscillates at f Hz oscillates
    at 2 f: the RMS of a sinusoid ripples by 0.2 dB at 2 Hz and 0.05 dB at 4 Hz, for which a single
    pole would have to be far slower. A steady band reads 0.2 dB low after 1 s.

    Raises ValueError if a frame is shorter than a sample or the time constant is not positive.
    """

    out_time_dim = ModulationSpectrumOutput(-3)  # type: ignore[arg-type]
    fs: int

    def __init__(
        self, fs: int, frame_ms: float = FRAME_MS, time_constant: float = TIME_CONSTANT
    ) -> None:
        super().__init__()
        self.fs, self.frame_ms, self.time_constant = fs, frame_ms, time_constant
        # After six time constants of both poles, 2 % of a mean square remains.
        self.settle_s = 6 * time_constant
        self.block_size = round(fs * frame_ms / 1000)
        if self.block_size < 1:
            raise ValueError(
                f"ModulationRms: a frame of {frame_ms} ms at {fs} Hz is shorter than a sample: "
                "give a longer frame_ms"
            )
        if not time_constant > 0:
            raise ValueError(f"ModulationRms: time_constant is {time_constant} s: give more than 0")
        self.ratio = Fraction(1, self.block_size)
        pace = 1 - exp(-self.block_size / (fs * time_constant))
        self.register_table("pace", np.array([pace, pace]))

        self.fixed_axes = {-3: None, -2: None}

    @property
    def frame_rate(self) -> float:
        """Frames per second."""
        return self.fs / self.block_size

    def initial_state(self, shape: Shape) -> State:
        cells = (*shape[:-2], shape[-2] * shape[-1])
        return {name: self.state_like(name, cells) for name in ("first", "second")}

    def step(self, x: Tensor, state: State) -> tuple[ModulationSpectrumOutput, State]:
        power = x.unflatten(-1, (-1, self.block_size)).square().mean(-1)
        y, first = agc(power.flatten(-3, -2).mT, self.pace, state["first"])
        y, second = agc(y, self.pace, state["second"])
        # The square root has an infinite slope at 0: give silence 0 and no gradient.
        silent = y == 0
        rms = y.masked_fill(silent, 1.0).sqrt().masked_fill(silent, 0.0)
        rms = rms.unflatten(-1, tuple(x.shape[-3:-1]))
        return ModulationSpectrumOutput(rms), {"first": first, "second": second}

    def out_shape(self, shape: Shape) -> Shapes:
        return ModulationSpectrumOutput(shape)  # type: ignore[arg-type]
