"""Recursive filters of any order by their difference equations."""

import numpy as np
import torch
from torch import Tensor

from amt_stream.functional.dispatch import Array, array, compiled, kernel
from amt_stream.functional.operators import alike, operator
from amt_stream.functional.shapes import fit, last_axes, signal_axes
from amt_stream.functional.state_space import state_space
from amt_stream.functional.tiles import LANES, SPAN, load, store


@operator(alike)
def direct_form(x: Tensor, b: Tensor, a: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`x` (..., time) through sections in series, each y = (b * x - a[1:] * y) along time.

    b, a: (section, order + 1), a[:, 0] = 1; zi, zf: (..., section, order), transposed direct
    form II. For poles next to 1, as of low frequencies, all must be float64.
    """
    lead, _ = signal_axes("direct_form", "x", x, 1)
    sections, order = last_axes("direct_form", "zi", zi, 2)
    sections = max(1, sections)
    table = (sections, order + 1)
    state = (*lead, sections, order)
    fit("direct_form", x.dtype, ("b", b, table), ("a", a, table), ("zi", zi, state))
    if compiled(x, b, a, zi):
        rows = array(x).reshape(-1, x.shape[-1])
        y, zf = x.new_empty(rows.shape), zi.clone(memory_format=torch.contiguous_format)
        states = zf.view(len(rows), *zi.shape[-2:]).numpy()
        _direct_form(rows, array(b), array(a), states, y.numpy())
        return y.view(x.shape), zf
    y, order = x.unsqueeze(-2), zi.shape[-1]
    ends = []
    for section, start in enumerate(zi.unbind(-2)):
        p, q = b[section], a[section]
        if not order:
            y = p * y
            ends.append(start)
            continue
        transition = torch.cat([-q[1:, None], torch.eye(order, dtype=a.dtype, device=a.device)], 1)
        drive = p[1:] - q[1:] * p[0]
        see = torch.eye(1, order, dtype=a.dtype, device=a.device)
        y, end = state_space(
            y, transition[None, :, :order], drive[None], see, p[:1], start.unsqueeze(-2)
        )
        ends.append(end.squeeze(-2))
    return y.squeeze(-2), torch.stack(ends, -2)


@kernel
def _direct_form(x: Array, b: Array, a: Array, states: Array, y: Array) -> None:
    """`states` (row, section, order) become the last ones."""
    sections, order = states.shape[1], states.shape[2]
    lanes = min(LANES, x.shape[0])  # unknown to the compiler, or it would unroll, not vectorize
    tile, out = np.zeros((SPAN, lanes), x.dtype), np.zeros(lanes, x.dtype)
    z = np.zeros((order + 1, lanes), x.dtype)  # the last row stays 0
    for first in range(0, x.shape[0], lanes):
        rows = min(lanes, x.shape[0] - first)
        for start in range(0, x.shape[1], SPAN):
            length = min(SPAN, x.shape[1] - start)
            load(x, first, rows, start, length, tile)
            for section in range(sections):
                p, q = b[section], a[section]
                for k in range(order):
                    for i in range(rows):
                        z[k, i] = states[first + i, section, k]
                for t in range(length):
                    v, head = tile[t], z[0]
                    for i in range(v.size):
                        out[i] = p[0] * v[i] + head[i]
                    for k in range(order):
                        now, after = z[k], z[k + 1]
                        for i in range(v.size):
                            now[i] = after[i] + p[k + 1] * v[i] - q[k + 1] * out[i]
                    for i in range(v.size):
                        v[i] = out[i]
                for k in range(order):
                    for i in range(rows):
                        states[first + i, section, k] = z[k, i]
            store(tile, first, rows, start, length, y)
