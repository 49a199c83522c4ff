"""From excitation to loudness: specific loudness, automatic gain control, binaural inhibition."""

from math import exp, expm1, log1p, sqrt

import torch
from torch import Tensor

from amt_stream.functional.dispatch import Array, array, compiled, kernel

HIGH = 1e10
"""Excitation, re 0 dB, from which specific loudness follows the high-level power law."""


def specific_loudness(
    excitation: Tensor, threshold: Tensor, gain: Tensor, a: Tensor, alpha: Tensor, c: float
) -> Tensor:
    """Specific loudness in sone/Cam of `excitation` (..., channel), a power ratio re 0 dB.

    threshold, gain, a, alpha: (channel,) excitation at threshold, low-frequency gain G, parameters
        A and alpha; c in sone/Cam (ISO 532-3:2023, clause 7.5)
    """
    scale = c * a**alpha
    if compiled(excitation, threshold, gain, a, alpha):
        flat = array(excitation).reshape(-1, excitation.shape[-1])
        y = excitation.new_empty(flat.shape)
        tables = array(threshold), array(gain), array(a), array(alpha), array(scale)
        _specific_loudness(flat, *tables, c, y.numpy())
        return y.view(excitation.shape)
    # (G E + A)^alpha - A^alpha in a form that cancels nothing, for float32.
    core = scale * torch.expm1(alpha * torch.log1p(gain * excitation / a))
    below = (2 * excitation / (excitation + threshold)) ** 1.5
    ordinary = core * torch.where(excitation > threshold, 1.0, below)
    high = c * (excitation.clamp(min=HIGH) / 1.0707) ** 0.2
    return torch.where(excitation < HIGH, ordinary, high)


@kernel
def _specific_loudness(
    excitation: Array,
    threshold: Array,
    gain: Array,
    a: Array,
    alpha: Array,
    scale: Array,
    c: float,
    y: Array,
) -> None:
    for n in range(y.shape[0]):
        for i in range(y.shape[1]):
            e = excitation[n, i]
            if e >= HIGH:
                y[n, i] = c * (e / 1.0707) ** 0.2
                continue
            value = scale[i] * expm1(alpha[i] * log1p(gain[i] * e / a[i]))
            if e <= threshold[i]:
                ratio = 2 * e / (e + threshold[i])
                value *= ratio * sqrt(ratio)
            y[n, i] = value


def agc(x: Tensor, attack: Tensor, release: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`x` (..., frame, channel) smoothed by one pole that rises with `attack`, falls with `release`.

    y += (attack if x > y else release) * (x - y) at each frame; zi, zf: (..., channel), the last y
    (Glasberg & Moore 2002; coefficients of Moore et al. 2016, 2018).
    """
    if compiled(x, attack, release, zi):
        rows, last = array(x).reshape(-1, *x.shape[-2:]), array(zi).reshape(-1, x.shape[-1])
        y, zf = x.new_empty(rows.shape), zi.new_empty(last.shape)
        _agc(rows, array(attack), array(release), last, y.numpy(), zf.numpy())
        return y.view(x.shape), zf.view(zi.shape)
    outputs = []
    for frame in x.unbind(-2):
        zi = zi + torch.where(frame > zi, attack, release) * (frame - zi)
        outputs.append(zi)
    return torch.stack(outputs, -2), zi


@kernel
def _agc(x: Array, attack: Array, release: Array, zi: Array, y: Array, zf: Array) -> None:
    up, down = attack[()], release[()]
    for r in range(x.shape[0]):
        last = zf[r]
        last[:] = zi[r]
        for n in range(x.shape[1]):
            for i in range(x.shape[2]):
                change = x[r, n, i] - last[i]
                last[i] += (up if change > 0 else down) * change
                y[r, n, i] = last[i]


def inhibition_gains(specific: Tensor, smoothing: Tensor, theta: float) -> Tensor:
    """Gain of each ear and channel of `specific` (..., 2, frame, channel) under the other ear.

    (1 + sech(q_other / q_own)^theta) / 2 of the patterns q smoothed over channels, (channel,
    channel), with 1e-13 sone/Cam added (Moore & Glasberg 2007; ISO 532-2:2017).
    """
    q = specific @ smoothing.T + 1e-13
    if compiled(q):
        flat = array(q).reshape(-1, 2, q.shape[-2] * q.shape[-1])
        gains = q.new_empty(flat.shape)
        _inhibition_gains(flat, theta, gains.numpy())
        return gains.view(q.shape)
    falling = torch.exp(-q.flip(-3) / q)  # sech in a form that cannot overflow
    return (1 + (2 * falling / (1 + falling.square())) ** theta) / 2


@kernel
def _inhibition_gains(q: Array, theta: float, gains: Array) -> None:
    power, half = q.dtype.type(theta), q.dtype.type(0.5)
    for n in range(q.shape[0]):
        for ear in range(2):
            own, other = q[n, ear], q[n, 1 - ear]
            for i in range(own.size):
                falling = exp(-other[i] / own[i])
                gains[n, ear, i] = half + half * (2 * falling / (1 + falling * falling)) ** power
