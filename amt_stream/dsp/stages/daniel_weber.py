"""Roughness after Daniel & Weber (1997)."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.data import table
from amt_stream.dsp.functional.daniel_weber import (
    CHANNELS,
    FS,
    HOP,
    LINES,
    RATES,
    SPACING,
    TABLE_SHAPES,
    WINDOW,
    rough_windows,
)
from amt_stream.dsp.scales import P0
from amt_stream.dsp.streaming import Shape, Stage, State, output, with_time

LINE_HZ = FS / WINDOW

PLATEAUS = {4: 2, 5: 5, 16: 16, 20: 16, 21: 21, 42: 42}
"""Curve of the figure that a channel has; those below 4 and above 42 have the nearest."""

ASPER = 0.2482
"""0.25 in the paper; with this, the sound that defines 1 asper has it."""


@output
class DanielWeberOutput(NamedTuple):
    """Roughness per frame, 10 a second.

    r: in asper (..., frame)
    specific: specific roughness in asper/Bark (..., frame, 47), at 0.5, 1 ... 23.5 Bark
    """

    r: Tensor
    specific: Tensor


class DanielWeberRoughness(Stage):
    """Sound pressure (..., time) in pascal at 48 kHz to `DanielWeberOutput`, 10 frames a second.

    A frame is the spectrum of 200 ms under a Blackman window. Each line above threshold excites the
    channels around it, and the lines in a channel make its envelope, which is weighted by the rates
    that are rough. Specific roughness is the square of the envelope's depth and of its correlations
    with those 1 Bark below and above (Daniel & Weber 1997). A frame stands for the middle of its
    window. Gradients are those of the lines that are audible.
    """

    block_size = HOP
    ratio = Fraction(1, HOP)
    latency = Fraction(HOP)
    out_time_dim = DanielWeberOutput(-1, -2)  # type: ignore[arg-type]
    fs = FS
    input_unit = "pascal"
    per_channel = True
    frames_stand_for_end = True
    frame_rate = FS / HOP

    def __init__(self) -> None:
        super().__init__()
        turn = 2 * np.pi / WINDOW * np.arange(WINDOW)
        window = 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn)
        # A tone on a line has its RMS there.
        self.register_table("window", np.sqrt(2) / window.sum() * window)
        hz, critical = LINE_HZ * np.arange(LINES), table("bark")
        bark = np.interp(hz, critical["hz"], critical["bark"])
        ear, quiet, share = (table(f"daniel_weber_{v}") for v in ("ear", "threshold", "share"))
        self.register_table("ear", 10 ** (np.interp(bark, ear["bark"], ear["gain_db"]) / 20))
        self.register_table("bark", bark)

        def threshold(place: np.ndarray) -> np.ndarray:
            return P0**2 * 10 ** (np.interp(place, quiet["bark"], quiet["level_db"]) / 10)

        self.register_table("audible", threshold(bark))
        self.register_table("slope", 24 + 230 / np.maximum(hz, LINE_HZ))
        center = SPACING * np.arange(1, CHANNELS + 1)
        self.register_table("reached", threshold(center + SPACING * np.array([[-1], [1]])))
        self.register_table("weights", rate_weights())
        self.register_table("share", ASPER * np.interp(center, share["bark"], share["share"]))

    def initial_state(self, shape: Shape) -> State:
        return {"past": self.state_like("past", with_time(shape, -1, HOP))}

    def step(self, x: Tensor, state: State) -> tuple[DanielWeberOutput, State]:
        samples = torch.cat((state["past"], x), -1)
        y = rough_windows(samples, *self.registered(*TABLE_SHAPES))
        return DanielWeberOutput(*y), {"past": samples[..., -HOP:]}

    def out_shape(self, shape: Shape) -> DanielWeberOutput:
        return DanielWeberOutput(shape, (*shape, CHANNELS))  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        return f"channels={CHANNELS}"


def rate_weights() -> np.ndarray:
    """Weights (47, 129) of modulation rates, mixed by place between the curves of the figure."""
    rows, hz = table("daniel_weber_rates"), LINE_HZ * np.arange(RATES)
    curves = []
    for channel in PLATEAUS.values():
        here = rows["channel"] == channel
        curves.append(np.interp(hz, rows["hz"][here], rows["weight"][here]))
    channels, places = np.arange(1, CHANNELS + 1), list(PLATEAUS)
    weights = np.stack([np.interp(channels, places, v) for v in np.transpose(curves)], -1)
    # The window modulates at these rates.
    weights[:, :2] = 0
    return weights
