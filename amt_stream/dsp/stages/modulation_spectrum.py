"""How strongly each modulation band moves, frame by frame."""

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
    """`rms` (..., frame, band, modulation) in the units of what was measured."""

    rms: Tensor


class ModulationRms(Stage):
    """Running rms of `x` (..., band, modulation, time): `ModulationSpectrumOutput`.

    Frame n takes in samples n N to (n + 1) N - 1, N = fs * frame_ms / 1000 rounded. Their mean
    square passes two equal one-poles of `time_constant` seconds, as the square of a band that moves
    at f Hz moves at 2 f: for a sinusoid at 2 Hz the rms stays within 0.2 dB of its value, at 4 Hz
    within 0.05 dB. One pole would have to be slower by far for that. After 1 s of a steady band the
    reading is 0.2 dB short of its end.

    Raises ValueError where a frame would be shorter than a sample or nothing would be smoothed.
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

    pace: Tensor

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
        # The slope of a square root has no end at 0: silence gives 0, and no gradient.
        silent = y == 0
        rms = y.masked_fill(silent, 1.0).sqrt().masked_fill(silent, 0.0)
        rms = rms.unflatten(-1, tuple(x.shape[-3:-1]))
        return ModulationSpectrumOutput(rms), {"first": first, "second": second}

    def out_shape(self, shape: Shape) -> Shapes:
        return ModulationSpectrumOutput(shape)  # type: ignore[arg-type]
