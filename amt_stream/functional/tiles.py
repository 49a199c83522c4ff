"""Rows of samples side by side, so that a recurrence over time fills the vector registers."""

from amt_stream.functional.dispatch import Array, kernel

LANES = 16
"""Rows that go together at most: one register of float32, two of float64, in AVX-512."""

SPAN = 128
"""Samples of each row that go together: a tile then stays in the nearest cache."""


@kernel
def load(x: Array, first: int, rows: int, start: int, length: int, tile: Array) -> None:
    """`tile` (SPAN, lane) from `length` samples at `start` of `rows` rows of `x` (row, time)."""
    end = start + length
    i = 0
    # Four rows a turn, so that the strided stores to `tile` fall together.
    while i + 4 <= rows:
        x0, x1 = x[first + i, start:end], x[first + i + 1, start:end]
        x2, x3 = x[first + i + 2, start:end], x[first + i + 3, start:end]
        for t in range(length):
            tile[t, i], tile[t, i + 1], tile[t, i + 2], tile[t, i + 3] = x0[t], x1[t], x2[t], x3[t]
        i += 4
    while i < rows:
        x0 = x[first + i, start:end]
        for t in range(length):
            tile[t, i] = x0[t]
        i += 1


@kernel
def store(tile: Array, first: int, rows: int, start: int, length: int, y: Array) -> None:
    """The same of `y` from `tile`."""
    end = start + length
    i = 0
    while i + 4 <= rows:
        y0, y1 = y[first + i, start:end], y[first + i + 1, start:end]
        y2, y3 = y[first + i + 2, start:end], y[first + i + 3, start:end]
        for t in range(length):
            y0[t], y1[t], y2[t], y3[t] = tile[t, i], tile[t, i + 1], tile[t, i + 2], tile[t, i + 3]
        i += 4
    while i < rows:
        y0 = y[first + i, start:end]
        for t in range(length):
            y0[t] = tile[t, i]
        i += 1


TINY = 1e-250
"""Below it what fades away in float64 is 0: arithmetic with the least numbers is slow."""


@kernel
def flush(x: Array) -> None:
    """`x`, in float64, with what has faded away set to 0."""
    flat = x.reshape(-1)
    for i in range(flat.size):
        flat[i] = 0 if abs(flat[i]) < TINY else flat[i]
