"""Second-order sections as state-variable filters: right in float32 at 2 Hz and 48 kHz."""

import numpy as np
import torch
from torch import Tensor

from amt_stream.functional.dispatch import Array, array, compiled, recurrence
from amt_stream.functional.operators import alike, operator
from amt_stream.functional.shapes import fit, last_axes, signal_axes
from amt_stream.functional.state_space import BLOCK, Blocks, blocks, run

LOW = (0.0, 0.0, 1.0)
"""Weights of a low-pass section: gain 1 at DC."""

BAND = (0.0, 1.0, 0.0)
"""Weights of a band-pass section: gain 1 / k at its center."""

LANES = 16
"""Filters that a compiled form runs side by side, one in each place of the vector registers."""

TILE = 32
"""Samples that a compiled form turns from one row a filter to one row an instant, and back."""


@operator(alike)
def svf(x: Tensor, g: Tensor, k: Tensor, weights: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`x` (..., channel, time) through second-order sections in series, and their last state.

    g: (channel, section) tan(pi f / fs) for a corner or center frequency f
    k: (channel, section) 1 / Q: sqrt(2) for a Butterworth low-pass of order two
    weights: (channel, section, 3) of a section's input, band and low output in what it gives on:
        `LOW`, `BAND`, or (1, -k, -1) for its high-pass
    zi, zf: (..., channel, section, 2), zeros at rest

    Each section is the bilinear transform of s^2 + k s + 1, its two states those of trapezoidal
    integrators (Zavalishin, The Art of VA Filter Design, 2012). Rounding acts on what a sample
    adds to a state, not on poles next to 1, as in the direct forms.
    """
    lead, channels, _ = signal_axes("svf", "x", x, 2)
    sections, _ = last_axes("svf", "zi", zi, 2)
    table = (channels, max(1, sections))
    state = (*lead, *table, 2)
    fit("svf", x.dtype, ("g", g, table), ("k", k, table), ("weights", weights, (*table, 3)))
    fit("svf", x.dtype, ("zi", zi, state))
    if compiled(x, g, k, weights, zi):
        rows, states = array(x).reshape(-1, x.shape[-1]), array(zi).reshape(-1, *zi.shape[-2:])
        y, zf = x.new_empty(rows.shape), zi.new_empty(states.shape)
        _svf(rows, *(array(t) for t in (g, k, weights)), states, y.numpy(), zf.numpy())
        return y.view(x.shape), zf.view(zi.shape)
    y, last = run(x, svf_blocks(g, k, weights, min(BLOCK, x.shape[-1]), x.dtype), zi.flatten(-2))
    return y, last.view(zi.shape)


def svf_blocks(g: Tensor, k: Tensor, weights: Tensor, length: int, dtype: torch.dtype) -> Blocks:
    """The sections of `svf` as one linear system, made in float64 and then rounded to `dtype`."""
    g, k, weights = g.double(), k.double(), weights.double()
    channels, sections = g.shape
    r = 1 / (1 + g * (g + k))
    h, p, q = g * (g + k) * r, g * r, g * g * r
    # Of one section: what its two integrators take up in a sample, from the states and the input.
    take = torch.stack([torch.stack([-h, -p], -1), torch.stack([p, -q], -1)], -2)
    driven = torch.stack([p, q], -1)
    # What it gives on: the weights of the states after half of that, and of the input.
    see = weights[..., None, 1:] @ (torch.eye(2, dtype=g.dtype, device=g.device) + take)
    through = weights[..., 0] + (weights[..., 1:] * driven).sum(-1)
    # Each section hears all states before it, and the input of all, through those between.
    hears = g.new_zeros(channels, 2 * sections)
    direct = g.new_ones(channels)
    rows = []
    for s in range(sections):
        own = torch.nn.functional.pad(take[:, s], (2 * s, 2 * (sections - 1 - s)))
        rows.append((own + driven[:, s, :, None] * hears[:, None], driven[:, s] * direct[:, None]))
        own = torch.nn.functional.pad(see[:, s, 0], (2 * s, 2 * (sections - 1 - s)))
        hears = own + through[:, s, None] * hears
        direct = through[:, s] * direct
    a = torch.eye(2 * sections, dtype=g.dtype, device=g.device) + 2 * torch.cat(
        [row for row, _ in rows], -2
    )
    b = 2 * torch.cat([drive for _, drive in rows], -1)
    return Blocks(*(t.to(dtype) for t in blocks(a, b, hears, direct, length)))


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
            for i in range(lanes):
                for t in range(count):
                    tile[t, i] = x[start + i, begin + t]
            for t in range(count):
                v = tile[t]
                for s in range(sections):
                    hs, ps, qs, a, b = h[s], p[s], q[s], c1[s], c2[s]
                    u0, u1, u2 = w0[s], w1[s], w2[s]
                    for i in range(LANES):
                        excess = v[i] - b[i]
                        # States move by small steps that are rounded apart from them.
                        d1 = ps[i] * excess - hs[i] * a[i]
                        d2 = ps[i] * a[i] + qs[i] * excess
                        v[i] = u0[i] * v[i] + u1[i] * (a[i] + d1) + u2[i] * (b[i] + d2)
                        a[i] += two * d1
                        b[i] += two * d2
            for i in range(lanes):
                for t in range(count):
                    y[start + i, begin + t] = tile[t, i]
        for i in range(lanes):
            for s in range(sections):
                zf[start + i, s, 0], zf[start + i, s, 1] = c1[s, i], c2[s, i]
