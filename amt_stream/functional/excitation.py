"""Excitation of the auditory filters by the components of a spectrum (rounded-exponential filters).

A filter's weight for a component is W(z) = (1 + z) exp(-z), z = p |g|. Above the filter's center p
is fixed, so that side is one matrix product; below, p falls with the level per ERB at the
component, which is one number s_j for each: z = c_i (fc_i - f_j) s_j.
"""

from math import exp, prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import types
from numba.extending import overload
from torch import Tensor

from amt_stream.functional.dispatch import Array, array, compilable, compiled, kernel
from amt_stream.functional.operators import operator
from amt_stream.functional.shapes import fit, last_axes, signal_axes

LEVEL_SLOPE = 0.35 / 30.2012924
"""Fall of s_j per dB of level per ERB: 0.35 / p(1 kHz) (ANSI S3.4-2007, 3.5)."""

FEW_ROWS = 4
"""Up to which a loop is faster than a general matrix product, or the calls that make one."""


def select_components(intensity: Tensor) -> Tensor:
    """`intensity` (..., ear, frame, component) with weak components set to 0.

    Weak is 60 dB or more below the strongest component of all ears, or -30 dB and less. Where one
    is not finite, which are weak cannot be said, and none is a number.
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
    for b in range(y.shape[0]):
        for n in range(y.shape[2]):
            top, total = intensity.dtype.type(1e3), zero
            for ear in range(y.shape[1]):
                x = intensity[b, ear, n]
                for j in range(x.size):
                    top = max(top, x[j])
                    total += x[j]
            nothing = zero * total  # not a number where a component is none
            floor = top * tiny + nothing
            for ear in range(y.shape[1]):
                x = intensity[b, ear, n]
                out = y[b, ear, n]
                for j in range(x.size):
                    out[j] = x[j] if x[j] > floor else nothing


def banded(x: Tensor, matrix: Tensor, blocks: Tensor) -> Tensor:
    """`x` (..., n) times the transpose of `matrix` (m, n), which is zero outside its blocks.

    blocks: (count, 4) rows `first, last, from, to`: matrix[first:last] is zero outside [from:to]
    """
    lead, columns = signal_axes("banded", "x", x, 1)
    rows, _ = last_axes("banded", "matrix", matrix, 2)
    count, _ = last_axes("banded", "blocks", blocks, 2)
    rows, count = max(1, rows), max(1, count)
    fit("banded", x.dtype, ("matrix", matrix, (rows, columns)))
    fit("banded", torch.int64, ("blocks", blocks, (count, 4)))
    number = prod(lead)
    if number <= FEW_ROWS and compiled(x, matrix):
        y = x.new_empty(*lead, rows)
        given = array(x).reshape(number, columns), array(matrix), array(blocks)
        if not _banded(*given, y.numpy().reshape(number, rows)):
            raise _not_in_blocks(rows, columns)
        return y
    if compilable(x, matrix) and not _rows_in_blocks(array(blocks), rows, columns):
        raise _not_in_blocks(rows, columns)
    if not compiled(x, matrix):
        return x @ matrix.T
    flat = x.detach().reshape(number, columns)
    y = x.new_empty(number, rows)
    for first, last, start, stop in blocks.tolist():
        torch.mm(flat[:, start:stop], matrix[first:last, start:stop].T, out=y[:, first:last])
    return y.view(*lead, rows)


def _not_in_blocks(rows: int, columns: int) -> ValueError:
    return ValueError(
        f"banded: the blocks are not those of a matrix of shape {(rows, columns)}: give first, "
        "last, from, to of all rows in order, within it"
    )


@kernel
def _rows_in_blocks(blocks: Array, rows: int, columns: int) -> bool:
    """Whether `blocks` hold each of `rows` once, in order, and lie within `columns`."""
    at = 0
    for b in range(blocks.shape[0]):
        first, last, start, stop = blocks[b]
        if first != at or last < first or start < 0 or stop < start or stop > columns:
            return False
        at = last
    return at == rows


@kernel
def _banded(x: Array, matrix: Array, blocks: Array, y: Array) -> bool:
    """Whether the blocks are those of the matrix; `y` is written where they are."""
    if not _rows_in_blocks(blocks, matrix.shape[0], matrix.shape[1]):
        return False
    for first in range(0, y.shape[0], 2):
        second = min(first + 1, y.shape[0] - 1)
        for b in range(blocks.shape[0]):
            start, stop = blocks[b, 2], blocks[b, 3]
            x0, x1 = x[first, start:stop], x[second, start:stop]
            for j in range(blocks[b, 0], blocks[b, 1]):
                weights = matrix[j, start:stop]
                sum0 = y.dtype.type(0)
                sum1 = sum0
                for k in range(weights.size):
                    sum0 += weights[k] * x0[k]
                    sum1 += weights[k] * x1[k]
                y[first, j] = sum0
                y[second, j] = sum1
    return True


class Filters(NamedTuple):
    """The filters and the components below their centers.

    frequency: (component,) in Hz
    fc, slope: (channel,) center in Hz, and c_i = 4 / ERB(fc_i)
    groups: (count + 1,) first component of each group, and the end; the components of a group act
        as one, at their mean frequency and level, weighted by intensity
    groups_below, components_below: (channel,) how many lie wholly below the center
    """

    frequency: Tensor
    fc: Tensor
    slope: Tensor
    groups: Tensor
    groups_below: Tensor
    components_below: Tensor


def lower_skirts(intensity: Tensor, level: Tensor, filters: Filters) -> Tensor:
    """Excitation (..., channel) by the components below each channel's center.

    intensity, level: (..., component); `level` is the level per ERB at the component, in dB
    """
    lead, components = signal_axes("lower_skirts", "intensity", intensity, 1)
    (channels,) = last_axes("lower_skirts", "fc", filters.fc, 1)
    (ends_of_groups,) = last_axes("lower_skirts", "groups", filters.groups, 1)
    each = (max(1, channels),)
    fit(
        "lower_skirts",
        intensity.dtype,
        ("level", level, intensity.shape),
        ("frequency", filters.frequency, (components,)),
        ("fc", filters.fc, each),
        ("slope", filters.slope, each),
    )
    fit(
        "lower_skirts",
        torch.int64,
        ("groups", filters.groups, (max(2, ends_of_groups),)),
        ("groups_below", filters.groups_below, each),
        ("components_below", filters.components_below, each),
    )
    if torch.compiler.is_compiling():
        return _lower_skirts_of(intensity, level, *filters)
    shape = (prod(lead), components)
    if compiled(intensity, level, filters.frequency, filters.fc, filters.slope):
        y = intensity.new_empty(*lead, channels)
        sound = array(intensity).reshape(shape), array(level).reshape(shape)
        into = y.numpy().reshape(shape[0], channels)
        if not _lower_skirts(*sound, *(array(t) for t in filters), into):
            raise _not_grouped(components)
        return y
    if compilable(intensity) and not _grouped(*(array(t) for t in filters[3:]), components):
        raise _not_grouped(components)
    # A few frames at a time: each has components x channels terms.
    parts = zip(intensity.reshape(shape).split(16), level.reshape(shape).split(16), strict=True)
    y = torch.cat([_plain_lower_skirts(i, x, filters) for i, x in parts])
    return y.view(*lead, channels)


def _not_grouped(components: int) -> ValueError:
    return ValueError(
        f"lower_skirts: the groups are not those of {components} components: give their starts "
        "and the end in ascending order, and what lies below each center within them"
    )


@kernel
def _grouped(groups: Array, groups_below: Array, components_below: Array, components: int) -> bool:
    """Whether `groups` part the components, and what lies below a center ends in the next one."""
    count = groups.size - 1
    for g in range(count):
        if groups[g + 1] < groups[g]:
            return False
    for i in range(groups_below.size):
        whole = groups_below[i]
        if whole < 0 or whole > count:
            return False
        if not groups[whole] <= components_below[i] <= groups[min(whole + 1, count)]:
            return False
    return groups[0] == 0 and groups[count] == components


@operator(
    lambda intensity, level, frequency, fc, *others: intensity.new_empty(
        *intensity.shape[:-1], fc.shape[0]
    )
)
def _lower_skirts_of(
    intensity: Tensor,
    level: Tensor,
    frequency: Tensor,
    fc: Tensor,
    slope: Tensor,
    groups: Tensor,
    groups_below: Tensor,
    components_below: Tensor,
) -> Tensor:
    filters = Filters(frequency, fc, slope, groups, groups_below, components_below)
    return lower_skirts(intensity, level, filters)


def _plain_lower_skirts(intensity: Tensor, level: Tensor, filters: Filters) -> Tensor:
    frequency, fc, slope, groups, groups_below, components_below = filters
    count = groups.shape[0] - 1
    component = torch.arange(frequency.shape[0], device=groups.device)
    group = torch.searchsorted(groups, component, right=True) - 1

    def excite(power: Tensor, f: Tensor, x: Tensor, heard: Tensor) -> Tensor:
        steepness = torch.maximum(
            1 - LEVEL_SLOPE * (x[:, None] - 51), (0.1 / (slope * fc))[:, None]
        )
        z = slope[:, None] * (fc[:, None] - f[:, None]).clamp(min=0) * steepness
        return torch.where(heard, power[:, None] * (1 + z) * torch.exp(-z), 0.0).sum(-1)

    def total(v: Tensor) -> Tensor:
        return v.new_zeros(v.shape[0], count).index_add(-1, group, v)

    power = total(intensity)
    some = power.clamp(min=1e-30)
    f, x = total(intensity * frequency) / some, total(intensity * level) / some
    whole = torch.arange(count, device=groups.device) < groups_below[:, None]
    y = excite(power, f, x, whole)
    if count < frequency.shape[0]:
        # Of the group that a channel's center parts, the components below the center.
        parted = (group == groups_below[:, None]) & (component < components_below[:, None])
        y = y + excite(intensity, frequency.expand_as(intensity), level, parted)
    return y


def _roex(z: Any) -> Any:
    return (1 + z) * exp(-z)


@overload(_roex, inline="always")
def _roex_compiled(z: Any) -> Any:
    if z == types.float32:
        one, step = np.float32(1), np.float32(-1 / 128)
        c2, c3, c4, c5 = (np.float32(1 / n) for n in (2, 6, 24, 120))

        def form(z: Any) -> Any:
            # exp(-z / 128) to the 128th power: plain products, which vectorize.
            t = z * step
            e = one + t * (one + t * (c2 + t * (c3 + t * (c4 + t * c5))))
            e = e * e
            e = e * e
            e = e * e
            e = e * e
            e = e * e
            e = e * e
            return (one + z) * (e * e)

        return form
    return _roex


@kernel
def _lower_skirts(
    intensity: Array,
    level: Array,
    frequency: Array,
    fc: Array,
    slope: Array,
    groups: Array,
    groups_below: Array,
    components_below: Array,
    y: Array,
) -> bool:
    """Whether the groups are those of the components; `y` is written where they are."""
    if not _grouped(groups, groups_below, components_below, frequency.size):
        return False
    number = y.dtype.type
    count = groups.size - 1
    before = np.empty(count + 1, np.int64)
    power, f, s = np.empty(count, y.dtype), np.empty(count, y.dtype), np.empty(count, y.dtype)
    one, k, middle, least = number(1), number(LEVEL_SLOPE), number(51), number(0.1)
    for n in range(y.shape[0]):
        components, levels = intensity[n], level[n]
        # The groups that sound, close together, so that the inner loop has no test in it.
        kept = 0
        for g in range(count):
            before[g] = kept
            total, moment, weighted = number(0), number(0), number(0)
            for j in range(groups[g], groups[g + 1]):
                if not components[j] <= 0:  # what is not a number counts too
                    total += components[j]
                    moment += components[j] * frequency[j]
                    weighted += components[j] * levels[j]
            if not total <= 0:
                power[kept] = total
                f[kept] = moment / total
                s[kept] = one - k * (weighted / total - middle)
                kept += 1
        before[count] = kept
        for i in range(fc.size):
            center, c = fc[i], slope[i]
            flattest = least / (c * center)
            low = before[groups_below[i]]
            p, q, r = power[:low], f[:low], s[:low]
            total = number(0)
            for j in range(low):
                total += p[j] * _roex(c * (center - q[j]) * max(r[j], flattest))
            for j in range(groups[groups_below[i]], components_below[i]):
                if not components[j] <= 0:
                    steepness = max(one - k * (levels[j] - middle), flattest)
                    total += components[j] * _roex(c * (center - frequency[j]) * steepness)
            y[n, i] = total
    return True
