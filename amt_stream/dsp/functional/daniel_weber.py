"""Excitation of the channels of the roughness model of Daniel & Weber (1997)."""

from math import log

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, compiled, kernel
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes
from amt_stream.dsp.scales import P0

CHANNELS = 47
SPACING = 0.5
"""Bark from one channel to the next; each is 1 Bark wide."""

POINTS = 800
"""Instants at which the channels' signals are taken."""

LOWER_SLOPE_DB = 27.0
"""Per Bark, toward lower channels (Terhardt 1979)."""

LESS_STEEP = 0.2
"""By which the slope toward higher channels in dB per Bark falls with each dB of the line."""

NEPER = log(10) / 20
"""Per decibel."""

FAINT = 1e-30
"""Lower bound of powers, for gradients."""


def excited(lines: Tensor, bark: Tensor, audible: Tensor, slope: Tensor, reached: Tensor) -> Tensor:
    """Spectra (..., 2, 47, `POINTS`) of what the lines of a spectrum excite in each channel.

    A line is part of the channels within half a Bark of it. From there to the near edge of a lower
    channel it falls by 27 dB per Bark, to that of a higher one by `slope` minus 0.2 times its level
    (Terhardt 1979); it excites a channel if it is audible at that edge. Lines `POINTS` apart have
    the same phases at all instants that are taken, and are summed.

    lines: real and imaginary parts in pascal (..., 2, line)
    bark, slope: places of the lines, and their slopes at 0 dB in dB per Bark (line,)
    audible: thresholds of the lines in Pa^2 (line,)
    reached: thresholds at the lower and upper edges of the channels in Pa^2 (2, 47)
    """
    lead, parts, count = signal_axes("excited", "lines", lines, 2)
    of_lines = ("bark", bark), ("audible", audible), ("slope", slope)
    given = *((name, v, (count,)) for name, v in of_lines), ("reached", reached, (2, CHANNELS))
    fit("excited", lines.dtype, ("lines", lines, (*lead, 2, count)), *given)
    if compiled(lines, bark, audible, slope, reached):
        y = lines.new_zeros(*lead, parts, CHANNELS, POINTS)
        tables = [array(v) for v in (bark, audible, slope, reached)]
        rows = array(lines).reshape(-1, parts, count)
        _excited(rows, *tables, y.numpy().reshape(-1, parts, CHANNELS, POINTS))
        return y
    center = SPACING * torch.arange(1, CHANNELS + 1, dtype=bark.dtype, device=bark.device)[:, None]
    above = (center - SPACING - bark).clamp(min=0)
    below = (bark - (center + SPACING)).clamp(min=0)
    power = lines.square().sum(-2).clamp(min=FAINT)
    per_bark = (slope - LESS_STEEP * 10 * torch.log10(power / P0**2)).clamp(min=0)
    less_db = per_bark[..., None, :] * above + LOWER_SLOPE_DB * below
    passed = torch.exp(-NEPER * less_db)
    lower, upper = reached[..., None]
    needed = torch.where(above > 0, lower, torch.where(below > 0, upper, 0))
    power = torch.where(power > audible, power, 0)[..., None, :]
    passed = torch.where(power * passed.square() > needed, passed, 0)
    # Each part alone, because torch multiplies complex numbers by real ones slowly.
    y = lines[..., None, :] * passed[..., None, :, :]
    return torch.nn.functional.pad(y, (0, -count % POINTS)).unflatten(-1, (-1, POINTS)).sum(-2)


@kernel
def _excited(
    lines: Array, bark: Array, audible: Array, slope: Array, reached: Array, y: Array
) -> None:
    channels, points = y.shape[2], y.shape[3]
    least = reached.min()
    step, neper, zero = bark.dtype.type(SPACING), bark.dtype.type(NEPER), bark.dtype.type(0)
    fall, rise = bark.dtype.type(LOWER_SLOPE_DB), bark.dtype.type(LESS_STEEP * 10)
    reference = bark.dtype.type(P0 * P0)
    down = np.exp(-neper * fall * step)
    for r in range(lines.shape[0]):
        for k in range(lines.shape[2]):
            re, im = lines[r, 0, k], lines[r, 1, k]
            power = re * re + im * im
            if power <= audible[k]:  # which NaN is not
                continue
            at, z = k % points, bark[k]
            first = 0
            while first < channels and step * (first + 1) + step < z:
                first += 1
            last = first
            while last < channels and step * (last + 1) - step <= z:
                y[r, 0, last, at] += re
                y[r, 1, last, at] += im
                last += 1
            per_bark = max(slope[k] - rise * np.log10(power / reference), zero)
            upward = np.exp(-neper * per_bark * (step * (last + 1) - step - z))
            downward = np.exp(-neper * fall * (z - step * first - step))
            sides = (
                (last, channels, 1, upward, np.exp(-neper * per_bark * step)),
                (first - 1, -1, -1, downward, down),
            )
            for side in range(2):
                start, end, way, passed, further = sides[side]
                for i in range(start, end, way):
                    heard = power * passed * passed
                    if heard < least:
                        break
                    if heard > reached[side, i]:
                        y[r, 0, i, at] += passed * re
                        y[r, 1, i, at] += passed * im
                    passed *= further
