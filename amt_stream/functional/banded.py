"""Products with matrices of which most is zero."""

from math import prod

import torch
from torch import Tensor

from amt_stream.functional.dispatch import Array, array, compilable, compiled, kernel
from amt_stream.functional.shapes import fit, last_axes, signal_axes


def banded(x: Tensor, matrix: Tensor, blocks: Tensor) -> Tensor:
    """`x` (..., n) times the transpose of `matrix` (m, n), which is zero outside its blocks.

    blocks: (count, 4) rows `first, last, from, to`: matrix[first:last] is zero outside [from:to]
    """
    lead, columns = signal_axes("banded", "x", x, 1)
    rows, _ = last_axes("banded", "matrix", matrix, 2)
    count, _ = last_axes("banded", "blocks", blocks, 2)
    rows, count = max(1, rows), max(1, count)
    fit("banded", x.dtype, ("matrix", matrix, (rows, columns)))
    fit("banded", torch.int64, ("blocks", blocks, (count, 4)))
    number = prod(lead)
    if compiled(x, matrix):
        y = x.new_empty(*lead, rows)
        given = array(x).reshape(number, columns), array(matrix), array(blocks)
        if not multiply(*given, y.numpy().reshape(number, rows)):
            raise _not_in_blocks(rows, columns)
        return y
    if compilable(x, matrix) and not _rows_in_blocks(array(blocks), rows, columns):
        raise _not_in_blocks(rows, columns)
    return x @ matrix.T


def _not_in_blocks(rows: int, columns: int) -> ValueError:
    return ValueError(
        f"banded: the blocks are not those of a matrix of shape {(rows, columns)}: give first, "
        "last, from, to of all rows in order, within it"
    )


@kernel
def _rows_in_blocks(blocks: Array, rows: int, columns: int) -> bool:
    """Whether `blocks` hold each of `rows` once, in order, and lie within `columns`."""
    at = 0
    for b in range(blocks.shape[0]):
        first, last, start, stop = blocks[b]
        if first != at or last < first or start < 0 or stop < start or stop > columns:
            return False
        at = last
    return at == rows


@kernel
def multiply(x: Array, matrix: Array, blocks: Array, y: Array) -> bool:
    """Whether the blocks are those of the matrix; `y` (row, m) is written where they are."""
    if not _rows_in_blocks(blocks, matrix.shape[0], matrix.shape[1]):
        return False
    zero, end = y.dtype.type(0), y.shape[0] - 1
    for b in range(blocks.shape[0]):
        start, stop = blocks[b, 2], blocks[b, 3]
        for j in range(blocks[b, 0], blocks[b, 1], 4):
            # Four by four sums at a time, which the vector registers hold: each number that is
            # loaded serves four of them. What is beyond an end is the last one again.
            j1, j2, j3 = (
                min(j + 1, blocks[b, 1] - 1),
                min(j + 2, blocks[b, 1] - 1),
                min(j + 3, blocks[b, 1] - 1),
            )
            w0, w1 = matrix[j, start:stop], matrix[j1, start:stop]
            w2, w3 = matrix[j2, start:stop], matrix[j3, start:stop]
            for n in range(0, end + 1, 4):
                n1, n2, n3 = min(n + 1, end), min(n + 2, end), min(n + 3, end)
                x0, x1 = x[n, start:stop], x[n1, start:stop]
                if n1 == end:  # no more than two
                    s00, s10, s20, s30 = zero, zero, zero, zero
                    s01, s11, s21, s31 = zero, zero, zero, zero
                    for k in range(w0.size):
                        s00 += w0[k] * x0[k]
                        s01 += w0[k] * x1[k]
                        s10 += w1[k] * x0[k]
                        s11 += w1[k] * x1[k]
                        s20 += w2[k] * x0[k]
                        s21 += w2[k] * x1[k]
                        s30 += w3[k] * x0[k]
                        s31 += w3[k] * x1[k]
                    y[n, j], y[n, j1], y[n, j2], y[n, j3] = s00, s10, s20, s30
                    y[n1, j], y[n1, j1], y[n1, j2], y[n1, j3] = s01, s11, s21, s31
                    continue
                x2, x3 = x[n2, start:stop], x[n3, start:stop]
                s00, s10, s20, s30 = zero, zero, zero, zero
                s01, s11, s21, s31 = zero, zero, zero, zero
                s02, s12, s22, s32 = zero, zero, zero, zero
                s03, s13, s23, s33 = zero, zero, zero, zero
                for k in range(w0.size):
                    s00 += w0[k] * x0[k]
                    s01 += w0[k] * x1[k]
                    s02 += w0[k] * x2[k]
                    s03 += w0[k] * x3[k]
                    s10 += w1[k] * x0[k]
                    s11 += w1[k] * x1[k]
                    s12 += w1[k] * x2[k]
                    s13 += w1[k] * x3[k]
                    s20 += w2[k] * x0[k]
                    s21 += w2[k] * x1[k]
                    s22 += w2[k] * x2[k]
                    s23 += w2[k] * x3[k]
                    s30 += w3[k] * x0[k]
                    s31 += w3[k] * x1[k]
                    s32 += w3[k] * x2[k]
                    s33 += w3[k] * x3[k]
                y[n, j], y[n, j1], y[n, j2], y[n, j3] = s00, s10, s20, s30
                y[n1, j], y[n1, j1], y[n1, j2], y[n1, j3] = s01, s11, s21, s31
                y[n2, j], y[n2, j1], y[n2, j2], y[n2, j3] = s02, s12, s22, s32
                y[n3, j], y[n3, j1], y[n3, j2], y[n3, j3] = s03, s13, s23, s33
    return True
