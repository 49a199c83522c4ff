"""Power spectra of six concentric windows of different lengths, frame after frame."""

from math import prod

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, compiled, kernel
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes, whole_blocks
from amt_stream.dsp.functional.compiler.sums import ROWS, sums_of_products

Sizes = tuple[int, ...]


def running_spectrum(
    x: Tensor, cosine: Tensor, sine: Tensor, halves: Sizes, bins: Sizes, hop: int, zi: Tensor
) -> tuple[Tensor, Tensor]:
    """Power of each bin, (..., frame, sum of bins), one frame for each `hop` samples of `x`.

    The windows are symmetric about one center, so the signal is folded there: the even part is
    multiplied by cosines, the odd part by sines, half a window each. Only powers are needed, so
    that the phase at the center does not matter.

    cosine, sine: windowed and scaled, flat: for each window `halves` rows of `bins` values
    halves: samples of half of each window, in descending order
    bins: of each window, a multiple of `LANES`
    zi: (..., 2 * max(halves) - hop) samples before `x` (..., time)
    """
    lead, time = signal_axes("running_spectrum", "x", x, 1)
    whole_blocks("running_spectrum", time, hop)
    if any(b % LANES for b in bins):
        raise ValueError(f"running_spectrum: bins are {bins}: give multiples of {LANES}")
    if list(halves) != sorted(halves, reverse=True):
        raise ValueError(f"running_spectrum: halves are {halves}: give them in descending order")
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
        # Of the longer window's, since the gradient of a part is as long as the whole.
        even, odd = even[..., :h], odd[..., :h]
        re.append(even @ c.view(h, b))
        im.append(odd @ s.view(h, b))
    return torch.cat(re, -1).square() + torch.cat(im, -1).square()


@kernel
def _running_spectrum(
    rows: Array, cosine: Array, sine: Array, halves: Sizes, bins: Sizes, hop: int, power: Array
) -> None:
    half, components = max(halves), power.shape[2]
    ranges = np.zeros((components // LANES, 2), np.int64)
    even, odd = np.empty((ROWS, half), power.dtype), np.empty((ROWS, half), power.dtype)
    re, im = np.empty((ROWS, components), power.dtype), np.empty((ROWS, components), power.dtype)
    frames, end = power.shape[1], power.shape[0] * power.shape[1]
    out = power.reshape((end, components))
    for first in range(0, end, ROWS):
        count = min(ROWS, end - first)
        for i in range(count):
            n = first + i
            row, plus, minus = rows[n // frames], even[i], odd[i]
            # Unsigned indices, so that whole registers are reversed.
            right = np.uintp(n % frames * hop + half)
            left = right - np.uintp(1)
            for k in range(np.uintp(half)):
                plus[k] = row[right + k] + row[left - k]
            for k in range(np.uintp(half)):
                minus[k] = row[right + k] - row[left - k]
        at, bin = 0, 0
        for w in range(len(halves)):
            h, many = halves[w], bins[w]
            blocks = ranges[: many // LANES]
            blocks[:, 1] = h
            c = cosine[at : at + h * many].reshape((h, many))
            s = sine[at : at + h * many].reshape((h, many))
            sums_of_products(even, count, blocks, c, many, re, bin)
            sums_of_products(odd, count, blocks, s, many, im, bin)
            at += h * many
            bin += many
        for i in range(count):
            real, imaginary, given = re[i], im[i], out[first + i]
            for b in range(components):
                given[b] = real[b] * real[b] + imaginary[b] * imaginary[b]
