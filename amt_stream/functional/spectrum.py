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

    cosine, sine: windowed and scaled, flat: for each window `bins` rows of `halves` values
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
    powers = []
    for h, b, c, s in zip(halves, bins, cosine.split(sizes), sine.split(sizes), strict=True):
        re, im = even[..., :h] @ c.view(b, h).T, odd[..., :h] @ s.view(b, h).T
        powers.append(re.square() + im.square())
    return torch.cat(powers, -1)


@kernel
def _running_spectrum(
    rows: Array, cosine: Array, sine: Array, halves: Sizes, bins: Sizes, hop: int, power: Array
) -> None:
    half = max(halves)
    even, odd = np.empty((2, half), power.dtype), np.empty((2, half), power.dtype)
    count = power.shape[0] * power.shape[1]
    # Two frames at a time, the two ears as a rule: each table value is loaded once for both.
    for first in range(0, count, 2):
        for i in range(2):
            # A last odd frame is computed twice.
            n = min(first + i, count - 1)
            start = n // power.shape[0] * hop
            segment = rows[n % power.shape[0], start : start + 2 * half]
            right, left = segment[half:], segment[:half][::-1]
            for k in range(half):
                even[i, k] = right[k] + left[k]
                odd[i, k] = right[k] - left[k]
        second = min(first + 1, count - 1)
        out0 = power[first % power.shape[0], first // power.shape[0]]
        out1 = power[second % power.shape[0], second // power.shape[0]]
        at, b = 0, 0
        for w in range(len(halves)):
            h = halves[w]
            even0, even1, odd0, odd1 = even[0, :h], even[1, :h], odd[0, :h], odd[1, :h]
            for _ in range(bins[w]):
                c, s = cosine[at : at + h], sine[at : at + h]
                re0 = power.dtype.type(0)
                re1, im0, im1 = re0, re0, re0
                for k in range(h):
                    re0 += c[k] * even0[k]
                    re1 += c[k] * even1[k]
                    im0 += s[k] * odd0[k]
                    im1 += s[k] * odd1[k]
                out0[b] = re0 * re0 + im0 * im0
                out1[b] = re1 * re1 + im1 * im1
                at += h
                b += 1
