"""First-order low-pass and high-pass filters."""

from math import pi

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compilable, compiled, kernel
from amt_stream.dsp.functional.compiler.lanes import LANES, lanes_of, magnitude, put
from amt_stream.dsp.functional.compiler.operators import alike, operator
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes
from amt_stream.dsp.functional.compiler.tiles import SPAN, load, store
from amt_stream.dsp.functional.filters.sections import Sections, cascade, plain_cascade

_lanes = lanes_of(LANES)


def first_order_gain(cutoff: float, fs: float) -> float:
    """The coefficient g of `first_order` for a cutoff in Hz, which must be below fs / 2."""
    if not 0 < cutoff < fs / 2:
        raise ValueError(
            f"a first-order filter has its cutoff between 0 and fs/2 = {fs / 2:g} Hz, "
            f"given {cutoff}: lower the cutoff or raise fs"
        )
    k = np.tan(pi * cutoff / fs)
    return float(k / (1 + k))


@operator(lambda x, g, zi, high=False, rectify=False: alike(x, zi))
def first_order(
    x: Tensor, g: Tensor, zi: Tensor, high: bool = False, rectify: bool = False
) -> tuple[Tensor, Tensor]:
    """`x` (..., channel, time) through first-order Butterworth low-passes in series.

    g: tan(pi cutoff / fs) / (1 + tan(pi cutoff / fs)), `first_order_gain`; 0-dim, or (channel,)
    zi, zf: (..., channel, pass); one state per identical filter in series
    high: high-pass instead, x - low-pass, in each pass
    rectify: half-wave rectify `x` first

    The bilinear transform in trapezoidal form, v = g (x - s), low = s + v, s += 2 v: the gain at 0
    Hz is 1 whatever the rounding of g, so that 3 Hz at 48 kHz is accurate in float32. It equals
    y[t] = g (x[t] + x[t-1]) + (1 - 2g) y[t-1].
    """
    lead, _ = signal_axes("first_order", "x", x, 1)
    (passes,) = last_axes("first_order", "zi", zi, 1)
    # One gain per channel, or one for all.
    channels = lead[-1:] if g.dim() else ()
    fit("first_order", x.dtype, ("g", g, channels), ("zi", zi, (*lead, max(1, passes))))
    if compiled(x, g, zi):
        return _forward(x, g, zi, high, rectify)
    if gpu.serves(x, g, zi):
        y, zf = gpu.first_order(x, g, zi, high, rectify)
        return y, zf
    shared = g.dim() == 0
    if shared:
        x, g, zi = x.unsqueeze(-2), g.expand(1), zi.unsqueeze(-2)
    y, starts, count = x.clamp(min=0) if rectify else x, zi[..., None], max(1, passes)
    if compilable(x, g, zi):
        tables = _sections(g.double(), count, high)
        y, ends = cascade(y, tables, starts, lambda x, zi: _forward(x, g, zi, high, False))
    else:
        y, ends = plain_cascade(y, _sections(g, count, high), starts)
    zf = ends.squeeze(-1)
    return (y.squeeze(-2), zf.squeeze(-2)) if shared else (y, zf)


def _sections(g: Tensor, passes: int, high: bool) -> Sections:
    """The state-space form of each channel's filters."""
    c, d = (g - 1, 1 - g) if high else (1 - g, g)
    each = [v[:, None].expand(-1, passes) for v in (1 - 2 * g, 2 * g, c, d)]
    return Sections(each[0][..., None, None], each[1][..., None], each[2][..., None], each[3])


def _forward(x: Tensor, g: Tensor, zi: Tensor, high: bool, rectify: bool) -> tuple[Tensor, Tensor]:
    rows = array(x).reshape(-1, x.shape[-1])
    y, zf = x.new_empty(x.shape), zi.clone(memory_format=torch.contiguous_format)
    states, into = zf.numpy().reshape(len(rows), -1), y.numpy().reshape(rows.shape)
    _first_order(rows, array(g).reshape(-1), states, high, rectify, into)
    return y, zf


@kernel
def _first_order(x: Array, g: Array, states: Array, high: bool, rectify: bool, y: Array) -> None:
    """Updates `states` (row, pass) in place."""
    tile = np.zeros((SPAN, LANES), x.dtype)
    s, gains = np.zeros((states.shape[1], LANES), x.dtype), np.zeros((1, LANES), x.dtype)
    half, two = x.dtype.type(0.5), x.dtype.type(2)
    for first in range(0, x.shape[0], LANES):
        rows = min(LANES, x.shape[0] - first)
        for i in range(rows):
            gains[0, i] = g[(first + i) % g.size]
            for k in range(states.shape[1]):
                s[k, i] = states[first + i, k]
        gain = _lanes(gains, 0, 0)
        for start in range(0, x.shape[1], SPAN):
            length = min(SPAN, x.shape[1] - start)
            load(x, first, rows, start, length, tile)
            if rectify:
                for t in range(length):
                    v = _lanes(tile, t, 0)
                    put(half * (v + magnitude(v)), tile, t, 0)  # NaN stays
            for k in range(states.shape[1]):
                last = _lanes(s, k, 0)
                for t in range(length):
                    v = _lanes(tile, t, 0)
                    change = v - last
                    low = last + gain * change
                    last = last + two * gain * change
                    put(v - low if high else low, tile, t, 0)
                put(last, s, k, 0)
            store(tile, first, rows, start, length, y)
        for i in range(rows):
            for k in range(states.shape[1]):
                states[first + i, k] = s[k, i]
