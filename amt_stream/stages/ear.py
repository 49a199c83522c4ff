"""From the sound field, or the eardrum, to the cochlea."""

from fractions import Fraction
from typing import Literal

import numpy as np
from torch import Tensor

from amt_stream.contract import hertz
from amt_stream.data import table
from amt_stream.design import GRID, linear_phase, minimum_phase
from amt_stream.functional.fir import fir
from amt_stream.streaming import Shape, Stage, State, with_time

Field = Literal["free", "diffuse", "eardrum"]
Phase = Literal["minimum", "linear"]

TAPS = {"minimum": 1025, "linear": 4097}


def ear_gain_db(field: Field, f: np.ndarray) -> np.ndarray:
    """Gain in dB from the sound field to the cochlea at `f` Hz (ISO 532-3:2023, Table 1)."""
    rows = table("moore_ear_transfer")
    gain = rows["middle_ear_db"]
    if field != "eardrum":
        gain = gain + rows[f"{field}_field_db"]
    return np.interp(f, rows["freq_hz"], gain)


class EarFilter(Stage):
    """Sound pressure (..., time) in a field or at the eardrum, as it reaches the cochlea.

    It acts on the waveform, ahead of the spectrum: short windows smear a tone over frequencies of
    quite different gain. `phase="minimum"` (1025 taps) delays nothing, `"linear"` (4097) is the
    reference.
    """

    taps: Tensor

    def __init__(self, fs: int = 32000, field: Field = "free", phase: Phase = "minimum") -> None:
        super().__init__()
        if field not in ("free", "diffuse", "eardrum"):
            raise ValueError(f"field is {field!r}: give free, diffuse or eardrum")
        if phase not in TAPS:
            raise ValueError(f"ear_filter is {phase!r}: give minimum or linear")
        fs = hertz("EarFilter", fs)
        self.fs, self.field, self.phase = fs, field, phase
        gain = 10 ** (ear_gain_db(field, np.linspace(0, fs / 2, GRID // 2 + 1)) / 20)
        count = TAPS[phase]
        if phase == "linear":
            self.latency = Fraction(count - 1, 2)
            self.register_table("taps", linear_phase(gain, count))
        else:
            self.register_table("taps", minimum_phase(gain, count))

    def initial_state(self, shape: Shape) -> State:
        return {"past": self.state_like("past", with_time(shape, -1, self.taps.shape[0] - 1))}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, past = fir(x, self.taps, state["past"])
        return y, {"past": past}
