"""Sums of a squared signal times slow waves, over cells of equal length."""

from math import prod

import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, compiled, kernel
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes, whole_blocks


def cell_sums(x: Tensor, waves: Tensor) -> Tensor:
    """Sums (..., cell, wave) over each cell of the square of `x` (..., time) times each wave.

    waves: (wave, sample), of the length of a cell; the length of `x` is a multiple of it
    """
    lead, time = signal_axes("cell_sums", "x", x, 1)
    count, length = last_axes("cell_sums", "waves", waves, 2)
    whole_blocks("cell_sums", time, length)
    fit("cell_sums", x.dtype, ("waves", waves, (count, length)))
    if not compiled(x, waves):
        return x.square().unflatten(-1, (-1, length)) @ waves.mT
    y, cells = torch.zeros(*lead, time // length, count, dtype=x.dtype), prod(lead) * time // length
    _cell_sums(array(x).reshape(cells, length), array(waves), y.numpy().reshape(cells, count))
    return y


@kernel
def _cell_sums(x: Array, waves: Array, y: Array) -> None:
    for r in range(x.shape[0]):
        for k in range(waves.shape[0]):
            total = x.dtype.type(0)
            for n in range(x.shape[1]):
                total += x[r, n] * x[r, n] * waves[k, n]
            y[r, k] = total
