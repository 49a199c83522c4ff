"""Gradients that torch would take minutes or gigabytes for: compiled ones, and those of parts."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import followed

Tensors = tuple[Tensor, ...]
Forward = Callable[..., Tensors]
Backward = Callable[[Tensors, Tensors, Tensors, Sequence[bool]], Sequence[Tensor | None]]


def differentiable(forward: Forward, backward: Backward, plain: Forward, *given: Tensor) -> Tensors:
    """`forward(*given)`, with the gradient `backward(given, outputs, slopes, needed)`.

    slopes: gradients of the outputs; needed: which of `given` need a gradient
    plain: the same in torch, for gradients of the gradient
    """
    y: Tensors = _Differentiable.apply(forward, backward, plain, *given)
    return y


TOGETHER = 16
"""Rows that `by_parts` computes together."""


def by_parts(f: Callable[..., Tensor], given: Tensors, tables: Tensors) -> Tensor:
    """`f(*given)` for a few rows at a time, where each row has many terms.

    For the gradient each part is computed again, or torch would keep the terms of all; not where
    `tables`, which `f` uses too, need a gradient.
    """

    def whole(*given: Tensor) -> Tensors:
        parts = zip(*(v.split(TOGETHER) for v in given), strict=True)
        return (torch.cat([f(*part) for part in parts]),)

    def backward(given: Tensors, outputs: Tensors, slopes: Tensors, needed: object) -> Tensors:
        found = []
        for *part, slope in zip(*(v.split(TOGETHER) for v in (*given, *slopes)), strict=True):
            with torch.enable_grad():
                again = [v.detach().requires_grad_() for v in part]
                found.append(torch.autograd.grad(f(*again), again, slope))
        return tuple(torch.cat(parts) for parts in zip(*found, strict=True))

    if followed() or any(table.requires_grad for table in tables):
        (y,) = whole(*given)
    else:
        (y,) = differentiable(whole, backward, whole, *given)
    return y


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(forward: Forward, backward: Backward, plain: Forward, *given: Tensor) -> Tensors:
        return forward(*given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        _, ctx.kernel, ctx.plain, *given = inputs
        ctx.count = len(given)
        ctx.save_for_backward(*given, *output)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors  # torch.utils.checkpoint allows one access only
        given, outputs = saved[: ctx.count], saved[ctx.count :]
        needed = ctx.needs_input_grad[3:]
        if torch.is_grad_enabled():
            return None, None, None, *_in_torch(ctx.plain, given, slopes, needed)
        return None, None, None, *ctx.kernel(given, outputs, slopes, needed)


def _in_torch(
    plain: Forward, given: Tensors, slopes: Tensors, needed: Sequence[bool]
) -> list[Tensor | None]:
    """The gradient as a torch graph, which can be differentiated again."""
    # Views, because one of `given` may depend on another, outside this function.
    apart = [v.view_as(v) for v in given]
    asked = [v for v, wanted in zip(apart, needed, strict=True) if wanted]
    y = plain(*apart)
    reached = [(v, slope) for v, slope in zip(y, slopes, strict=True) if v.requires_grad]
    ends, along = zip(*reached, strict=True)
    found = iter(torch.autograd.grad(ends, asked, along, create_graph=True, allow_unused=True))
    return [next(found) if wanted else None for wanted in needed]
