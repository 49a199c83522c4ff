"""Sound on its way into a model: checked, scaled and summed up in one pass."""

from functools import cache

import numpy as np
from numba import types

from amt_stream.dsp.functional.dispatch import Array, kernel

SOUND, SILENCE, SUSPECT = 0, 1, 2
"""What a block is: sound, zeros alone, or something to be inspected of which nothing was taken."""


@kernel
def scale_and_check(block: Array, scale: Array, limit: float, rows: Array, energy: Array) -> int:
    """Samples below `limit`, times `scale`, and their squares added to `energy`; what they are.

    block: (time, channel) float32 of any memory; one channel goes to all rows
    scale: (row, 1) float32, or (1, 1) of all rows
    limit: float32; of a block that has any other sample, or NaN, nothing is written: SUSPECT
    rows: (row, time), written from its beginning as far as the block is long
    energy: (row, part) float64, of as many equal parts of the block
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


@cache
def make_ready() -> None:
    """Compile `scale_and_check`, once for whatever memory comes, so that no sound waits for it."""
    block = types.Array(types.float32, 2, "A", readonly=True)
    numbers = types.Array(types.float32, 2, "C")
    energy = types.Array(types.float64, 2, "C")
    scale_and_check.compile((block, numbers, types.float32, numbers, energy))
    scale_and_check.disable_compile()
