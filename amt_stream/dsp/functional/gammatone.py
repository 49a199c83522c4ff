"""All-pole gammatone filters: a cascade of complex one-pole filters per channel."""

from functools import cache
from math import pi
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amt_stream.core.made_once import made_once
from amt_stream.dsp.functional.compiler.dispatch import (
    Array,
    array,
    compilable,
    compiled,
    copied,
    kernel,
)
from amt_stream.dsp.functional.compiler.operators import operator
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes
from amt_stream.dsp.functional.compiler.tiles import SPAN, load, store
from amt_stream.dsp.functional.filters.complex_poles import Poles, pole_cascade
from amt_stream.dsp.functional.filters.state_space import BLOCK, Blocks, run, state_space


def one_poles(fc: Tensor, bandwidth: Tensor, fs: float) -> Tensor:
    """Coefficients (3, channel) of `gammatone`: p = exp(-2 pi bandwidth / fs - j 2 pi fc / fs).

    They are the real part of p - 1, the imaginary part, and 1 - |p|. Low bands have poles near 1,
    where rounding of p itself would change their bandwidth.

    fc, bandwidth: (channel,) center frequency and decay of the envelope in Hz
    """
    decay, angle = 2 * pi / fs * bandwidth, 2 * pi / fs * fc
    size, gap = torch.exp(-decay), -torch.expm1(-decay)
    return torch.stack([-2 * size * (angle / 2).sin() ** 2 - gap, -size * angle.sin(), gap])


def gammatone(
    x: Tensor, coefficients: Tensor, factor: float, zi: Tensor, system: Blocks | None = None
) -> tuple[Tensor, Tensor]:
    """`factor` times the real part of `x` through n complex one-pole filters in cascade.

    u_k[t] = p u_k[t-1] + (1 - |p|) u_{k-1}[t], u_0 = x, y = factor Re u_n (Hohmann 2002).

    x: (..., 1, time) for all channels, or (..., channel, time)
    coefficients: (3, channel) from `one_poles`
    zi, zf: (..., 2, n, channel): real and imaginary part of the last u_1 to u_n
    system: `cascade_blocks` of the same for BLOCK samples, to save the plain form computing them
    """
    lead, sources, time = signal_axes("gammatone", "x", x, 2)
    order, channels = last_axes("gammatone", "zi", zi, 2)
    # One input for all channels, or one for each.
    order, channels = max(1, order), channels if sources == 1 else sources
    state = (*lead, 2, order, max(1, channels))
    table = ("coefficients", coefficients, (3, max(1, channels)))
    fit("gammatone", x.dtype, table, ("zi", zi, state))
    if torch.compiler.is_compiling():
        return _gammatone(x, coefficients, factor, zi)
    if system is not None:
        tables = zip(Blocks._fields, system, _block_shapes(channels, 2 * order), strict=True)
        fit("gammatone", x.dtype, *tables)
    shape = (*lead, channels, time)
    given, last = x.reshape(-1, sources, time), zi.reshape(-1, 2, order, channels)
    if compiled(x, coefficients, zi):
        y, zf = _forward(given, coefficients, factor, last)
        return y.view(shape), zf.view(zi.shape)
    if compilable(x, coefficients, zi):
        poles = Poles(
            coefficients.double(),
            torch.full((channels,), factor, dtype=torch.float64),
            torch.zeros(channels, dtype=torch.bool),
            torch.tensor([channels]),
        )
        y, zf = pole_cascade(
            given, poles, last, lambda x, zi: _forward(x, coefficients, factor, zi)
        )
        return y.view(shape), zf.view(zi.shape)
    rows, s = x.expand(shape), zi.movedim(-1, -3).flatten(-2)
    whole = x.shape[-1] // BLOCK * BLOCK
    outputs = []
    if whole:
        if system is None:
            system = cascade_blocks(coefficients, factor, order)
        y, s = run(rows[..., :whole], system, s)
        outputs.append(y)
    if whole < x.shape[-1]:
        rest = cascade_blocks(coefficients, factor, order, x.shape[-1] - whole)
        y, s = run(rows[..., whole:], rest, s)
        outputs.append(y)
    y = outputs[0] if len(outputs) == 1 else torch.cat(outputs, -1)
    return y, s.unflatten(-1, (2, order)).movedim(-3, -1)


@operator(
    lambda x, coefficients, weights, zi: (
        x.new_empty(*x.shape[:-2], zi.shape[-1], x.shape[-1]),
        zi.new_empty(zi.shape),
    )
)
def gammatone_sum(
    x: Tensor, coefficients: Tensor, weights: Tensor, zi: Tensor
) -> tuple[Tensor, Tensor]:
    """The filters of `gammatone`, with y = sum over k of weights_k Re u_k.

    This gives any filter with n equal poles, such as an envelope t^(n - 1) without rounding of
    expanded polynomials.

    x: (..., 1, time) for all channels, or (..., channel, time)
    coefficients: (3, channel) from `one_poles`; weights: (n, channel)
    zi, zf: (..., 2, n, channel)
    """
    lead, sources, time = signal_axes("gammatone_sum", "x", x, 2)
    order, channels = last_axes("gammatone_sum", "zi", zi, 2)
    order, channels = max(1, order), max(1, channels) if sources == 1 else sources
    table = ("coefficients", coefficients, (3, channels))
    fit("gammatone_sum", x.dtype, table, ("weights", weights, (order, channels)))
    fit("gammatone_sum", x.dtype, ("zi", zi, (*lead, 2, order, channels)))
    if compiled(x, coefficients, weights, zi):
        zf = copied(zi)
        return gammatone_sum_in_place(x, coefficients, weights, zf), zf
    re, im, gain = coefficients
    # u_k[t] = p sum_j gain^(k - j) u_j[t - 1] + gain^k x[t], as pairs of real and imaginary part.
    power = torch.arange(order, device=gain.device)
    passed = gain[:, None, None] ** (power[:, None] - power).clamp(min=0)
    passed = passed * (power[:, None] >= power)
    turn = torch.stack([torch.stack([1 + re, -im], -1), torch.stack([im, 1 + re], -1)], -2)
    a = (turn[:, :, None, :, None] * passed[:, None, :, None, :]).flatten(3).flatten(1, 2)
    reach = gain[:, None] ** (power + 1)
    b = torch.cat([reach, torch.zeros_like(reach)], -1)
    seen = torch.cat([weights.T, torch.zeros_like(weights.T)], -1)
    c, d = (seen[:, None] @ a).squeeze(1), (seen * b).sum(-1)
    state = zi.movedim(-1, -3).flatten(-2)
    y, last = state_space(x.expand(*lead, channels, time), a, b, c, d, state)
    return y, last.unflatten(-1, (2, order)).movedim(-3, -1)


def gammatone_sum_in_place(
    x: Tensor, coefficients: Tensor, weights: Tensor, state: Tensor
) -> Tensor:
    """The output of `gammatone_sum` by its compiled form, which updates `state`.

    Nothing is checked.

    state: contiguous
    """
    order, channels = state.shape[-2:]
    given = array(x).reshape(-1, *x.shape[-2:])
    last = state.numpy().reshape(-1, 2, order, channels)
    y = x.new_empty(*x.shape[:-2], channels, x.shape[-1])
    run_all = _cascade(order, True)
    out = y.numpy().reshape(len(given), channels, x.shape[-1])
    run_all(given, array(coefficients), array(weights), last, out, last)
    return y


def _forward(x: Tensor, coefficients: Tensor, factor: float, zi: Tensor) -> tuple[Tensor, Tensor]:
    """The compiled form for rows `x` (row, 1 or channel, time) with `zi` (row, 2, n, channel)."""
    y, zf = x.new_empty(len(x), zi.shape[-1], x.shape[-1]), zi.new_empty(zi.shape)
    cascade = _cascade(zi.shape[2])
    cascade(array(x), array(coefficients), factor, array(zi), y.numpy(), zf.numpy())
    return y, zf


@cache
def _block_shapes(channels: int, states: int) -> tuple[tuple[int, ...], ...]:
    """Shapes of `cascade_blocks` for blocks of BLOCK samples."""
    return (
        (channels, BLOCK, BLOCK),
        (channels, BLOCK, states),
        (channels, states, BLOCK),
        (channels, 1, states, states),
    )


@operator(
    lambda x, coefficients, factor, zi: (
        x.new_empty(*x.shape[:-2], zi.shape[-1], x.shape[-1]),
        zi.new_empty(zi.shape),
    )
)
def _gammatone(x: Tensor, coefficients: Tensor, factor: float, zi: Tensor) -> tuple[Tensor, Tensor]:
    return gammatone(x, coefficients, factor, zi)


def cascade_blocks(coefficients: Tensor, factor: float, order: int, length: int = BLOCK) -> Blocks:
    """The cascade as matrices for `length` samples; of the powers only the last, which `run` uses.

    In closed form: a sample of u_j reaches u_k, j <= k, t >= 1 samples later through m = k - j
    gains and t poles, in C(t + m - 1, m) orders: p^t (1 - |p|)^m C(t + m - 1, m). The state is the
    real parts of u, then the imaginary ones.
    """
    re, im, gain = coefficients.unbind()
    turn = torch.stack([re, -im, im, re], -1).view(-1, 2, 2)  # by p^t - 1, for t = 1, 2, 4, ...
    poles = torch.stack([torch.ones_like(re), torch.zeros_like(re)], -1)[..., None]
    while poles.shape[-1] <= length:  # (channel, 2, t): real and imaginary part of p^t
        poles = torch.cat([poles, torch.baddbmm(poles, turn, poles)], -1)
        turn = torch.baddbmm(turn, turn, turn, beta=2)
    ways = [torch.ones(length, dtype=gain.dtype, device=gain.device)]
    for _ in range(1, order):
        ways.append(ways[-1].cumsum(0))
    m = torch.arange(order, device=gain.device)
    passed = (torch.stack(ways, -1) * gain[:, None, None] ** m)[:, None]  # (channel, 1, t - 1, m)
    # The input is u_0, one gain before u_1.
    response = poles[..., :length, None] * (gain[:, None, None, None] * passed)
    after = poles[..., 1 : length + 1, None]
    seen = torch.stack([after[:, 0], -after[:, 1]], 1)
    turned = torch.stack([seen[:, :, -1, 0], after[:, :, -1, 0].flip(1)], 1)
    leap = turned[:, :, None, :, None] * _toeplitz(passed[:, 0, -1])[:, None, :, None]
    size = 2 * order
    return Blocks(
        _toeplitz(factor * response[:, 0, :, order - 1]),
        (seen * (factor * passed.flip(-1))).transpose(1, 2).reshape(-1, length, size),
        response.flip(2).mT.reshape(-1, size, length),
        leap.reshape(-1, 1, size, size),
    )


def _toeplitz(response: Tensor) -> Tensor:
    """Lower triangular Toeplitz matrix (channel, n, n) of `response` (channel, n)."""
    n = response.shape[-1]
    return torch.nn.functional.pad(response, (n - 1, 0)).unfold(-1, n, 1).flip(-1)


LANES = 32
"""Channels processed together: four registers of float64, two of float32, in AVX-512."""


@made_once
def _cascade(order: int, sums: bool = False) -> Any:
    """The kernel for `order` one-pole filters; `sums`: with weights (n, channel) for a factor.

    A fixed order lets the compiler fuse all of them into one vectorized loop over channels.
    """

    @kernel
    def cascade(x: Array, coefficients: Array, factor: Any, zi: Array, y: Array, zf: Array) -> None:
        p, s = np.empty((3, LANES), x.dtype), np.zeros((2 * order, LANES), x.dtype)
        tile = np.zeros((SPAN, LANES), x.dtype)
        zero = x.dtype.type(0)
        w = np.zeros((order, LANES), x.dtype)
        if not sums:
            w[-1] = factor
        for r in range(y.shape[0]):
            for first in range(0, y.shape[1], LANES):
                count = min(LANES, y.shape[1] - first)
                p[:] = 0
                for i in range(count):
                    for j in range(3):
                        p[j, i] = coefficients[j, first + i]
                    for k in range(order):
                        if sums:
                            w[k, i] = factor[k, first + i]
                        s[2 * k, i] = zi[r, 0, k, first + i]
                        s[2 * k + 1, i] = zi[r, 1, k, first + i]
                for start in range(0, y.shape[2], SPAN):
                    length = min(SPAN, y.shape[2] - start)
                    if x.shape[1] == 1:
                        row = x[r, 0, start : start + length]
                        for t in range(length):
                            tile[t] = row[t]
                    else:
                        load(x[r], first, count, start, length, tile)
                    for t in range(length):
                        for i in range(LANES):
                            u, v, total = tile[t, i], zero, zero
                            for k in range(order):
                                a, b = s[2 * k, i], s[2 * k + 1, i]
                                u = a + (p[0, i] * a - p[1, i] * b + p[2, i] * u)
                                v = b + (p[0, i] * b + p[1, i] * a + p[2, i] * v)
                                s[2 * k, i] = u
                                s[2 * k + 1, i] = v
                                if sums:
                                    total += w[k, i] * u
                            tile[t, i] = total if sums else w[-1, i] * u
                    store(tile, first, count, start, length, y[r])
                for i in range(count):
                    for k in range(order):
                        zf[r, 0, k, first + i] = s[2 * k, i]
                        zf[r, 1, k, first + i] = s[2 * k + 1, i]

    return cascade
