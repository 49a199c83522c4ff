"""Parallel second-order sections, summed: the compiled form of `MicrophoneCorrection`."""

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array
from amt_stream.dsp.functional.compiler.host_loop import FAST
from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit


def steps(g: np.ndarray, k: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Tables (6, section) of `side_by_side` from sections in the form of `functional.svf`.

    Three state update coefficients, and the output weights of the input and the two states.
    """
    r = 1 / (1 + g * (g + k))
    return np.stack([g * (g + k) * r, g * r, g * g * r, *weights.T])


def side_by_side(x: Tensor, tables: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of all sections of each channel of `x` (..., channel, time), and the last states.

    tables: (channel, 6, section) in float64, from `steps`
    past: (..., channel times section, 1, 2) in float64
    """
    y, last = x.new_empty(x.shape), past.clone(memory_format=torch.contiguous_format)
    sections = tables.shape[-1]
    states = last.numpy().reshape(-1, sections, 2)
    rows = array(x).reshape(-1, x.shape[-1])
    _side_by_side(rows, array(tables), states, y.numpy().reshape(rows.shape))
    return y, last


@cached_njit(nogil=True, fastmath=FAST, error_model="numpy")
def _side_by_side(x: Array, tables: Array, states: Array, y: Array) -> None:
    """Updates `states` (row, section, 2) in place."""
    channels, _, sections = tables.shape
    a, b = np.empty(sections), np.empty(sections)
    for row in range(x.shape[0]):
        table = tables[row % channels]
        h, p, q, u0, u1, u2 = table[0], table[1], table[2], table[3], table[4], table[5]
        through = u0.sum()
        a[:], b[:] = states[row, :, 0], states[row, :, 1]
        for t in range(x.shape[1]):
            v = np.float64(x[row, t])
            total = through * v
            for i in range(sections):
                excess = v - b[i]
                d1 = p[i] * excess - h[i] * a[i]
                d2 = p[i] * a[i] + q[i] * excess
                total += u1[i] * (a[i] + d1) + u2[i] * (b[i] + d2)
                a[i] += 2 * d1
                b[i] += 2 * d2
            y[row, t] = total
        states[row, :, 0], states[row, :, 1] = a, b
