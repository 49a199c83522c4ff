"""Products with banded matrices."""

from math import prod

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, compilable, compiled, kernel
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes
from amt_stream.dsp.functional.compiler.sums import sums_of_products


def banded(x: Tensor, matrix: Tensor, blocks: Tensor, columns: int) -> Tensor:
    """`x` (..., n) times the first `columns` of `matrix` (n, m), which is zero outside its blocks.

    blocks: (count, 2) rows `from, to` of the nonzero part of each `LANES` columns; the last block
        ends at `columns`
    """
    lead, rows = signal_axes("banded", "x", x, 1)
    _, wide = last_axes("banded", "matrix", matrix, 2)
    if not 1 <= columns <= wide:
        raise ValueError(f"banded: columns is {columns}: give 1 to the {wide} of the matrix")
    fit("banded", x.dtype, ("matrix", matrix, (rows, wide)))
    fit("banded", torch.int64, ("blocks", blocks, (-(-columns // LANES), 2)))
    number = prod(lead)
    if compiled(x, matrix):
        y = x.new_empty(*lead, columns)
        given = array(x).reshape(number, rows), array(matrix), array(blocks)
        if not multiply(*given, y.numpy().reshape(number, columns)):
            raise _not_in_blocks(rows)
        return y
    if compilable(x, matrix) and not _within(array(blocks), rows):
        raise _not_in_blocks(rows)
    return x @ matrix[:, :columns]


def band_blocks(matrix: np.ndarray) -> np.ndarray:
    """The blocks of `matrix` (n, column)."""
    starts = range(0, matrix.shape[1], LANES)
    used = [
        np.flatnonzero(matrix[:, max(0, min(at, matrix.shape[1] - LANES)) :][:, :LANES].any(axis=1))
        for at in starts
    ]
    return np.array([(rows[0], rows[-1] + 1) if rows.size else (0, 0) for rows in used])


def filled_up(matrix: np.ndarray) -> np.ndarray:
    """`matrix` (n, column) padded with zero columns, so that a vector register spans one row only.

    An odd number of registers per row spreads the rows over different cache sets.
    """
    registers = -(-matrix.shape[1] // LANES) // 2 * 2 + 1
    return np.pad(matrix, ((0, 0), (0, LANES * registers - matrix.shape[1])))


def _not_in_blocks(rows: int) -> ValueError:
    return ValueError(
        f"banded: the blocks are not those of a matrix of {rows} rows: give from and to for each "
        f"{LANES} columns, within it"
    )


@kernel
def _within(blocks: Array, rows: int) -> bool:
    """Whether `blocks` lie within `rows`."""
    for b in range(blocks.shape[0]):
        if blocks[b, 0] < 0 or blocks[b, 1] < blocks[b, 0] or blocks[b, 1] > rows:
            return False
    return True


@kernel
def multiply(x: Array, matrix: Array, blocks: Array, y: Array) -> bool:
    """Write the product into `y` (row, column); False, with nothing written, for invalid blocks."""
    if not _within(blocks, matrix.shape[0]):
        return False
    columns = y.shape[1]
    if columns < LANES:
        for n in range(y.shape[0]):
            for j in range(columns):
                total = y.dtype.type(0)
                for k in range(blocks[0, 0], blocks[0, 1]):
                    total += x[n, k] * matrix[k, j]
                y[n, j] = total
        return True
    sums_of_products(x, y.shape[0], blocks, matrix, columns, y, np.int64(0))
    return True
