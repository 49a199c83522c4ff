"""Transfer from the sound field or the eardrum to the cochlea."""

from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from torch import Tensor

from amt_stream.dsp.contract import hertz
from amt_stream.dsp.data import table
from amt_stream.dsp.design import GRID, linear_phase, nearly_linear_phase, partitioned
from amt_stream.dsp.functional.filters.fir import partitioned_fir
from amt_stream.dsp.streaming import Shape, Stage, State, with_time

Field = Literal["free", "diffuse", "eardrum"]
Phase = Literal["mixed", "linear"]

HOP = 32
TAPS = 4097
"""Taps of the linear-phase reference."""

LATE, MIXED_TAPS = 352, 3296
"""Latency in samples, and taps, of the mixed-phase filter."""


def ear_gain_db(field: Field, f: np.ndarray) -> np.ndarray:
    """Gain in dB from the sound field to the cochlea at `f` Hz (ISO 532-3:2023, Table 1)."""
    rows = table("moore_ear_transfer")
    gain = rows["middle_ear_db"]
    if field != "eardrum":
        gain = gain + rows[f"{field}_field_db"]
    return np.interp(f, rows["freq_hz"], gain)


class EarFilter(Stage):
    """Sound pressure (..., time) in a field or at the eardrum, as it reaches the cochlea.

    It filters the waveform before the spectrum, because short windows smear a tone over frequencies
    of different gain. `phase="linear"` (4097 taps, 2048 samples late) is the reference. "mixed" is
    352 samples late, matches its gain within 0.025 dB from 25 Hz to 15 kHz, and has phase as linear
    as that delay allows, so that short sounds are as loud as with the reference.
    """

    def __init__(self, fs: int = 32000, field: Field = "free", phase: Phase = "mixed") -> None:
        super().__init__()
        if field not in ("free", "diffuse", "eardrum"):
            raise ValueError(f"field is {field!r}: give free, diffuse or eardrum")
        if phase not in ("mixed", "linear"):
            raise ValueError(f"ear_filter is {phase!r}: give mixed or linear")
        fs = hertz("EarFilter", fs)
        self.fs, self.field, self.phase = fs, field, phase
        taps = ear_taps(fs, field, phase)
        self.block_size = HOP
        self.latency = Fraction(LATE if phase == "mixed" else TAPS // 2)
        tables = partitioned(taps, HOP)
        for name, values in zip(("partitions", "to_lines", "from_lines"), tables, strict=True):
            self.register_table(name, values)

    def initial_state(self, shape: Shape) -> State:
        count, both = self.partitions.shape
        return {"spectra": self.state_like("spectra", with_time(shape, -1, (count - 1) * both))}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        tables = self.partitions, self.to_lines, self.from_lines
        y, spectra = partitioned_fir(x, *tables, state["spectra"])
        return y, {"spectra": spectra}


@lru_cache(maxsize=8)  # files of one rate have one filter
def ear_taps(fs: int, field: Field, phase: Phase) -> np.ndarray:
    """Taps of `EarFilter` in float64, read-only."""
    gain = 10 ** (ear_gain_db(field, np.linspace(0, fs / 2, GRID // 2 + 1)) / 20)
    reference = linear_phase(gain, TAPS)
    if phase == "linear":
        taps = reference
    else:
        taps = nearly_linear_phase(np.abs(np.fft.rfft(reference, GRID)), fs, MIXED_TAPS, LATE)
    taps.setflags(write=False)
    return taps
