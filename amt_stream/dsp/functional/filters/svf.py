"""Second-order sections as state-variable filters, accurate in float32 at 2 Hz and 48 kHz."""

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.dispatch import (
    Array,
    array,
    compilable,
    compiled,
    recurrence,
)
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.compiler.operators import alike, operator
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes
from amt_stream.dsp.functional.compiler.tiles import load, store
from amt_stream.dsp.functional.filters.sections import Sections, cascade
from amt_stream.dsp.functional.filters.state_space import BLOCK, Blocks, blocks, run

LOW = (0.0, 0.0, 1.0)
"""Weights of a low-pass section: gain 1 at DC."""

BAND = (0.0, 1.0, 0.0)
"""Weights of a band-pass section: gain 1 / k at its center."""

TILE = 32
"""Samples transposed at a time."""


@operator(alike)
def svf(x: Tensor, g: Tensor, k: Tensor, weights: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`x` (..., channel, time) through second-order sections in series, and their last state.

    g: (channel, section) tan(pi f / fs) for a corner or center frequency f
    k: (channel, section) 1 / Q: sqrt(2) for a second-order Butterworth low-pass
    weights: (channel, section, 3) of a section's input, band and low output in its output: `LOW`,
        `BAND`, or (1, -k, -1) for its high-pass
    zi, zf: (..., channel, section, 2), zeros at rest

    Each section is the bilinear transform of s^2 + k s + 1, its two states those of trapezoidal
    integrators (Zavalishin, The Art of VA Filter Design, 2012). Rounding affects the increments of
    the states, not poles near 1, as in the direct forms.
    """
    lead, channels, _ = signal_axes("svf", "x", x, 2)
    sections, _ = last_axes("svf", "zi", zi, 2)
    table = (channels, max(1, sections))
    state = (*lead, *table, 2)
    fit("svf", x.dtype, ("g", g, table), ("k", k, table), ("weights", weights, (*table, 3)))
    fit("svf", x.dtype, ("zi", zi, state))
    if gpu.serves(x, g, k, weights, zi):
        y, zf = gpu.svf(x, g, k, weights, zi)
        return y, zf
    if compiled(x, g, k, weights, zi):
        return _forward(x, g, k, weights, zi)
    if compilable(x, g, k, weights, zi):
        tables = svf_sections(g, k, weights)
        return cascade(x, tables, zi, lambda x, zi: _forward(x, g, k, weights, zi))
    y, last = run(x, svf_blocks(g, k, weights, min(BLOCK, x.shape[-1]), x.dtype), zi.flatten(-2))
    return y, last.view(zi.shape)


def svf_sections(g: Tensor, k: Tensor, weights: Tensor) -> Sections:
    """The state-space form of `svf`, in float64."""
    g, k, weights = g.double(), k.double(), weights.double()
    r = 1 / (1 + g * (g + k))
    h, p, q = g * (g + k) * r, g * r, g * g * r
    # Increments of a section's two integrators, from the states and the input.
    take = torch.stack([torch.stack([-h, -p], -1), torch.stack([p, -q], -1)], -2)
    driven = torch.stack([p, q], -1)
    # The output: weights of the states after half an increment, and of the input.
    one = torch.eye(2, dtype=g.dtype, device=g.device)
    see = (weights[..., None, 1:] @ (one + take)).squeeze(-2)
    through = weights[..., 0] + (weights[..., 1:] * driven).sum(-1)
    return Sections(one + 2 * take, 2 * driven, see, through)


def svf_blocks(g: Tensor, k: Tensor, weights: Tensor, length: int, dtype: torch.dtype) -> Blocks:
    """The sections of `svf` as one linear system, computed in float64, rounded to `dtype`."""
    a, b, c, d = svf_sections(g, k, weights)
    channels, sections = d.shape
    # Each section's input depends on all earlier states and on the cascade's input.
    inputs, direct = d.new_zeros(channels, 2 * sections), d.new_ones(channels)
    rows, drives = [], []
    for s in range(sections):
        around = (2 * s, 2 * (sections - 1 - s))
        own = torch.nn.functional.pad(a[:, s], around)
        rows.append(own + b[:, s, :, None] * inputs[:, None])
        drives.append(b[:, s] * direct[:, None])
        inputs = torch.nn.functional.pad(c[:, s], around) + d[:, s, None] * inputs
        direct = d[:, s] * direct
    made = blocks(torch.cat(rows, -2), torch.cat(drives, -1), inputs, direct, length)
    return Blocks(*(t.to(dtype) for t in made))


def _forward(x: Tensor, g: Tensor, k: Tensor, weights: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    rows, states = array(x).reshape(-1, x.shape[-1]), array(zi).reshape(-1, *zi.shape[-2:])
    y, zf = x.new_empty(rows.shape), zi.new_empty(states.shape)
    _svf(rows, *(array(t) for t in (g, k, weights)), states, y.numpy(), zf.numpy())
    return y.view(x.shape), zf.view(zi.shape)


@recurrence
def _svf(x: Array, g: Array, k: Array, weights: Array, zi: Array, y: Array, zf: Array) -> None:
    filters, time = x.shape
    channels, sections = g.shape
    made = np.zeros((8, sections, LANES), x.dtype)
    h, p, q, c1, c2 = made[0], made[1], made[2], made[3], made[4]
    w0, w1, w2 = made[5], made[6], made[7]
    tile = np.zeros((TILE, LANES), x.dtype)
    one, two = x.dtype.type(1), x.dtype.type(2)
    for start in range(0, filters, LANES):
        lanes = min(LANES, filters - start)
        for i in range(lanes):
            c = (start + i) % channels
            for s in range(sections):
                r = one / (one + g[c, s] * (g[c, s] + k[c, s]))
                h[s, i] = g[c, s] * (g[c, s] + k[c, s]) * r
                p[s, i] = g[c, s] * r
                q[s, i] = g[c, s] * g[c, s] * r
                w0[s, i], w1[s, i], w2[s, i] = weights[c, s]
                c1[s, i], c2[s, i] = zi[start + i, s]
        for begin in range(0, time, TILE):
            count = min(TILE, time - begin)
            load(x, start, lanes, begin, count, tile)
            for t in range(count):
                v = tile[t]
                for s in range(sections):
                    hs, ps, qs, a, b = h[s], p[s], q[s], c1[s], c2[s]
                    u0, u1, u2 = w0[s], w1[s], w2[s]
                    for i in range(LANES):
                        excess = v[i] - b[i]
                        # Increments are rounded separately from the states.
                        d1 = ps[i] * excess - hs[i] * a[i]
                        d2 = ps[i] * a[i] + qs[i] * excess
                        v[i] = u0[i] * v[i] + u1[i] * (a[i] + d1) + u2[i] * (b[i] + d2)
                        a[i] += two * d1
                        b[i] += two * d2
            store(tile, start, lanes, begin, count, y)
        for i in range(lanes):
            for s in range(sections):
                zf[start + i, s, 0], zf[start + i, s, 1] = c1[s, i], c2[s, i]
