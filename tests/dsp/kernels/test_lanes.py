"""Numbers side by side in registers: what a kernel does with them is what numpy does."""

import numba
import numpy as np
import pytest

from amt_stream.dsp.functional.compiler.lanes import (
    LANES,
    any_of,
    halved,
    lanes_of,
    magnitude,
    put,
    root,
    rounded_down,
    where,
)

lanes = lanes_of(LANES)


@numba.njit
def results(x, one, y):
    a, b = lanes(x, 0, 3), lanes(x, 1, 2)
    put(a + b, y, 0, 0)
    put(a - one, y, 1, 0)
    put(one * b, y, 2, 0)
    put(a / b, y, 3, 0)
    put(where(a > b, a, one), y, 4, 0)
    put(where(a < b, one, b), y, 5, 0)
    put(where(a <= a, a, b), y, 6, 0)
    put(root(magnitude(a)), y, 7, 0)
    put(rounded_down(a), y, 8, 0)
    put(halved(rounded_down(a)), y, 9, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operations(dtype):
    x = np.random.default_rng(0).normal(0, 9, (2, LANES + 3)).astype(dtype)
    one, y = dtype(1), np.full((10, LANES + 1), -7, dtype)
    results(x, one, y)
    a, b = x[0, 3:], x[1, 2:-1]
    expected = [a + b, a - one, b, a / b, np.where(a > b, a, one), np.where(a < b, one, b), a]
    expected += [np.sqrt(abs(a)), np.floor(a), 2 ** -np.floor(a)]
    np.testing.assert_array_equal(y[:, :-1], expected)
    assert (y[:, -1] == -7).all()


@numba.njit
def of_single_numbers(x, one):
    return where(x > one, magnitude(x), rounded_down(x)), halved(rounded_down(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plain_numbers(dtype):
    assert of_single_numbers(dtype(-2.5), dtype(1)) == (-3, 8)
    assert of_single_numbers(dtype(3.5), dtype(1)) == (3.5, 0.125)


@numba.njit
def is_above(x, bound):
    return any_of(lanes(x, 0, 0) > bound)


def test_any():
    x = np.zeros((1, LANES))
    assert not is_above(x, 1.0)
    x[0, LANES - 1] = np.nan
    assert not is_above(x, 1.0)
    for i in range(LANES):
        x[:] = 0
        x[0, i] = 2
        assert is_above(x, 1.0)
