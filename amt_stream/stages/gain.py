"""From one unit to another, within a chain."""

import numpy as np
from torch import Tensor

from amt_stream.streaming import Pointwise


class Gain(Pointwise):
    """`x`, any shape, times `factor`: how a chain changes units, in sight.

    Sound in pascal times 0.5 has RMS 1 at 100 dB SPL, as compressions and adaptation loops take it.
    """

    factor: Tensor

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.register_table("factor", np.array(float(factor)))

    def transform(self, x: Tensor) -> Tensor:
        return x * self.factor

    def extra_repr(self) -> str:
        return f"factor={self._designs['factor']:g}"
