"""Blocks of rows by name, by index and by slice."""

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.meters.rows import Rows


@pytest.fixture(scope="module")
def rows():
    noise = 0.01 * np.random.default_rng(3).standard_normal(4800)
    return measure(noise, 48000, "spl", 100.0, step_ms=20).rows


def test_a_row_by_its_index_is_what_iterating_gives(rows):
    each = list(rows)
    assert len(each) == 6
    for place in (0, 5, -1, -6, np.int64(2)):
        assert rows[place] == each[place]
    assert rows[-1]["time_s"] == 0.1
    for place in (6, -7):
        with pytest.raises(IndexError, match=f"there is no row {place} among 6 rows"):
            rows[place]
    with pytest.raises(IndexError, match="no row -1 among 0 rows"):
        rows[:0][-1]


@pytest.mark.parametrize("part", [slice(2), slice(-2, None), slice(None, None, 2), slice(9, 12)])
def test_a_slice_is_rows(rows, part):
    some = rows[part]
    assert type(some) is Rows
    assert list(some) == list(rows)[part]
    np.testing.assert_array_equal(some["laf_db"], rows["laf_db"][part])


def test_a_column_is_by_name(rows):
    assert rows["laf_db"].shape == (6,)
    with pytest.raises(KeyError):
        rows["laf"]
