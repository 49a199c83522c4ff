"""Rows turned into tiles and back: in either dtype, and nothing beside them is touched."""

import numpy as np
import pytest

from amt_stream.dsp.functional.compiler.tiles import load, store

ROWS, TIME = 21, 45
PLACES = [(np.float32, np.float32), (np.float64, np.float64)]
PLACES += [(np.float32, np.float64), (np.float64, np.float32)]


@pytest.mark.parametrize(("outside", "inside"), PLACES)
@pytest.mark.parametrize(("rows", "length"), [(16, 32), (8, 13), (13, 40), (3, 5)])
def test_there_and_back(outside, inside, rows, length):
    x = np.random.default_rng(0).standard_normal((ROWS, TIME)).astype(outside)
    tile = np.full((length, rows), np.nan, inside)
    load(x, 2, rows, 3, length, tile)
    np.testing.assert_array_equal(tile, x[2 : 2 + rows, 3 : 3 + length].T.astype(inside))
    y = np.zeros((ROWS, TIME), outside)
    store(tile, 2, rows, 3, length, y)
    expected = np.zeros_like(y)
    expected[2 : 2 + rows, 3 : 3 + length] = tile.T
    np.testing.assert_array_equal(y, expected)
