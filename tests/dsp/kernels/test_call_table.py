"""Kernels called by their address, on what a plan tells."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import types

from amt_stream.dsp.functional.compiler.call_table import (
    WIDTH,
    Integer,
    Integers,
    KernelArgument,
    KernelCall,
    TupleOf,
    copied,
)
from amt_stream.dsp.functional.compiler.dispatch import kernel


class Pair(NamedTuple):
    weights: np.ndarray
    offset: np.ndarray


@kernel
def mix(x, pair, factor, at, sizes, marks, y):
    """Something of each kind of argument."""
    if sizes[0] + sizes[1] != x.shape[1]:
        return False
    for i in range(x.shape[0]):
        for k in range(sizes[0]):
            y[i, k] += factor * (pair.weights[k] * x[i, k, at] + pair.offset[()]) + marks[i]
    return True


MIX = KernelCall(
    0,
    mix,
    KernelArgument(1, 3),
    TupleOf(Pair, (KernelArgument(2, 1), KernelArgument(3, 0))),
    KernelArgument(4, None, types.float64),
    Integer(5),
    Integers(6, 2),
    KernelArgument(7, 1, types.int64),
    KernelArgument(8, 2),
    gives=True,
)
_mix = MIX.call


@kernel
def twice(plan, like):
    return _mix(plan, like) and _mix(plan, like)


def planned(*rows):
    plan = np.zeros((len(rows), WIDTH), np.int64)
    for row, value in zip(plan, rows, strict=True):
        if isinstance(value, np.ndarray):
            row[: 1 + value.ndim] = value.ctypes.data, *value.shape
        else:
            row[0] = value
    return plan


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_gives_what_the_kernel_gives(dtype):
    generator = np.random.default_rng(0)
    x = generator.standard_normal((2, 5, 3)).astype(dtype)
    pair = Pair(generator.standard_normal(3).astype(dtype), np.array(0.5, dtype))
    marks, sizes, factor = np.array([7, -2]), np.array([3, 2]), np.array(0.1)
    y, expected = np.ones((2, 4), dtype), np.ones((2, 4), dtype)
    given = MIX.address(y.dtype), x, *pair, factor, 2, sizes, marks, y
    assert twice(planned(*given), x)
    for _ in range(2):
        mix(x, pair, 0.1, 2, (3, 2), marks, expected)
    assert np.array_equal(y, expected)
    assert not np.array_equal(y, np.ones_like(y))
    sizes[0] = 4
    assert not twice(planned(*given), x)


def test_bytes_are_copied_from_one_address_to_another():
    @kernel
    def copy(to, start, count):
        copied(to, start, count)

    x, y = np.arange(8.0), np.zeros(8)
    copy(y.ctypes.data + 8, x.ctypes.data, 24)
    assert y.tolist() == [0, 0, 1, 2, 0, 0, 0, 0]
