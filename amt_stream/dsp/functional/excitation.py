"""Excitation of the auditory filters by spectral components (rounded-exponential filters).

A filter's weight for a component is W(z) = (1 + z) exp(-z), z = p |g|. Above the filter's center p
is constant, so that side is a matrix product. Below, p decreases with the level per ERB at the
component, which gives each component a factor s_j: z = c_i (fc_i - f_j) s_j.
"""

from math import prod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compilable, compiled, kernel
from amt_stream.dsp.functional.compiler.elementary import exponential
from amt_stream.dsp.functional.compiler.gradient import by_parts
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.compiler.operators import operator
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes

LEVEL_SLOPE = 0.35 / 30.2012924
"""Decrease of s_j per dB of level per ERB: 0.35 / p(1 kHz) (ANSI S3.4-2007, 3.5)."""


def select_components(intensity: Tensor) -> Tensor:
    """`intensity` (..., ear, frame, component) with weak components set to 0.

    Weak means 60 dB or more below the strongest component of all ears, or -30 dB or less. If a
    component is not finite, weakness is undefined, and all become NaN.
    """
    signal_axes("select_components", "intensity", intensity, 3)
    if compiled(intensity):
        y = intensity.new_empty(intensity.shape)
        shape = (-1, *intensity.shape[-3:])
        _select_components(array(intensity).reshape(shape), y.numpy().reshape(shape))
        return y
    floor = intensity.amax(dim=(-3, -1), keepdim=True).clamp(min=1e3) * 1e-6
    nothing = 0 * intensity.detach().sum(dim=(-3, -1), keepdim=True)
    return torch.where(intensity > floor + nothing, intensity, nothing)


@kernel
def _select_components(intensity: Array, y: Array) -> None:
    tiny, zero = intensity.dtype.type(1e-6), intensity.dtype.type(0)
    tops = np.empty(LANES, intensity.dtype)
    for b in range(y.shape[0]):
        for n in range(y.shape[2]):
            tops[:] = intensity.dtype.type(1e3)
            total = zero
            for ear in range(y.shape[1]):
                x = intensity[b, ear, n]
                for j in range(x.size):
                    total += x[j]
                # In parallel, because compilers do not vectorize a maximum as they do a sum.
                whole = x.size // LANES
                for part in range(whole):
                    values = x[part * LANES : part * LANES + LANES]
                    for i in range(LANES):
                        tops[i] = values[i] if values[i] > tops[i] else tops[i]
                for j in range(whole * LANES, x.size):
                    tops[0] = max(tops[0], x[j])
            top = tops[0]
            for i in range(1, LANES):
                top = max(top, tops[i])
            nothing = zero * total  # NaN if a component is not finite
            floor = top * tiny + nothing
            for ear in range(y.shape[1]):
                x = intensity[b, ear, n]
                out = y[b, ear, n]
                for j in range(x.size):
                    out[j] = x[j] if x[j] > floor else nothing


class Filters(NamedTuple):
    """The filters, and the number of components below their centers.

    frequency: (component,) in Hz
    fc, slope: (channel,) center in Hz, and c_i = 4 / ERB(fc_i)
    components_below: (channel,) number of components below the center
    """

    frequency: Tensor
    fc: Tensor
    slope: Tensor
    components_below: Tensor


@operator(lambda intensity, level, filters: intensity.new_empty(*level.shape[:-1], len(filters.fc)))
def lower_skirts(intensity: Tensor, level: Tensor, filters: Filters) -> Tensor:
    """Excitation (..., channel) by the components below each channel's center, one by one.

    intensity, level: (..., component); `level` is the level per ERB at the component, in dB
    """
    lead, components = signal_axes("lower_skirts", "intensity", intensity, 1)
    (channels,) = last_axes("lower_skirts", "fc", filters.fc, 1)
    each = (max(1, channels),)
    fit(
        "lower_skirts",
        intensity.dtype,
        ("level", level, intensity.shape),
        ("frequency", filters.frequency, (components,)),
        ("fc", filters.fc, each),
        ("slope", filters.slope, each),
    )
    fit("lower_skirts", torch.int64, ("components_below", filters.components_below, each))
    shape = (prod(lead), components)
    if compiled(intensity, level, filters.frequency, filters.fc, filters.slope):
        y = intensity.new_empty(*lead, channels)
        sound = array(intensity).reshape(shape), array(level).reshape(shape)
        into = y.numpy().reshape(shape[0], channels)
        if not _lower_skirts(*sound, *(array(t) for t in filters), into):
            raise _not_below(components)
        return y
    if compilable(intensity) and not _within(array(filters.components_below), components):
        raise _not_below(components)
    if gpu.serves(intensity, level):
        y = gpu.skirts(intensity.reshape(shape), level.reshape(shape), *filters, LEVEL_SLOPE)
        return y.view(*lead, channels)
    given = intensity.reshape(shape), level.reshape(shape)
    y = by_parts(lambda i, x: _plain_lower_skirts(i, x, filters), given, filters)
    return y.view(*lead, channels)


def _not_below(components: int) -> ValueError:
    return ValueError(
        f"lower_skirts: components_below are not numbers of {components} components: give how "
        "many lie below each center"
    )


@kernel
def _within(components_below: Array, components: int) -> bool:
    """Whether no channel has more components below it than exist."""
    least, most = 0, 0
    for below in components_below:
        least, most = min(least, below), max(most, below)
    return least == 0 and most <= components


def _plain_lower_skirts(intensity: Tensor, level: Tensor, filters: Filters) -> Tensor:
    frequency, fc, slope, components_below = filters
    component = torch.arange(frequency.shape[0], device=frequency.device)
    below = component < components_below[:, None]
    steepness = torch.maximum(
        1 - LEVEL_SLOPE * (level[:, None] - 51), (0.1 / (slope * fc))[:, None]
    )
    z = slope[:, None] * (fc[:, None] - frequency).clamp(min=0) * steepness
    return torch.where(below, intensity[:, None] * (1 + z) * torch.exp(-z), 0.0).sum(-1)


@kernel
def _lower_skirts(
    intensity: Array,
    level: Array,
    frequency: Array,
    fc: Array,
    slope: Array,
    components_below: Array,
    y: Array,
) -> bool:
    """Write the excitation into `y`; False, with nothing written, for invalid numbers below."""
    if not _within(components_below, frequency.size):
        return False
    number = y.dtype.type
    before = np.empty(frequency.size + 1, np.int64)
    power = np.empty(frequency.size, y.dtype)
    f, s = np.empty_like(power), np.empty_like(power)
    one, k, middle, least = number(1), number(LEVEL_SLOPE), number(51), number(0.1)
    for n in range(y.shape[0]):
        components, levels = intensity[n], level[n]
        # Compacted to nonzero components, so that the inner loop has no branch.
        kept = 0
        for j in range(frequency.size):
            before[j] = kept
            if not components[j] <= 0:  # includes NaN
                power[kept] = components[j]
                f[kept] = frequency[j]
                s[kept] = one - k * (levels[j] - middle)
                kept += 1
        before[frequency.size] = kept
        for i in range(fc.size):
            center, c = fc[i], slope[i]
            flattest = least / (c * center)
            low = before[components_below[i]]
            p, q, r = power[:low], f[:low], s[:low]
            total = number(0)
            for j in range(low):
                z = c * (center - q[j]) * max(r[j], flattest)
                total += p[j] * exponential(-z) * (one + z)
            y[n, i] = total
    return True
