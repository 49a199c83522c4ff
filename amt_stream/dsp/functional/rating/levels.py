"""A-weighted mean squares of sound pressure, over frames and with time weighting F."""

import numpy as np
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, copied, recurrence
from amt_stream.dsp.functional.compiler.operators import on_host
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes

COEFFICIENTS = 11
"""Of three high-passes, as in `first_order`; b0 b1 b2 1 a1 a2 of a low-pass; F; and the gain."""

STATES = 7
"""Of the double high-pass, the low-pass, the other two high-passes, and F."""


def _like(x: Tensor, coefficients: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(*x.shape[:-2], 2, x.shape[-2]), zi.new_empty(zi.shape)


@on_host(_like)
def a_weighted_powers(x: Tensor, coefficients: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """Mean square, and F at the end, of each frame of `x` (..., frame, sample): (..., 2, frame).

    x: in pascal
    coefficients: (11,) float64, `COEFFICIENTS`
    zi, zf: (..., 7) float64, `STATES`
    """
    lead, frames, size = signal_axes("a_weighted_powers", "x", x, 2)
    table, state = ("coefficients", coefficients, (COEFFICIENTS,)), ("zi", zi, (*lead, STATES))
    fit("a_weighted_powers", x.dtype, ("x", x, (*lead, frames, size)))
    fit("a_weighted_powers", zi.double().dtype, table, state)
    y, _ = _like(x, coefficients, zi)
    after = copied(zi)
    rows = array(x).reshape(-1, frames, size)
    states, powers = after.numpy().reshape(-1, STATES), y.numpy().reshape(-1, 2, frames)
    _a_weighted_powers(rows, array(coefficients), states, powers)
    return y, after


@recurrence
def _a_weighted_powers(x: Array, c: Array, state: Array, y: Array) -> None:
    twice, second, third, b0, b1, b2 = c[0], c[1], c[2], c[3], c[4], c[5]
    a1, a2, fast, gain = c[7], c[8], c[9], c[10]
    for r in range(x.shape[0]):
        s = state[r]
        once, again, low, low_before, s2, s3, f = s[0], s[1], s[2], s[3], s[4], s[5], s[6]
        for n in range(x.shape[1]):
            total = 0.0
            for t in range(x.shape[2]):
                v = np.float64(x[r, n, t]) - once
                d = twice * v
                v -= d
                once += 2 * d
                v -= again
                d = twice * v
                v -= d
                again += 2 * d
                w = b0 * v + low
                low = b1 * v - a1 * w + low_before
                low_before = b2 * v - a2 * w
                v = w - s2
                d = second * v
                v -= d
                s2 += 2 * d
                v -= s3
                d = third * v
                v = gain * (v - d)
                s3 += 2 * d
                v *= v
                total += v
                f += fast * (v - f)
            y[r, 0, n], y[r, 1, n] = total / x.shape[2], f
        s[0], s[1], s[2], s[3], s[4], s[5], s[6] = once, again, low, low_before, s2, s3, f
