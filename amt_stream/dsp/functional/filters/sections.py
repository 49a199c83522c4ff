"""Cascades of real linear sections, with compiled gradients."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, kernel
from amt_stream.dsp.functional.compiler.gradient import Tensors, differentiable
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.compiler.tiles import copy_values, flush, load, store
from amt_stream.dsp.functional.filters.state_space import state_space

SPAN = 32
"""Samples processed together, so that the states of all sections fit the L1 cache."""


class Sections(NamedTuple):
    """s[t + 1] = a s[t] + b v[t]; w[t] = c s[t] + d v[t], where w is the next section's v.

    a: (channel, section, state, state); b, c: (channel, section, state); d: (channel, section)
    """

    a: Tensor
    b: Tensor
    c: Tensor
    d: Tensor


def cascade(
    x: Tensor,
    sections: Sections,
    zi: Tensor,
    forward: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
) -> tuple[Tensor, Tensor]:
    """`x` (..., channel, time) through the sections, with gradients of all arguments.

    sections: in float64, in which the gradient is computed, as float32 would move poles near 1
    zi, zf: (..., channel, section, state) in the dtype of `x`
    forward: the compiled form, which gives the output and zf for `x` and `zi`
    """

    def compiled(x: Tensor, *given: Tensor) -> Tensors:
        return forward(x, given[-1])

    y, zf = differentiable(compiled, _backward, _plain, x, *sections, zi)
    return y, zf


def plain_cascade(x: Tensor, sections: Sections, zi: Tensor) -> tuple[Tensor, Tensor]:
    """The plain form in torch, all in one dtype."""
    a, b, c, d = sections
    y, ends = x, []
    for s, start in enumerate(zi.unbind(-2)):
        y, end = state_space(y, a[:, s], b[:, s], c[:, s], d[:, s], start)
        ends.append(end)
    return y, torch.stack(ends, -2)


def _plain(x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor, zi: Tensor) -> Tensors:
    y, zf = plain_cascade(x.double(), Sections(a, b, c, d), zi.double())
    return y.to(x.dtype), zf.to(x.dtype)


def _backward(
    given: Tensors, outputs: Tensors, slopes: Tensors, needed: Sequence[bool]
) -> Sequence[Tensor | None]:
    x, *tables, zi = given
    gx, found, gzi = _gradient(x, Sections(*tables), zi, slopes, any(needed[1:-1]))
    return gx, *found, gzi


def _gradient(
    x: Tensor, sections: Sections, zi: Tensor, slopes: Tensors, learns: bool
) -> tuple[Tensor, Sections, Tensor]:
    """Gradients of `x`, sections and zi, from those of output and zf (`slopes`).

    learns: whether the gradients of the sections are needed
    """
    a, b, c, d = sections
    order = b.shape[-1]
    tables = torch.cat(
        [torch.cat([a, b[..., None]], -1), torch.cat([c, d[..., None]], -1)[..., None, :]], -2
    )
    gx, found, gzi = x.new_empty(x.shape), torch.zeros_like(tables), zi.new_empty(zi.shape)
    rows, states = (-1, x.shape[-1]), (-1, *b.shape[1:])
    _cascade_backward(
        array(x).reshape(rows),
        array(tables),
        array(zi).reshape(states),
        array(slopes[0]).reshape(rows),
        array(slopes[1]).reshape(states),
        learns,
        gx.numpy().reshape(rows),
        found.numpy(),
        gzi.numpy().reshape(states),
    )
    (ga, gb), (gc, gd) = (v.tensor_split([order], -1) for v in found.tensor_split([order], -2))
    return gx, Sections(ga, gb[..., 0], gc[..., 0, :], gd[..., 0, 0]), gzi


@kernel
def _cascade_backward(
    x: Array,
    tables: Array,
    zi: Array,
    gy: Array,
    gzf: Array,
    learns: bool,
    gx: Array,
    gtables: Array,
    gzi: Array,
) -> None:
    """tables: (channel, section, state + 1, state + 1) of [a, b] above [c, d]."""
    channels, sections, width, _ = tables.shape
    time = x.shape[1]
    lanes, tiles = min(LANES, x.shape[0]), -(-time // SPAN)
    made = np.zeros((sections, width, width, lanes))
    found = np.zeros((sections, width, width, lanes))
    # States before each tile; states before, and input at, each sample of a tile; gradients.
    marks = np.zeros((tiles + 1, sections, width, lanes))
    inputs = np.zeros((sections, SPAN, width, lanes))
    slopes = np.zeros((sections, width, lanes))
    tile, room = np.zeros((SPAN, lanes)), np.zeros((width, lanes))
    for first in range(0, x.shape[0], lanes):
        rows = min(lanes, x.shape[0] - first)
        found[:] = 0
        for i in range(rows):
            row = first + i
            for s in range(sections):
                for j in range(width):
                    for k in range(width):
                        made[s, j, k, i] = tables[row % channels, s, j, k]
                for j in range(width - 1):
                    marks[0, s, j, i], slopes[s, j, i] = zi[row, s, j], gzf[row, s, j]
        # Forward through all tiles for the states, then backward through each.
        for turn in range(0 if learns else tiles, 2 * tiles):
            n = min(turn, 2 * tiles - 1 - turn)
            length = min(SPAN, time - n * SPAN)
            if learns:
                load(x, first, rows, n * SPAN, length, tile)
                _through(tile, length, made, marks[n], inputs, room, marks[n + 1])
            if turn >= tiles:
                load(gy, first, rows, n * SPAN, length, tile)
                _back(tile, length, made, inputs, learns, room, slopes, found)
                store(tile, first, rows, n * SPAN, length, gx)
        for i in range(rows):
            row = first + i
            for s in range(sections):
                for j in range(width):
                    for k in range(width):
                        gtables[row % channels, s, j, k] += found[s, j, k, i]
                for j in range(width - 1):
                    gzi[row, s, j] = slopes[s, j, i]


@kernel
def _through(
    tile: Array, length: int, made: Array, start: Array, inputs: Array, room: Array, end: Array
) -> None:
    """Each section's input and states at each sample, and the states at the `end`."""
    width = room.shape[0]
    for s in range(made.shape[0]):
        state = end[s]
        copy_values(start[s], state)
        for t in range(length):
            copy_values(tile[t], state[width - 1])
            copy_values(state, inputs[s, t])
            room[:] = 0
            for j in range(width):
                for k in range(width):
                    to, m, of = room[j], made[s, j, k], state[k]
                    for i in range(to.size):
                        to[i] += m[i] * of[i]
            copy_values(room[width - 1], tile[t])
            copy_values(room, state)
    flush(end)


@kernel
def _back(
    tile: Array,
    length: int,
    made: Array,
    inputs: Array,
    learns: bool,
    room: Array,
    slopes: Array,
    found: Array,
) -> None:
    """Turn `tile` from the output's gradient to the input's; propagate `slopes` back in time."""
    width = room.shape[0]
    for s in range(made.shape[0] - 1, -1, -1):
        slope = slopes[s]
        for t in range(length - 1, -1, -1):
            copy_values(tile[t], slope[width - 1])
            room[:] = 0
            for j in range(width):
                for k in range(width):
                    to, m, of = room[k], made[s, j, k], slope[j]
                    for i in range(to.size):
                        to[i] += m[i] * of[i]
                    if learns:
                        into, z = found[s, j, k], inputs[s, t, k]
                        for i in range(into.size):
                            into[i] += of[i] * z[i]
            copy_values(room[width - 1], tile[t])
            copy_values(room, slope)
    flush(slopes)
