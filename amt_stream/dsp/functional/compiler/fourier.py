"""The fast Fourier transform of one signal, in compiled code without a library's overhead.

A signal of n1 n2 samples is a matrix (n1, n2): its columns are transformed, turned and transposed,
then transformed again (Bailey 1990). Both times Stockham's algorithm runs along neighbors in whole
vector registers. The rounding depends on nothing but the values, not on the alignment of memory.
"""

from functools import cache
from math import cos, pi, sin

import numpy as np

from amt_stream.dsp.functional.compiler.dispatch import Array, bare_kernel
from amt_stream.dsp.functional.compiler.lanes import LANES, lanes_of, put, transpose

_lanes = lanes_of(LANES)

SHORTEST = LANES**2
"""Of a transform."""


@cache
def turns(size: int, dtype: type = np.float64) -> Array:
    """Cosine and negative sine of all multiples of 1 / `size` of a turn (size, 2)."""
    angle = 2 * np.pi / size * np.arange(size)
    return np.stack([np.cos(angle), -np.sin(angle)], 1).astype(dtype)


@cache
def twists(longest: int, dtype: type = np.float64) -> Array:
    """Turns between the two transforms, real and imaginary parts (2, 2 * longest).

    Those of a transform of `size` samples, in the order of its matrix, begin at `size`.
    """
    y: Array = np.zeros((2, 2 * longest), dtype)
    size = SHORTEST
    while size <= longest:
        rows = 1 << (size.bit_length() - 1) // 2
        turn = turns(size)[np.outer(np.arange(rows), np.arange(size // rows))]
        y[:, size : 2 * size] = turn.reshape(size, 2).T
        size *= 2
    return y


@bare_kernel
def _quarters(x: Array, y: Array, turn: Array, length: int, width: int) -> None:
    """A pass of radix 4: `length` butterflies of `width` neighbors each."""
    step, apart = turn.shape[0] // (4 * length), length * width
    for j in range(length):
        c1, s1 = turn[j * step, 0], turn[j * step, 1]
        c2, s2 = turn[2 * j * step, 0], turn[2 * j * step, 1]
        c3, s3 = turn[3 * j * step, 0], turn[3 * j * step, 1]
        for i in range(0, width, LANES):
            k, n = j * width + i, 4 * j * width + i
            r0, i0 = _lanes(x, 0, k), _lanes(x, 1, k)
            r1, i1 = _lanes(x, 0, k + apart), _lanes(x, 1, k + apart)
            r2, i2 = _lanes(x, 0, k + 2 * apart), _lanes(x, 1, k + 2 * apart)
            r3, i3 = _lanes(x, 0, k + 3 * apart), _lanes(x, 1, k + 3 * apart)
            a, b, c, d = r0 + r2, i0 + i2, r0 - r2, i0 - i2
            e, f, g, h = r1 + r3, i1 + i3, i1 - i3, r3 - r1
            put(a + e, y, 0, n)
            put(b + f, y, 1, n)
            p, q = c + g, d + h
            put(p * c1 - q * s1, y, 0, n + width)
            put(p * s1 + q * c1, y, 1, n + width)
            p, q = a - e, b - f
            put(p * c2 - q * s2, y, 0, n + 2 * width)
            put(p * s2 + q * c2, y, 1, n + 2 * width)
            p, q = c - g, d - h
            put(p * c3 - q * s3, y, 0, n + 3 * width)
            put(p * s3 + q * c3, y, 1, n + 3 * width)


FIFTH = cos(pi * 2 / 5), sin(pi * 2 / 5)
FIFTHS = cos(pi * 4 / 5), sin(pi * 4 / 5)
"""Cosines and sines of one fifth of a turn, and of two."""


@bare_kernel
def _fifths(x: Array, y: Array, turn: Array, length: int, width: int) -> None:
    """A pass of radix 5: `length` butterflies of `width` neighbors each."""
    step, apart, number = turn.shape[0] // (5 * length), length * width, x.dtype.type
    u, v, s, t = number(FIFTH[0]), number(FIFTHS[0]), number(FIFTH[1]), number(FIFTHS[1])
    for j in range(length):
        c1, s1 = turn[j * step, 0], turn[j * step, 1]
        c2, s2 = turn[2 * j * step, 0], turn[2 * j * step, 1]
        c3, s3 = turn[3 * j * step, 0], turn[3 * j * step, 1]
        c4, s4 = turn[4 * j * step, 0], turn[4 * j * step, 1]
        for i in range(0, width, LANES):
            k, n = j * width + i, 5 * j * width + i
            r0, i0 = _lanes(x, 0, k), _lanes(x, 1, k)
            r1, i1 = _lanes(x, 0, k + apart), _lanes(x, 1, k + apart)
            r4, i4 = _lanes(x, 0, k + 4 * apart), _lanes(x, 1, k + 4 * apart)
            a, b, c, d = r1 + r4, i1 + i4, r1 - r4, i1 - i4
            r2, i2 = _lanes(x, 0, k + 2 * apart), _lanes(x, 1, k + 2 * apart)
            r3, i3 = _lanes(x, 0, k + 3 * apart), _lanes(x, 1, k + 3 * apart)
            e, f, g, h = r2 + r3, i2 + i3, r2 - r3, i2 - i3
            put(r0 + a + e, y, 0, n)
            put(i0 + b + f, y, 1, n)
            re, im = r0 + a * u + e * v, i0 + b * u + f * v
            ir, ii = c * s + g * t, d * s + h * t
            p, q = re + ii, im - ir
            put(p * c1 - q * s1, y, 0, n + width)
            put(p * s1 + q * c1, y, 1, n + width)
            p, q = re - ii, im + ir
            put(p * c4 - q * s4, y, 0, n + 4 * width)
            put(p * s4 + q * c4, y, 1, n + 4 * width)
            re, im = r0 + a * v + e * u, i0 + b * v + f * u
            ir, ii = c * t - g * s, d * t - h * s
            p, q = re + ii, im - ir
            put(p * c2 - q * s2, y, 0, n + 2 * width)
            put(p * s2 + q * c2, y, 1, n + 2 * width)
            p, q = re - ii, im + ir
            put(p * c3 - q * s3, y, 0, n + 3 * width)
            put(p * s3 + q * c3, y, 1, n + 3 * width)


@bare_kernel
def _halves(x: Array, y: Array, apart: int) -> None:
    """The last pass of an odd number of doublings, of radix 2."""
    for k in range(0, apart, LANES):
        for part in range(2):
            a, b = _lanes(x, part, k), _lanes(x, part, k + apart)
            put(a + b, y, part, k)
            put(a - b, y, part, k + apart)


@bare_kernel
def _transform_columns(x: Array, y: Array, turn: Array, rows: int, columns: int) -> bool:
    """Transform each column; whether the result is in `y`, else it is in `x`."""
    there, length, width = False, rows // 4, columns
    while length:
        if there:
            _quarters(y, x, turn, length, width)
        else:
            _quarters(x, y, turn, length, width)
        there, length, width = not there, length // 4, 4 * width
    if width < rows * columns:
        if there:
            _halves(y, x, width)
        else:
            _halves(x, y, width)
        there = not there
    return there


@bare_kernel
def _twist(x: Array, y: Array, twist: Array, rows: int, columns: int) -> None:
    """Turn each element of a matrix and transpose it."""
    size = rows * columns
    for k in range(0, size, LANES):
        c, s = _lanes(twist, 0, size + k), _lanes(twist, 1, size + k)
        re, im = _lanes(x, 0, k), _lanes(x, 1, k)
        put(re * c - im * s, x, 0, k)
        put(re * s + im * c, x, 1, k)
    for k in range(0, rows, LANES):
        for n in range(0, columns, LANES):
            transpose(x, 0, k * columns + n, columns, y, n * rows + k, rows)
            transpose(x, 1, k * columns + n, columns, y, n * rows + k, rows)


@bare_kernel
def transform(x: Array, y: Array, turn: Array, twist: Array, size: int) -> bool:
    """The transform of `size` samples; whether the result is in `y`, else it is in `x`.

    x, y: real and imaginary parts (2, size or more), both overwritten
    size: a power of two from `SHORTEST` on
    turn, twist: `turns` and `twists` of it or of a longer transform
    """
    rows = LANES
    while rows * rows * 4 <= size:
        rows *= 2
    columns = size // rows
    there = _transform_columns(x, y, turn, rows, columns)
    if there:
        _twist(y, x, twist, rows, columns)
        return _transform_columns(x, y, turn, columns, rows)
    _twist(x, y, twist, rows, columns)
    return not _transform_columns(y, x, turn, columns, rows)


@bare_kernel
def transform_columns(x: Array, y: Array, turn: Array, rows: int) -> bool:
    """Transform each column of a matrix; whether the result is in `y`, else it is in `x`.

    x, y: real and imaginary parts (2, rows * columns), both overwritten; columns: a multiple of
        `LANES`
    rows: a power of five times one of two
    turn: `turns` of `rows` or of a multiple
    """
    now, then, there, columns = x, y, False, x.shape[1] // rows
    while rows > 1:
        if rows % 5 == 0:
            radix = 5
            _fifths(now, then, turn, rows // 5, columns)
        elif rows % 4 == 0:
            radix = 4
            _quarters(now, then, turn, rows // 4, columns)
        else:
            radix = 2
            _halves(now, then, columns)
        now, then, there = then, now, not there
        rows, columns = rows // radix, columns * radix
    return there
