"""Sharpness (DIN 45692:2009; Aures 1985; von Bismarck 1974) from Zwicker's specific loudness."""

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.zwicker import POINTS
from amt_stream.dsp.streaming import Pointwise, Shape

Weighting = Literal["din", "aures", "bismarck"]

WIDTH = 0.1
"""Spacing of specific loudness in Bark."""

SCALE = 0.1115
"""Factor in acum per Bark; DIN 45692 leaves it to the meter, from 0.105 to 0.115.

With this value the standard's narrow and broad test noises read 4.2 % low to 2.7 % high (5 % is
allowed), and noise from 920 to 1080 Hz at 60 dB reads 1.02 acum. The factor that would make this
noise 1 acum, 0.1095, leaves the broadest 5.7 % low.
"""

LEAST_SONE = 1e-3
"""Loudness below which sharpness is 0; loudness percentiles count it as silence too."""


class Sharpness(Pointwise):
    """Specific loudness (..., frame, 240) in sone/Bark to sharpness (..., frame) in acum.

    The weighted first moment of specific loudness at 0.1, 0.2 ... 24 Bark, as from
    `ZwickerLoudness` and `zwicker_stationary`, divided by the loudness; the weight emphasizes high
    critical bands. Below 0.001 sone it is 0.

    weighting: "din" (DIN 45692), "bismarck" (von Bismarck), or "aures" (Aures), which also grows
        with loudness; raises ValueError for another

    >>> import torch
    >>> Sharpness()(torch.ones(2, 5, 240)).shape
    torch.Size([2, 5])
    """

    time_dim = -2
    in_quantity, out_quantity = "sone/Bark", "acum"

    def __init__(self, weighting: Weighting = "din") -> None:
        super().__init__()
        if weighting not in get_args(Weighting):
            words = ", ".join(get_args(Weighting))
            raise ValueError(f"Sharpness: weighting is {weighting!r}: give one of {words}")
        self.fixed_axes = {-1: POINTS}
        self.shape_remedy = "give specific loudness at 0.1, 0.2 ... 24 Bark"
        self.weighting = weighting
        self.register_table("weights", SCALE * moment_weights(weighting))

    def transform(self, x: Tensor) -> Tensor:
        sone = loudness_of(x)
        loud = sone.clamp(min=LEAST_SONE)
        moment = WIDTH * (x * self.weights).sum(-1)
        # Aures divides by ln(1 + 0.05 N) instead of N.
        over = torch.log1p(0.05 * loud) if self.weighting == "aures" else loud
        return torch.where(sone < LEAST_SONE, 0.0, moment / over)

    def out_shape(self, shape: Shape) -> Shape:
        return shape[:-1]


def loudness_of(specific: Tensor) -> Tensor:
    """Loudness (...) of specific loudness (..., 240): its area, within 0.05 %.

    The pattern rises steeply at the lower edges of critical bands and falls along straight lines,
    so a falling step counts with its mean and any other with its end.
    """
    before = torch.cat([torch.zeros_like(specific[..., :1]), specific[..., :-1]], -1)
    return WIDTH * torch.maximum(specific, (specific + before) / 2).sum(-1)


def moment_weights(weighting: Weighting) -> np.ndarray:
    """Weights z g(z) (240,) of specific loudness, for critical-band rates z in Bark."""
    z = WIDTH * np.arange(1, POINTS + 1)
    if weighting == "aures":
        return 0.078 * np.exp(0.171 * z)
    if weighting == "bismarck":
        return z * np.where(z <= 15, 1.0, 0.2 * np.exp(0.308 * (z - 15)) + 0.8)
    return z * np.where(z <= 15.8, 1.0, 0.15 * np.exp(0.42 * (z - 15.8)) + 0.85)
