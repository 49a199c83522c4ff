"""Finite impulse responses: at one rate, and from one rate to another."""

from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amt_stream.functional import gpu
from amt_stream.functional.by_address import Called, Index, of_type
from amt_stream.functional.dispatch import Array, array, compiled, kernel
from amt_stream.functional.shapes import fit, last_axes, signal_axes, whole_blocks


def windows(x: Tensor, bank: Tensor, step: int) -> Tensor:
    """Sums (row, frame, phase) of `bank` (phase, tap) times `x` (row, time), `step` samples apart.

    On a GPU it is no convolution of torch's, which rounds its factors there (TF32).
    """
    if gpu.serves(x, bank):
        return gpu.windows(x, bank, step)
    if x.is_cpu:
        return torch.nn.functional.conv1d(x[:, None], bank[:, None], stride=step).mT
    return x.unfold(-1, bank.shape[-1], step) @ bank.mT


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
        whole = joined.reshape(-1, joined.shape[-1])
        y = windows(whole, taps.flip(0)[None], 1).reshape(x.shape)
    return y, joined[..., time:]


@kernel
def _finite(x: Array) -> bool:
    total = x.dtype.type(0)
    for k in range(x.size):
        total += x.dtype.type(0) * x[k]
    return bool(total == 0)


@kernel
def _sum_of_products(a: Array, b: Array) -> float:
    total = a.dtype.type(0)
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@kernel
def _fir(joined: Array, taps: Array, y: Array) -> None:
    # Outputs t to t + 3 are sums over one stretch of x with the taps moved on by one each; four
    # such stretches make 4 x 4 sums at a time: each number that is loaded serves four of them.
    time, zero = y.shape[1], y.dtype.type(0)
    wide = (taps.size + 3 + 15) // 16 * 16
    moved = np.zeros(wide + 3, y.dtype)
    for k in range(taps.size):
        moved[3 + k] = taps[taps.size - 1 - k]
    a, b, c, d = moved[3 : 3 + wide], moved[2 : 2 + wide], moved[1 : 1 + wide], moved[:wide]
    x = np.zeros((time + 15) // 16 * 16 + wide, y.dtype)
    sums = np.empty(16, y.dtype)
    for r in range(y.shape[0]):
        if not _finite(joined[r]):
            # A weight of 0 would spread what is not finite to outputs that do not hear it.
            for t in range(time):
                y[r, t] = _sum_of_products(a[: taps.size], joined[r, t : t + taps.size])
            continue
        sound = joined[r]
        for k in range(sound.size):
            x[k] = sound[k]
        for t in range(0, time, 16):
            x0, x1 = x[t : t + wide], x[t + 4 : t + 4 + wide]
            x2, x3 = x[t + 8 : t + 8 + wide], x[t + 12 : t + 12 + wide]
            a0, b0, c0, d0 = zero, zero, zero, zero
            a1, b1, c1, d1 = zero, zero, zero, zero
            a2, b2, c2, d2 = zero, zero, zero, zero
            a3, b3, c3, d3 = zero, zero, zero, zero
            for k in range(a.size):
                a0 += a[k] * x0[k]
                b0 += b[k] * x0[k]
                c0 += c[k] * x0[k]
                d0 += d[k] * x0[k]
                a1 += a[k] * x1[k]
                b1 += b[k] * x1[k]
                c1 += c[k] * x1[k]
                d1 += d[k] * x1[k]
                a2 += a[k] * x2[k]
                b2 += b[k] * x2[k]
                c2 += c[k] * x2[k]
                d2 += d[k] * x2[k]
                a3 += a[k] * x3[k]
                b3 += b[k] * x3[k]
                c3 += c[k] * x3[k]
                d3 += d[k] * x3[k]
            sums[0], sums[1], sums[2], sums[3] = a0, b0, c0, d0
            sums[4], sums[5], sums[6], sums[7] = a1, b1, c1, d1
            sums[8], sums[9], sums[10], sums[11] = a2, b2, c2, d2
            sums[12], sums[13], sums[14], sums[15] = a3, b3, c3, d3
            for i in range(min(16, time - t)):
                y[r, t + i] = sums[i]


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
        whole = joined.reshape(-1, joined.shape[-1])
        y = windows(whole, bank, down).reshape(*lead, given)
    return y, joined[..., time:]


@kernel
def _polyphase(joined: Array, bank: Array, down: int, length: int, y: Array) -> None:
    up, zero = bank.shape[0], y.dtype.type(0)
    last = y.shape[1] // up - 1
    for r in range(y.shape[0]):
        sound = joined[r]
        if not _finite(sound):
            for n in range(y.shape[1]):
                start = n % up * down // up
                at = n // up * down + start
                taps = bank[n % up, start : start + length]
                y[r, n] = _sum_of_products(taps, sound[at : at + length])
            continue
        for q in range(0, up, 2):
            # Two outputs of a block, of four blocks at a time; beyond an end the last one again.
            q1 = min(q + 1, up - 1)
            start, stop = q * down // up, q1 * down // up + length
            a, b = bank[q, start:stop], bank[q1, start:stop]
            for n in range(0, last + 1, 4):
                n1, n2, n3 = min(n + 1, last), min(n + 2, last), min(n + 3, last)
                # One loop, so that no sum depends on how many blocks come at once.
                x0, x1 = sound[n * down + start :], sound[n1 * down + start :]
                x2, x3 = sound[n2 * down + start :], sound[n3 * down + start :]
                a0, b0, a1, b1 = zero, zero, zero, zero
                a2, b2, a3, b3 = zero, zero, zero, zero
                for k in range(a.size):
                    a0 += a[k] * x0[k]
                    b0 += b[k] * x0[k]
                    a1 += a[k] * x1[k]
                    b1 += b[k] * x1[k]
                    a2 += a[k] * x2[k]
                    b2 += b[k] * x2[k]
                    a3 += a[k] * x3[k]
                    b3 += b[k] * x3[k]
                y[r, n2 * up + q], y[r, n2 * up + q1] = a2, b2
                y[r, n3 * up + q], y[r, n3 * up + q1] = a3, b3
                y[r, n * up + q], y[r, n * up + q1] = a0, b0
                y[r, n1 * up + q], y[r, n1 * up + q1] = a1, b1


def resampling(rows: Any) -> Called:
    """`_polyphase` in a plan with such rows."""
    a = of_type(rows, None)
    given = *a(2, "to_resample", "bank"), Index(rows.down), Index(rows.taken), *a(2, "resampled")
    return Called(rows.to_rate, _polyphase, *given)
