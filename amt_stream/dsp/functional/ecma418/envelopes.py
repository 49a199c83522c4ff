"""Envelopes and powers of the critical bands of ECMA-418-2:2025 at 1500 Hz."""

from typing import Any

import numpy as np
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, copied, kernel
from amt_stream.dsp.functional.compiler.operators import on_host
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes, whole_blocks

STEP = 32
"""Samples between values of the envelope."""

ORDER = 5
"""One-pole filters of a band."""

LANES = 32
"""Channels processed together."""


def _like(x: Tensor, coefficients: Tensor, weights: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    shape = *x.shape[:-1], 2, zi.shape[-1], x.shape[-1] // STEP
    return x.new_empty(shape), zi.new_empty(zi.shape)


@on_host(_like)
def envelopes(
    x: Tensor, coefficients: Tensor, weights: Tensor, zi: Tensor
) -> tuple[Tensor, Tensor]:
    """Envelope and power of the bands of a sound, each `STEP` samples (..., 2, band, time / STEP).

    The filters are those of `gammatone_sum`. The envelope is the magnitude of their complex output
    at the first sample of a step; the power is the mean square of the positive real parts in it.

    x: (..., time); coefficients: (3, band) from `one_poles`; weights: (5, band)
    zi, zf: (..., 2, 5, band)
    """
    lead, time = signal_axes("envelopes", "x", x, 1)
    whole_blocks("envelopes", time, STEP)
    _, bands = last_axes("envelopes", "zi", zi, 2)
    bands = max(1, bands)
    tables = ("coefficients", coefficients, (3, bands)), ("weights", weights, (ORDER, bands))
    fit("envelopes", x.dtype, *tables, ("zi", zi, (*lead, 2, ORDER, bands)))
    zf = copied(zi)
    return envelopes_in_place(x, coefficients, weights, zf), zf


def envelopes_in_place(x: Tensor, coefficients: Tensor, weights: Tensor, state: Tensor) -> Tensor:
    """The output of `envelopes`, which updates `state`; nothing is checked.

    state: contiguous
    """
    rows, bands = array(x).reshape(-1, x.shape[-1]), state.shape[-1]
    y = x.new_empty(*x.shape[:-1], 2, bands, x.shape[-1] // STEP)
    last = state.numpy().reshape(-1, 2, ORDER, bands)
    out = y.numpy().reshape(len(rows), 2, bands, x.shape[-1] // STEP)
    _envelopes(rows, array(coefficients), array(weights), last, out)
    return y


@kernel
def _envelopes(x: Array, coefficients: Array, weights: Array, state: Array, y: Array) -> None:
    bands, zero = state.shape[3], x.dtype.type(0)
    p, w = np.empty((3, LANES), x.dtype), np.empty((ORDER, LANES), x.dtype)
    s, total = np.empty((2 * ORDER, LANES), x.dtype), np.empty(LANES, x.dtype)
    turned = np.empty(LANES, x.dtype)
    mean: Any = x.dtype.type(1 / STEP)
    for r in range(x.shape[0]):
        for first in range(0, bands, LANES):
            count = min(LANES, bands - first)
            p[:] = 0
            w[:] = 0
            s[:] = 0
            for i in range(count):
                for j in range(3):
                    p[j, i] = coefficients[j, first + i]
                for k in range(ORDER):
                    w[k, i] = weights[k, first + i]
                    s[2 * k, i] = state[r, 0, k, first + i]
                    s[2 * k + 1, i] = state[r, 1, k, first + i]
            for step in range(y.shape[3]):
                total[:] = 0
                for t in range(STEP):
                    given = x[r, STEP * step + t]
                    for i in range(LANES):
                        u, v, q = given, zero, zero
                        for k in range(5):
                            a, b = s[2 * k, i], s[2 * k + 1, i]
                            u = a + (p[0, i] * a - p[1, i] * b + p[2, i] * u)
                            v = b + (p[0, i] * b + p[1, i] * a + p[2, i] * v)
                            s[2 * k, i] = u
                            s[2 * k + 1, i] = v
                            q += w[k, i] * u
                        positive = q if q > zero or q != q else zero
                        total[i] += positive * positive
                        turned[i] = q
                    if t == 0:
                        for i in range(count):
                            v = zero
                            for k in range(ORDER):
                                v += w[k, i] * s[2 * k + 1, i]
                            u = turned[i]
                            y[r, 0, first + i, step] = np.sqrt(u * u + v * v)
                for i in range(count):
                    y[r, 1, first + i, step] = mean * total[i]
            for i in range(count):
                for k in range(ORDER):
                    state[r, 0, k, first + i] = s[2 * k, i]
                    state[r, 1, k, first + i] = s[2 * k + 1, i]
