"""Checks and scales the input of a model and sums its energy, in one pass."""

import numpy as np
from numba import types

from amt_stream.core.made_once import made_once
from amt_stream.dsp.functional.dispatch import Array, kernel

SOUND, SILENCE, SUSPECT = 0, 1, 2
"""Result for a block: sound, silence, or invalid samples, in which case nothing was written."""


@kernel
def scale_and_check(block: Array, scale: Array, limit: float, rows: Array, energy: Array) -> int:
    """Scale a block, add its squares to `energy`, and classify it.

    block: (time, channel) float32, any strides; one channel goes to all rows
    scale: (row, 1) float32, or (1, 1) for all rows
    limit: float32; if a sample is NaN or not below it, nothing is written: SUSPECT
    rows: (row, time), written up to the length of the block
    energy: (row, part) float64; the block is divided into as many equal parts
    """
    count, channels = block.shape
    silent = sane = True
    for t in range(count):
        for c in range(channels):
            sane &= abs(block[t, c]) < limit
            silent &= block[t, c] == 0.0
    if not sane:
        return SUSPECT
    length = count // energy.shape[1]
    for row in range(rows.shape[0]):
        gain, channel = scale[min(row, scale.shape[0] - 1), 0], min(row, channels - 1)
        for t in range(count):
            rows[row, t] = block[t, channel] * gain
        for part in range(energy.shape[1]):
            x, total = rows[row, part * length : (part + 1) * length], 0.0
            for t in range(length):
                total += np.float64(x[t]) * np.float64(x[t])
            energy[row, part] += total
    return SILENCE if silent else SOUND


@made_once
def make_ready() -> None:
    """Compile `scale_and_check` for any strides, so that no block waits for it."""
    block = types.Array(types.float32, 2, "A", readonly=True)
    numbers = types.Array(types.float32, 2, "C")
    energy = types.Array(types.float64, 2, "C")
    scale_and_check.compile((block, numbers, types.float32, numbers, energy))
    scale_and_check.disable_compile()
