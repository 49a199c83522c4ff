"""Finite impulse responses: at one rate, and from one rate to another."""

from math import prod

import torch
from torch import Tensor

from amt_stream.functional.dispatch import Array, array, compiled, kernel
from amt_stream.functional.shapes import fit, signal_axes, whole_blocks


def fir(x: Tensor, taps: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """Convolution of `x` (..., time), and `zi` (..., n - 1) before it, with `taps` (n,)."""
    lead, time = signal_axes("fir", "x", x, 1)
    n = max(1, taps.numel())
    fit("fir", x.dtype, ("taps", taps, (n,)), ("zi", zi, (*lead, n - 1)))
    joined = torch.cat([zi, x], -1)
    if compiled(x, taps, zi):
        y, rows = x.new_empty(x.shape), prod(lead)
        _fir(array(joined).reshape(rows, -1), array(taps), y.numpy().reshape(rows, time))
    else:
        whole = joined.reshape(-1, 1, joined.shape[-1])
        y = torch.nn.functional.conv1d(whole, taps.flip(0)[None, None]).view(x.shape)
    return y, joined[..., time:]


@kernel
def _fir(joined: Array, taps: Array, y: Array) -> None:
    n = y.shape[1]
    reverse = taps[::-1].copy()
    for r in range(y.shape[0]):
        out = y[r]
        out[:] = 0
        # Time runs inside, so that it fills the vector registers; four taps a turn, so that `out`
        # is read and written once for four products.
        k = 0
        while k + 4 <= reverse.size:
            a, b, c, d = reverse[k], reverse[k + 1], reverse[k + 2], reverse[k + 3]
            x0 = joined[r, k : k + n]
            x1 = joined[r, k + 1 : k + 1 + n]
            x2 = joined[r, k + 2 : k + 2 + n]
            x3 = joined[r, k + 3 : k + 3 + n]
            for t in range(n):
                out[t] += a * x0[t] + b * x1[t] + c * x2[t] + d * x3[t]
            k += 4
        while k < reverse.size:
            a = reverse[k]
            x0 = joined[r, k : k + n]
            for t in range(n):
                out[t] += a * x0[t]
            k += 1


def polyphase(x: Tensor, bank: Tensor, down: int, length: int, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`x` (..., time) at another rate: `bank.shape[0]` outputs for each `down` inputs.

    bank: (up, length - 1 + down); row q holds the `length` taps of output q of a block, newest
        sample last, at the place where their window begins, q * down // up
    zi: (..., length - 1) samples before `x`, whose length is a multiple of `down`
    """
    lead, time = signal_axes("polyphase", "x", x, 1)
    whole_blocks("polyphase", time, down)
    if length < 1:
        raise ValueError(f"polyphase: length is {length}: give 1 tap or more")
    up = max(1, bank.shape[0] if bank.dim() else 0)
    table, state = (up, length - 1 + down), (*lead, length - 1)
    fit("polyphase", x.dtype, ("bank", bank, table), ("zi", zi, state))
    joined = torch.cat([zi, x], -1)
    given = time // down * up
    if compiled(x, bank, zi):
        y, rows = x.new_empty(*lead, given), prod(lead)
        flat = y.numpy().reshape(rows, given)
        _polyphase(array(joined).reshape(rows, -1), array(bank), down, length, flat)
    else:
        whole = joined.reshape(-1, 1, joined.shape[-1])
        y = torch.nn.functional.conv1d(whole, bank[:, None], stride=down)
        y = y.transpose(1, 2).reshape(*lead, given)
    return y, joined[..., time:]


@kernel
def _polyphase(joined: Array, bank: Array, down: int, length: int, y: Array) -> None:
    up = bank.shape[0]
    for r in range(y.shape[0]):
        for n in range(y.shape[1]):
            q = n % up
            start = q * down // up
            taps = bank[q, start : start + length]
            at = n // up * down + start
            x = joined[r, at : at + length]
            total = y.dtype.type(0)
            for k in range(length):
                total += taps[k] * x[k]
            y[r, n] = total
