"""Partial specific loudness: how loud a target is heard in a background.

By the equations of Moore, Glasberg & Baer (1997) as open programs transcribe them, with one
loudness law for all levels. In float64: a target far below its background would be lost in float32.
"""

import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes
from amt_stream.dsp.functional.loudness import HIGH, Channels


def masked_threshold(background: Tensor, channels: Channels, k: Tensor) -> Tensor:
    """Excitation (..., channel) of a target that is just heard in the background's."""
    return k * background + channels.threshold


def partial_specific_loudness(
    target: Tensor, background: Tensor, channels: Channels, k: Tensor
) -> Tensor:
    """Partial specific loudness in sone/Cam (..., channel) of a target in a background, float64.

    target, background: excitation (..., channel), power ratios re 0 dB, by filters of one shape
    k: ratio of target to background at the masked threshold (channel,)

    Without a background it is `specific_loudness` of the target.
    """
    _, count = signal_axes("partial_specific_loudness", "target", target, 1)
    tables = *zip(Channels._fields[:-1], channels[:-1], strict=True), ("k", k)
    fit(
        "partial_specific_loudness",
        target.dtype,
        ("background", background, tuple(target.shape)),
        *((name, table, (count,)) for name, table in tables),
    )
    channels = Channels(*(v.double() for v in channels))
    s, n = target.double(), background.double()
    masked = masked_threshold(n, channels, k.double())
    quiet = _loudness(channels.threshold, channels)
    # Limits keep the branch that is not taken, and its gradient, finite.
    over = (masked / torch.maximum(s, masked)) ** 0.3
    heard = _loudness(s + n, channels) - (_loudness(n + masked, channels) - quiet) * over
    under = torch.minimum(s, masked)
    part = (2 * under / (under + masked)) ** 1.5 * quiet
    faint = part * _rise(under, n, channels) / _rise(masked, n, channels)
    return torch.where(s >= masked, heard, faint)


def _loudness(e: Tensor, channels: Channels) -> Tensor:
    """The loudness law F of an excitation, without the loss below threshold."""
    core = channels.scale * torch.expm1(
        channels.alpha * torch.log1p(channels.gain * e / channels.a)
    )
    return torch.where(e < HIGH, core, channels.c * (e.clamp(min=HIGH) / 1.0707) ** 0.2)


def _rise(e: Tensor, n: Tensor, channels: Channels) -> Tensor:
    """F(e + n) - F(n), without cancellation below the high-level law."""
    base = channels.gain * n + channels.a
    core = channels.c * base**channels.alpha
    core = core * torch.expm1(channels.alpha * torch.log1p(channels.gain * e / base))
    high = _loudness(e + n, channels) - _loudness(n, channels)
    return torch.where(e + n < HIGH, core, high)
