"""Excitation to loudness: specific loudness, automatic gain control, binaural inhibition."""

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.banded import multiply
from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compilable, compiled, kernel
from amt_stream.dsp.functional.compiler.elementary import (
    exponential,
    exponential_less_one,
    logarithm,
    logarithm_of_one_and,
)
from amt_stream.dsp.functional.compiler.gradient import Tensors, differentiable
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.compiler.operators import alike, operator
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes

SILENT = 1e-13
"""Specific loudness, in sone/Cam, added to both ears before they are compared."""

HIGH = 1e10
"""Excitation, re 0 dB, from which specific loudness follows the high-level power law."""


class Channels(NamedTuple):
    """Parameters of specific loudness, (channel,) except the last.

    threshold: excitation at threshold, a power ratio re 0 dB
    gain, a, alpha: low-frequency gain G and the parameters A and alpha
    scale: C A^alpha in sone/Cam
    c: the constant C in sone/Cam, 0-dim
    """

    threshold: Tensor
    gain: Tensor
    a: Tensor
    alpha: Tensor
    scale: Tensor
    c: Tensor


def _arrays(fields: Any) -> Any:
    """A NamedTuple of tensors as one of arrays, for a kernel."""
    return type(fields)(*map(array, fields))


def specific_loudness(excitation: Tensor, channels: Channels) -> Tensor:
    """Specific loudness in sone/Cam of `excitation` (..., channel), a power ratio re 0 dB.

    Three regimes: below threshold, ordinary, and very loud (ISO 532-3:2023, clause 7.5).
    """
    _, count = signal_axes("specific_loudness", "excitation", excitation, 1)
    _check_channels("specific_loudness", excitation.dtype, count, channels)
    threshold, gain, a, alpha, scale, c = channels
    if compiled(excitation, *channels):
        y = excitation.new_empty(excitation.shape)
        flat = array(excitation).reshape(-1, count)
        _specific_loudness(flat, _arrays(channels), y.numpy().reshape(-1, count))
        return y
    # C ((G E + A)^alpha - A^alpha), in a form without cancellation, for float32.
    core = scale * torch.expm1(alpha * torch.log1p(gain * excitation / a))
    below = (2 * excitation / (excitation + threshold)) ** 1.5
    ordinary = core * torch.where(excitation > threshold, 1.0, below)
    high = c * (excitation.clamp(min=HIGH) / 1.0707) ** 0.2
    return torch.where(excitation < HIGH, ordinary, high)


def _check_channels(function: str, dtype: torch.dtype, count: int, channels: Channels) -> None:
    *each, c = zip(Channels._fields, channels, strict=True)
    fit(function, dtype, (*c, ()), *((*table, (count,)) for table in each))


@kernel
def _specific_loudness(excitation: Array, channels: Channels, y: Array) -> None:
    threshold, gain, a, alpha, scale, c = channels
    number = y.dtype.type
    one, two, high = number(1), number(2), number(HIGH)
    factor, power = number(1 / 1.0707), number(0.2)
    for n in range(y.shape[0]):
        x, out = excitation[n], y[n]
        for i in range(out.size):
            e = x[i]
            core = scale[i] * exponential_less_one(
                alpha[i] * logarithm_of_one_and(gain[i] * e / a[i])
            )
            ratio = two * e / (e + threshold[i])
            out[i] = core * (ratio * sqrt(ratio) if e <= threshold[i] else one)
        for i in range(out.size):
            if x[i] >= high:
                out[i] = c[()] * exponential(power * logarithm(x[i] * factor))


@operator(alike)
def agc(x: Tensor, coefficients: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`x` (..., frame, channel) smoothed by one pole with different attack and release.

    y += (attack if x > y else release) * (x - y) at each frame, with coefficients (2,): attack and
    release; zi, zf: (..., channel), the last y (Glasberg & Moore 2002; Moore et al. 2016, 2018).
    """
    lead, time, count = signal_axes("agc", "x", x, 2)
    before = (*lead, count)
    fit("agc", x.dtype, ("coefficients", coefficients, (2,)), ("zi", zi, before))
    if compiled(x, coefficients, zi):
        y, zf = x.new_empty(x.shape), zi.new_empty(before)
        flat, frames = (-1, count), (-1, time, count)
        _agc(
            array(x).reshape(frames),
            array(coefficients),
            array(zi).reshape(flat),
            y.numpy().reshape(frames),
            zf.numpy().reshape(flat),
        )
        return y, zf
    if gpu.serves(x, coefficients, zi):
        y, zf = gpu.agc(x, coefficients, zi)
        return y, zf
    if compilable(x, coefficients, zi):
        rows = x.reshape(-1, time, count), coefficients, zi.reshape(-1, count)
        (y,) = differentiable(_agc_forward, _agc_gradient, _plain_agc, *rows)
        return y.view(x.shape), y[:, -1].view(zi.shape)
    (y,) = _plain_agc(x, coefficients, zi)
    return y, y[..., -1, :].clone()


def _plain_agc(x: Tensor, coefficients: Tensor, zi: Tensor) -> Tensors:
    outputs = []
    for frame in x.unbind(-2):
        zi = zi + torch.where(frame > zi, coefficients[0], coefficients[1]) * (frame - zi)
        outputs.append(zi)
    return (torch.stack(outputs, -2),)


def _agc_forward(x: Tensor, coefficients: Tensor, zi: Tensor) -> Tensors:
    y, zf = x.new_empty(x.shape), zi.new_empty(zi.shape)
    _agc(array(x), array(coefficients), array(zi), y.numpy(), zf.numpy())
    return (y,)


def _agc_gradient(given: Tensors, outputs: Tensors, slopes: Tensors, needed: object) -> Tensors:
    into = tuple(t.new_zeros(t.shape) for t in given)
    tensors = (*given, *outputs, *slopes)
    _agc_backward(*(array(t) for t in tensors), *(t.numpy() for t in into))
    return into


@kernel
def _agc(x: Array, coefficients: Array, zi: Array, y: Array, zf: Array) -> None:
    up, down = coefficients[0], coefficients[1]
    for r in range(x.shape[0]):
        last = zf[r]
        for i in range(last.size):
            last[i] = zi[r, i]
        for n in range(x.shape[1]):
            now, out = x[r, n], y[r, n]
            for i in range(last.size):
                change = now[i] - last[i]
                last[i] += (up if change > 0 else down) * change
                out[i] = last[i]


@kernel
def _agc_backward(
    x: Array,
    coefficients: Array,
    zi: Array,
    y: Array,
    grad: Array,
    into_x: Array,
    into_coefficients: Array,
    into_zi: Array,
) -> None:
    up, down = coefficients[0], coefficients[1]
    one = x.dtype.type(1)
    for r in range(x.shape[0]):
        carried = into_zi[r]
        for n in range(x.shape[1] - 1, -1, -1):
            before = y[r, n - 1] if n else zi[r]
            for i in range(x.shape[2]):
                change = x[r, n, i] - before[i]
                total = grad[r, n, i] + carried[i]
                rising = change > 0
                c = up if rising else down
                into_coefficients[0 if rising else 1] += total * change
                into_x[r, n, i] = c * total
                carried[i] = (one - c) * total


def inhibition_gains(q: Tensor, theta: Tensor) -> Tensor:
    """Gain of each ear and channel from the other ear: (1 + sech(q_other / q_own)^theta) / 2.

    q: specific loudness smoothed over channels (..., 2, frame, channel), above 0; theta: 0-dim
    (Moore & Glasberg 2007; ISO 532-2:2017)
    """
    _check_ears("inhibition_gains", "q", q)
    fit("inhibition_gains", q.dtype, ("theta", theta, ()))
    if compiled(q, theta):
        gains = q.new_empty(q.shape)
        flat = (-1, 2, q.shape[-2] * q.shape[-1])
        _inhibition_gains(array(q).reshape(flat), array(theta), gains.numpy().reshape(flat))
        return gains
    falling = torch.exp(-q.flip(-3) / q)  # a form of sech that cannot overflow
    return (1 + (2 * falling / (1 + falling.square())) ** theta) / 2


def _check_ears(function: str, name: str, x: Tensor) -> tuple[tuple[int, ...], int]:
    """Shape of `x` before its ears, and its number of channels; raises ValueError."""
    lead, ears, _, count = signal_axes(function, name, x, 3)
    if ears != 2:
        raise ValueError(f"{function}: {name} has shape {tuple(x.shape)}: give 2 ears on axis -3")
    return lead, count


@kernel
def _inhibition_gains(q: Array, theta: Array, gains: Array) -> None:
    power, half = theta[()], q.dtype.type(0.5)
    one, two = q.dtype.type(1), q.dtype.type(2)
    for n in range(q.shape[0]):
        for ear in range(2):
            own, other, out = q[n, ear], q[n, 1 - ear], gains[n, ear]
            for i in range(own.size):
                falling = exponential(-other[i] / own[i])
                sech = two * falling / (one + falling * falling)
                out[i] = half + half * exponential(power * logarithm(sech))


class Binaural(NamedTuple):
    """Loudness of each ear.

    specific: short-term specific loudness (..., 2, frame, channel) in sone/Cam
    stl_ears, ltl_ears: short-term and long-term loudness of each ear (..., 2, frame) in sone
    """

    specific: Tensor
    stl_ears: Tensor
    ltl_ears: Tensor


def binaural_loudness(
    excitation: Tensor,
    channels: Channels,
    smoothing: Tensor,
    theta: Tensor,
    step: float,
    short_term: Tensor,
    long_term: Tensor,
    before: Tensor,
    zi: tuple[Tensor, Tensor],
) -> tuple[Binaural, tuple[Tensor, Tensor]]:
    """`Binaural` of `excitation` (..., 2, frame, channel): the functions above in one call.

    smoothing: (channel, channel) weights for smoothing over channels before the comparison of the
        ears; theta: 0-dim
    step: spacing of the channels in Cam
    short_term, long_term: coefficients (2,) of `agc` for specific loudness and for its sum
    before: (...) number of frames at the start that count as silence
    zi: last short-term specific loudness (..., 2, channel) and long-term loudness (..., 2)
    """
    short, long = zi
    lead, count = _check_ears("binaural_loudness", "excitation", excitation)
    _check_channels("binaural_loudness", excitation.dtype, count, channels)
    fit(
        "binaural_loudness",
        excitation.dtype,
        ("smoothing", smoothing, (count, count)),
        ("theta", theta, ()),
        ("short_term", short_term, (2,)),
        ("long_term", long_term, (2,)),
        ("short", short, (*lead, 2, count)),
        ("long", long, (*lead, 2)),
    )
    fit("binaural_loudness", torch.int64, ("before", before, lead))
    if compiled(excitation, *channels, smoothing, theta, short_term, long_term, short, long):
        # One call instead of a dozen, because with one frame per block the calls dominate.
        shape = excitation.shape
        y = Binaural(
            excitation.new_empty(shape),
            excitation.new_empty(shape[:-1]),
            excitation.new_empty(shape[:-1]),
        )
        zf = short.new_empty(short.shape), long.new_empty(long.shape)
        ears, each, one = (-1, *shape[-3:-1]), (-1, count), (-1, 1)
        _binaural_loudness(
            array(excitation).reshape(*ears, count),
            _arrays(channels),
            array(smoothing),
            array(theta),
            step,
            *(array(v).reshape(-1) for v in (short_term, long_term, before)),
            array(short).reshape(each),
            array(long).reshape(one),
            y.specific.numpy().reshape(*ears, count),
            y.stl_ears.numpy().reshape(ears),
            y.ltl_ears.numpy().reshape(ears),
            zf[0].numpy().reshape(each),
            zf[1].numpy().reshape(one),
        )
        return y, zf
    begun = torch.arange(excitation.shape[-2], device=before.device) >= before[..., None]
    instant = specific_loudness(excitation, channels) * begun[..., None, :, None]
    specific, short = agc(instant, short_term, short)
    gains = inhibition_gains(specific @ smoothing + SILENT, theta)
    stl_ears = step * (specific * gains).sum(-1)
    ltl_ears, long = agc(stl_ears[..., None], long_term, long[..., None])
    return Binaural(specific, stl_ears, ltl_ears.squeeze(-1)), (short, long.squeeze(-1))


@kernel
def _binaural_loudness(
    excitation: Array,
    channels: Channels,
    smoothing: Array,
    theta: Array,
    step: float,
    short_term: Array,
    long_term: Array,
    before: Array,
    short: Array,
    long: Array,
    specific: Array,
    stl_ears: Array,
    ltl_ears: Array,
    short_after: Array,
    long_after: Array,
) -> None:
    rows, _, frames, count = specific.shape
    number = specific.dtype.type
    flat = specific.reshape((rows * 2 * frames, count))
    instant = np.empty_like(flat)
    _specific_loudness(excitation.reshape(flat.shape), channels, instant)
    ears = (rows * 2, frames, count)
    by_ear = instant.reshape(ears)
    for b in range(rows):
        by_ear[2 * b : 2 * b + 2, : before[b]] = 0
    _agc(by_ear, short_term, short, specific.reshape(ears), short_after)
    whole = np.zeros((-(-count // LANES), 2), np.int64)
    whole[:, 1] = count
    q, gains = np.empty_like(flat), np.empty_like(flat)
    multiply(flat, smoothing, whole, q)
    for n in range(q.shape[0]):
        line = q[n]
        for i in range(count):
            line[i] += number(SILENT)
    shape = (rows, 2, frames * count)
    _inhibition_gains(q.reshape(shape), theta, gains.reshape(shape))
    loudness = stl_ears.reshape(rows * 2 * frames)
    for n in range(flat.shape[0]):
        x, g = flat[n], gains[n]
        total = q.dtype.type(0)
        for i in range(count):
            total += x[i] * g[i]
        loudness[n] = q.dtype.type(step) * total
    shape = (rows * 2, frames, 1)
    sums, smoothed = stl_ears.reshape(shape), ltl_ears.reshape(shape)
    _agc(sums, long_term, long, smoothed, long_after)


def monaural_loudness(
    excitation: Tensor,
    channels: Channels,
    step: float,
    short_term: Tensor,
    long_term: Tensor,
    before: Tensor,
    zi: tuple[Tensor, Tensor],
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Short-term and long-term loudness (..., 2, frame) in sone of each ear alone.

    excitation: (..., ear, frame, channel); a single ear counts as both
    step: spacing of the channels in Cam
    short_term, long_term: coefficients (2,) of `agc` for the sum of specific loudness, float64
    before: (...) number of frames at the start that count as silence
    zi: last short-term and long-term loudness (..., 2), float64
    """
    short, long = zi
    lead, ears, frames, count = signal_axes("monaural_loudness", "excitation", excitation, 3)
    if ears not in (1, 2):
        raise ValueError(
            f"monaural_loudness: excitation has shape {tuple(excitation.shape)}: give 1 or 2 ears "
            "on axis -3"
        )
    _check_channels("monaural_loudness", excitation.dtype, count, channels)
    terms = ("short_term", short_term, (2,)), ("long_term", long_term, (2,))
    each = (*lead, 2)
    fit("monaural_loudness", torch.float64, *terms, ("short", short, each), ("long", long, each))
    fit("monaural_loudness", torch.int64, ("before", before, lead))
    if compiled(excitation, *channels, short_term, long_term, short, long):
        stl, ltl = (excitation.new_empty(*lead, 2, frames) for _ in range(2))
        zf = short.new_empty(each), long.new_empty(each)
        pair, of_frames = (-1, 2), (-1, 2, frames)
        _monaural_loudness(
            array(excitation).reshape(-1, ears, frames, count),
            _arrays(channels),
            step,
            *(array(v).reshape(-1) for v in (short_term, long_term, before)),
            *(array(v).reshape(pair) for v in (short, long)),
            *(v.numpy().reshape(of_frames) for v in (stl, ltl)),
            *(v.numpy().reshape(pair) for v in zf),
        )
        return (stl, ltl), zf
    n = step * specific_loudness(excitation, channels).sum(-1)
    n = torch.cat([n, n], -2) if ears == 1 else n
    begun = torch.arange(frames, device=before.device) >= before[..., None]
    n = torch.where(begun[..., None, :], n, 0.0).double()
    smooth, short = agc(n[..., None], short_term, short[..., None])
    slow, long = agc(smooth, long_term, long[..., None])
    stl, ltl = (v.squeeze(-1).to(excitation.dtype) for v in (smooth, slow))
    return (stl, ltl), (short.squeeze(-1), long.squeeze(-1))


@kernel
def _monaural_loudness(
    excitation: Array,
    channels: Channels,
    step: float,
    short_term: Array,
    long_term: Array,
    before: Array,
    short: Array,
    long: Array,
    stl_ears: Array,
    ltl_ears: Array,
    short_after: Array,
    long_after: Array,
) -> None:
    rows, ears, frames, count = excitation.shape
    specific = np.empty((rows * ears * frames, count), excitation.dtype)
    _specific_loudness(excitation.reshape(specific.shape), channels, specific)
    for b in range(rows):
        for ear in range(2):
            stl, ltl = short[b, ear], long[b, ear]
            at = (b * ears + min(ear, ears - 1)) * frames
            for n in range(frames):
                x, total = specific[at + n], excitation.dtype.type(0)
                for i in range(count):
                    total += x[i]
                now = 0.0 if n < before[b] else np.float64(excitation.dtype.type(step) * total)
                change = now - stl
                stl += (short_term[0] if change > 0 else short_term[1]) * change
                change = stl - ltl
                ltl += (long_term[0] if change > 0 else long_term[1]) * change
                stl_ears[b, ear, n], ltl_ears[b, ear, n] = stl, ltl
            short_after[b, ear], long_after[b, ear] = stl, ltl
