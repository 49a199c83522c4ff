"""Recursive filters of any order, from their difference equations."""

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.dispatch import (
    Array,
    array,
    compilable,
    compiled,
    copied,
    kernel,
)
from amt_stream.dsp.functional.compiler.lanes import LANES, lanes_of, put
from amt_stream.dsp.functional.compiler.operators import alike, operator
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes
from amt_stream.dsp.functional.compiler.tiles import SPAN, load, store
from amt_stream.dsp.functional.filters.sections import Sections, cascade, plain_cascade

_lanes = lanes_of(LANES)


@operator(alike)
def direct_form(x: Tensor, b: Tensor, a: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`x` (..., time) through sections in series, each y = (b * x - a[1:] * y) along time.

    b, a: (section, order + 1), a[:, 0] = 1; zi, zf: (..., section, order), transposed direct
    form II. Poles near 1, as of low frequencies, require float64 throughout.
    """
    lead, _ = signal_axes("direct_form", "x", x, 1)
    sections, order = last_axes("direct_form", "zi", zi, 2)
    sections = max(1, sections)
    table = (sections, order + 1)
    state = (*lead, sections, order)
    fit("direct_form", x.dtype, ("b", b, table), ("a", a, table), ("zi", zi, state))
    if order in (1, 2) and gpu.serves(x, b, a, zi):
        y, zf = gpu.direct_form(x, b, a, zi)
        return y, zf
    if compiled(x, b, a, zi):
        return _forward(x, b, a, zi)
    if not order:
        return b.prod() * x, zi
    y, starts = x.unsqueeze(-2), zi.unsqueeze(-3)
    if compilable(x, b, a, zi):
        tables = _sections(b.double(), a.double())
        y, ends = cascade(y, tables, starts, lambda x, zi: _forward(x, b, a, zi))
    else:
        y, ends = plain_cascade(y, _sections(b, a), starts)
    return y.squeeze(-2), ends.squeeze(-3)


def _sections(b: Tensor, a: Tensor) -> Sections:
    """The state-space form of the sections, for one channel."""
    order = a.shape[1] - 1
    one = torch.eye(order, dtype=a.dtype, device=a.device).expand(len(a), order, order)
    transition = torch.cat([-a[:, 1:, None], one], -1)[..., :order]
    drive = b[:, 1:] - a[:, 1:] * b[:, :1]
    return Sections(*(v[None] for v in (transition, drive, one[:, 0], b[:, 0])))


def _forward(x: Tensor, b: Tensor, a: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    zf = copied(zi)
    return direct_form_in_place(x, b, a, zf), zf


def direct_form_in_place(x: Tensor, b: Tensor, a: Tensor, state: Tensor) -> Tensor:
    """The output of `direct_form` by its compiled form, which updates `state`; nothing is checked.

    state: contiguous
    """
    rows, y = array(x).reshape(-1, x.shape[-1]), x.new_empty(x.shape)
    states = state.numpy().reshape(len(rows), *state.shape[-2:])
    _direct_form(rows, array(b), array(a), states, y.numpy().reshape(rows.shape))
    return y


@kernel
def _direct_form(x: Array, b: Array, a: Array, states: Array, y: Array) -> None:
    """Updates `states` (row, section, order) in place."""
    sections, order = states.shape[1], states.shape[2]
    tile, z = np.zeros((SPAN, LANES), x.dtype), np.zeros((order + 1, LANES), x.dtype)
    for first in range(0, x.shape[0], LANES):
        rows = min(LANES, x.shape[0] - first)
        for start in range(0, x.shape[1], SPAN):
            length = min(SPAN, x.shape[1] - start)
            load(x, first, rows, start, length, tile)
            for section in range(sections):
                p, q = b[section], a[section]
                for k in range(order):
                    for i in range(rows):
                        z[k, i] = states[first + i, section, k]
                if order == 2:
                    _second_order(tile, length, p, q, z)
                else:
                    for t in range(length):
                        v = _lanes(tile, t, 0)
                        out = p[0] * v + _lanes(z, 0, 0)
                        for k in range(order):  # the last row of z stays 0
                            put(_lanes(z, k + 1, 0) + p[k + 1] * v - q[k + 1] * out, z, k, 0)
                        put(out, tile, t, 0)
                for k in range(order):
                    for i in range(rows):
                        states[first + i, section, k] = z[k, i]
            store(tile, first, rows, start, length, y)


@kernel
def _second_order(tile: Array, length: int, p: Array, q: Array, z: Array) -> None:
    """A section of order 2 in registers: three times as fast as through memory."""
    z0, z1 = _lanes(z, 0, 0), _lanes(z, 1, 0)
    p0, p1, p2, q1, q2 = p[0], p[1], p[2], q[1], q[2]
    for t in range(length):
        v = _lanes(tile, t, 0)
        out = p0 * v + z0
        z0 = z1 + p1 * v - q1 * out
        z1 = p2 * v - q2 * out
        put(out, tile, t, 0)
    put(z0, z, 0, 0)
    put(z1, z, 1, 0)
