"""Fast Fourier transforms of many columns at once, in compiled code without a library's overhead.

Stockham's algorithm on (line, column): its innermost loops run over columns, and so vectorize. The
rounding depends on nothing but the values, neither on the alignment of memory nor on the number of
columns.
"""

from functools import cache

import numpy as np

from amt_stream.dsp.functional.dispatch import Array, kernel


@cache
def turns(size: int, dtype: type = np.float64) -> Array:
    """Cosine and negative sine of all multiples of 1 / `size` of a turn (size, 2)."""
    angle = 2 * np.pi / size * np.arange(size)
    return np.stack([np.cos(angle), -np.sin(angle)], 1).astype(dtype)


@kernel
def _quarters(x: Array, y: Array, turn: Array, length: int, width: int) -> None:
    """A pass of radix 4: `length` butterflies of `width` neighbors each."""
    step = turn.shape[0] // (4 * length)
    for j in range(length):
        c1, s1 = turn[j * step, 0], turn[j * step, 1]
        c2, s2 = turn[2 * j * step, 0], turn[2 * j * step, 1]
        c3, s3 = turn[3 * j * step, 0], turn[3 * j * step, 1]
        k, apart = j * width, length * width
        r0, i0 = x[0, k : k + width], x[1, k : k + width]
        r1, i1 = x[0, k + apart : k + apart + width], x[1, k + apart : k + apart + width]
        k += 2 * apart
        r2, i2 = x[0, k : k + width], x[1, k : k + width]
        r3, i3 = x[0, k + apart : k + apart + width], x[1, k + apart : k + apart + width]
        k = 4 * j * width
        u0, v0 = y[0, k : k + width], y[1, k : k + width]
        u1, v1 = y[0, k + width : k + 2 * width], y[1, k + width : k + 2 * width]
        k += 2 * width
        u2, v2 = y[0, k : k + width], y[1, k : k + width]
        u3, v3 = y[0, k + width : k + 2 * width], y[1, k + width : k + 2 * width]
        for i in range(width):
            a, b = r0[i] + r2[i], i0[i] + i2[i]
            c, d = r0[i] - r2[i], i0[i] - i2[i]
            e, f = r1[i] + r3[i], i1[i] + i3[i]
            g, h = i1[i] - i3[i], r3[i] - r1[i]
            u0[i], v0[i] = a + e, b + f
            p, q = c + g, d + h
            u1[i], v1[i] = p * c1 - q * s1, p * s1 + q * c1
            p, q = a - e, b - f
            u2[i], v2[i] = p * c2 - q * s2, p * s2 + q * c2
            p, q = c - g, d - h
            u3[i], v3[i] = p * c3 - q * s3, p * s3 + q * c3


@kernel
def _first_quarters(x: Array, y: Array, turn: Array, size: int, width: int) -> None:
    """The first pass of radix 4 of columns whose second half is 0."""
    length, step = size // 4, turn.shape[0] // size
    for j in range(length):
        c1, s1 = turn[j * step, 0], turn[j * step, 1]
        c2, s2 = turn[2 * j * step, 0], turn[2 * j * step, 1]
        c3, s3 = turn[3 * j * step, 0], turn[3 * j * step, 1]
        k, apart = j * width, length * width
        r0, i0 = x[0, k : k + width], x[1, k : k + width]
        r1, i1 = x[0, k + apart : k + apart + width], x[1, k + apart : k + apart + width]
        k = 4 * j * width
        u, v = y[0, k : k + 4 * width], y[1, k : k + 4 * width]
        for i in range(width):
            a, b, e, f = r0[i], i0[i], r1[i], i1[i]
            u[i], v[i] = a + e, b + f
            p, q = a + f, b - e
            u[width + i], v[width + i] = p * c1 - q * s1, p * s1 + q * c1
            p, q = a - e, b - f
            u[2 * width + i], v[2 * width + i] = p * c2 - q * s2, p * s2 + q * c2
            p, q = a - f, b + e
            u[3 * width + i], v[3 * width + i] = p * c3 - q * s3, p * s3 + q * c3


@kernel
def _first_halves(x: Array, y: Array, turn: Array, size: int, width: int) -> None:
    """The first pass of radix 2 of columns whose second half is 0."""
    step = turn.shape[0] // size
    for j in range(size // 2):
        c, s = turn[j * step, 0], turn[j * step, 1]
        r, i = x[0, j * width : (j + 1) * width], x[1, j * width : (j + 1) * width]
        u = y[0, 2 * j * width : 2 * (j + 1) * width]
        v = y[1, 2 * j * width : 2 * (j + 1) * width]
        for k in range(width):
            u[k], v[k] = r[k], i[k]
            u[width + k], v[width + k] = r[k] * c - i[k] * s, r[k] * s + i[k] * c


@kernel
def _last_half(x: Array, y: Array, width: int) -> None:
    """The last pass of radix 2, for the first half of the lines alone."""
    for part in range(2):
        a, b, out = x[part, :width], x[part, width : 2 * width], y[part, :width]
        for i in range(width):
            out[i] = a[i] + b[i]


@kernel
def transform_padded(x: Array, y: Array, turn: Array, size: int, columns: int) -> bool:
    """Transform columns whose second half is 0; whether the result is in `y`, else it is in `x`.

    x, y: real and imaginary parts (2, size * columns or more), both overwritten
    turn: `turns` of `size` or of a multiple
    """
    bits = 0
    while 1 << bits < size:
        bits += 1
    if bits % 2:
        _first_halves(x, y, turn, size, columns)
        done = 2
    else:
        _first_quarters(x, y, turn, size, columns)
        done = 4
    there = True
    while done < size:
        length = size // (4 * done)
        if there:
            _quarters(y, x, turn, length, done * columns)
        else:
            _quarters(x, y, turn, length, done * columns)
        there = not there
        done *= 4
    return there


@kernel
def transform_half(x: Array, y: Array, turn: Array, size: int, columns: int) -> bool:
    """The first half of the lines of a transform; whether it is in `y`, else it is in `x`.

    x, y, turn: as in `transform_padded`
    """
    there = False
    done = 1
    while 4 * done <= size:
        length = size // (4 * done)
        if there:
            _quarters(y, x, turn, length, done * columns)
        else:
            _quarters(x, y, turn, length, done * columns)
        there = not there
        done *= 4
    if done < size:
        if there:
            _last_half(y, x, done * columns)
        else:
            _last_half(x, y, done * columns)
        there = not there
    return there
