"""First-order relaxation towards a moving target at a varying rate."""

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compiled, kernel
from amt_stream.dsp.functional.compiler.gradient import Tensors, differentiable
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.compiler.operators import alike, operator
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes
from amt_stream.dsp.functional.compiler.tiles import SPAN, load, store


@operator(alike)
def relax(target: Tensor, rate: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """y[t] = y[t-1] + rate[t] (target[t] - y[t-1]) along time, the last axis.

    target, rate: (..., time); zi, zf: (...), the y before and the last
    """
    lead, time = signal_axes("relax", "target", target, 1)
    fit("relax", target.dtype, ("rate", rate, (*lead, time)), ("zi", zi, lead))
    tensors = (target, rate, zi)
    if gpu.serves(*tensors):
        y = gpu.relax(*tensors)
        return y, y[..., -1].clone()
    if not compiled(*(t.detach() for t in tensors)):
        return plain_relax(*tensors)
    rows = target.reshape(-1, time), rate.reshape(-1, time), zi.reshape(-1)
    if compiled(*tensors):
        (y,) = _forward(*rows)
    else:
        (y,) = differentiable(_forward, _gradient, lambda *given: plain_relax(*given)[:1], *rows)
    y = y.view(target.shape)
    return y, y[..., -1].clone()


def plain_relax(target: Tensor, rate: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """The plain form, a parallel scan in log2(time) steps.

    After each step y = kept y[t - reach] + gone, with `reach` doubled.
    """
    kept, gone = 1 - rate, rate * target
    reach = 1
    while reach < target.shape[-1]:
        now, before = slice(reach, None), slice(None, -reach)
        gone = torch.cat(
            [gone[..., :reach], gone[..., now] + kept[..., now] * gone[..., before]], -1
        )
        kept = torch.cat([kept[..., :reach], kept[..., now] * kept[..., before]], -1)
        reach *= 2
    y = gone + kept * zi[..., None]
    return y, y[..., -1]


def _forward(target: Tensor, rate: Tensor, zi: Tensor) -> Tensors:
    y = torch.empty_like(target, memory_format=torch.contiguous_format)
    _relax(array(target), array(rate), array(zi), y.numpy())
    return (y,)


@kernel
def _relax(target: Array, rate: Array, zi: Array, y: Array) -> None:
    lanes = min(LANES, y.shape[0])
    goal, pace = np.zeros((SPAN, lanes), y.dtype), np.zeros((SPAN, lanes), y.dtype)
    last = np.zeros(lanes, y.dtype)
    for first in range(0, y.shape[0], lanes):
        rows = min(lanes, y.shape[0] - first)
        for i in range(rows):
            last[i] = zi[first + i]
        for start in range(0, y.shape[1], SPAN):
            length = min(SPAN, y.shape[1] - start)
            load(target, first, rows, start, length, goal)
            load(rate, first, rows, start, length, pace)
            for t in range(length):
                v, r = goal[t], pace[t]
                for i in range(v.size):
                    last[i] += r[i] * (v[i] - last[i])
                    v[i] = last[i]
            store(goal, first, rows, start, length, y)


def _gradient(given: Tensors, outputs: Tensors, slopes: Tensors, needed: object) -> Tensors:
    (target, rate, zi), (y,), (gy,) = given, outputs, slopes
    # The gradient runs backward in time: g[t] = gy[t] + (1 - rate[t+1]) g[t+1].
    g = torch.empty_like(y)
    _backward(array(rate), array(gy), g.numpy())
    before = torch.cat([zi[:, None], y[:, :-1]], 1)
    return g * rate, g * (target - before), g[:, 0] * (1 - rate[:, 0])


@kernel
def _backward(rate: Array, gy: Array, g: Array) -> None:
    for r in range(g.shape[0]):
        last = g.dtype.type(0)
        for t in range(g.shape[1] - 1, -1, -1):
            last += gy[r, t]
            g[r, t] = last
            last -= rate[r, t] * last
