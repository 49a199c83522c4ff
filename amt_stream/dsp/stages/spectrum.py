"""Running spectrum of the loudness models: short windows at high frequencies, long at low."""

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
from torch import Tensor

from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.spectrum import running_spectrum
from amt_stream.dsp.scales import P0
from amt_stream.dsp.streaming import Shape, Stage, State, with_time

FS = 32000
HOP = 32
POINTS = 2048
HALVES = (1024, 512, 256, 128, 64, 32)
EDGES_HZ = (20, 80, 500, 1250, 2540, 4050, 15000)


def component_frequencies() -> np.ndarray:
    """Frequencies in Hz (960,) of the components, 15.625 Hz to 15 kHz."""
    return np.arange(1, EDGES_HZ[-1] * POINTS // FS + 1) * FS / POINTS


def components_per_window() -> list[int]:
    """Number of components of each window, from 64 ms to 2 ms.

    A component at an edge belongs to the band above it, the one at 15 kHz to the last.
    """
    first = [edge * POINTS // FS for edge in EDGES_HZ]
    first[-1] += 1
    return [after - at for at, after in pairwise(first)]


class RunningSpectrum(Stage):
    """Pressure (..., time) in pascal at 32 kHz to intensities (..., frame, 960), one frame per ms.

    An intensity is a power ratio re 0 dB SPL. Hann windows of 64, 32, 16, 8, 4 and 2 ms, all
    centered on the frame, each serve one band of components (Glasberg & Moore 2002; ISO 532-3:2023,
    clause 7.3).

    calibration_db: gain of all intensities; with the standard's 3.32 dB the components of a tone
        sum to 0.94 dB below its level, for which the loudness model compensates
    """

    block_size = HOP
    ratio = Fraction(1, HOP)
    # The block that ends at sample 32 (n + 1) completes the window centered on 32 (n - 31).
    latency = Fraction(POINTS // 2 - HOP)
    out_time_dim = -2
    fs = FS
    input_unit = "pascal"
    out_quantity = "power"

    def __init__(self, calibration_db: float = 3.32) -> None:
        super().__init__()
        self.calibration_db = calibration_db
        weights, self.bins = _weights(calibration_db)
        self.register_table("cosine", weights.real)
        self.register_table("sine", weights.imag)

    def initial_state(self, shape: Shape) -> State:
        return {"past": self.state_like("past", with_time(shape, -1, POINTS - HOP))}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        cosine, sine = self.registered("cosine", "sine")
        y, past = running_spectrum(x, cosine, sine, HALVES, self.bins, HOP, state["past"])
        return y, {"past": past}

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape, component_frequencies().size)


@lru_cache(maxsize=2)  # models of one calibration share it
def _weights(calibration_db: float) -> tuple[np.ndarray, tuple[int, ...]]:
    """Weights of all windows, half of each, in one read-only row, and components of each."""
    counts = components_per_window()
    weights = np.zeros((HALVES[0], sum(counts)), complex)
    first = 0
    for i, (half, count) in enumerate(zip(HALVES, counts, strict=True)):
        q = np.arange(half) + 0.5  # distance from the center, between two samples
        window = 0.5 + 0.5 * np.cos(2 * np.pi * q / (2 * half - 1))
        scale = 2 / POINTS * 10 ** (calibration_db / 20) * 2 ** (i / 2) / (np.sqrt(2) * P0)
        last = first + count
        phase = 2 * np.pi / POINTS * np.outer(q, np.arange(first, last) + 1)
        weights[:half, first:last] = scale * window[:, None] * np.exp(1j * phase)
        first = last
    # Each group of LANES components uses the longest of its windows.
    lengths = np.repeat(HALVES, counts)[::LANES]
    bins = tuple(LANES * int(np.sum(lengths == half)) for half in HALVES)
    parts = zip(HALVES, np.split(weights, np.cumsum(bins)[:-1], axis=1), strict=True)
    flat = np.concatenate([part[:half].ravel() for half, part in parts])
    flat.setflags(write=False)
    return flat, bins
