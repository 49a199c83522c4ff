"""Peaks of a waveform, including those between its samples."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, compiled, kernel
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes, whole_blocks
from amt_stream.dsp.functional.filters.fir import windows


def per_frame(f: Callable[[Tensor], Tensor], x: Tensor, lengths: Sequence[int]) -> Tensor:
    """`f`, which reduces the last axis, for each frame of `x` (..., time): (..., frame).

    lengths: samples of consecutive frames, repeated; time is a multiple of their sum
    """
    blocks = x.unflatten(-1, (-1, sum(lengths)))
    return torch.stack([f(part) for part in blocks.split(list(lengths), -1)], -1).flatten(-2)


def framed(x: Tensor, lengths: Sequence[int], like: Tensor) -> Tensor:
    """A new tensor (..., frame) with one value per frame of `x`, in the dtype of `like`."""
    return like.new_empty(*x.shape[:-1], x.shape[-1] // sum(lengths) * len(lengths))


def whole_frames(function: str, time: int, lengths: Sequence[int]) -> int:
    """Number of frames of `lengths` in `time` samples.

    Raises ValueError if it is not an integer, or a frame is empty.
    """
    if not lengths or min(lengths) < 1:
        raise ValueError(f"{function}: lengths are {lengths}: give 1 sample or more for each frame")
    block = sum(lengths)
    whole_blocks(function, time, block)
    return time // block * len(lengths)


BOUNDS = 2
"""Numbers that say how much sound there was before a block, and how much is left."""

ENDLESS = 2.0**52
"""Samples that are left of a sound whose end is not known: centuries."""


def ending(state: Tensor, samples: float, at: int = 1) -> Tensor:
    """`state` (..., n) with a number of samples at `at`, by default of those that are left."""
    left = torch.full_like(state[..., at : at + 1], samples)
    return torch.cat([state[..., :at], left, state[..., at + 1 :]], -1)


def peaks(
    x: Tensor, phases: Tensor, lengths: Sequence[int], zi: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Largest magnitude (..., frame) of `x` (..., time): at its samples, and between them too.

    Samples count up to the end of the sound, and values between them where all samples that their
    interpolation takes are of the sound: the edges of what silence replaces do not count.

    phases: (phase, tap); interpolated samples are the sums over k of phases[p, k] x[n - k]
    lengths: samples of consecutive frames, repeated; time is a multiple of their sum
    zi, zf: (..., tap + 1): how many samples of the sound were before `x`, at most tap - 1; how many
        there are from its start on, `ENDLESS` if that is not known; and the tap - 1 before it
    """
    lead, time = signal_axes("peaks", "x", x, 1)
    frames = whole_frames("peaks", time, lengths)
    count, taps = last_axes("peaks", "phases", phases, 2)
    table, state = (max(1, count), max(1, taps)), (*lead, BOUNDS + max(1, taps) - 1)
    fit("peaks", x.dtype, ("phases", phases, table), ("zi", zi, state))
    joined = torch.cat([zi, x], -1)
    if compiled(x, phases, zi):
        rows = array(joined).reshape(prod(lead), -1)
        y = np.empty((2, len(rows), frames), rows.dtype)
        _peaks(rows, array(phases), np.array(lengths), y[0], y[1])
        samples, between = (torch.from_numpy(v.reshape(*lead, frames)) for v in y)
        return samples, between, joined[..., time:]
    bounds, joined = joined[..., :BOUNDS], joined[..., BOUNDS:]
    whole = joined.reshape(-1, joined.shape[-1])
    finer = windows(whole, phases.flip(1), 1).abs().amax(-1).view(x.shape)
    t = torch.arange(time, device=x.device)
    since, left = bounds[..., :1], bounds[..., 1:]
    sound = t < left
    inside = sound & (t >= taps - 1 - since)
    samples, between = (
        per_frame(lambda v: v.amax(-1), torch.where(here, v, 0.0), lengths)
        for here, v in ((sound, x.abs()), (inside, finer))
    )
    after_x = (since + time).clamp(max=taps - 1), (left - time).clamp(min=0)
    zf = torch.cat([*after_x, joined[..., time:]], -1)
    return samples, torch.maximum(samples, between), zf


@kernel
def _peaks(joined: Array, phases: Array, lengths: Array, samples: Array, between: Array) -> None:
    """The bounds after all frames replace the samples before those that the next block needs."""
    before = phases.shape[1] - 1
    longest = 0
    for n in range(lengths.size):
        longest = max(longest, lengths[n])
    out, bounds = np.empty(longest, joined.dtype), np.empty(BOUNDS)
    for r in range(samples.shape[0]):
        for k in range(BOUNDS):
            bounds[k] = joined[r, k]
        start = BOUNDS
        for n in range(samples.shape[1]):
            length = lengths[n % lengths.size]
            first, end = pass_frame(bounds, before, length)
            frame = joined[r, start : start + before + length]
            highest = largest(frame[before : before + end], joined.dtype.type(0))
            samples[r, n] = highest
            inside = frame[first : before + end]
            between[r, n] = frame_peak(inside, phases, out[: end - first], highest)
            start += length
        for k in range(BOUNDS):
            joined[r, start - BOUNDS + k] = bounds[k]


@kernel
def pass_frame(bounds: Array, before: int, length: int) -> tuple[int, int]:
    """The samples of a frame from which on interpolation is of sound, and at which it ends.

    bounds: (2,) of the frame, updated in place to those after it
    before: samples that interpolation takes besides the newest
    """
    end = int(min(bounds[1], length))
    first = int(min(before - bounds[0], end))
    bounds[0] = min(bounds[0] + length, before)
    bounds[1] = max(bounds[1] - length, 0.0)
    return first, end


@kernel
def frame_peak(x: Array, phases: Array, finer: Array, highest: float) -> float:
    """Largest magnitude of a frame's interpolated samples, at least `highest`; NaN if any is NaN.

    x: (tap - 1 + time,) the frame, preceded by earlier samples; finer: (time,) scratch memory
    """
    time, taps = finer.size, phases.shape[1]
    for p in range(phases.shape[0]):
        finer[:] = 0
        # Four taps at a time: loading and storing each sum per tap takes three times as long.
        for k in range(taps // 4):
            first = 4 * k
            a, b = phases[p, taps - 1 - first], phases[p, taps - 2 - first]
            c, d = phases[p, taps - 3 - first], phases[p, taps - 4 - first]
            y = x[first : first + 3 + time]
            for t in range(time):
                finer[t] += a * y[t] + b * y[t + 1] + c * y[t + 2] + d * y[t + 3]
        for k in range(taps // 4 * 4, taps):
            y = x[k : k + time]
            for t in range(time):
                finer[t] += phases[p, taps - 1 - k] * y[t]
        highest = largest(finer, highest)
    return highest


@kernel
def largest(x: Array, highest: float) -> float:
    """Largest magnitude of `x`, at least `highest`; NaN if any sample is NaN."""
    unknown = 0 if highest == highest else 1
    for t in range(x.size):
        unknown += x[t] != x[t]
    # Four in parallel, because compilers do not vectorize a maximum that may meet NaN.
    a = b = c = d = highest
    for k in range(x.size // 4):
        y = x[4 * k : 4 * k + 4]
        a, b = max(a, abs(y[0])), max(b, abs(y[1]))
        c, d = max(c, abs(y[2])), max(d, abs(y[3]))
    for t in range(x.size // 4 * 4, x.size):
        a = max(a, abs(x[t]))
    return x.dtype.type(np.nan) if unknown else max(a, b, c, d)
