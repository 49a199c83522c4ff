"""Rows to tiles and back: whole squares, and what is left over on either side."""

import numpy as np
import pytest

from amt_stream.functional.tiles import SPAN, load, store


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("rows", "length"), [(1, 1), (3, 8), (8, 3), (7, 16), (9, 17), (16, SPAN), (31, 125)]
)
def test_rows_to_tiles_and_back(dtype, rows, length):
    x = np.random.default_rng(0).standard_normal((rows + 2, length + 5)).astype(dtype)
    tile = np.zeros((SPAN, rows + 1), dtype)
    load(x, 1, rows, 2, length, tile)
    expected = np.zeros_like(tile)
    expected[:length, :rows] = x[1 : rows + 1, 2 : length + 2].T
    np.testing.assert_array_equal(tile, expected)
    for step in (1, 3):
        y = np.zeros((2 + rows * step, length + 4), dtype)
        expected = np.zeros_like(y)
        expected[1 : 1 + rows * step : step, 3 : length + 3] = tile[:length, :rows].T
        store(tile, 1, rows, 3, length, y, step)
        np.testing.assert_array_equal(y, expected)
