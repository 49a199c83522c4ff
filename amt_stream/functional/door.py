"""Sound on its way into a model: looked at, scaled and summed up in one pass."""

from functools import cache

import numpy as np
from numba import types

from amt_stream.functional.kernel_cache import cached_njit

Array = np.ndarray

SOUND, SILENCE, SUSPECT = 0, 1, 2
"""What a block is: sound, zeros alone, or something to be inspected that was not let in."""

EIGHT, LONGEST = 8, 128
"""So many sums numpy makes of numbers side by side, and of so many numbers at most."""


def let_in_plain(block: Array, scale: Array, limit: float, rows: Array, energy: Array) -> int:
    """As `let_in`, in numpy."""
    low, high = block.min(), block.max()
    if not (low > -limit and high < limit):
        return SUSPECT
    within = rows[:, : len(block)]
    np.multiply(block.T, scale, out=within)
    energy += np.square(within, dtype=np.float64).sum(axis=1)
    return SILENCE if low == high == 0.0 else SOUND


@cached_njit(nogil=True, error_model="numpy")
def let_in(block: Array, scale: Array, limit: float, rows: Array, energy: Array) -> int:
    """Samples below `limit`, times `scale`, and their squares added to `energy`; what they are.

    block: (time, channel) float32 of any memory; one channel goes to all rows
    scale: (row, 1) float32, or (1, 1) of all rows
    limit: float32; of a block that has any other sample, or NaN, nothing is written: SUSPECT
    rows: (row, time), written from its beginning as far as the block is long
    energy: (row,) float64. The sum is numpy's to the last bit, which halves, at whole eights, what
        is longer than 128 and makes eight sums of the rest
    """
    count, channels = block.shape
    silent = sane = True
    for t in range(count):
        for c in range(channels):
            sane &= abs(block[t, c]) < limit
            silent &= block[t, c] == 0.0
    if not sane:
        return SUSPECT
    sums, halves, depth_of_half = np.zeros(EIGHT), np.zeros(64), np.zeros(64, np.int64)
    end_of_part, depth_of_part = np.zeros(64, np.int64), np.zeros(64, np.int64)
    for row in range(rows.shape[0]):
        gain, channel = scale[min(row, scale.shape[0] - 1), 0], min(row, channels - 1)
        x = rows[row, :count]
        for t in range(count):
            x[t] = block[t, channel] * gain
        begin, parts, known = 0, 1, 0
        end_of_part[0] = count
        while parts:
            parts -= 1
            end, depth = end_of_part[parts], depth_of_part[parts]
            while end - begin > LONGEST:
                depth += 1
                end_of_part[parts], depth_of_part[parts] = end, depth
                parts += 1
                end = begin + (end - begin) // 2 // EIGHT * EIGHT
            sums[:] = 0.0
            i = begin
            while i + EIGHT <= end:
                for j in range(EIGHT):
                    sample = np.float64(x[i + j])
                    sums[j] += sample * sample
                i += EIGHT
            total = (sums[0] + sums[1]) + (sums[2] + sums[3])
            total += (sums[4] + sums[5]) + (sums[6] + sums[7])
            while i < end:
                sample = np.float64(x[i])
                total += sample * sample
                i += 1
            begin = end
            # Of two halves of the same, the second has just been summed up.
            while known and depth_of_half[known - 1] == depth:
                known -= 1
                depth -= 1
                total = halves[known] + total
            halves[known], depth_of_half[known] = total, depth
            known += 1
        energy[row] += halves[0]
    return SILENCE if silent else SOUND


@cache
def make_ready() -> None:
    """Compile `let_in`, once for whatever memory comes, so that no sound waits for it."""
    block = types.Array(types.float32, 2, "A", readonly=True)
    numbers = types.Array(types.float32, 2, "C")
    energy = types.Array(types.float64, 1, "C")
    let_in.compile((block, numbers, types.float32, numbers, energy))
    let_in.disable_compile()
