"""Unit conversion within a chain."""

import numpy as np
from torch import Tensor

from amt_stream.dsp.streaming import Pointwise


class Gain(Pointwise):
    """`x`, any shape, times `factor`: an explicit unit conversion in a chain.

    Pascal times 0.5 has RMS 1 at 100 dB SPL, the scale of compressions and adaptation loops.

    time_dim: time axis, -2 after a stage that gives frames
    """

    def __init__(self, factor: float, time_dim: int = -1) -> None:
        super().__init__()
        self.time_dim = self.out_time_dim = time_dim
        self.register_table("factor", np.array(float(factor)))

    def transform(self, x: Tensor) -> Tensor:
        return x * self.factor
