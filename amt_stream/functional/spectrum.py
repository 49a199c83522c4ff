"""Power spectra of six windows of different lengths around one instant, frame after frame."""

from math import prod

import numpy as np
import torch
from torch import Tensor

from amt_stream.functional.dispatch import Array, array, compiled, kernel
from amt_stream.functional.shapes import fit, signal_axes, whole_blocks

Sizes = tuple[int, ...]


def running_spectrum(
    x: Tensor, cosine: Tensor, sine: Tensor, halves: Sizes, bins: Sizes, hop: int, zi: Tensor
) -> tuple[Tensor, Tensor]:
    """Power of each bin, (..., frame, sum of bins), one frame for each `hop` samples of `x`.

    The windows are symmetric about one center, so the signal is folded there: the even part meets
    the cosines, the odd part the sines, half a window each; only powers are wanted, so that the
    phase of the center does not matter.

    cosine, sine: windowed and scaled, flat: for each window `bins` rows of `halves` values, or
        `halves` rows of `bins` values where there are more bins
    zi: (..., 2 * max(halves) - hop) samples before `x` (..., time)
    """
    lead, time = signal_axes("running_spectrum", "x", x, 1)
    whole_blocks("running_spectrum", time, hop)
    values = sum(h * b for h, b in zip(halves, bins, strict=True))
    before = (*lead, 2 * max(halves) - hop)
    tables = ("cosine", cosine, (values,)), ("sine", sine, (values,))
    fit("running_spectrum", x.dtype, *tables, ("zi", zi, before))
    joined = torch.cat([zi, x], -1)
    frames, components = time // hop, sum(bins)
    if compiled(x, cosine, sine, zi):
        power, rows = x.new_empty(*lead, frames, components), prod(lead)
        flat = power.numpy().reshape(rows, frames, components)
        sound = array(joined).reshape(rows, -1)
        _running_spectrum(sound, array(cosine), array(sine), halves, bins, hop, flat)
    else:
        whole = joined.reshape(-1, joined.shape[-1])
        power = _plain(whole, cosine, sine, halves, bins, hop).view(*lead, frames, components)
    return power, joined[..., time:]


def _plain(
    rows: Tensor, cosine: Tensor, sine: Tensor, halves: Sizes, bins: Sizes, hop: int
) -> Tensor:
    half = max(halves)
    segments = rows.unfold(-1, 2 * half, hop)
    right, left = segments[..., half:], segments[..., :half].flip(-1)
    even, odd = right + left, right - left
    sizes = [h * b for h, b in zip(halves, bins, strict=True)]
    re, im = [], []
    for h, b, c, s in zip(halves, bins, cosine.split(sizes), sine.split(sizes), strict=True):
        if b > h:
            c, s = c.view(h, b), s.view(h, b)
        else:
            c, s = c.view(b, h).T, s.view(b, h).T
        re.append(even[..., :h] @ c)
        im.append(odd[..., :h] @ s)
    return torch.cat(re, -1).square() + torch.cat(im, -1).square()


@kernel
def _running_spectrum(
    rows: Array, cosine: Array, sine: Array, halves: Sizes, bins: Sizes, hop: int, power: Array
) -> None:
    half, zero = max(halves), power.dtype.type(0)
    even, odd = np.empty((4, half), power.dtype), np.empty((4, half), power.dtype)
    re, im = np.empty(max(bins), power.dtype), np.empty(max(bins), power.dtype)
    frames, end = power.shape[1], power.shape[0] * power.shape[1] - 1
    out = power.reshape((end + 1, power.shape[2]))
    # Four frames at a time: each value of a table is loaded once for all of them.
    for first in range(0, end + 1, 4):
        for i in range(4):
            n = min(first + i, end)  # the last one again beyond the end
            start = n % frames * hop
            segment = rows[n // frames, start : start + 2 * half]
            right, left, plus, minus = segment[half:], segment[:half][::-1], even[i], odd[i]
            for k in range(half):
                plus[k] = right[k] + left[k]
            for k in range(half):
                minus[k] = right[k] - left[k]
        n1, n2, n3 = min(first + 1, end), min(first + 2, end), min(first + 3, end)
        at, bin = 0, 0
        for w in range(len(halves)):
            h, count = halves[w], bins[w]
            if count > h:
                # The window is short, the bins are many: they run inside.
                for i in range(min(4, end + 1 - first)):
                    real, imaginary = re[:count], im[:count]
                    _weighted(cosine, at, even[i, :h], real)
                    _weighted(sine, at, odd[i, :h], imaginary)
                    given = out[first + i, bin : bin + count]
                    for b in range(count):
                        given[b] = real[b] * real[b] + imaginary[b] * imaginary[b]
                at += h * count
                bin += count
                continue
            e0, e1, e2, e3 = even[0, :h], even[1, :h], even[2, :h], even[3, :h]
            o0, o1, o2, o3 = odd[0, :h], odd[1, :h], odd[2, :h], odd[3, :h]
            for b in range(0, count, 2):
                c, s = cosine[at : at + h], sine[at : at + h]
                more = h if b + 1 < count else 0
                d, t = cosine[at + more : at + more + h], sine[at + more : at + more + h]
                c0, c1, c2, c3 = zero, zero, zero, zero
                s0, s1, s2, s3 = zero, zero, zero, zero
                d0, d1, d2, d3 = zero, zero, zero, zero
                t0, t1, t2, t3 = zero, zero, zero, zero
                for k in range(c.size):
                    c0 += c[k] * e0[k]
                    c1 += c[k] * e1[k]
                    c2 += c[k] * e2[k]
                    c3 += c[k] * e3[k]
                    d0 += d[k] * e0[k]
                    d1 += d[k] * e1[k]
                    d2 += d[k] * e2[k]
                    d3 += d[k] * e3[k]
                    s0 += s[k] * o0[k]
                    s1 += s[k] * o1[k]
                    s2 += s[k] * o2[k]
                    s3 += s[k] * o3[k]
                    t0 += t[k] * o0[k]
                    t1 += t[k] * o1[k]
                    t2 += t[k] * o2[k]
                    t3 += t[k] * o3[k]
                next_bin = bin + (1 if more else 0)
                out[first, next_bin], out[n1, next_bin] = d0 * d0 + t0 * t0, d1 * d1 + t1 * t1
                out[n2, next_bin], out[n3, next_bin] = d2 * d2 + t2 * t2, d3 * d3 + t3 * t3
                out[first, bin], out[n1, bin] = c0 * c0 + s0 * s0, c1 * c1 + s1 * s1
                out[n2, bin], out[n3, bin] = c2 * c2 + s2 * s2, c3 * c3 + s3 * s3
                at += h + more
                bin = next_bin + 1


@kernel
def _weighted(table: Array, at: int, weights: Array, y: Array) -> None:
    """`y` (n,) of `weights` (k,) and the k rows of n values at `at`: four at a time."""
    n, k = y.size, 0
    y[:] = 0
    while k + 4 <= weights.size:
        a, b = table[at : at + n], table[at + n : at + 2 * n]
        c, d = table[at + 2 * n : at + 3 * n], table[at + 3 * n : at + 4 * n]
        p, q, r, s = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for i in range(n):
            y[i] += p * a[i] + q * b[i] + r * c[i] + s * d[i]
        at += 4 * n
        k += 4
    while k < weights.size:
        a, p = table[at : at + n], weights[k]
        for i in range(n):
            y[i] += p * a[i]
        at += n
        k += 1
