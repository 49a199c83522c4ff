"""FIR filters and resampling."""

from math import prod

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.call_table import Calls, Integer, join, plan_rows
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compiled, kernel
from amt_stream.dsp.functional.compiler.lanes import LANES, lanes_of, put
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes, whole_blocks
from amt_stream.dsp.functional.compiler.sums import sums_of_products

_lanes = lanes_of(LANES)


def windows(x: Tensor, bank: Tensor, step: int) -> Tensor:
    """Sums (row, frame, phase) of `bank` (phase, tap) times `x` (row, time), `step` samples apart.

    On a GPU not torch's convolution, which rounds its factors there (TF32).
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
    # Outputs t to t + 3 are sums over the same stretch of x with shifted taps. Four stretches give
    # 4 x 4 sums at a time, and each number loaded serves four of them.
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
            # Zero padding of the taps would spread NaN and Inf to unrelated outputs.
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


def partitioned_fir(
    x: Tensor, partitions: Tensor, to_lines: Tensor, from_lines: Tensor, zi: Tensor
) -> tuple[Tensor, Tensor]:
    """Convolution of `x` (..., time) with many taps, block by block in the frequency domain.

    Each block of `hop` samples is transformed once; an output block sums over all partitions of the
    taps (uniformly partitioned convolution with a frequency-domain delay line; Wefers 2015). The
    tables come from `design.partitioned`.

    partitions: (count, 2 hop), real parts first, as in all spectra here
    to_lines: (hop, 2 hop) from a block to its spectrum
    from_lines: (2 hop, hop) from a spectrum to the output block
    zi: (..., (count - 1) 2 hop) spectra of the blocks before `x`, the latest last; the length of
        `x` is a multiple of `hop`
    """
    lead, time = signal_axes("partitioned_fir", "x", x, 1)
    count, both = (max(1, n) for n in last_axes("partitioned_fir", "partitions", partitions, 2))
    hop = max(1, both // 2)
    whole_blocks("partitioned_fir", time, hop)
    if hop % LANES:
        raise ValueError(f"partitioned_fir: blocks of {hop} samples: give a multiple of {LANES}")
    fit("partitioned_fir", x.dtype, ("partitions", partitions, (count, 2 * hop)))
    fit("partitioned_fir", x.dtype, ("to_lines", to_lines, (hop, 2 * hop)))
    fit("partitioned_fir", x.dtype, ("from_lines", from_lines, (2 * hop, hop)))
    fit("partitioned_fir", x.dtype, ("zi", zi, (*lead, (count - 1) * 2 * hop)))
    blocks = time // hop
    if compiled(x, partitions, to_lines, from_lines, zi):
        y, rows = x.new_empty(x.shape), prod(lead)
        spectra = torch.nn.functional.pad(zi, (0, blocks * 2 * hop))
        tables = (array(t) for t in (partitions, to_lines, from_lines))
        sound, out = array(x).reshape(rows, time), y.numpy().reshape(rows, time)
        _partitioned_fir(sound, *tables, spectra.numpy().reshape(rows, -1), out)
        return y, spectra[..., blocks * 2 * hop :]
    spectra = torch.cat([zi, (x.unflatten(-1, (blocks, hop)) @ to_lines).flatten(-2)], -1)
    y = _sums_over_partitions(spectra.reshape(-1, count - 1 + blocks, 2, hop), partitions)
    return (y @ from_lines).reshape(x.shape), spectra[..., blocks * 2 * hop :]


def _sums_over_partitions(lines: Tensor, partitions: Tensor) -> Tensor:
    """Output spectra (row, block, 2 hop) of `lines` (row, count - 1 + blocks, 2, hop).

    On a GPU not torch's convolution, which rounds its factors there (TF32).
    """
    rows, _, _, hop = lines.shape
    re, im = partitions.flip(0).unflatten(-1, (2, hop)).unbind(-2)  # (partition, bin)
    # Per bin, the contributions of the real and imaginary parts to each other.
    each = torch.stack([torch.stack([re, -im]), torch.stack([im, re])]).permute(3, 0, 1, 2)
    by_bin = lines.permute(0, 3, 2, 1)  # (row, bin, part, block)
    if lines.is_cpu:
        flat = by_bin.reshape(rows, 2 * hop, -1)
        y = torch.nn.functional.conv1d(flat, each.reshape(2 * hop, 2, -1), groups=hop)
        y = y.unflatten(1, (hop, 2))
    else:
        seen = by_bin.unfold(-1, partitions.shape[0], 1)  # (row, bin, part, block, partition)
        y = (seen.transpose(2, 3).flatten(-2) @ each.flatten(-2).mT).mT
    return y.permute(0, 3, 2, 1).flatten(-2)


@kernel
def _partitioned_fir(
    x: Array, partitions: Array, to_lines: Array, from_lines: Array, spectra: Array, y: Array
) -> None:
    """Appends this block's spectra to `spectra` (row, (count - 1 + blocks) 2 hop)."""
    count, hop = partitions.shape[0], to_lines.shape[0]
    rows, blocks, both = x.shape[0], x.shape[1] // hop, 2 * hop
    none = np.int64(0)
    to, back = np.zeros((both // LANES, 2), np.int64), np.zeros((hop // LANES, 2), np.int64)
    to[:, 1], back[:, 1] = hop, both
    all_lines = spectra.reshape((rows, count - 1 + blocks, both))
    given, out = x.reshape((rows, blocks, hop)), y.reshape((rows, blocks, hop))
    sums = np.empty((blocks, both), y.dtype)
    nothing = np.zeros((1, LANES), y.dtype)
    zero = _lanes(nothing, 0, 0)
    for r in range(rows):
        lines = all_lines[r]
        sums_of_products(given[r], blocks, to, to_lines, both, lines[count - 1 :], none)
        for b in range(blocks):
            # Separate chains of sums, so that no product waits for the previous one.
            for k in range(0, hop, LANES):
                a, c, d, e = zero, zero, zero, zero
                for p in range(count):
                    q = b + count - 1 - p
                    re, im = _lanes(lines, q, k), _lanes(lines, q, hop + k)
                    to_re, to_im = _lanes(partitions, p, k), _lanes(partitions, p, hop + k)
                    a, c = a + re * to_re, c + im * to_im
                    d, e = d + re * to_im, e + im * to_re
                put(a - c, sums, b, k)
                put(d + e, sums, b, hop + k)
        sums_of_products(sums, blocks, back, from_lines, hop, out[r], none)


def polyphase(x: Tensor, bank: Tensor, down: int, length: int, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`x` (..., time) at another rate: `bank.shape[0]` outputs for each `down` inputs.

    bank: (up, length - 1 + down); row q holds the `length` taps of output q of a block, newest
        sample last, from where its window begins, q * down // up
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
            # Two outputs per block, four blocks at a time; at an end the last one is repeated.
            q1 = min(q + 1, up - 1)
            start, stop = q * down // up, q1 * down // up + length
            a, b = bank[q, start:stop], bank[q1, start:stop]
            for n in range(0, last + 1, 4):
                n1, n2, n3 = min(n + 1, last), min(n + 2, last), min(n + 3, last)
                # One loop for any number of blocks, so that every sum has the same order.
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


RESAMPLER = (
    # A kernel, by address, and integers: input samples per block, and taps of its filter.
    "to_rate down taken "
    # A table, the state, and the sound (row, time): as given, with its past, and resampled.
    "bank before_resampling given to_resample resampled "
)
"""The first rows of a plan that resamples its sound where it has to."""

_AT = plan_rows(RESAMPLER)
RESAMPLING = Calls(_AT)
_a = RESAMPLING.arguments[0]

_to_rate = RESAMPLING.add(
    "to_rate",
    _polyphase,
    *(*_a(2, "to_resample", "bank"), Integer(_AT.down), Integer(_AT.taken), *_a(2, "resampled")),
)


@kernel
def resample(plan: Array, like: Array) -> int:
    """Resample the sound of a plan if it has a resampler, and return the row of the sound.

    Writes no state: that is for `leave`, which does nothing without a resampler.
    """
    if not plan[_AT.to_rate, 0]:
        return _AT.given
    join(plan, _AT.before_resampling, _AT.given, _AT.to_resample, like.itemsize)
    _to_rate(plan, like)
    return _AT.resampled
