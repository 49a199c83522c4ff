"""Clamping of learned parameters to their range."""

from typing import Any

import torch
from torch import Tensor


def within(x: Tensor, low: float, high: float) -> Tensor:
    """`x` clamped to `low` .. `high`, with a useful gradient.

    At a limit, a gradient that leads outward is 0, so that parameters do not drift, and one that
    leads back passes. The gradient of `clamp` would be 0 there and trap `x` outside.
    """
    if torch.compiler.is_compiling():
        # Tracing does not support custom functions; here the outward gradient passes too.
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
        # Gradient descent steps against the gradient.
        outward = ((x <= ctx.low) & (grad > 0)) | ((x >= ctx.high) & (grad < 0))
        return torch.where(outward, 0.0, grad), None, None
