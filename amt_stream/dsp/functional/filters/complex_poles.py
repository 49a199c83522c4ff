"""Complex one-pole cascades with compiled gradients, for gammatone and modulation filterbanks."""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, kernel
from amt_stream.dsp.functional.compiler.gradient import Tensors, differentiable
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.compiler.tiles import copy_values, flush
from amt_stream.dsp.functional.filters.state_space import state_space

SPAN = 32
"""Samples processed together, so that the states of a cascade fit the L1 cache."""


class Poles(NamedTuple):
    """u_k[t] = p u_k[t-1] + gain u_{k-1}[t] with u_0 = x, and the output from the last u.

    coefficients: (3, channel): real part of p - 1, imaginary part, and gain
    scale: (channel,) factor on the output
    envelope: (channel,) whether the output is the magnitude or the real part
    counts: (row,) or (1,) number of channels of a row of `x`; the others give 0
    """

    coefficients: Tensor
    scale: Tensor
    envelope: Tensor
    counts: Tensor


def pole_cascade(
    x: Tensor, poles: Poles, zi: Tensor, forward: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """(row, channel, time) of `x` (row, 1 or channel, time), with gradients of all arguments.

    poles: coefficients and scale in float64, in which the gradient is computed
    zi, zf: (row, 2, n, channel): real and imaginary part of the last u_1 to u_n
    forward: the compiled form, which gives the output and zf for `x` and `zi`
    """
    envelope, counts = poles.envelope, poles.counts

    def compiled(x: Tensor, *given: Tensor) -> Tensors:
        return forward(x, given[-1])

    def backward(
        given: Tensors, outputs: Tensors, slopes: Tensors, needed: Sequence[bool]
    ) -> Sequence[Tensor | None]:
        x, coefficients, scale, zi = given
        now = Poles(coefficients, scale, envelope, counts)
        return _gradient(x, now, zi, slopes, any(needed[1:3]))

    def plain(x: Tensor, coefficients: Tensor, scale: Tensor, zi: Tensor) -> Tensors:
        return _plain(x, Poles(coefficients, scale, envelope, counts), zi)

    y, zf = differentiable(compiled, backward, plain, x, poles.coefficients, poles.scale, zi)
    return y, zf


def _plain(x: Tensor, poles: Poles, zi: Tensor) -> Tensors:
    (re, im, gain), scale, envelope, counts = poles
    pole, gains = torch.complex(1 + re, im), torch.complex(gain, torch.zeros_like(gain))
    u: Tensor = x.double().expand(*zi.shape[:1], zi.shape[-1], x.shape[-1])
    ends = []
    for start in torch.complex(*zi.double().unbind(1)).unbind(1):
        # state_space takes real input, so both parts of u run separately.
        own = pole[:, None, None], gains[:, None], pole[:, None], gains
        y, end = state_space(u.real, *own, start[..., None])
        if u.is_complex():
            along, turned = state_space(u.imag, *own, torch.zeros_like(start)[..., None])
            y, end = y + 1j * along, end + 1j * turned
        u = y
        ends.append(end.squeeze(-1))
    counts = counts.repeat(len(x) // len(counts))
    there = torch.arange(pole.numel(), device=x.device) < counts[:, None]
    zf = torch.where(there[:, None], torch.stack(ends, 1), 0)
    y = scale[:, None] * torch.where(envelope[:, None], u.abs(), u.real)
    y = torch.where(there[..., None], y, 0)
    return y.to(x.dtype), torch.stack([zf.real, zf.imag], 1).to(x.dtype)


def _gradient(
    x: Tensor, poles: Poles, zi: Tensor, slopes: Tensors, learns: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of `x`, coefficients, scale and zi, from those of output and zf (`slopes`).

    learns: whether the gradients of coefficients and scale are needed
    """
    coefficients, scale, envelope, counts = poles
    found = tuple(v.new_zeros(v.shape) for v in (x, coefficients, scale, zi))
    _backward(
        *(array(v) for v in (x, coefficients, scale, envelope, counts, zi, *slopes)),
        learns or bool(envelope.any()),
        *(v.numpy() for v in found),
    )
    gx, gcoefficients, gscale, gzi = found
    return gx, gcoefficients, gscale, gzi


@kernel
def _backward(
    x: Array,
    coefficients: Array,
    scale: Array,
    envelope: Array,
    counts: Array,
    zi: Array,
    gy: Array,
    gzf: Array,
    learns: bool,
    gx: Array,
    gcoefficients: Array,
    gscale: Array,
    gzi: Array,
) -> None:
    rows, channels, time = gy.shape
    order, tiles = zi.shape[2], -(-time // SPAN)
    # Of u_0 to u_n, real and imaginary: states before each tile and each sample; gradients.
    marks = np.zeros((tiles + 1, order + 1, 2, LANES))
    states = np.zeros((SPAN + 1, order + 1, 2, LANES))
    slopes = np.zeros((order + 1, 2, LANES))
    own, found = np.zeros((5, LANES)), np.zeros((4, LANES))
    for r in range(rows):
        there = min(channels, counts[r % counts.size])
        for first in range(0, there, LANES):
            count = min(LANES, there - first)
            own[:], found[:], slopes[:], marks[0] = 0, 0, 0, 0
            for i in range(count):
                c = first + i
                own[0, i], own[1, i] = 1 + coefficients[0, c], coefficients[1, c]
                own[2, i], own[3, i], own[4, i] = coefficients[2, c], scale[c], envelope[c]
                for k in range(order):
                    for part in range(2):
                        marks[0, k + 1, part, i] = zi[r, part, k, c]
                        slopes[k + 1, part, i] = gzf[r, part, k, c]
            # Forward through all tiles for the states, then backward through each.
            for turn in range(0 if learns else tiles, 2 * tiles):
                n = min(turn, 2 * tiles - 1 - turn)
                start, length = n * SPAN, min(SPAN, time - n * SPAN)
                if learns:
                    copy_values(marks[n], states[0])
                    _through(x[r], first, count, start, length, own, states)
                    copy_values(states[length], marks[n + 1])
                if turn >= tiles:
                    at = first, count, start, length
                    _back(gy[r], gx[r], at, own, states, learns, slopes, found)
            for i in range(count):
                for j in range(3):
                    gcoefficients[j, first + i] += found[j, i]
                gscale[first + i] += found[3, i]
                for k in range(order):
                    for part in range(2):
                        gzi[r, part, k, first + i] = slopes[k + 1, part, i]


@kernel
def _through(
    x: Array, first: int, count: int, start: int, length: int, own: Array, states: Array
) -> None:
    """Fill `states`, those after each sample, from `states[0]`."""
    re, im, gain = own[0], own[1], own[2]
    for t in range(length):
        now = states[t + 1]
        for i in range(count):
            now[0, 0, i] = x[(first + i) % x.shape[0], start + t]
        for k in range(1, now.shape[0]):
            a, b, c, d = states[t, k, 0], states[t, k, 1], now[k - 1, 0], now[k - 1, 1]
            u, v = now[k, 0], now[k, 1]
            for i in range(u.size):
                u[i] = re[i] * a[i] - im[i] * b[i] + gain[i] * c[i]
                v[i] = re[i] * b[i] + im[i] * a[i] + gain[i] * d[i]
    flush(states[length])


@kernel
def _back(
    gy: Array,
    gx: Array,
    at: tuple[int, int, int, int],
    own: Array,
    states: Array,
    learns: bool,
    slopes: Array,
    found: Array,
) -> None:
    """Propagate `slopes` back in time and to the input; accumulate `found`."""
    first, count, start, length = at
    re, im, gain = own[0], own[1], own[2]
    by_re, by_im, by_gain = found[0], found[1], found[2]
    last = slopes.shape[0] - 1
    for t in range(length - 1, -1, -1):
        for i in range(count):
            g = np.float64(gy[first + i, start + t])
            a, b = states[t + 1, last, 0, i], states[t + 1, last, 1, i]
            size = sqrt(a * a + b * b)
            share = 1 / size if size > 0 else 0.0
            if own[4, i] == 0:
                size, share, a, b = a, 1.0, 1.0, 0.0
            found[3, i] += g * size
            slopes[last, 0, i] += g * own[3, i] * a * share
            slopes[last, 1, i] += g * own[3, i] * b * share
        slopes[0] = 0
        for k in range(last, 0, -1):
            u, v, lower_u, lower_v = slopes[k, 0], slopes[k, 1], slopes[k - 1, 0], slopes[k - 1, 1]
            if learns:
                a, b = states[t, k, 0], states[t, k, 1]
                c, d = states[t + 1, k - 1, 0], states[t + 1, k - 1, 1]
                for i in range(u.size):
                    by_re[i] += u[i] * a[i] + v[i] * b[i]
                    by_im[i] += v[i] * a[i] - u[i] * b[i]
                    by_gain[i] += u[i] * c[i] + v[i] * d[i]
            for i in range(u.size):
                p, q = u[i], v[i]
                lower_u[i] += gain[i] * p
                lower_v[i] += gain[i] * q
                u[i] = re[i] * p + im[i] * q
                v[i] = re[i] * q - im[i] * p
        for i in range(count):
            gx[(first + i) % gx.shape[0], start + t] += slopes[0, 0, i]
    flush(slopes)
