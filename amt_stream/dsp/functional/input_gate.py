"""Checks and scales the input of a model and sums its energy, in one pass."""

import numpy as np

from amt_stream.core.importing import has_torch
from amt_stream.core.made_once import made_once
from amt_stream.dsp.functional.compiler.host_loop import FAST, host_loop

Array = np.ndarray

NO_LIMIT = np.float32(np.inf)
"""The limit for samples that are known to be valid."""

STILL = 2.0**-30
"""Rounding leaves less than this fraction of a constant, which counts as silence."""

SOUND, SILENCE, SUSPECT = 0, 1, 2
"""Result for a block: sound, silence, or invalid samples, in which case nothing was written."""

_compiled = host_loop(fastmath=FAST)


@_compiled
def scale_and_check(
    block: Array,
    scale: Array,
    limit: float,
    offset: Array,
    follow: float,
    rows: Array,
    energy: Array,
) -> int:
    """Remove the offset of a block, scale it, add its squares to `energy`, and classify it.

    block: (time, channel) float32, any strides; one channel goes to all rows
    scale: (row, 1) float32, or (1, 1) for all rows
    limit: float32; if a sample is NaN or not below it, nothing is written: SUSPECT
    offset: (channel,) float64, the slow mean of each channel, which is subtracted and updated
    follow: the weight of a sample in that mean; 0 leaves the sound as it is
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
    if follow > 0.0:
        _remove_offset(block, scale, offset, follow, rows)
    else:
        for row in range(rows.shape[0]):
            gain, channel = scale[min(row, scale.shape[0] - 1), 0], min(row, channels - 1)
            for t in range(count):
                rows[row, t] = block[t, channel] * gain
    length = count // energy.shape[1]
    for row in range(rows.shape[0]):
        for part in range(energy.shape[1]):
            x, total = rows[row, part * length : (part + 1) * length], 0.0
            for t in range(length):
                total += np.float64(x[t]) * np.float64(x[t])
            energy[row, part] += total
    return SILENCE if silent else SOUND


@_compiled
def _remove_offset(block: Array, scale: Array, offset: Array, follow: float, rows: Array) -> None:
    """Write a block without its offset, scaled, two rows at a time: their means do not wait."""
    count, channels = block.shape
    # A further row of the last channel begins where its first one did.
    begin = offset.copy()
    for row in range(0, rows.shape[0], 2):
        other = min(row + 1, rows.shape[0] - 1)
        one_gain = scale[min(row, scale.shape[0] - 1), 0]
        other_gain = scale[min(other, scale.shape[0] - 1), 0]
        one_channel, other_channel = min(row, channels - 1), min(other, channels - 1)
        one_mean, other_mean = begin[one_channel], begin[other_channel]
        for t in range(count):
            one = np.float64(block[t, one_channel])
            two = np.float64(block[t, other_channel])
            one_rest, other_rest = one - one_mean, two - other_mean
            one_rest = 0.0 if abs(one_rest) < STILL * abs(one_mean) else one_rest
            other_rest = 0.0 if abs(other_rest) < STILL * abs(other_mean) else other_rest
            rows[row, t] = np.float32(one_rest) * one_gain
            rows[other, t] = np.float32(other_rest) * other_gain
            one_mean = one_mean - follow * one_mean + follow * one
            other_mean = other_mean - follow * other_mean + follow * two
        offset[one_channel], offset[other_channel] = one_mean, other_mean


@_compiled
def without_offset(block: Array, offset: Array, follow: float, rows: Array) -> None:
    """Write a block without its offset to `rows` (channel, time), as `scale_and_check` does."""
    _remove_offset(block, np.ones((1, 1), np.float32), offset, follow, rows)


@made_once
def make_ready() -> None:
    """Compile these functions for any strides, so that no block waits for them."""
    if not has_torch():
        return
    from numba import types

    block = types.Array(types.float32, 2, "A", readonly=True)
    numbers = types.Array(types.float32, 2, "C")
    offset, energy = (types.Array(types.float64, n, "C") for n in (1, 2))
    sound = block, numbers, types.float32, offset, types.float64, numbers, energy
    scale_and_check.compile(sound)
    without_offset.compile((block, offset, types.float64, numbers))
    for one in (scale_and_check, without_offset):
        one.disable_compile()
