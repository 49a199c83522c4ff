"""Conversion from the sound card's sampling rate to a model's."""

from fractions import Fraction
from itertools import count
from math import ceil

import numpy as np
from torch import Tensor

from amt_stream.dsp.contract import whole_hertz
from amt_stream.dsp.design import kaiser_low_pass
from amt_stream.dsp.functional.filters.fir import polyphase
from amt_stream.dsp.streaming import Shape, Stage, State, with_time

LARGEST_TERM = 1280
ATTENUATION_DB = 120


class Resample(Stage):
    """`x` (..., time) at `fs_in` to (..., time) at `fs_out`, both whole numbers of hertz.

    A Kaiser-windowed sinc (120 dB) of at least 64 samples of the lower rate to each side: from 44.1
    kHz or more to 32 kHz flat within 0.001 dB to 15 kHz, -110 dB from 17 kHz. Its delay is a
    multiple of 2 ms, so that later frames fall on whole milliseconds. Raises ValueError if the
    reduced ratio has a term above 1280.
    """

    derived = ("kernel",)

    def __init__(self, fs_in: int, fs_out: int) -> None:
        super().__init__()
        self.fs_in, self.fs_out = (whole_hertz("Resample", fs) for fs in (fs_in, fs_out))
        self.fs = self.fs_in
        self.ratio = Fraction(self.fs_out, self.fs_in)
        if not _serves(self.fs_in, self.fs_out):
            below = next((f for f in range(self.fs_in, 0, -1) if _serves(f, self.fs_out)), None)
            above = next(f for f in count(self.fs_in) if _serves(f, self.fs_out))
            near = f"rates that work are {below} and" if below else "rate that works is"
            raise ValueError(
                f"Resample from {fs_in} to {fs_out} Hz: the ratio {self.ratio} has a term above "
                f"{LARGEST_TERM}; the nearest {near} {above} Hz"
            )
        up, down = self.ratio.numerator, self.ratio.denominator
        self.block_size = down
        lower = min(self.fs_in, self.fs_out)
        half = Fraction(2 * ceil(Fraction(64 * 1000, 2 * lower)), 1000)  # seconds
        center = ceil(half * self.fs_in * up)  # in samples of the common rate
        self.latency = Fraction(center, up)
        taps = up * kaiser_low_pass(center, lower / (2 * up * self.fs_in), ATTENUATION_DB)
        # Output q of a block uses the inputs up to q * down // up; at the common rate they lie
        # q * down % up samples back, and then every `up`.
        self.length = ceil(taps.size / up)
        taps = np.pad(taps, (0, self.length * up - taps.size + up))
        bank = np.zeros((up, self.length - 1 + down))
        for q in range(up):
            start, phase = q * down // up, q * down % up
            bank[q, start : start + self.length] = taps[phase::up][: self.length][::-1]
        self.register_table("bank", bank)

    def initial_state(self, shape: Shape) -> State:
        return {"past": self.state_like("past", with_time(shape, -1, self.length - 1))}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, past = polyphase(x, self.bank, self.block_size, self.length, state["past"])
        return y, {"past": past}


def _serves(fs_in: int, fs_out: int) -> bool:
    ratio = Fraction(fs_out, fs_in)
    return max(ratio.numerator, ratio.denominator) <= LARGEST_TERM
