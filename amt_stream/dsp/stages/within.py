"""Parameters that an optimizer may move anywhere, in use within their range."""

from typing import Any

import torch
from torch import Tensor


def within(x: Tensor, low: float, high: float) -> Tensor:
    """`x` between `low` and `high`.

    A gradient that would lead further out is 0, so that nothing drifts beyond an end; one that
    leads back in passes, where the slope of `clamp` is 0 and would hold `x` outside for good.
    """
    if torch.compiler.is_compiling():
        # Tracing trips over functions of one's own; so traced, the way out has a slope too.
        return x + (x.clamp(low, high) - x).detach()
    return _Within.apply(x, low, high)


class _Within(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, low: float, high: float) -> Tensor:
        return x.clamp(low, high)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, ctx.low, ctx.high = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        # A step goes against the gradient.
        outward = ((x <= ctx.low) & (grad > 0)) | ((x >= ctx.high) & (grad < 0))
        return torch.where(outward, 0.0, grad), None, None
