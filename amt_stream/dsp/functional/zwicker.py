"""Zwicker loudness step by step (ISO 532-1:2017): bands, cores, decay, slopes, weighting."""

from collections.abc import Sequence
from math import prod, sqrt
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compiled, kernel
from amt_stream.dsp.functional.compiler.elementary import exponential
from amt_stream.dsp.functional.compiler.operators import alike, operator
from amt_stream.dsp.functional.compiler.shapes import fit, last_axes, signal_axes, whole_blocks
from amt_stream.dsp.functional.filters.state_space import state_space
from amt_stream.dsp.functional.third_octave import in_bands

STEP = 24
"""Samples at 48 kHz between two levels: 0.5 ms."""

POINTS = 240
"""Samples of specific loudness, 0.1 Bark apart."""

ZEROS = ((2.0, 1.0), (0.0, -1.0), (-2.0, 1.0))
"""Zeros b1, b2 of the three biquads of a third-octave filter."""

SMOOTHINGS = 3
"""One-poles in series that smooth a power."""

STEEPNESSES = 8
"""Columns of a table of slopes: for bands 2 to 8, and for all higher ones."""

LEAST, REFERENCE = 1e-12, 4e-10
"""Added to a power, and the power of 0 dB, in Pa^2."""

LOW = ((0, 6), (6, 9), (9, 11))
"""Ranges of third-octave bands that form critical bands 1 to 3; the others are one each."""


@operator(
    lambda x, poles, gain, smoothing, zi: (
        zi.new_empty(*x.shape[:-1], x.shape[-1] // STEP, gain.shape[0]),
        zi.new_empty(zi.shape),
    )
)
def third_octave_powers(
    x: Tensor, poles: Tensor, gain: Tensor, smoothing: Tensor | None, zi: Tensor
) -> tuple[Tensor, Tensor]:
    """Powers (..., frame, band) in Pa^2 in the bands of `x` (..., time), every 24 samples.

    poles: (6, band) a1, a2 of three biquads in series, with `ZEROS`; gain: (band,)
    smoothing: (band,) weight of a new value in three one-poles in series; the power is taken after
        the first sample of 24. None: the mean of the 24
    zi, zf: (..., 9, band) two states of each biquad, in transposed direct form, and the one-poles;
        (..., 6, band) without smoothing

    All in float64: poles are within 7e-4 of z = 1, where float32 errs at -25 dB (25 Hz).
    """
    lead, time = signal_axes("third_octave_powers", "x", x, 1)
    whole_blocks("third_octave_powers", time, STEP)
    bands, frames = max(1, gain.numel()), time // STEP
    kept = 2 * len(ZEROS) + (0 if smoothing is None else SMOOTHINGS)
    fit(
        "third_octave_powers",
        torch.float64,
        ("poles", poles, (2 * len(ZEROS), bands)),
        ("gain", gain, (bands,)),
        ("zi", zi, (*lead, kept, bands)),
        *(() if smoothing is None else (("smoothing", smoothing, (bands,)),)),
    )
    if compiled(x, poles, gain, zi):
        rows = array(x).reshape(-1, frames, STEP)
        y = zi.new_empty(*lead, frames, bands)
        after = zi.clone(memory_format=torch.contiguous_format)
        _third_octave_powers(
            rows,
            array(poles),
            array(gain),
            np.zeros(0) if smoothing is None else array(smoothing),
            after.numpy().reshape(-1, kept, bands),
            y.numpy().reshape(-1, frames, bands),
        )
        return y, after
    if gpu.serves(x, poles, gain, zi):
        y, after = gpu.third_octaves(x, poles, gain, smoothing, zi, STEP)
        return y, after
    y, filters = in_bands(x, poles, gain, ZEROS, zi[..., : 2 * len(ZEROS), :])
    y = y.square()
    if smoothing is None:
        return y.unflatten(-1, (frames, STEP)).mean(-1).mT, filters
    keep, new, ends = 1 - smoothing, smoothing, [filters.mT]
    for start in zi[..., 6:, :].unbind(-2):
        a, b, c = keep[:, None, None], new[:, None], keep[:, None]
        y, end = state_space(y, a, b, c, new, start[..., None])
        ends.append(end)
    return y[..., ::STEP].mT, torch.cat(ends, -1).mT


@kernel
def _third_octave_powers(
    x: Array, poles: Array, gain: Array, smoothing: Array, states: Array, y: Array
) -> None:
    """Updates `states` (row, state, band) in place."""
    tile = np.zeros((STEP, gain.size))
    for r in range(x.shape[0]):
        s = states[r]
        for n in range(x.shape[1]):
            for t in range(STEP):
                v = tile[t]
                for b in range(v.size):
                    v[b] = x[r, n, t] * gain[b]
            for i in range(len(ZEROS)):
                _biquad(tile, ZEROS[i], poles[2 * i], poles[2 * i + 1], s[2 * i], s[2 * i + 1])
            if smoothing.size:
                _smoothed_squares(tile, smoothing, s[6], s[7], s[8], y[r, n])
            else:
                _mean_squares(tile, y[r, n])


@kernel
def _biquad(
    tile: Array, zeros: tuple[float, float], a1: Array, a2: Array, s1: Array, s2: Array
) -> None:
    b1, b2 = zeros
    for t in range(STEP):
        v = tile[t]
        for b in range(v.size):
            u = v[b]
            w = u + s1[b]
            s1[b] = b1 * u - a1[b] * w + s2[b]
            s2[b] = b2 * u - a2[b] * w
            v[b] = w


@kernel
def _smoothed_squares(
    tile: Array, weight: Array, s0: Array, s1: Array, s2: Array, y: Array
) -> None:
    for t in range(STEP):
        v = tile[t]
        for b in range(v.size):
            s0[b] += weight[b] * (v[b] * v[b] - s0[b])
            s1[b] += weight[b] * (s0[b] - s1[b])
            s2[b] += weight[b] * (s1[b] - s2[b])
        if t == 0:
            for b in range(v.size):
                y[b] = s2[b]


@kernel
def _mean_squares(tile: Array, y: Array) -> None:
    y[:] = 0
    for t in range(STEP):
        v = tile[t]
        for b in range(v.size):
            y[b] += v[b] * v[b] / STEP


def levels(powers: Tensor, dtype: torch.dtype) -> Tensor:
    """Levels in dB of band powers (..., band) in Pa^2, in float64; at least -26.02 dB.

    dtype: of the levels
    """
    _, bands = signal_axes("levels", "powers", powers, 1)
    fit("levels", torch.float64, ("powers", powers, powers.shape))
    if compiled(powers):
        y = powers.new_empty(powers.shape, dtype=dtype)
        _levels(array(powers).reshape(1, -1, bands), y.numpy().reshape(-1, bands))
        return y
    return (torch.log10((powers + LEAST) / REFERENCE) * 10).to(dtype)


@kernel
def _levels(powers: Array, y: Array) -> None:
    lines, ten = powers.reshape(y.shape), np.float64(10)
    for n in range(y.shape[0]):
        for b in range(y.shape[1]):
            y[n, b] = ten * np.log10((lines[n, b] + LEAST) / REFERENCE)


class Cores(NamedTuple):
    """Tables of core loudness.

    limit, correction: (8, 11) levels in dB up to which a low-frequency correction in dB holds
    transmission: (20,) a0 in dB, minus the diffuse-field difference in a diffuse field
    threshold, adaptation: (20,) threshold in quiet and adaptation to the bandwidth, in dB
    """

    limit: Tensor
    correction: Tensor
    transmission: Tensor
    threshold: Tensor
    adaptation: Tensor


def core_loudness(levels: Tensor, cores: Cores) -> Tensor:
    """Core loudness (..., 20) in sone/Bark of third-octave levels (..., 28) in dB."""
    lead, third_octaves = signal_axes("core_loudness", "levels", levels, 1)
    least = LOW[-1][1]
    if third_octaves < least:
        raise ValueError(
            f"core_loudness: levels have shape {tuple(levels.shape)}: give {least} third-octave "
            "bands or more on the last axis"
        )
    ranges, _ = last_axes("core_loudness", "limit", cores.limit, 2)
    corrected, bands = (max(1, ranges), least), len(LOW) + third_octaves - least
    fit(
        "core_loudness",
        levels.dtype,
        ("limit", cores.limit, corrected),
        ("correction", cores.correction, corrected),
        ("transmission", cores.transmission, (bands,)),
        ("threshold", cores.threshold, (bands,)),
        ("adaptation", cores.adaptation, (bands,)),
    )
    if compiled(levels, *cores):
        y = levels.new_empty(*lead, bands)
        rows, into = array(levels).reshape(-1, third_octaves), y.numpy().reshape(-1, bands)
        _core_loudness(rows, *(array(t) for t in cores), into)
        return y
    limit, correction, transmission, threshold, adaptation = cores
    low = levels[..., : limit.shape[1]]
    place = (low.unsqueeze(-2) > limit).sum(-2).clamp(max=limit.shape[0] - 1)
    low = low + correction.gather(0, place.reshape(-1, limit.shape[1])).view(low.shape)
    power = 10 ** (low / 10)
    sums = [power[..., start:end].sum(-1) for start, end in LOW]
    joined = [10 * torch.log10(torch.stack(sums, -1)), levels[..., limit.shape[1] :]]
    level = torch.cat(joined, -1) - transmission
    above = 0.75 + 0.25 * 10 ** ((level - adaptation - threshold) / 10)
    core = 0.0635 * 10 ** (threshold / 40) * (above**0.25 - 1).clamp(min=0)
    core = torch.where(level <= threshold, 0.0, core)
    lowest = core[..., :1]
    # The clamp at 1e-30 keeps the gradient of the power finite.
    less = (0.4 + 0.32 * lowest.clamp(min=1e-30) ** 0.2).clamp(max=1)
    return torch.cat([lowest * less, core[..., 1:]], -1)


@kernel
def _core_loudness(
    levels: Array,
    limit: Array,
    correction: Array,
    transmission: Array,
    threshold: Array,
    adaptation: Array,
    y: Array,
) -> None:
    number, bands, low = y.dtype.type, y.shape[1], limit.shape[1]
    zero, one, quarter = number(0), number(1), number(0.25)
    to_power, endless = number(np.log(10) / 10), number(np.inf)
    most_power = number(88 if y.itemsize == 4 else 709)
    most, above = limit.shape[0] - 1, low - len(LOW)
    scale, level = np.empty(bands, y.dtype), np.empty(bands, y.dtype)
    for i in range(bands):
        scale[i] = number(0.0635) * number(10) ** (number(1 / 40) * threshold[i])
    corrected, power = np.empty(low, y.dtype), np.empty(low, y.dtype)
    for r in range(y.shape[0]):
        x, core = levels[r], y[r]
        for b in range(low):
            place = 0
            while place < most and x[b] > limit[place, b]:
                place += 1
            corrected[b] = x[b] + correction[place, b]
        # Separate loops, so that they vectorize.
        for b in range(low):
            u = to_power * corrected[b]
            power[b] = endless if u > most_power else exponential(u)
        for i in range(len(LOW)):
            start, end = LOW[i]
            total = zero
            for b in range(start, end):
                total += power[b]
            level[i] = number(10) * np.log10(total) - transmission[i]
        for i in range(len(LOW), bands):
            level[i] = x[i + above] - transmission[i]
        for i in range(bands):
            u = to_power * (level[i] - adaptation[i] - threshold[i])
            ratio = endless if u > most_power else exponential(u)
            growth = sqrt(sqrt(3 * quarter + quarter * ratio)) - one
            # At least 0; NaN stays.
            nothing = level[i] <= threshold[i] or growth <= zero
            core[i] = zero * level[i] if nothing else scale[i] * growth
        less = number(0.4) + number(0.32) * core[0] ** number(0.2)
        core[0] *= one if less > one else less


class Slopes(NamedTuple):
    """Tables of the pattern over critical-band rate.

    upper: (21,) upper limits of the bands in Bark
    floors, slopes: (18,) and (18, 8) lower limits of ranges of specific loudness in sone/Bark, and
        its slope there, per Bark, in bands 2 to 8 and all higher ones
    segments: (21,) most straight lines of the pattern in a band
    samples: (21,) number of samples of specific loudness in a band
    """

    upper: Tensor
    floors: Tensor
    slopes: Tensor
    segments: tuple[int, ...]
    samples: tuple[int, ...]


def loudness_pattern(
    core: Tensor, tables: Slopes, specific: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Loudness (...) in sone of core loudness (..., 20), and its specific loudness if `specific`.

    That is in sone/Bark (..., 240), at 0.1, 0.2 ... 24 Bark. The loudness is the exact area of the
    pattern; the sum of 240 samples would be up to 1.7 % low.
    """
    lead, bands = signal_axes("loudness_pattern", "core", core, 1)
    if torch.compiler.is_compiling():
        total, samples = _pattern_of(core, *tables, specific)
        return total, samples if specific else None
    upper, floors, slopes, segments, counts = tables
    ranges, _ = last_axes("loudness_pattern", "slopes", slopes, 2)
    # One more limit than there are cores: above the last core the pattern only falls.
    given = ("upper", upper, (bands + 1,)), ("floors", floors, (max(1, ranges),))
    fit("loudness_pattern", core.dtype, *given)
    fit("loudness_pattern", core.dtype, ("slopes", slopes, (max(1, ranges), STEEPNESSES)))
    if len(segments) != bands + 1 or len(counts) != bands + 1 or sum(counts) != POINTS:
        raise ValueError(
            f"loudness_pattern: {len(segments)} segments and {len(counts)} samples, {sum(counts)} "
            f"in sum: give them for each of {bands + 1} bands, {POINTS} samples in all"
        )
    if compiled(core, upper, floors, slopes):
        rows, points = prod(lead), POINTS if specific else 0
        total, samples = core.new_empty(lead), core.new_empty(*lead, points)
        _loudness_pattern(
            array(core).reshape(rows, bands),
            *(array(t) for t in (upper, floors, slopes)),
            total.numpy().reshape(rows),
            samples.numpy().reshape(rows, points),
        )
        return total, samples if specific else None
    if gpu.serves(core, upper, floors, slopes):
        total, samples = gpu.pattern(core, upper, floors, slopes, POINTS if specific else 0)
        return total, samples if specific else None
    z, n = torch.zeros_like(core[..., 0]), torch.zeros_like(core[..., 0])
    area = torch.zeros_like(z)
    grid = torch.arange(1, POINTS + 1, dtype=core.dtype, device=core.device) / 10
    pattern, spoiled = [], torch.zeros_like(z, dtype=torch.bool)
    for i, (end, points) in enumerate(zip(upper, grid.split(counts), strict=True)):
        level = core[..., i] if i < core.shape[-1] else torch.zeros_like(z)
        piece = core.new_zeros(*core.shape[:-1], counts[i] if specific else 0)
        for _ in range(segments[i]):
            place = (floors >= n[..., None]).sum(-1).clamp(max=floors.shape[0] - 1)
            slope = slopes[place, min(max(i - 1, 0), slopes.shape[1] - 1)]
            masked, here = n > level, z < end
            floor = torch.maximum(floors[place], level)
            reach = z + (n - floor) / slope
            cut = masked & (reach <= end)
            to = torch.where(cut, reach, end)
            below = torch.where(cut, floor, torch.where(masked, n - (end - z) * slope, level))
            mean = torch.where(masked, (n + below) / 2, level)
            area = area + torch.where(here, mean * (to - z), 0.0)
            if specific:
                inside = (points > z[..., None]) & (points <= to[..., None]) & here[..., None]
                fall = torch.where(masked, slope, 0.0)[..., None] * (points - z[..., None])
                line = torch.where(masked, n, level)[..., None] - fall
                piece = torch.where(inside, line, piece)
            z, n = torch.where(here, to, z), torch.where(here, below, n)
        # After NaN, the slope that falls from it is NaN too.
        spoiled = spoiled | level.isnan()
        pattern.append(torch.where(spoiled[..., None], torch.nan, piece))
    return area, torch.cat(pattern, -1) if specific else None


@operator(
    lambda core, upper, floors, slopes, segments, samples, specific: (
        core.new_empty(core.shape[:-1]),
        core.new_empty(*core.shape[:-1], POINTS if specific else 0),
    )
)
def _pattern_of(
    core: Tensor,
    upper: Tensor,
    floors: Tensor,
    slopes: Tensor,
    segments: Sequence[int],
    samples: Sequence[int],
    specific: bool,
) -> tuple[Tensor, Tensor]:
    tables = Slopes(upper, floors, slopes, tuple(segments), tuple(samples))
    total, pattern = loudness_pattern(core, tables, specific)
    return total, core.new_empty(*core.shape[:-1], 0) if pattern is None else pattern


@kernel
def _loudness_pattern(
    core: Array, upper: Array, floors: Array, slopes: Array, total: Array, samples: Array
) -> None:
    one = core.dtype.type(1)
    for r in range(core.shape[0]):
        z, n, area = 0 * one, 0 * one, 0 * one
        place, point = 0, 0
        for i in range(upper.size):
            end, level = upper[i], core[r, i] if i < core.shape[1] else 0 * one
            column = min(max(i - 1, 0), slopes.shape[1] - 1)
            if level != level:
                # After NaN, the slope that falls from it is NaN too.
                area = level
                samples[r, point:] = level
                break
            while z < end:
                start, top = z, n
                if n > level:
                    while place < floors.size - 1 and n <= floors[place]:
                        place += 1
                    slope = slopes[place, column]
                    floor = floors[place]
                    floor = floor if floor > level else level
                    z += (n - floor) / slope
                    n = floor
                    if z > end:
                        z, n = end, top - (end - start) * slope
                    area += (top + n) / 2 * (z - start)
                else:
                    top, n, z, slope, place = level, level, end, 0 * one, 0
                    area += level * (z - start)
                while point < samples.shape[1] and (point + 1) / (10 * one) <= z:
                    samples[r, point] = top - slope * ((point + 1) / (10 * one) - start)
                    point += 1
        total[r] = area


@operator(lambda x, coefficients, zi, begun: alike(x, zi))
def weighted(x: Tensor, coefficients: Tensor, zi: Tensor, begun: Tensor) -> tuple[Tensor, Tensor]:
    """Loudness (..., frame) with temporal weighting: 0.47 of a fast low-pass and 0.53 of a slow.

    coefficients: (4, 2) A, c0, c1 and first of y[t] = A y[t-1] + c0 x[t-1] + c1 x[t] for each, the
        low-passes at 48 kHz with linear interpolation between values; y[0] = first x[0]
    zi, zf: (..., 2) the known part of the next y: A y + c0 x
    begun: (...) whether there was an earlier value
    """
    lead, time = signal_axes("weighted", "x", x, 1)
    given = ("coefficients", coefficients, (4, 2)), ("zi", zi, (*lead, 2))
    fit("weighted", torch.float64, *given)
    fit("weighted", torch.bool, ("begun", begun, lead))
    if compiled(x, coefficients, zi):
        y, zf = x.new_empty(x.shape), zi.new_empty(zi.shape)
        _weighted(
            array(x).reshape(-1, time),
            array(coefficients),
            array(zi).reshape(-1, 2),
            array(begun).reshape(-1),
            y.numpy().reshape(-1, time),
            zf.numpy().reshape(-1, 2),
        )
        return y, zf
    keep, old, new, first = coefficients
    start = torch.where(begun[..., None], zi, (first - new) * x[..., :1])
    parts, end = state_space(
        x.unsqueeze(-2).expand(*x.shape[:-1], 2, x.shape[-1]),
        keep[:, None, None],
        (keep * new + old)[:, None],
        torch.ones_like(keep)[:, None],
        new,
        start[..., None],
    )
    fast, slow = parts.unbind(-2)
    return (0.47 * fast + 0.53 * slow).to(x.dtype), end.squeeze(-1)


@kernel
def _weighted(x: Array, coefficients: Array, zi: Array, begun: Array, y: Array, zf: Array) -> None:
    keep, old, new, first = coefficients
    for r in range(x.shape[0]):
        fast, slow = zi[r]
        if not begun[r]:
            fast, slow = (first[0] - new[0]) * x[r, 0], (first[1] - new[1]) * x[r, 0]
        for n in range(x.shape[1]):
            fast += new[0] * x[r, n]
            slow += new[1] * x[r, n]
            y[r, n] = 0.47 * fast + 0.53 * slow
            fast = keep[0] * fast + old[0] * x[r, n]
            slow = keep[1] * slow + old[1] * x[r, n]
        zf[r, 0], zf[r, 1] = fast, slow
