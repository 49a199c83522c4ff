"""Roughness after Daniel & Weber (1997): windows, excitation of channels, and their envelopes."""

from math import ceil, floor, log

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.call_table import Calls, join, leave, plan_rows
from amt_stream.dsp.functional.compiler.dispatch import (
    Array,
    array,
    bare_kernel,
    compiled,
    kernel,
)
from amt_stream.dsp.functional.compiler.fourier import transform_columns, turns
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes, whole_blocks
from amt_stream.dsp.functional.compiler.threads import one_thread
from amt_stream.dsp.functional.filters.fir import RESAMPLER, RESAMPLING, resample
from amt_stream.dsp.scales import P0

FS = 48000
HOP = FS // 10
WINDOW = 2 * HOP

LINES = 3200
"""Lines of the spectrum, to 16 kHz: beyond 24 Bark."""

CHANNELS = 47
SPACING = 0.5
"""Bark from one channel to the next; each is 1 Bark wide."""

POINTS = 800
"""Instants at which the channels' signals are taken."""

RATES = 129
"""Lines of an envelope, to 640 Hz."""

LOWER_SLOPE_DB = 27.0
"""Per Bark, toward lower channels (Terhardt 1979)."""

LESS_STEEP = 0.2
"""By which the slope toward higher channels in dB per Bark falls with each dB of the line."""

NEPER = log(10) / 20
"""Per decibel."""

FAINT = 1e-30
"""Lower bound of powers, for gradients, and of an envelope's mean."""

SHALLOW = 1e-10
"""Power of modulation, 1 for all of it, below which rounding alone decides what it is like."""

TABLE_SHAPES = {
    "window": (WINDOW,),
    **dict.fromkeys(("ear", "bark", "audible", "slope"), (LINES,)),
    "reached": (2, CHANNELS),
    "weights": (CHANNELS, RATES),
    "share": (CHANNELS,),
}
"""The tables of `rough_windows`, in order."""


def rough_windows(x: Tensor, *tables: Tensor) -> tuple[Tensor, Tensor]:
    """Roughness in asper (..., frame) and specific roughness (..., frame, 47) in asper/Bark.

    A frame is a window of 9600 samples of `x` (..., time), which begins 4800 after the last one.
    The compiled form calculates in float64.

    tables, with the shapes of `TABLE_SHAPES`:
    window: with which a tone on a line has its RMS there
    ear: gains of the lines of the spectrum
    bark, audible, slope: places of the lines, thresholds in Pa^2, and slopes at 0 dB per Bark
    reached: thresholds at the lower and upper edges of the channels in Pa^2
    weights: of the lines of the channels' envelopes
    share: of the channels, in asper
    """
    lead, time = signal_axes("rough_windows", "x", x, 1)
    whole_blocks("rough_windows", time, HOP)
    if time < WINDOW:
        raise ValueError(f"rough_windows: x has {time} samples: give it {WINDOW} or more")
    given = zip(TABLE_SHAPES.items(), tables, strict=True)
    fit("rough_windows", x.dtype, *((name, v, shape) for (name, shape), v in given))
    frames = time // HOP - 1
    if compiled(x, *tables):
        r, specific = x.new_empty(*lead, frames), x.new_empty(*lead, frames, CHANNELS)
        _rough_windows(
            array(x).reshape(-1, time),
            *map(array, tables),
            TURN,
            r.numpy().reshape(-1, frames),
            specific.numpy().reshape(-1, frames, CHANNELS),
        )
        return r, specific
    windows = x.unfold(-1, WINDOW, HOP)
    if torch.compiler.is_compiling():  # a graph of any number of windows
        specific = _of_window(windows, *tables)
    else:  # one after another, because each takes megabytes
        with one_thread(x[..., :HOP]):  # as if this were the only one
            specific = torch.stack([_of_window(v, *tables) for v in windows.unbind(-2)], -2)
    return SPACING * specific.sum(-1), specific


def _of_window(x: Tensor, *tables: Tensor) -> Tensor:
    """Specific roughness (..., 47) of windows (..., time)."""
    window, ear, *of_lines, weights, share = tables
    lines = torch.view_as_real(torch.fft.rfft(x * window)[..., :LINES]).mT * ear
    real, imag = _excited(lines, *of_lines).unbind(-3)
    envelope = torch.fft.ifft(torch.complex(real, imag), norm="forward").abs()
    spectrum = torch.fft.rfft(envelope)[..., :RATES]
    mean = spectrum[..., :1].real.clamp(min=FAINT)
    rough = torch.view_as_real(spectrum) / mean[..., None] * weights[..., None]
    # Lines other than 0 Hz have a mirror image.
    power = 2 * rough.square().sum((-2, -1))
    product = 2 * (rough[..., 2:, :, :] * rough[..., :-2, :, :]).sum((-2, -1))
    size = power.clamp(min=SHALLOW).sqrt()
    likeness = (product / (size[..., 2:] * size[..., :-2])).square()
    alone = torch.ones_like(likeness[..., :2])
    both = torch.cat((likeness, alone), -1) * torch.cat((alone, likeness), -1)
    return share / SPACING * power.clamp(max=1) * both


def _excited(
    lines: Tensor, bark: Tensor, audible: Tensor, slope: Tensor, reached: Tensor
) -> Tensor:
    """Spectra (..., 2, 47, `POINTS`) of what the lines of a spectrum excite in each channel.

    A line is part of the channels within half a Bark of it. From there to the near edge of a lower
    channel it falls by 27 dB per Bark, to that of a higher one by `slope` minus 0.2 times its level
    (Terhardt 1979); it excites a channel if it is audible at that edge. Lines `POINTS` apart have
    the same phases at all instants that are taken, and are summed.

    lines: real and imaginary parts in pascal (..., 2, line)
    """
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
    return y.unflatten(-1, (-1, POINTS)).sum(-2)


TURN = turns(WINDOW)
"""Of transforms. An argument, as are the lengths that follow from it: constants of this size, and
loops of constant length, take seconds to compile."""

GROUPS = -(-CHANNELS // LANES)
"""Groups of channels that are transformed together."""

COLUMNS = WINDOW // POINTS
"""Parts of a window that are transformed together: each has every so many samples."""


@kernel
def _rough_windows(
    x: Array,
    window: Array,
    ear: Array,
    bark: Array,
    audible: Array,
    slope: Array,
    reached: Array,
    weights: Array,
    share: Array,
    turn: Array,
    r: Array,
    specific: Array,
) -> None:
    """Fill `r` (row, frame) and `specific` (row, frame, 47) from windows of `x` (row, time)."""
    # Real and imaginary parts of what is transformed (group, 2, time or line, lane).
    groups, other = np.empty((GROUPS, 2, POINTS * LANES)), np.empty((2, POINTS * LANES))
    lines, rough = np.empty((2, LINES)), np.empty((CHANNELS, 2 * RATES))
    for row in range(x.shape[0]):
        for frame in range(r.shape[1]):
            given = x[row, HOP * frame : HOP * frame + WINDOW]
            _to_lines(given, window, ear, turn, groups[0], other, lines)
            groups[:] = 0.0
            _excite(lines, bark, audible, slope, reached, groups)
            for group in range(GROUPS):
                first = LANES * group
                _modulation(groups[group], other, turn, weights[first:], rough[first:])
            r[row, frame] = _roughness(rough, share, specific[row, frame])


@bare_kernel
def _to_lines(
    x: Array, window: Array, ear: Array, turn: Array, z: Array, other: Array, lines: Array
) -> None:
    """Fill `lines` (2, line) from a window; z, other: of any content."""
    points, z[:] = turn.shape[0] // COLUMNS, 0.0
    for t in range(POINTS):
        for k in range(COLUMNS):
            n = COLUMNS * t + k
            z[0, LANES * t + k] = np.float64(x[n]) * window[n]
    y = other if transform_columns(z, other, turn, points) else z
    for k in range(LINES):
        first, at, re, im = LANES * (k % POINTS), 0, 0.0, 0.0
        for column in range(COLUMNS):
            c, s = turn[at, 0], turn[at, 1]
            a, b = y[0, first + column], y[1, first + column]
            re += a * c - b * s
            im += a * s + b * c
            at += k
            if at >= WINDOW:
                at -= WINDOW
        lines[0, k], lines[1, k] = re * ear[k], im * ear[k]


@bare_kernel
def _excite(
    lines: Array, bark: Array, audible: Array, slope: Array, reached: Array, groups: Array
) -> None:
    """Add what lines excite in the channels, as `_excited` does, to `groups`.

    Real and imaginary parts change places, so that a transform is the inverse one.
    """
    least = np.inf
    for i in range(CHANNELS):
        least = min(least, reached[0, i], reached[1, i])
    down = np.exp(-NEPER * LOWER_SLOPE_DB * SPACING)
    for k in range(LINES):
        re, im = lines[0, k], lines[1, k]
        power = re * re + im * im
        if power <= audible[k]:  # which NaN is not
            continue
        z, place = np.float64(bark[k]), LANES * (k % POINTS)
        first = min(max(ceil(z / SPACING) - 2, 0), CHANNELS)
        last = min(floor(z / SPACING) + 1, CHANNELS)
        for i in range(first, last):
            _join(groups, i, place, re, im)
        per_bark = max(slope[k] - 10 * LESS_STEEP * np.log10(power / P0**2), 0.0)
        passed = np.exp(-NEPER * per_bark * (SPACING * last - z))
        further = np.exp(-NEPER * per_bark * SPACING)
        for i in range(last, CHANNELS):
            heard = power * passed * passed
            if heard < least:
                break
            if heard > reached[0, i]:
                _join(groups, i, place, passed * re, passed * im)
            passed *= further
        passed = np.exp(-NEPER * LOWER_SLOPE_DB * (z - SPACING * first - SPACING))
        for i in range(first - 1, -1, -1):
            heard = power * passed * passed
            if heard < least:
                break
            if heard > reached[1, i]:
                _join(groups, i, place, passed * re, passed * im)
            passed *= down


@bare_kernel
def _join(groups: Array, channel: int, place: int, re: float, im: float) -> None:
    group, at = channel // LANES, place + channel % LANES
    groups[group, 0, at] += im
    groups[group, 1, at] += re


@bare_kernel
def _modulation(z: Array, other: Array, turn: Array, weights: Array, rough: Array) -> None:
    """Fill `rough` (channel, 2 * line): weighted lines of the envelopes of a group by their mean.

    z: spectra; it and `other` are overwritten
    """
    points = turn.shape[0] // COLUMNS
    if transform_columns(z, other, turn, points):
        signal, y = other, z
    else:
        signal, y = z, other
    for k in range(signal.shape[1]):
        y[0, k] = np.sqrt(signal[0, k] * signal[0, k] + signal[1, k] * signal[1, k])
        y[1, k] = 0.0
    spectrum = signal if transform_columns(y, signal, turn, points) else y
    for channel in range(min(LANES, rough.shape[0])):
        mean = spectrum[0, channel]
        mean = FAINT if mean < FAINT else mean
        for k in range(RATES):
            weight = weights[channel, k] / mean
            rough[channel, k] = spectrum[0, LANES * k + channel] * weight
            rough[channel, RATES + k] = spectrum[1, LANES * k + channel] * weight


@kernel
def _roughness(rough: Array, share: Array, specific: Array) -> float:
    """The sum of specific roughness, which fills `specific` (channel,)."""
    power, likeness = np.empty(CHANNELS), np.ones(CHANNELS + 2)
    for i in range(CHANNELS):
        power[i] = 2 * _product(rough[i], rough[i])
    for i in range(CHANNELS - 2):
        size = max(power[i], SHALLOW) * max(power[i + 2], SHALLOW)
        product = 2 * _product(rough[i], rough[i + 2])
        likeness[i + 2] = product * product / size
    total = 0.0
    for i in range(CHANNELS):
        above = likeness[i + 2] if i < CHANNELS - 2 else 1.0
        both = likeness[i] * above
        value = share[i] / SPACING * min(power[i], 1.0) * both
        specific[i] = value
        total += value
    return SPACING * total


@kernel
def _product(a: Array, b: Array) -> float:
    """In a loop that writes nothing, whose sum does not depend on where the arrays are."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


AT = plan_rows(
    RESAMPLER
    # A kernel, by address.
    + "to_rough "
    # Tables, named as in their stages, and of the transforms.
    f"{' '.join(TABLE_SHAPES)} turn "
    # The state, which is the last half of a window, and the sound (row, time) after it.
    "past joined "
    # Outputs (row, frame) and (row, frame, 47).
    "r specific"
)
"""Rows of a plan, by name. A row of zeros stands for a missing array or kernel."""

CALLS = Calls(AT, RESAMPLING)
"""The kernels, by their rows in a plan."""

_a, _, _d, _ = CALLS.arguments

_to_rough = CALLS.add(
    "to_rough",
    _rough_windows,
    *_a(2, "joined"),
    *(_a(len(shape), name)[0] for name, shape in TABLE_SHAPES.items()),
    *(*_d(2, "turn"), *_a(2, "r"), *_a(3, "specific")),
)


@kernel
def to_roughness(plan: Array, like: Array) -> None:
    """Sound to roughness; like: any array of the sound's dtype."""
    size, sound = like.itemsize, resample(plan, like)
    leave(plan, AT.to_resample, AT.before_resampling, size)
    join(plan, AT.past, sound, AT.joined, size)
    _to_rough(plan, like)
    leave(plan, AT.joined, AT.past, size)
