"""Finite impulse responses: at one rate, and from one rate to another."""

from math import prod

import torch
from torch import Tensor

from amt_stream.functional.dispatch import Array, array, compiled, kernel
from amt_stream.functional.shapes import fit, last_axes, signal_axes, whole_blocks


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


def fir_with_tail(
    x: Tensor, taps: Tensor, low_pass: Tensor, tail: Tensor, zi: Tensor, slow: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """`x` (..., time) through `taps` (n,) and, by way of `low_pass` (m,), a slow `tail`.

    low_pass: oldest sample first; what it gives at the first of each `hop` samples is heard
    tail: (hop, count) for each sample of a block the weights of what was heard, the latest last
    zi: (..., n - 1) samples before `x`, no fewer than the low-pass takes
    slow: (..., count - 1) what was heard before `x`, whose length is a multiple of `hop`
    """
    lead, time = signal_axes("fir_with_tail", "x", x, 1)
    hop, count = (max(1, n) for n in last_axes("fir_with_tail", "tail", tail, 2))
    whole_blocks("fir_with_tail", time, hop)
    m = max(1, low_pass.numel())
    n = max(m, taps.numel())
    fit("fir_with_tail", x.dtype, ("taps", taps, (n,)), ("low_pass", low_pass, (m,)))
    fit("fir_with_tail", x.dtype, ("tail", tail, (hop, count)), ("zi", zi, (*lead, n - 1)))
    fit("fir_with_tail", x.dtype, ("slow", slow, (*lead, count - 1)))
    joined = torch.cat([zi, x], -1)
    if compiled(x, taps, low_pass, tail, zi, slow):
        y, rows = x.new_empty(x.shape), prod(lead)
        heard = torch.nn.functional.pad(slow, (0, time // hop))
        sound, out = array(joined).reshape(rows, -1), y.numpy().reshape(rows, time)
        tables, slowly = (array(t) for t in (taps, low_pass, tail)), heard.numpy()
        _fir_with_tail(sound, *tables, slowly.reshape(rows, -1), out)
    else:
        y, _ = fir(x, taps, zi)
        steps = joined[..., n - m : joined.shape[-1] - hop + 1].unfold(-1, m, hop)
        heard = torch.cat([slow, steps @ low_pass], -1)
        late = heard.unfold(-1, count, 1) @ tail.T
        y = y + late.reshape(x.shape)
    return y, joined[..., time:], heard[..., time // hop :]


@kernel
def _fir_with_tail(
    joined: Array, taps: Array, low_pass: Array, tail: Array, heard: Array, y: Array
) -> None:
    """`heard` (row, count - 1 + blocks) is filled behind what was heard before."""
    hop, count = tail.shape
    start, quarter = joined.shape[1] - y.shape[1] + 1 - low_pass.size, hop // 4 * 4
    zero = y.dtype.type(0)
    _fir(joined, taps, y)
    for r in range(y.shape[0]):
        for block in range(y.shape[1] // hop):
            at = start + block * hop
            x = joined[r, at : at + low_pass.size]
            total = zero
            for k in range(x.size):
                total += low_pass[k] * x[k]
            heard[r, count - 1 + block] = total
            v, out = heard[r, block : block + count], y[r, block * hop : (block + 1) * hop]
            # Four samples a turn, so that what was heard is loaded once for them.
            for q in range(0, quarter, 4):
                t0, t1, t2, t3 = tail[q], tail[q + 1], tail[q + 2], tail[q + 3]
                a, b, c, d = zero, zero, zero, zero
                for k in range(count):
                    a += t0[k] * v[k]
                    b += t1[k] * v[k]
                    c += t2[k] * v[k]
                    d += t3[k] * v[k]
                out[q] += a
                out[q + 1] += b
                out[q + 2] += c
                out[q + 3] += d
            for q in range(quarter, hop):
                t0, a = tail[q], zero
                for k in range(count):
                    a += t0[k] * v[k]
                out[q] += a


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
