"""Rows of samples side by side, so that a recurrence over time fills the vector registers."""

from amt_stream.functional.dispatch import Array, kernel

LANES = 16
"""Rows that go together: one register of float32, two of float64, in AVX-512."""

SPAN = 128
"""Samples of each row that go together: a tile then stays in the nearest cache."""


@kernel
def load(x: Array, first: int, rows: int, start: int, length: int, tile: Array) -> None:
    """`tile` (SPAN, LANES) from `length` samples at `start` of `rows` rows of `x` (row, time)."""
    for i in range(rows):
        for t in range(length):
            tile[t, i] = x[first + i, start + t]


@kernel
def store(tile: Array, first: int, rows: int, start: int, length: int, y: Array) -> None:
    """The same of `y` from `tile`."""
    for i in range(rows):
        for t in range(length):
            y[first + i, start + t] = tile[t, i]
