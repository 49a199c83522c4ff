"""The plain form of linear recurrences: exact, differentiable, block by block."""

from typing import NamedTuple

import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu

BLOCK = 48
"""Samples per matrix product: more cost arithmetic, fewer cost calls."""


class Blocks(NamedTuple):
    """A linear system as matrices for `length` samples at once.

    direct: (channel, length, length) from input to output, lower triangular
    observe: (channel, length, state) from the state before the block to the output
    reach: (channel, state, length) from input to the state after the block
    powers: (channel, length + 1, state, state) of the transition; the last spans the block
    """

    direct: Tensor
    observe: Tensor
    reach: Tensor
    powers: Tensor

    def first(self, length: int) -> "Blocks":
        """The system for only the first `length` samples of a block."""
        skipped = self.reach.shape[-1] - length
        return Blocks(
            self.direct[:, :length, :length],
            self.observe[:, :length],
            self.reach[:, :, skipped:],
            self.powers[:, : length + 1],
        )


def blocks(a: Tensor, b: Tensor, c: Tensor, d: Tensor, length: int = BLOCK) -> Blocks:
    """`Blocks` of s[t + 1] = a s[t] + b x[t]; y[t] = c s[t] + d x[t].

    a: (channel, state, state); b, c: (channel, state); d: (channel,); real or complex
    """
    powers = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand_as(a)[:, None]
    step = a
    while powers.shape[1] <= length:
        powers = torch.cat([powers, powers @ step[:, None]], 1)
        step = step @ step
    powers = powers[:, : length + 1]
    driven = (powers[:, :length] @ b[:, None, :, None]).squeeze(-1)
    response = torch.cat([d[:, None], (driven[:, : length - 1] * c[:, None]).sum(-1)], 1)
    lag = torch.arange(length, device=a.device)
    lag = lag[:, None] - lag
    direct = torch.where(lag >= 0, response[:, lag.clamp(min=0)], 0)
    observe = (c[:, None, None] @ powers[:, :length]).squeeze(-2)
    return Blocks(direct, observe, driven.flip(1).mT, powers)


def state_space(
    x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor, zi: Tensor
) -> tuple[Tensor, Tensor]:
    """Output and last state of s[t + 1] = a s[t] + b x[t]; y[t] = c s[t] + d x[t].

    x: (..., channel, time), real; a: (channel, state, state); b, c: (channel, state); d: (channel,)
    zi, zf: (..., channel, state) in the dtype of `a`, as is y; complex systems are allowed

    For repeated calls with one system, make its `blocks` once and call `run`.
    """
    if zi.shape[-1] == 1 and gpu.serves(x, zi, a, b, c, d):
        y, zf = gpu.first_state(x.to(zi.dtype), a, b, c, d, zi)
        return y, zf
    return run(x, blocks(a, b, c, d, min(BLOCK, x.shape[-1])), zi)


def run(x: Tensor, system: Blocks, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`state_space` of `x` (..., channel, time) for a system prepared by `blocks`."""
    channels, size = zi.shape[-2:]
    length = system.observe.shape[1]
    # Channels first, so that a matrix product serves all rows and blocks of one channel.
    rows = x.reshape(-1, channels, x.shape[-1]).transpose(0, 1).to(zi.dtype)
    s = zi.reshape(-1, channels, size).transpose(0, 1)
    whole = rows.shape[-1] // length * length
    outputs = []
    if whole:
        y, s = _run_whole(rows[..., :whole], system, s)
        outputs.append(y)
    if whole < rows.shape[-1]:
        rest = rows[..., whole:]
        y, s = _run_whole(rest, system.first(rest.shape[-1]), s)
        outputs.append(y)
    y = outputs[0] if len(outputs) == 1 else torch.cat(outputs, -1)
    return y.transpose(0, 1).reshape(x.shape), s.transpose(0, 1).reshape(zi.shape)


def _run_whole(x: Tensor, system: Blocks, s: Tensor) -> tuple[Tensor, Tensor]:
    """Whole blocks of `x` (channel, row, time) from states `s` (channel, row, state)."""
    channels, rows, time = x.shape
    length = system.observe.shape[1]
    cut = x.reshape(channels, -1, length)
    driven = (cut @ system.reach.mT).view(channels, rows, -1, s.shape[-1])
    leap = system.powers[:, -1].mT
    starts = []
    for drive in driven.unbind(2):
        starts.append(s)
        s = torch.baddbmm(drive, s, leap)
    before = torch.stack(starts, 2).view(channels, -1, s.shape[-1])
    y = torch.baddbmm(cut @ system.direct.mT, before, system.observe.mT)
    return y.view(channels, rows, time), s
