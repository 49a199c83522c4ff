"""Partial specific loudness: the loudness of a target in a background.

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
    of_both, of_threshold, of_background = (_loudness(e, channels) for e in (s + n, n + masked, n))
    # Limits keep the branch that is not taken, and its gradient, finite.
    heard = of_both - (of_threshold - quiet) * (masked / torch.maximum(s, masked)) ** 0.3
    under = torch.minimum(s, masked)
    part = (2 * under / (under + masked)) ** 1.5 * quiet
    # F(e + n) - F(n), without cancellation below the high-level law.
    base = channels.gain * n + channels.a
    scale = channels.c * base**channels.alpha
    rises = [
        torch.where(
            e + n < HIGH,
            scale * torch.expm1(channels.alpha * torch.log1p(channels.gain * e / base)),
            total - of_background,
        )
        for e, total in ((under, of_both), (masked, of_threshold))
    ]
    return torch.where(s >= masked, heard, part * rises[0] / rises[1])


def _loudness(e: Tensor, channels: Channels) -> Tensor:
    """The loudness law F of an excitation, without the loss below threshold."""
    core = channels.scale * torch.expm1(
        channels.alpha * torch.log1p(channels.gain * e / channels.a)
    )
    return torch.where(e < HIGH, core, channels.c * (e.clamp(min=HIGH) / 1.0707) ** 0.2)
