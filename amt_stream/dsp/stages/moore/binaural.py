"""Binaural inhibition: each ear reduces the loudness in the other."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from amt_stream.dsp.checkpoints import number
from amt_stream.dsp.functional.filters.fir import windows
from amt_stream.dsp.functional.loudness import SILENT, inhibition_gains
from amt_stream.dsp.stages.moore.excitation import CAM_STEP, CAMS
from amt_stream.dsp.stages.moore.specific_loudness import OfVariant, Variant
from amt_stream.dsp.streaming import (
    Outputs,
    Pointwise,
    Shape,
    Shapes,
    Stage,
    as_given,
    at_least,
    output,
)

SIGMA = 0.08
KERNEL_WIDTH = 18.0

THETA = 1.5978
"""Exponent of the inhibition: with equal ears each loses a quarter, so two make 1.5 times one."""


def smoothing_kernel(sigma: float = SIGMA, width: float = KERNEL_WIDTH) -> np.ndarray:
    """Weights exp(-(sigma g)^2) for g = -width .. width Cam, normalized to sum 1."""
    g = CAM_STEP * np.arange(-round(width / CAM_STEP), round(width / CAM_STEP) + 1)
    weights = np.exp(-((sigma * g) ** 2))
    return weights / weights.sum()


def smoothing_matrix(kernel: np.ndarray, channels: int = CAMS.size) -> np.ndarray:
    """Convolution with `kernel` over channels, zero-padded, as a matrix (channel, channel)."""
    half = kernel.size // 2
    apart = np.arange(channels) - np.arange(channels)[:, None]
    return np.where(np.abs(apart) <= half, kernel[np.clip(apart + half, 0, 2 * half)], 0.0)


def one_frame(stage: Stage, left: Tensor, right: Tensor) -> Tensor:
    """The ears (..., channel) as one frame (..., 2, 1, channel), in the dtype of `stage`.

    Raises ValueError for ears of different shapes, or without a channel axis.
    """
    ears = stage.converted(left), stage.converted(right)
    if left.shape != right.shape or not left.dim():
        raise ValueError(
            f"{type(stage).__name__} takes a pattern (..., channel) of each ear, given "
            f"{tuple(left.shape)} and {tuple(right.shape)}: give two equal shapes"
        )
    return torch.stack(ears, -2).unsqueeze(-2)


class SpatialSmoothing(OfVariant):
    """Specific loudness (..., channel) smoothed over channels by a Gaussian, the same shape.

    kernel_width: Cam to each side, a multiple of 0.25
    sigma: of the kernel exp(-(sigma g)^2)
    learnable: both become parameters; the number of weights is fixed, and a learned width changes
        their spacing
    variant: "documented" extends the pattern by reflection, "iso532-3" by zeros

    Attributes: `g` (145,) by default, the weights' distances in Cam, and `gaussian_kernel`, the
    present weights, sum 1; None when learnable.
    """

    time_dim = -2
    out_time_dim = -2
    in_quantity = out_quantity = "sone/Cam"

    kernel_width: float | Tensor

    def __init__(
        self,
        kernel_width: float = KERNEL_WIDTH,
        sigma: float = SIGMA,
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
        variant: Variant = "documented",
    ) -> None:
        super().__init__(learnable, dtype, variant)
        if kernel_width <= 0 or kernel_width % CAM_STEP or kernel_width > 37.25:
            raise ValueError(
                f"SpatialSmoothing: kernel_width is {kernel_width}: give a multiple of {CAM_STEP} "
                "Cam, up to 37.25"
            )
        half = round(kernel_width / CAM_STEP)
        # Reflection cannot exceed the length of the pattern.
        self.fixed_axes = {-1: at_least(half + 1 if variant == "documented" else 1)}
        # Positions of the weights, in kernel widths.
        self.register_table("places", np.arange(-half, half + 1) / half)
        self.register_constant("sigma", np.array(sigma, np.float64), learnable)
        if learnable:
            self.register_constant("kernel_width", np.array(kernel_width, np.float64), True)
        else:
            self.kernel_width = kernel_width

    @property
    def g(self) -> Tensor:
        """Distances of the kernel's weights in Cam."""
        return self.kernel_width * self.places

    @property
    def gaussian_kernel(self) -> Tensor | None:
        """Weights of the kernel, sum 1; None when learnable."""
        return None if self.learnable else self._kernel()

    def _kernel(self) -> Tensor:
        weights = torch.exp(-((self.sigma * self.g) ** 2))
        return weights / weights.sum()

    def forward(self, specific_loudness: Tensor) -> Tensor:
        """`transform` of `specific_loudness` (..., channel), in its dtype if floating point."""
        return super().forward(specific_loudness)

    def transform(self, x: Tensor) -> Tensor:
        half = self.places.shape[0] // 2
        rows = x.reshape(-1, x.shape[-1])
        mode = "reflect" if self.variant == "documented" else "constant"
        padded = nn.functional.pad(rows, (half, half), mode=mode)
        return windows(padded, self._kernel()[None], 1).reshape(x.shape)

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        began = given.pop("kernel_width_init", None)
        if began is not None and round(began.item() / CAM_STEP) != self.places.shape[0] // 2:
            raise ValueError(
                f"the kernel of the checkpoint was made {began.item():g} Cam wide, which "
                "fixes the number of weights"
            )
        return {}

    def get_parameters(self) -> dict[str, object]:
        """kernel_width, sigma, kernel_size and learnable."""
        return {
            "kernel_width": number(self.kernel_width),
            "sigma": number(self.sigma),
            "kernel_size": self.places.shape[0],
            "learnable": self.learnable,
        }


class BinauralInhibition(OfVariant):
    """Factors that divide each ear's specific loudness, from both ears' smoothed patterns.

    2 / (1 + sech(r)^p) with r the other ear's pattern over this ear's. variant="documented" uses
    sech(ln r): equal ears divide by 1, a silent other ear by 2. "iso532-3" uses sech(r): 4/3 and 1
    (Moore & Glasberg 2007).

    `step` takes (..., 2, frame, channel) and gives the same shape; called directly, it takes two
    ears of any one shape and gives two tensors.
    """

    time_dim = -2
    out_time_dim = -2
    in_quantity = "sone/Cam"

    def __init__(
        self,
        p: float = THETA,
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
        variant: Variant = "documented",
    ) -> None:
        super().__init__(learnable, dtype, variant)
        self.fixed_axes = {-3: 2}
        self.register_constant("p", np.array(p, np.float64), learnable)

    def transform(self, x: Tensor) -> Tensor:
        q = x + SILENT
        if self.variant == "iso532-3":
            return 1 / inhibition_gains(q, self.p)
        r = q.flip(-3) / q
        # cosh(ln r) = (r + 1/r) / 2
        return 2 / (1 + (2 / (r + 1 / r)) ** self.p)

    def forward(self, left_smoothed: Tensor, right_smoothed: Tensor) -> Outputs:  # type: ignore[override]
        """Factors of the left and the right ear."""
        y = super().forward(one_frame(self, left_smoothed, right_smoothed))
        return as_given(y, left_smoothed).squeeze(-2).unbind(-2)

    def get_parameters(self) -> dict[str, float]:
        """p."""
        return {"p": number(self.p)}


@output
class BinauralTotal(NamedTuple):
    """Loudness in sone of both ears together, and of each (..., frame)."""

    total: Tensor
    left: Tensor
    right: Tensor


class Moore2016BinauralLoudness(Pointwise):
    """Specific loudness of both ears to binaural loudness, as documented; not in the meter.

    `step` takes (..., 2, frame, 150) and gives `BinauralTotal`; called directly, it takes the two
    ears (..., 150) and gives total, left and right.
    """

    in_quantity = "sone/Cam"

    def __init__(
        self,
        kernel_width: float = KERNEL_WIDTH,
        sigma: float = SIGMA,
        p: float = THETA,
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
        variant: Variant = "documented",
    ) -> None:
        super().__init__()
        self.learnable = learnable
        self.time_dim = -2
        self.out_time_dim = BinauralTotal(-1, -1, -1)  # type: ignore[arg-type]
        self.fixed_axes = {-3: 2, -1: CAMS.size}
        self.spatial_smoothing = SpatialSmoothing(kernel_width, sigma, learnable, dtype, variant)
        self.inhibition = BinauralInhibition(p, learnable, dtype, variant)
        self.to(dtype)

    def transform(self, x: Tensor) -> Outputs:
        smoothed, _ = self.spatial_smoothing.hooked_step(x, {})
        factors, _ = self.inhibition.hooked_step(smoothed, {})
        ears = CAM_STEP * (x / factors).sum(-1)
        left, right = ears.unbind(-2)
        return BinauralTotal(left + right, left, right)

    def forward(self, specific_loud_left: Tensor, specific_loud_right: Tensor) -> Outputs:  # type: ignore[override]
        """Loudness of both ears, the left and the right, each without the channel axis."""
        both = one_frame(self, specific_loud_left, specific_loud_right)
        self.check_axes(both.shape)
        y = self.transform(both)
        return BinauralTotal(*(as_given(v.squeeze(-1), specific_loud_left) for v in y))

    def out_shape(self, shape: Shape) -> Shapes:
        rows = shape[:-2]
        return BinauralTotal(rows, rows, rows)  # type: ignore[arg-type]

    def get_parameters(self) -> dict[str, object]:
        """The parameters of `spatial_smoothing` and `inhibition`."""
        return {
            "spatial_smoothing": self.spatial_smoothing.get_parameters(),
            "inhibition": self.inhibition.get_parameters(),
        }
