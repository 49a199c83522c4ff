"""Mean squares of filtered sound per frame, for programme loudness, and their sum."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.call_table import Calls, join, leave, plan_rows
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compiled, kernel, recurrence
from amt_stream.dsp.functional.compiler.operators import operator
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes
from amt_stream.dsp.functional.filters.direct_form import direct_form
from amt_stream.dsp.functional.peak import _peaks, framed, per_frame, whole_frames

TINY = 1e-20
"""Filter states below this are set to 0, because arithmetic with denormal numbers is slow."""


@operator(lambda x, sections, lengths, zi: (framed(x, lengths, zi), zi.new_empty(zi.shape)))
def filtered_mean_square(
    x: Tensor, sections: Tensor, lengths: Sequence[int], zi: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean square (..., frame) of `x` (..., time) through two second-order sections.

    sections: (2, 6) b0 b1 b2 1 a1 a2
    lengths: samples of consecutive frames, repeated; time is a multiple of their sum
    zi, zf: (..., 2, 2), transposed direct form II

    All but `x` in float64, because of poles near 1: with an offset of 0.5, float32 would leave
    noise of 3e-4 at 192 kHz.
    """
    lead, time = signal_axes("filtered_mean_square", "x", x, 1)
    frames = whole_frames("filtered_mean_square", time, lengths)
    table, state = ("sections", sections, (2, 6)), ("zi", zi, (*lead, 2, 2))
    fit("filtered_mean_square", torch.float64, table, state)
    if compiled(x, sections, zi):
        squares, after = np.empty((*lead, frames)), np.empty(zi.shape)
        _filtered_mean_square(
            array(x).reshape(-1, time),
            array(sections),
            np.array(lengths),
            array(zi).reshape(-1, 2, 2),
            squares.reshape(-1, frames),
            after.reshape(-1, 2, 2),
        )
        return torch.from_numpy(squares), torch.from_numpy(after)
    y, zf = direct_form(x.double(), sections[:, :3], sections[:, 3:], zi)
    return per_frame(lambda v: v.mean(-1), y.square(), lengths), zf


@recurrence
def _filtered_mean_square(
    x: Array, sections: Array, lengths: Array, zi: Array, y: Array, zf: Array
) -> None:
    b0, b1, b2, _, a1, a2 = sections[0]
    c0, c1, c2, _, d1, d2 = sections[1]
    for r in range(x.shape[0]):
        start = 0
        s1, s2 = zi[r, 0]
        r1, r2 = zi[r, 1]
        for n in range(y.shape[1]):
            length = lengths[n % lengths.size]
            total = 0.0
            for t in range(start, start + length):
                u = np.float64(x[r, t])
                v = b0 * u + s1
                s1 = b1 * u - a1 * v + s2
                s2 = b2 * u - a2 * v
                w = c0 * v + r1
                r1 = c1 * v - d1 * w + r2
                r2 = c2 * v - d2 * w
                total += w * w
            start += length
            y[r, n] = total / length
            s1, s2, r1, r2 = _flushed(s1), _flushed(s2), _flushed(r1), _flushed(r2)
        zf[r, 0, 0], zf[r, 0, 1], zf[r, 1, 0], zf[r, 1, 1] = s1, s2, r1, r2


@recurrence
def _flushed(state: float) -> float:
    return 0.0 if abs(state) < TINY else state


@kernel
def _summed(squares: Array, gains: Array, energy: Array) -> None:
    """Weighted sums of `squares` (row, channel, frame) over channels."""
    for r in range(energy.shape[0]):
        for n in range(energy.shape[1]):
            total = 0.0
            for c in range(gains.size):
                total += gains[c] * squares[r, c, n]
            energy[r, n] = total


AT = plan_rows(
    # Kernels, tables, the state and the sound, (row, channel, ...) and as lines (row and channel,
    # ...), and the outputs.
    "to_squares to_peaks to_sum sections lengths gains phases filters past given joined squares "
    "square_lines energy true_peak sample_peak "
)
"""Rows of a plan, by name."""

CALLS = Calls(AT)
"""The kernels, by their rows in a plan."""

_a, _i, _d, _ = CALLS.arguments

_to_squares = CALLS.add(
    "to_squares",
    _filtered_mean_square,
    *(*_a(2, "given"), *_d(2, "sections"), *_i(1, "lengths"), *_d(3, "filters")),
    *(*_d(2, "square_lines"), *_d(3, "filters")),
)
_to_peaks = CALLS.add(
    "to_peaks",
    _peaks,
    *(*_a(2, "joined", "phases"), *_i(1, "lengths"), *_a(2, "sample_peak", "true_peak")),
)
_to_sum = CALLS.add("to_sum", _summed, *_d(3, "squares"), *_d(1, "gains"), *_a(2, "energy"))


@kernel
def to_frames(plan: Array, like: Array) -> None:
    """Sound to energies and peaks; like: any array of the sound's dtype."""
    size = like.itemsize
    _to_squares(plan, like)
    _to_sum(plan, like)
    join(plan, AT.past, AT.given, AT.joined, size)
    _to_peaks(plan, like)
    leave(plan, AT.joined, AT.past, size)
