"""Lower skirts of the auditory filters for groups of components, by moments of second order.

With v = 0.004368 f + 1 and t = 1 / v of a channel's center, the weight of component j has
z = K s_j (1 - v_j t), linear in t, and a level per ERB that changes smoothly from component to
component. So each group needs only the sum of its intensities p, the means m and q of d =
v - v_middle and of its square, and the level at its middle with slope and curvature:
s(d) = s0 + s1 d + s2 d^2 / 2. With the means of s and s v, and the standard deviation sigma of z,
the group gives p exp(-z) (1 + z + (z - 1) sigma^2 / 2).
"""

from math import log, prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compilable, compiled, kernel
from amt_stream.dsp.functional.compiler.elementary import exponential, logarithm
from amt_stream.dsp.functional.compiler.gradient import Tensors, by_parts, differentiable
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.compiler.operators import operator
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes
from amt_stream.dsp.functional.excitation import LEVEL_SLOPE
from amt_stream.dsp.functional.group_moments import (
    ROWS,
    _moments,
    _moments_of_one,
    _parted,
    _reaches,
)

PER_HZ = 0.004368
"""v = 0.004368 f + 1; the ERB is 24.673 v."""

STEEPNESS = 4 / (24.673 * PER_HZ)
"""K, the steepness of a filter at 51 dB per ERB."""

FLATTEST = 0.1 / STEEPNESS
"""Least s of a channel, times 1 - t: a filter's p is at least 0.1."""

NEGLIGIBLE = 5e-4
"""Excitation re 0 dB at which a group's skirt ends; more would cost 0.001 phon near threshold."""

DB = 10 / log(10)
SILENCE = 1e-30
"""Lower limit of the power per ERB, which keeps the logarithm finite."""


class Groups(NamedTuple):
    """Groups of components that no channel's center splits, and the channels.

    apart: (component,) v minus that of its group's middle
    ends: (group + 1,) first component of each group, and the end
    middle: (group,) v of its middle, ascending
    slope, bend: (3, group) weights of the levels of the previous group, the group and the next, in
        the slope and the curvature of the level over v; 0 for a missing group
    above: (group,) first channel with a center above all its components
    center: (channel,) v of the channels' centers, evenly spaced in Cam
    """

    apart: Tensor
    ends: Tensor
    middle: Tensor
    slope: Tensor
    bend: Tensor
    above: Tensor
    center: Tensor


@operator(
    lambda intensity, density, groups, shift_db=0.0: intensity.new_empty(
        *intensity.shape[:-1], len(groups.center)
    )
)
def group_skirts(
    intensity: Tensor, density: Tensor, groups: Groups, shift_db: float = 0.0
) -> Tensor:
    """Excitation (..., channel) by the components below each channel's center.

    intensity: (..., component)
    density: (..., group) power within an ERB around the middle of each group
    shift_db: added to the levels per ERB, not to the excitation
    """
    lead, components = signal_axes("group_skirts", "intensity", intensity, 1)
    count, channels = (
        max(1, last_axes("group_skirts", name, table, 1)[0])
        for name, table in (("middle", groups.middle), ("center", groups.center))
    )
    each, three = (count,), (3, count)
    fit(
        "group_skirts",
        intensity.dtype,
        ("density", density, (*lead, *each)),
        ("apart", groups.apart, (components,)),
        ("middle", groups.middle, each),
        ("slope", groups.slope, three),
        ("bend", groups.bend, three),
        ("center", groups.center, (channels,)),
    )
    indices = ("ends", groups.ends, (count + 1,)), ("above", groups.above, each)
    fit("group_skirts", torch.int64, *indices)
    rows = prod(lead)
    flat = intensity.reshape(rows, components), density.reshape(rows, count)

    def fast(*given: Tensor) -> Tensors:
        y = intensity.new_empty(rows, channels)
        if not _group_skirts(*map(array, given), tables, shift_db, y.numpy()):
            raise _not_of_groups(components, channels)
        return (y,)

    def plain(*given: Tensor) -> Tensors:
        return (by_parts(lambda i, d: _plain(i, d, groups, shift_db), given, groups),)

    def backward(given: Tensors, outputs: Tensors, slopes: Tensors, needed: object) -> Tensors:
        into = tuple(v.new_empty(v.shape) for v in given)
        sound = (*map(array, given), tables, shift_db, array(slopes[0]))
        _group_skirts_backward(*sound, *(v.numpy() for v in into))
        return into

    if compilable(*flat) and compiled(*(t for t in groups if t.is_floating_point())):
        tables: Any = Groups(*map(array, groups))  # type: ignore[arg-type]
        (y,) = fast(*flat) if compiled(*flat) else differentiable(fast, backward, plain, *flat)
        return y.view(*lead, channels)
    if compilable(intensity):  # elsewhere this would copy from the device
        indexed = array(groups.ends), array(groups.above), array(groups.center)
        if not _parted(*indexed, components):
            raise _not_of_groups(components, channels)
    if gpu.serves(*flat):
        y = gpu.group_skirts(*flat, *groups, shift_db, LEVEL_SLOPE, STEEPNESS)
    else:
        (y,) = plain(*flat)
    return y.view(*lead, channels)


def _not_of_groups(components: int, channels: int) -> ValueError:
    return ValueError(
        f"group_skirts: the groups are not those of {components} components: give their starts "
        f"and the end in ascending order, channels above each of 0 to {channels}, and the centers "
        "of channels in ascending order"
    )


def _plain(intensity: Tensor, density: Tensor, groups: Groups, shift_db: float) -> Tensor:
    apart, ends, middle, slopes, bends, above, center = groups
    count, channels = middle.shape[0], center.shape[0]
    group = torch.searchsorted(ends, torch.arange(apart.shape[0], device=ends.device), right=True)
    group = group - 1

    def total(v: Tensor) -> Tensor:
        return v.new_zeros(v.shape[0], count).index_add(-1, group, v)

    p = total(intensity)
    some = torch.where(p == 0, 1.0, p)
    m, q = total(intensity * apart) / some, total(intensity * apart.square()) / some
    level = DB * torch.log(density.clamp(min=SILENCE)) + shift_db
    before = torch.cat([level[:, :1], level[:, :-1]], -1)
    after = torch.cat([level[:, 1:], level[:, -1:]], -1)
    s0 = 1 - LEVEL_SLOPE * (level - 51)
    s1, s2 = (-LEVEL_SLOPE * (w[0] * before + w[1] * level + w[2] * after) for w in (slopes, bends))
    s = s0 + s1 * m + s2 * q / 2
    sv = middle * s + s0 * m + s1 * q
    t = 1 / center
    # In channels below the group, which are masked later, z < 0 would overflow.
    z = (STEEPNESS * (s[:, None] - sv[:, None] * t[:, None])).clamp(min=0)
    changed = s1 + s2 * m
    lean = changed[:, None] - (changed * (middle + m) + s)[:, None] * t[:, None]
    variance = q - m.square()
    # Below 0 only by rounding, which is to stop no gradient.
    variance = variance + (-variance.detach()).clamp(min=0)
    half_spread = STEEPNESS**2 / 2 * variance[:, None] * lean.square()
    weight = torch.exp(-z) * (1 + z + (z - 1) * half_spread)
    channel = torch.arange(channels, device=ends.device)
    covered = channel[:, None] >= above
    # Where z becomes negligible, and the channel there.
    w = torch.log(p.detach().clamp(min=SILENCE) / NEGLIGIBLE).clamp(min=0)
    ending = (s - (w + torch.log(2 + w)) / STEEPNESS) / sv
    at = -torch.log(ending.detach().clamp(min=1e-9)) - torch.log(center[0])
    last = torch.trunc(at / _spacing(center)) + 1 - above
    wide = torch.ceil(last / LANES) * LANES
    covered = covered & ((channel[:, None] < (above + wide)[:, None]) | wide.isnan()[:, None])
    # If a channel is at its least steepness, compute each component.
    reach = torch.zeros_like(middle).scatter_reduce(0, group, apart.abs(), "amax")
    flattest = FLATTEST / (1 - t)
    least = flattest[above.clamp(max=channels - 1)]
    flat = s0 - s1.abs() * reach - s2.abs() * reach.square() / 2 < least
    y = torch.where(covered & ~flat[:, None], p[:, None] * weight, 0.0).sum(-1)
    if compilable(intensity) and not flat.any():
        return y
    s = s0[:, group] + apart * (s1[:, group] + apart * s2[:, group] / 2)
    v = middle[group] + apart
    z = STEEPNESS * torch.maximum(s[:, None], flattest[:, None]) * (1 - v * t[:, None])
    weight = torch.exp(-z.clamp(min=0)) * (1 + z.clamp(min=0))
    alone = (channel[:, None] >= above[group]) & flat[:, group][:, None]
    return y + torch.where(alone, intensity[:, None] * weight, 0.0).sum(-1)


def _spacing(center: Tensor) -> Tensor:
    """Spacing of the logarithms of the channels' v."""
    return torch.log(center[-1] / center[0]) / max(1, center.shape[0] - 1)


@kernel
def _channel_lines(center: Array, t: Array, flattest: Array) -> None:
    """1 / v and the least s of each channel, the last repeated as padding."""
    number, last = t.dtype.type, center.size - 1
    for i in range(t.size):
        t[i] = number(1) / center[min(i, last)]
        flattest[i] = number(FLATTEST) / (number(1) - t[i])


@kernel
def _group_lines(
    powers: Array,
    moments: Array,
    row: int,
    groups: Any,
    reach: Array,
    shift_db: float,
    lines: Array,
) -> None:
    """Coefficients of each group's weights, in the rows of `lines`; row 9 is s0, padded by one.

    moments: (3, `ROWS`, group); those of `row` become p, m and q
    lines: z = K (row 0 - row 1 t); dz/dd = K (row 2 - row 3 t); K^2 / 2 times the variance of d;
        least s; channel where the skirt ends; s1; s2
    """
    middle, slopes, bends, center = groups.middle, groups.slope, groups.bend, groups.center
    count, last_channel, number = middle.size, center.size - 1, powers.dtype.type
    zero, one, half, two = number(0), number(1), number(0.5), number(2)
    k, level_slope, scale = number(STEEPNESS), number(LEVEL_SLOPE), number(STEEPNESS**2 / 2)
    db, silence, negligible = number(DB), number(SILENCE), number(NEGLIGIBLE)
    offset, nearest = number(51 - shift_db), number(1e-9)
    origin = number(np.log(center[0]))
    per_channel = number(max(1, last_channel) / np.log(center[last_channel] / center[0]))
    p, m, q = moments[0, row], moments[1, row], moments[2, row]
    z_offset, z_slope, lean_offset, lean_slope = lines[0], lines[1], lines[2], lines[3]
    spread, least, last, s1, s2, s = lines[4], lines[5], lines[6], lines[7], lines[8], lines[9]
    before, here, after = s[:-2], s[1:-1], s[2:]
    slope0, slope1, slope2 = slopes[0], slopes[1], slopes[2]
    bend0, bend1, bend2 = bends[0], bends[1], bends[2]
    # A loop per result: with many arrays in one loop the compiler cannot exclude aliasing, and does
    # not vectorize.
    for g in range(count):
        here[g] = one - level_slope * (db * logarithm(max(powers[g], silence)) - offset)
    s[0], s[count + 1] = s[1], s[count]
    for g in range(count):
        s1[g] = slope0[g] * before[g] + slope1[g] * here[g] + slope2[g] * after[g]
    for g in range(count):
        s2[g] = bend0[g] * before[g] + bend1[g] * here[g] + bend2[g] * after[g]
    for g in range(count):
        part = one / (p[g] if p[g] != zero else one)
        m[g] *= part
        q[g] *= part
    for g in range(count):
        z_offset[g] = here[g] + s1[g] * m[g] + half * s2[g] * q[g]
    for g in range(count):
        z_slope[g] = middle[g] * z_offset[g] + here[g] * m[g] + s1[g] * q[g]
    for g in range(count):
        lean_offset[g] = s1[g] + s2[g] * m[g]
    for g in range(count):
        lean_slope[g] = lean_offset[g] * (middle[g] + m[g]) + z_offset[g]
    for g in range(count):
        spread[g] = scale * max(q[g] - m[g] * m[g], zero)
    for g in range(count):
        least[g] = here[g] - reach[g] * (abs(s1[g]) + half * abs(s2[g]) * reach[g])
    for g in range(count):
        loud = max(logarithm(max(p[g], silence) / negligible), zero)
        ending = (z_offset[g] - (loud + logarithm(two + loud)) / k) / z_slope[g]
        last[g] = (-logarithm(max(ending, nearest)) - origin) * per_channel


@kernel
def _add_apart(
    intensity: Array, g: int, groups: Any, lines: Array, t: Array, flattest: Array, total: Array
) -> None:
    """Add each component of a group, for channels at their least steepness."""
    number = total.dtype.type
    zero, one, half, k = number(0), number(1), number(0.5), number(STEEPNESS)
    first, channels = groups.above[g], groups.center.size
    out, ts, floors = total[first:channels], t[first:channels], flattest[first:channels]
    for j in range(groups.ends[g], groups.ends[g + 1]):
        power, d = intensity[j], groups.apart[j]
        v = groups.middle[g] + d
        own = lines[9, g + 1] + d * (lines[7, g] + half * d * lines[8, g])
        for i in range(out.size):
            z = max(k * max(own, floors[i]) * (one - v * ts[i]), zero)
            out[i] += power * exponential(-z) * (one + z)


@kernel
def _turns(first: int, last: float, channels: int) -> int:
    """Registers of channels from `first` to `last`, where a skirt ends."""
    turns = (channels - first + LANES - 1) // LANES
    if last < channels:  # False for NaN, which then shows in all channels
        turns = max(0, min(turns, (int(last) + LANES - first) // LANES))
    return turns


@kernel
def _group_skirts(intensity: Array, density: Array, groups: Any, shift_db: float, y: Array) -> bool:
    """Write the excitation into `y`; False, with nothing written, if the groups do not fit."""
    above, count, channels = groups.above, groups.middle.size, groups.center.size
    if not _parted(groups.ends, above, groups.center, groups.apart.size):
        return False
    dtype = y.dtype
    zero, one, k = dtype.type(0), dtype.type(1), dtype.type(STEEPNESS)
    t, flattest = np.empty(channels + LANES, dtype), np.empty(channels + LANES, dtype)
    _channel_lines(groups.center, t, flattest)
    reach, total = np.empty(count, dtype), np.empty(channels + LANES, dtype)
    _reaches(groups.apart, groups.ends, reach)
    moments, lines = np.empty((3, ROWS, count), dtype), np.empty((10, count + 2), dtype)
    z_offset, z_slope, lean_offset, lean_slope = lines[0], lines[1], lines[2], lines[3]
    spread, least, last = lines[4], lines[5], lines[6]
    for n in range(y.shape[0]):
        if n % ROWS == 0 and n + 1 == y.shape[0]:
            _moments_of_one(intensity[n], groups.apart, groups.ends, moments)
        elif n % ROWS == 0:
            _moments(intensity, n, groups.apart, groups.ends, moments)
        _group_lines(density[n], moments, n % ROWS, groups, reach, shift_db, lines)
        powers = moments[0, n % ROWS]
        total[:] = zero
        for g in range(count):
            first = above[g]
            if powers[g] == zero or first == channels:
                continue
            if least[g] < flattest[first]:
                _add_apart(intensity[n], g, groups, lines, t, flattest, total)
                continue
            turns = _turns(first, last[g], channels)
            power, var = powers[g], spread[g]
            z0, z1, lean0, lean1 = k * z_offset[g], k * z_slope[g], lean_offset[g], lean_slope[g]
            # Unsigned indices, and a fixed count per register, so that the loop vectorizes.
            at = np.uintp(first)
            for _ in range(turns):
                for i in range(np.uintp(LANES)):
                    ts = t[at + i]
                    z = z0 - z1 * ts
                    lean = lean0 - lean1 * ts
                    weight = one + z + (z - one) * var * lean * lean
                    total[at + i] += power * exponential(-z) * weight
                at += np.uintp(LANES)
        out = y[n]
        for i in range(channels):
            out[i] = total[i]
    return True


@kernel
def _apart_backward(
    x: Array,
    g: int,
    groups: Any,
    lines: Array,
    t: Array,
    flattest: Array,
    slope: Array,
    into: Array,
) -> tuple[float, float, float]:
    """The gradient of `_add_apart`.

    slope: gradient of the excitation (channel,), padded; into: that of the components
    Returns the gradients of s0, s1 and s2; by_z is the gradient of z.
    """
    number = into.dtype.type
    zero, one, half, k = number(0), number(1), number(0.5), number(STEEPNESS)
    first, channels = groups.above[g], groups.center.size
    along, ts, floors = slope[first:channels], t[first:channels], flattest[first:channels]
    by_s0, by_s1, by_s2 = zero, zero, zero
    for j in range(groups.ends[g], groups.ends[g + 1]):
        power, d = x[j], groups.apart[j]
        v = groups.middle[g] + d
        own = lines[9, g + 1] + d * (lines[7, g] + half * d * lines[8, g])
        by_power, by_own = zero, zero
        for i in range(along.size):
            distance = one - v * ts[i]
            z = max(k * max(own, floors[i]) * distance, zero)
            falling = along[i] * exponential(-z)
            by_power += falling * (one + z)
            by_own -= falling * z * distance if own > floors[i] else zero
        into[j] = by_power
        by_own *= k * power
        by_s0 += by_own
        by_s1 += by_own * d
        by_s2 += by_own * half * d * d
    return by_s0, by_s1, by_s2


@kernel
def _together_backward(
    g: int,
    turns: int,
    groups: Any,
    moments: Array,
    lines: Array,
    t: Array,
    slope: Array,
    into: Array,
) -> tuple[float, float, float]:
    """The same of a group whose components go together, over `turns` registers of channels."""
    number = into.dtype.type
    zero, one, two, half, k = number(0), number(1), number(2), number(0.5), number(STEEPNESS)
    p, m, q = moments[0, 0, g], moments[1, 0, g], moments[2, 0, g]
    z_offset, lean_offset, lean_slope, var = lines[0, g], lines[2, g], lines[3, g], lines[4, g]
    s0, s1, s2, middle = lines[9, g + 1], lines[7, g], lines[8, g], groups.middle[g]
    z0, z1 = k * z_offset, k * lines[1, g]
    by_p, by_z0, by_z1, by_lean0, by_lean1, by_var = zero, zero, zero, zero, zero, zero
    first = groups.above[g]
    reached = slice(first, first + turns * LANES)
    along, ts = slope[reached], t[reached]
    for i in range(along.size):
        z = z0 - z1 * ts[i]
        lean = lean_offset - lean_slope * ts[i]
        falling = along[i] * exponential(-z)
        part = (z - one) * lean
        spread = var * lean * lean
        by_p += falling * (one + z + (z - one) * spread)
        by_z = falling * (z + (z - two) * spread)
        by_z0 -= by_z
        by_z1 += by_z * ts[i]
        by_lean0 += falling * part
        by_lean1 -= falling * part * ts[i]
        by_var += falling * part * lean
    # From here on, by the definitions in `_group_lines`, backward.
    by_lean1 *= two * p * var
    by_lean0 = two * p * var * by_lean0 + by_lean1 * (middle + m)
    by_z1 *= k * p
    by_z0 = k * p * by_z0 + by_lean1 + by_z1 * middle
    by_s0 = by_z1 * m + by_z0
    by_s1 = by_lean0 + by_z1 * q + by_z0 * m
    by_s2 = by_lean0 * m + half * by_z0 * q
    by_m = by_lean1 * lean_offset + by_lean0 * s2 + by_z1 * s0 + by_z0 * s1
    by_q = by_z1 * s1 + half * by_z0 * s2
    by_var *= p * number(STEEPNESS**2 / 2)
    by_q += by_var
    by_m -= two * by_var * m
    part = one / (p if p != zero else one)
    for j in range(groups.ends[g], groups.ends[g + 1]):
        d = groups.apart[j]
        into[j] = by_p + part * (by_m * (d - m) + by_q * (d * d - q))
    return by_s0, by_s1, by_s2


@kernel
def _group_skirts_backward(
    intensity: Array,
    density: Array,
    groups: Any,
    shift_db: float,
    y: Array,
    into_intensity: Array,
    into_density: Array,
) -> None:
    """Write the gradients of intensity and density, from that of the excitation `y`."""
    above, ends, slope, bend = groups.above, groups.ends, groups.slope, groups.bend
    count, channels, dtype = groups.middle.size, groups.center.size, y.dtype
    zero, by_level = dtype.type(0), dtype.type(-LEVEL_SLOPE * DB)
    t, flattest = np.empty(channels + LANES, dtype), np.empty(channels + LANES, dtype)
    _channel_lines(groups.center, t, flattest)
    reach, along = np.empty(count, dtype), np.zeros(channels + LANES, dtype)
    _reaches(groups.apart, ends, reach)
    moments, lines = np.empty((3, 1, count), dtype), np.empty((10, count + 2), dtype)
    least, last, by_s = lines[5], lines[6], np.empty(count + 2, dtype)
    for n in range(y.shape[0]):
        x, into = intensity[n], into_intensity[n]
        _moments_of_one(x, groups.apart, ends, moments)
        _group_lines(density[n], moments, 0, groups, reach, shift_db, lines)
        along[:channels] = y[n]
        by_s[:] = zero
        for g in range(count):
            first = above[g]
            if first == channels:
                into[ends[g] : ends[g + 1]] = zero
                continue
            if least[g] < flattest[first]:
                s0, s1, s2 = _apart_backward(x, g, groups, lines, t, flattest, along, into)
            else:
                turns = _turns(first, last[g], channels)
                s0, s1, s2 = _together_backward(g, turns, groups, moments, lines, t, along, into)
            by_s[g] += slope[0, g] * s1 + bend[0, g] * s2
            by_s[g + 1] += s0 + slope[1, g] * s1 + bend[1, g] * s2
            by_s[g + 2] += slope[2, g] * s1 + bend[2, g] * s2
        by_s[1] += by_s[0]
        by_s[count] += by_s[count + 1]
        for g in range(count):
            power = density[n, g]
            into_density[n, g] = by_level * by_s[g + 1] / power if power >= SILENCE else zero
