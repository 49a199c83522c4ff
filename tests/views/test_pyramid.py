"""What is drawn of hours is the least, the mean and the greatest of the rows, at every scale."""

import sys

import numpy as np
import pytest

from amt_stream.views.history_pyramid import FACTOR, LEVELS, HistoryPyramid
from tests.soak.memory import resident_mb


def plain(values, level, first, end):
    """The same from all rows, as one would write it down."""
    size = FACTOR**level
    parts = [values[:, max(0, k * size) : max(0, (k + 1) * size)] for k in range(first, end)]
    found = np.full((3, len(values), len(parts)), np.nan)
    for k, part in enumerate(parts):
        for i, column in enumerate(part):
            known = column[~np.isnan(column)]
            if len(known):
                found[:, i, k] = known.min(), known.mean(), known.max()
    return found


def filled(values, chunk, rows=20000, whole=20000, marks=None):
    pyramid = HistoryPyramid(len(values), rows, whole)
    count = values.shape[1]
    marks = np.zeros(count, np.uint16) if marks is None else marks
    for at in range(0, count, chunk):
        part = slice(at, at + chunk)
        pyramid.add(np.arange(count)[part], values[:, part], marks[part])
    return pyramid


@pytest.mark.parametrize("chunk", [1, 3, 441, 5000])
@pytest.mark.parametrize("level", range(LEVELS))
def test_each_level_is_that_of_all_rows(chunk, level):
    values = np.random.default_rng(1).normal(60, 10, (2, 5000 if chunk > 1 else 700))
    values[1, 100:140] = np.nan
    pyramid = filled(values, chunk)
    end = values.shape[1] // FACTOR**level + 1
    cells = pyramid.cells(level, -2, end + 2)
    low, mean, high = plain(values, level, -2, end + 2)
    tolerance = 0 if level == 0 else 1e-6
    np.testing.assert_allclose(cells.low, low, rtol=tolerance)
    np.testing.assert_allclose(cells.high, high, rtol=tolerance)
    np.testing.assert_allclose(cells.mean, mean, rtol=max(tolerance, 1e-15))


def test_a_mark_of_one_row_is_seen_at_every_scale():
    marks = np.zeros(3000, np.uint16)
    marks[1234] = 3
    pyramid = filled(np.ones((1, 3000)), 10, marks=marks)
    for level in range(LEVELS):
        cells = pyramid.cells(level, 0, 3000 // FACTOR**level + 1)
        assert cells.marks[1234 // FACTOR**level] == 3
        assert np.count_nonzero(cells.marks) == 1


def test_a_gap_is_as_long_as_it_was():
    pyramid = HistoryPyramid(1, 1000, 4000)
    ones = np.ones((1, 10))
    for first in (0, 90):
        pyramid.add(np.arange(first, first + 10), ones, np.zeros(10, np.uint16))
    assert np.flatnonzero(~np.isnan(pyramid.cells(0, 0, 100).low[0])).tolist() == [
        *range(10),
        *range(90, 100),
    ]
    assert np.isnan(pyramid.cells(2, 1, 5).mean).all()
    # Two days, in which all that was there is forgotten.
    pyramid.add(np.array([10_000]), np.full((1, 1), 7.0), np.zeros(1, np.uint16))
    assert pyramid.cells(0, 9_990, 10_001).high[0].tolist()[-1] == 7.0
    assert np.isnan(pyramid.cells(0, 0, 100).low).all()
    assert np.isnan(pyramid.cells(1, 0, 100).low).all()


def test_old_rows_are_forgotten_and_their_extremes_kept():
    values = np.arange(1000.0)[None]
    pyramid = filled(values, 7, rows=100, whole=2000)
    assert np.isnan(pyramid.cells(0, 0, 900).low).all()
    np.testing.assert_array_equal(pyramid.cells(0, 900, 1000).low[0], np.arange(900.0, 1000.0))
    np.testing.assert_array_equal(pyramid.cells(1, 0, 250).high[0], np.arange(3.0, 1000.0, 4))
    assert pyramid.level_for(50, 950, 1000) == 0
    assert pyramid.level_for(50, 800, 1000) == 1
    assert pyramid.level_for(1000, 0, 100) == 2


def test_what_comes_twice_changes_nothing():
    pyramid = filled(np.arange(100.0)[None], 10)
    before = [part.copy() for part in pyramid.cells(1, 0, 25)]
    pyramid.add(np.arange(50, 100), np.zeros((1, 50)), np.ones(50, np.uint16))
    for part, now in zip(before, pyramid.cells(1, 0, 25), strict=True):
        np.testing.assert_array_equal(part, now)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of memory this way")
def test_a_day_that_is_not_measured_yet_takes_no_memory():
    before = resident_mb()
    for _ in range(5):  # as a new measurement takes the place of another
        pyramid = HistoryPyramid(32, 288_000, 864_000)
        pyramid.add(np.arange(600), np.ones((32, 600)), np.zeros(600, np.uint16))
        pyramid.cells(1, 0, 150)
    assert resident_mb() - before < 20


@pytest.mark.parametrize("ranged", [False, True])
@pytest.mark.parametrize("rows", [500, 20000])
def test_columns_that_come_later_have_no_values_before(rows, ranged):
    """In the middle of cells, and after the ring was filled."""
    values = np.random.default_rng(2).normal(60, 10, (3, 3000))
    values[2, :1701] = np.nan
    ranges = np.stack([values - 1.0, values + 1.0], 1)
    whole, grown = (HistoryPyramid(columns, rows, 20000) for columns in (3, 2))
    for at in range(0, 3000, 9):
        part, few = slice(at, at + 9), slice(None) if at >= 1701 else slice(2)
        if at == 1701:
            grown.extend(1)
        for pyramid, own in ((whole, slice(None)), (grown, few)):
            more = {"ranges": ranges[own, :, part]} if ranged else {}
            marks = np.zeros(len(values[0, part]), np.uint16)
            pyramid.add(np.arange(3000)[part], values[own, part], marks, **more)
    for level in range(LEVELS):
        cells = (one.cells(level, 0, 3000 // FACTOR**level + 1) for one in (whole, grown))
        for one, other in zip(*cells, strict=True):
            np.testing.assert_array_equal(one, other)
