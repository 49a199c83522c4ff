"""From the sound field, or the eardrum, to the cochlea."""

from fractions import Fraction
from typing import Literal

import numpy as np
from torch import Tensor

from amt_stream.contract import hertz
from amt_stream.data import table
from amt_stream.design import GRID, linear_phase, minimum_phase, with_slow_tail
from amt_stream.functional.fir import fir, fir_with_tail
from amt_stream.streaming import Shape, Stage, State, with_time

Field = Literal["free", "diffuse", "eardrum"]
Phase = Literal["minimum", "linear"]

TAPS = {"minimum": 576, "linear": 4097}
HOP = 32
TAIL = 96
"""Values of the tail of the minimum-phase filter, one in `HOP` samples."""

EARLY = 5
"""Samples by which the minimum-phase filter leads its latency: nearly what it holds 1 kHz back."""


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
    quite different gain. `phase="linear"` (4097 taps) is the reference; "minimum" has its gain
    within 0.025 dB from 25 Hz to 15 kHz and delays by 32 samples instead of 2048: 576 taps, and a
    tail of 3072 samples that is heard once in 32, for what rings longer is below 200 Hz.
    """

    taps: Tensor
    low_pass: Tensor
    tail: Tensor

    def __init__(self, fs: int = 32000, field: Field = "free", phase: Phase = "minimum") -> None:
        super().__init__()
        if field not in ("free", "diffuse", "eardrum"):
            raise ValueError(f"field is {field!r}: give free, diffuse or eardrum")
        if phase not in TAPS:
            raise ValueError(f"ear_filter is {phase!r}: give minimum or linear")
        fs = hertz("EarFilter", fs)
        self.fs, self.field, self.phase = fs, field, phase
        gain = 10 ** (ear_gain_db(field, np.linspace(0, fs / 2, GRID // 2 + 1)) / 20)
        reference = linear_phase(gain, TAPS["linear"])
        if phase == "linear":
            self.latency = Fraction(reference.size - 1, 2)
            self.register_table("taps", reference)
            return
        self.block_size, self.latency = HOP, Fraction(HOP)
        gain = np.abs(np.fft.rfft(reference, GRID))
        late = np.zeros(HOP - EARLY)
        response = np.concatenate([late, minimum_phase(gain, HOP * (TAIL + 8))])
        taps, low_pass, tail = with_slow_tail(response, TAPS["minimum"], HOP, TAIL)
        self.register_table("taps", taps)
        self.register_table("low_pass", low_pass)
        self.register_table("tail", tail)

    def initial_state(self, shape: Shape) -> State:
        state = {"past": self.state_like("past", with_time(shape, -1, self.taps.shape[0] - 1))}
        if self.phase == "minimum":
            state["slow"] = self.state_like("slow", with_time(shape, -1, TAIL - 1))
        return state

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        if self.phase == "linear":
            y, past = fir(x, self.taps, state["past"])
            return y, {"past": past}
        tables = self.taps, self.low_pass, self.tail
        y, past, slow = fir_with_tail(x, *tables, state["past"], state["slow"])
        return y, {"past": past, "slow": slow}
