"""Band-pass filterbanks of biquads in series, all bands in parallel, and their powers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.call_table import Calls, TupleOf, plan_rows
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compiled, kernel
from amt_stream.dsp.functional.compiler.lanes import lanes_of, put, where
from amt_stream.dsp.functional.compiler.operators import operator
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes
from amt_stream.dsp.functional.filters.state_space import state_space
from amt_stream.dsp.functional.peak import framed, per_frame, whole_frames

Zeros = tuple[float, float]
"""Zeros of a biquad: b1 and b2, with b0 = 1."""

BAND_PASS: Zeros = (0.0, -1.0)
"""No gain at 0 Hz and fs / 2."""

SECTIONS = 4
"""Biquads per filter."""

TIMED = 2
"""Time weightings F and S, in this order."""

SIDE = 4
"""Bands in parallel, one register of float64; this many leave room for all of their state."""

_lanes = lanes_of(SIDE)


class BandFrames(NamedTuple):
    """Powers in Pa^2 per frame and band, in the dtype of the sound.

    mean_square: over the frame (..., band, frame)
    last, highest: F and S (..., 2, band, frame), at its last sample and over all of them
    """

    mean_square: Tensor
    last: Tensor
    highest: Tensor


def _like_frames(
    x: Tensor, lengths: Sequence[int], poles: Tensor, gain: Tensor, smoothing: Tensor, zi: Tensor
) -> tuple[BandFrames, Tensor]:
    frames, bands = framed(x, lengths, x).shape[-1], len(gain)
    timed = (x.new_empty(*x.shape[:-1], TIMED, bands, frames) for _ in range(2))
    return BandFrames(x.new_empty(*x.shape[:-1], bands, frames), *timed), zi.new_empty(zi.shape)


@operator(_like_frames)
def third_octaves(
    x: Tensor, lengths: Sequence[int], poles: Tensor, gain: Tensor, smoothing: Tensor, zi: Tensor
) -> tuple[BandFrames, Tensor]:
    """Frames of sound pressure `x` (..., time) in pascal, and the next state.

    lengths: samples of consecutive frames, repeated; time is a multiple of their sum
    poles: (8, band) a1, a2 of four `BAND_PASS` biquads in series; gain: (band,); float64
    smoothing: (2,) weights of a new square in F and S; float64
    zi, zf: (..., 10, band) float64: two states of each biquad, in transposed direct form, and the
        powers F and S
    """
    lead, time = signal_axes("third_octaves", "x", x, 1)
    frames = whole_frames("third_octaves", time, lengths)
    _, bands = last_axes("third_octaves", "poles", poles, 2)
    states, bands = 2 * SECTIONS, max(1, bands)
    fit(
        "third_octaves",
        torch.float64,
        ("poles", poles, (states, bands)),
        ("gain", gain, (bands,)),
        ("smoothing", smoothing, (TIMED,)),
        ("zi", zi, (*lead, states + TIMED, bands)),
    )
    if compiled(x, poles, gain, smoothing, zi):
        rows, after = array(x).reshape(-1, time), array(zi).copy()
        sizes = (bands,), (TIMED, bands), (TIMED, bands)
        y = [np.empty((len(rows), *size, frames), rows.dtype) for size in sizes]
        _third_octaves(
            rows,
            np.array(lengths),
            array(poles),
            array(gain),
            array(smoothing),
            after.reshape(-1, *after.shape[-2:]),
            BandFrames(*y),  # type: ignore[arg-type]
        )
        shaped = (torch.from_numpy(v.reshape(*lead, *v.shape[1:])) for v in y)
        return BandFrames(*shaped), torch.from_numpy(after)
    filtered, filters = in_bands(x, poles, gain, (BAND_PASS,) * SECTIONS, zi[..., :states, :])
    squares = filtered.square().unsqueeze(-3)
    # Each time weighting as another set of channels.
    new = smoothing[:, None].expand(TIMED, bands).reshape(-1)
    keep = 1 - new
    levels, powers = state_space(
        squares.expand(*lead, TIMED, bands, time).flatten(-3, -2),
        keep[:, None, None],
        new[:, None],
        keep[:, None],
        new,
        zi[..., states:, :].flatten(-2)[..., None],
    )
    timed = levels.unflatten(-2, (TIMED, bands))
    return BandFrames(
        per_frame(lambda v: v.mean(-1), squares.squeeze(-3), lengths).to(x.dtype),
        per_frame(lambda v: v[..., -1], timed, lengths).to(x.dtype),
        per_frame(lambda v: v.amax(-1), timed, lengths).to(x.dtype),
    ), torch.cat([filters, powers.squeeze(-1).unflatten(-1, (TIMED, bands))], -2)


def in_bands(
    x: Tensor, poles: Tensor, gain: Tensor, zeros: Sequence[Zeros], zi: Tensor
) -> tuple[Tensor, Tensor]:
    """`x` (..., time) in each band (..., band, time) in float64, and the next state; plain form.

    poles: (2 section, band) a1, a2 of biquads in series, with their `zeros`; gain: (band,)
    zi, zf: (..., 2 section, band) states in transposed direct form
    """
    bands, sections = gain.shape[0], len(zeros)
    unit = torch.eye(2, dtype=gain.dtype, device=gain.device)
    itself = torch.eye(sections, dtype=gain.dtype, device=gain.device)
    # A section's input is the sound times the gain, plus the first state of each earlier section.
    before = itself.cumsum(0) - itself
    a = poles.T.unflatten(-1, (sections, 2))
    shift = torch.stack([torch.zeros_like(unit[0]), unit[0]], -1)
    driven = torch.stack([once * unit[0] + twice * unit[1] for once, twice in zeros]) - a
    alone = shift - a[..., None] * unit[0]
    joined = alone[..., None, :] * itself[:, None, :, None]
    joined = joined + driven[..., None, None] * before[:, None, :, None] * unit[0]
    y, zf = state_space(
        x.double().unsqueeze(-2).expand(*x.shape[:-1], bands, x.shape[-1]),
        joined.flatten(1, 2).flatten(-2),
        gain[:, None] * driven.flatten(1),
        unit[0].repeat(sections).expand(bands, 2 * sections),
        gain,
        zi.mT,
    )
    return y, zf.mT


@kernel
def _third_octaves(
    x: Array,
    lengths: Array,
    poles: Array,
    gain: Array,
    smoothing: Array,
    states: Array,
    y: BandFrames,
) -> None:
    """Updates `states` (row, state, band) in place; y: (row, ..., band, frame) each."""
    bands = gain.size
    # Full vector registers; unused lanes process silence.
    whole = -(-bands // SIDE) * SIDE
    table, state = np.zeros((1 + 2 * SECTIONS, whole)), np.zeros((2 * SECTIONS + TIMED, whole))
    out = np.empty((1 + 2 * TIMED, whole))
    for b in range(bands):
        table[0, b] = gain[b]
        for k in range(2 * SECTIONS):
            table[1 + k, b] = poles[k, b]
    longest = 0
    for n in range(lengths.size):
        longest = max(longest, lengths[n])
    frame = np.empty(longest)
    for r in range(x.shape[0]):
        for k in range(state.shape[0]):
            for b in range(bands):
                state[k, b] = states[r, k, b]
        start = 0
        for n in range(y.mean_square.shape[2]):
            length = lengths[n % lengths.size]
            # In float64, once for all bands.
            block = frame[:length]
            for t in range(length):
                block[t] = x[r, start + t]
            for b in range(0, whole, SIDE):
                _side_by_side(block, table, b, smoothing, state, out)
            for b in range(bands):
                y.mean_square[r, b, n] = out[0, b]
                for k in range(TIMED):
                    y.last[r, k, b, n] = out[1 + k, b]
                    y.highest[r, k, b, n] = out[1 + TIMED + k, b]
            start += length
        for k in range(state.shape[0]):
            for b in range(bands):
                states[r, k, b] = state[k, b]


@kernel
def _side_by_side(
    x: Array, table: Array, b: int, smoothing: Array, state: Array, out: Array
) -> None:
    """A frame of the `SIDE` bands from `b` on."""
    new_f, new_s = smoothing
    for i in range(SIDE):
        out[0, b + i] = 0.0
    nothing = _lanes(out, 0, b)
    gain = _lanes(table, 0, b)
    a0, a1, a2 = _lanes(table, 1, b), _lanes(table, 2, b), _lanes(table, 3, b)
    a3, a4, a5 = _lanes(table, 4, b), _lanes(table, 5, b), _lanes(table, 6, b)
    a6, a7 = _lanes(table, 7, b), _lanes(table, 8, b)
    # States with inverted sign, so that each update is one operation.
    s0, s1 = nothing - _lanes(state, 0, b), nothing - _lanes(state, 1, b)
    s2, s3 = nothing - _lanes(state, 2, b), nothing - _lanes(state, 3, b)
    s4, s5 = nothing - _lanes(state, 4, b), nothing - _lanes(state, 5, b)
    s6, s7 = nothing - _lanes(state, 6, b), nothing - _lanes(state, 7, b)
    level_f, level_s = _lanes(state, 8, b), _lanes(state, 9, b)
    total = highest_f = highest_s = nothing
    for t in range(x.size):
        u = gain * x[t]
        v = u - s0
        s0, s1 = s1 + a0 * v, u + a1 * v
        u = v - s2
        s2, s3 = s3 + a2 * u, v + a3 * u
        v = u - s4
        s4, s5 = s5 + a4 * v, u + a5 * v
        u = v - s6
        s6, s7 = s7 + a6 * u, v + a7 * u
        power = u * u
        total = total + power
        level_f = level_f + (power - level_f) * new_f
        level_s = level_s + (power - level_s) * new_s
        # Written so that NaN persists: no comparison with it holds.
        highest_f = where(highest_f > level_f, highest_f, level_f)
        highest_s = where(highest_s > level_s, highest_s, level_s)
    for k, s in enumerate((s0, s1, s2, s3, s4, s5, s6, s7)):
        put(nothing - s, state, k, b)
    put(level_f, state, 8, b)
    put(level_s, state, 9, b)
    mean_square = total * (1.0 / x.size)
    for k, power in enumerate((mean_square, level_f, level_s, highest_f, highest_s)):
        put(power, out, k, b)


AT = plan_rows(
    # A kernel, tables, the state and the sound, and the outputs.
    "to_powers lengths poles gain smoothing state given mean_square last highest "
)
"""Rows of a plan, by name."""

CALLS = Calls(AT)
"""The kernels, by their rows in a plan."""

_a, _i, _d, _ = CALLS.arguments

_to_powers = CALLS.add(
    "to_powers",
    _third_octaves,
    *(*_a(2, "given"), *_i(1, "lengths"), *_d(2, "poles"), *_d(1, "gain", "smoothing")),
    *_d(3, "state"),
    TupleOf(BandFrames, (*_a(3, "mean_square"), *_a(4, "last", "highest"))),
)


@kernel
def to_frames(plan: Array, like: Array) -> None:
    """Sound to powers; like: any array of the sound's dtype."""
    _to_powers(plan, like)
