"""The level of a mean square, and whether there is one."""

import math

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.scales import P0


def level_db(power: NDArray[np.floating]) -> NDArray[np.float64]:
    """Level in dB re 20 uPa of a mean square in Pa^2; minus infinity for silence."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return 10 * np.log10(np.asarray(power, np.float64) / P0**2)


def finite(level: float | None) -> float | None:
    """A level as a plain float, or None where there is none."""
    return float(level) if level is not None and math.isfinite(level) else None
