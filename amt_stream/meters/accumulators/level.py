"""The level of a mean square, and whether there is one."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.scales import P0


def decibels(power: Any) -> Any:
    """Level in dB re 20 uPa of a mean square in Pa^2, for arrays and for compiled loops."""
    return 10 * np.log10(power / P0**2)


def level_db(power: NDArray[np.floating]) -> NDArray[np.float64]:
    """Level in dB re 20 uPa of a mean square in Pa^2; minus infinity for silence."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(decibels(np.asarray(power, np.float64)))


def finite(level: float | None) -> float | None:
    """A level as a plain float, or None where there is none."""
    return float(level) if level is not None and math.isfinite(level) else None
