"""Exponential and logarithm that vectorize in float32, from a few products each.

In float64 they call the C library. For kernels only.
"""

from math import exp, expm1, log, log1p

import numpy as np
from numba import types
from numba.extending import overload

from amt_stream.dsp.functional.compiler.host_loop import FAST
from amt_stream.dsp.functional.compiler.lowering import Kernel, Kind, Number

JIT: Kernel = {"fastmath": FAST, "error_model": "numpy"}

LN2 = float(np.log(2))

_HALF_WAY = float(np.sqrt(2))
"""A number is split into 2^n m with m from 1 / sqrt(2) to sqrt(2)."""


def exponential(x: Number) -> Number:
    """exp(x) within 2e-7 plus the rounding of x; at least 1e-38."""
    return exp(x)


def exponential_less_one(x: Number) -> Number:
    """exp(x) - 1, without cancellation near 0."""
    return expm1(x)


def logarithm(x: Number) -> Number:
    """Natural logarithm of x >= 1e-38, with an error of 2e-7, relative or absolute."""
    return log(x)


def logarithm_of_one_and(x: Number) -> Number:
    """log(1 + x) for x >= 0, accurate near 0."""
    return log1p(x)


# The float32 2^n has n + 127 in the bits above the lowest 23. The remainder goes to a power series:
# exp(r) for |r| up to ln(2) / 2, and log(m) = 2 (s + s^3 / 3 + ...), s = (m - 1) / (m + 1).


def _power_series(less_one: bool) -> Kernel:
    """exp(x) in float32, or exp(x) - 1."""
    to_binary, half, least = np.float32(1 / LN2), np.float32(0.5), np.float32(-126)
    ln2, one, bias, places = np.float32(LN2), np.float32(1), np.int32(127), np.int32(23)
    c2, c3, c4, c5, c6 = (np.float32(1 / n) for n in (2, 6, 24, 120, 720))

    def form(x: Number) -> Number:
        t = max(x * to_binary, least)
        n = np.floor(t + half)
        r = (t - n) * ln2
        p = r * (one + r * (c2 + r * (c3 + r * (c4 + r * (c5 + r * c6)))))
        power = np.int32((np.int32(n) + bias) << places).view(np.float32)
        return (power - one) + power * p if less_one else (one + p) * power

    return form


def _logarithmic_series(of_one_and: bool) -> Kernel:
    """log(x) in float32, or log(1 + x)."""
    one, two, ln2, above = np.float32(1), np.float32(2), np.float32(LN2), np.float32(_HALF_WAY)
    half, bias, places = np.float32(0.5), np.int32(127), np.int32(23)
    rest, unit = np.int32(0x7FFFFF), np.int32(0x3F800000)
    small = np.float32(_HALF_WAY - 1)
    c3, c5, c7, c9 = (np.float32(1 / n) for n in (3, 5, 7, 9))

    def form(x: Number) -> Number:
        bits = np.float32(one + x if of_one_and else x).view(np.int32)
        m = np.int32((bits & rest) | unit).view(np.float32)
        large = m > above
        n = np.float32(np.int32(bits >> places) - bias) + (one if large else np.float32(0))
        m = m * half if large else m
        # 1 + x has lost the last digits of a small x.
        near = of_one_and and x < small
        s = (x if near else m - one) / (two + x if near else m + one)
        q = s * s
        series = two * s * (one + q * (c3 + q * (c5 + q * (c7 + q * c9))))
        y = series if near else n * ln2 + series
        # The bits of NaN would pass as a number.
        return y if x == x else x

    return form


def _use_in_single(function: Kernel, form: Kernel) -> None:
    """Compile calls of `function` with a float32 as `form`."""

    @overload(function, jit_options=JIT)
    def choose(x: Kind) -> Kernel:
        return form if x == types.float32 else function


_use_in_single(exponential, _power_series(less_one=False))
_use_in_single(exponential_less_one, _power_series(less_one=True))
_use_in_single(logarithm, _logarithmic_series(of_one_and=False))
_use_in_single(logarithm_of_one_and, _logarithmic_series(of_one_and=True))
