"""Tones that stand out of noise, and how audible they are (ISO/PAS 20065:2016, DIN 45681)."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, copied, kernel
from amt_stream.dsp.functional.compiler.fourier import SHORTEST, transform, turns, twists
from amt_stream.dsp.functional.compiler.operators import on_host
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes
from amt_stream.dsp.functional.compiler.tiles import copy_values

SILENT = 1e-20
"""Power in Pa^2 added to each line, so that a spectrum of silence is one, too."""

HANN = 10**-0.176
"""What a level of lines under a Hann window loses: 1.76 dB, as their noise is 1.5 lines wide."""

OVER = 10**0.6
"""By which a line is above the noise if it belongs to a tone: 6 dB."""

PART = 0.1
"""Of the highest line of a tone, what its others have at least: 10 dB less."""

STEADY_DB = 0.005
"""Change of the noise level at which the search for it ends."""

SIDE = 5
"""Lines that the noise has at least on either side of the tone."""

STEEP = 24.0
"""Fall of a tone's edges in dB per octave, at least."""

LOWEST_HZ, HIGHEST_HZ = 50.0, 10_000.0
"""Frequencies of tones."""

NONE_DB = -10.0
"""Audibility of a spectrum without a tone."""

FIELDS = 7
"""Of a tone: whether there is a spectrum, audibility, frequency, level, that of the noise lines,
uncertainty, and how many tones it joins."""


class SpectrumState(NamedTuple):
    """State of `tone_spectra`.

    past: samples of the present window (..., n)
    sums: powers of the windows so far (..., line), float64
    begun: samples since the spectrum began (..., 1), float64
    """

    past: Tensor
    sums: Tensor
    begun: Tensor


def _spectra_like(
    x: Tensor, window: Tensor, weights: Tensor, windows: Tensor, state: SpectrumState
) -> tuple[Tensor, SpectrumState]:
    y = x.new_empty(*x.shape[:-1], weights.shape[0])
    return y, SpectrumState(*(v.new_empty(v.shape) for v in state))


@on_host(_spectra_like)
def tone_spectra(
    x: Tensor, window: Tensor, weights: Tensor, windows: Tensor, state: SpectrumState
) -> tuple[Tensor, SpectrumState]:
    """Powers of lines (..., frame, line) in the frame that completes a spectrum, 0 in others.

    A spectrum is the mean of windows that overlap by half; the next one begins after it.

    x: (..., frame, sample) in pascal
    window: (n,), a power of two, scaled so that a tone on a line has its mean square there
    weights: of the power of each line, from 0 Hz on (line,)
    windows: number of those of a spectrum, 1 or more (1,), float64
    """
    lead, frames, size = signal_axes("tone_spectra", "x", x, 2)
    points, lines = window.shape[-1], weights.shape[-1]
    if points < 2 * SHORTEST or points & (points - 1) or lines > points // 2 + 1:
        raise ValueError(
            f"tone_spectra: {points} points and {lines} lines do not fit: give a power of two, "
            f"{2 * SHORTEST} or more, and at most half as many lines and one"
        )
    given = ("window", window, (points,)), ("weights", weights, (lines,))
    past = ("past", state.past, (*lead, points))
    fit("tone_spectra", x.dtype, ("x", x, (*lead, frames, size)), *given, past)
    sums, begun = ("sums", state.sums, (*lead, lines)), ("begun", state.begun, (*lead, 1))
    fit("tone_spectra", torch.float64, ("windows", windows, (1,)), sums, begun)
    y, _ = _spectra_like(x, window, weights, windows, state)
    after = SpectrumState(*map(copied, state))
    rows, spectra = array(x).reshape(-1, frames, size), y.numpy().reshape(-1, frames, lines)
    states = (v.numpy().reshape(len(rows), -1) for v in after)
    kind: Any = rows.dtype.type
    half = points // 2
    tables = array(window), array(weights), turns(points, kind), turns(half, kind)
    _tone_spectra(rows, *tables, twists(half, kind), int(windows), *states, spectra)
    return y, after


@kernel
def _tone_spectra(
    x: Array,
    window: Array,
    weights: Array,
    turn: Array,
    half_turn: Array,
    twist: Array,
    windows: int,
    past: Array,
    sums: Array,
    count: Array,
    y: Array,
) -> None:
    """Updates the state `past` (row, n), `sums` (row, line) and `count` (row, 1) in place."""
    points = window.size
    hop = points // 2
    period = points + (windows - 1) * hop
    z, scratch = np.empty((2, hop), x.dtype), np.empty((2, hop), x.dtype)
    y[:] = 0
    for r in range(x.shape[0]):
        begun = int(count[r, 0])
        for n in range(x.shape[1]):
            at = 0
            while at < x.shape[2]:
                # Where the next sample is in the present window.
                place = begun if begun < points else hop + (begun - points) % hop
                some = min(x.shape[2] - at, points - place)
                copy_values(x[r, n, at : at + some], past[r, place : place + some])
                at += some
                begun += some
                if place + some == points:
                    for k in range(hop):
                        z[0, k] = past[r, 2 * k] * window[2 * k]
                        z[1, k] = past[r, 2 * k + 1] * window[2 * k + 1]
                    if transform(z, scratch, half_turn, twist, hop):
                        _add_powers(scratch, turn, sums[r])
                    else:
                        _add_powers(z, turn, sums[r])
                    copy_values(past[r, hop:], past[r, :hop])
                if begun == period:
                    for k in range(weights.size):
                        y[r, n, k] = weights[k] * (sums[r, k] / windows + SILENT)
                    sums[r, :] = 0.0
                    begun = 0
        count[r, 0] = begun


@kernel
def _add_powers(z: Array, turn: Array, sums: Array) -> None:
    """Add the powers of the lines of a real signal of which z is the transform of pairs (2, n)."""
    half = z.shape[1]
    for k in range(sums.size):
        a, b = k % half, (half - k) % half
        # Even and odd samples; twice their sums, each.
        even, even_i = z[0, a] + z[0, b], z[1, a] - z[1, b]
        odd, odd_i = z[1, a] + z[1, b], z[0, b] - z[0, a]
        c, s = turn[k, 0], turn[k, 1]
        re, im = even + c * odd - s * odd_i, even_i + c * odd_i + s * odd
        sums[k] += np.float64(re * re + im * im) / 4


def _tones_like(power: Tensor, hz: Tensor) -> Tensor:
    return power.new_empty(*power.shape[:-1], FIELDS)


@on_host(_tones_like)
def tone_audibility(power: Tensor, hz: Tensor) -> Tensor:
    """The most audible tone of each spectrum (..., frame, 7): `FIELDS`.

    It stands out of the noise by its audibility, -10 dB without a tone. Tones of one critical band
    are one, with the frequency and the noise of the most audible. Levels are in dB, the expanded
    uncertainty (90 %) of the audibility too. All fields are 0 in a frame without a spectrum.

    power: of A-weighted lines (..., frame, line); a frame of zeros is none
    hz: of the lines (line,), float64, equally spaced
    """
    lead, frames, lines = signal_axes("tone_audibility", "power", power, 2)
    fit("tone_audibility", power.dtype, ("power", power, (*lead, frames, lines)))
    fit("tone_audibility", torch.float64, ("hz", hz, (lines,)))
    y = _tones_like(power, hz)
    rows = array(power).reshape(-1, lines)
    _tone_audibility(rows, array(hz), y.numpy().reshape(-1, FIELDS))
    return y


@kernel
def critical_band(f: float) -> tuple[float, float]:
    """Lower limit and width in hertz of the critical band about `f` Hz."""
    width = 25 + 75 * (1 + 1.4 * (f / 1000) ** 2) ** 0.69
    return -width / 2 + np.sqrt(width * width + 4 * f * f) / 2, width


@kernel
def masking_index(f: float) -> float:
    """The masking index in dB at `f` Hz: what the noise in the band hides is so far below it."""
    return -2 - np.log10(1 + (f / 502) ** 2.5)


@kernel
def _noise(power: Array, at: int, first: int, stop: int) -> tuple[float, float]:
    """The mean power of noise lines about a tone at `at`, less `HANN`, and 1 / their number.

    Lines of first .. stop. The inverse of the number counts lines by their power, as the
    uncertainty does.
    """
    limit, before = np.inf, 0.0
    inverse = 0.0
    while True:
        total = squares = 0.0
        below = above = 0
        for i in range(first, stop):
            p = np.float64(power[i])
            if i == at or p > limit:
                continue
            total += p
            squares += p * p
            if i < at:
                below += 1
            else:
                above += 1
        few = below < SIDE or above < SIDE
        if few and (before > 0.0 or below + above == 0):
            return before, inverse
        mean = HANN * total / (below + above)
        inverse = squares / (total * total)
        settled = before > 0.0 and abs(10 * np.log10(mean / before)) <= STEADY_DB
        if few or settled:
            return mean, inverse
        before, limit = mean, OVER * mean


@kernel
def _falls(f: float, power: float, other_hz: float, other: float) -> bool:
    """Whether the edge of a tone is steep, from its highest line to the first outside."""
    fall = 10 * np.log10(power / other)
    return f * fall / (np.sqrt(2.0) * abs(f - other_hz)) >= STEEP


@kernel
def _level(power: Array, first: int, stop: int) -> float:
    """The power of a tone of these lines."""
    total = 0.0
    for i in range(first, stop):
        total += power[i]
    return total if stop - first == 1 else HANN * total


@kernel
def _audibility(tone: float, noise: float, f: float, step: float) -> float:
    """Audibility in dB of a tone of this power in noise lines of that mean power."""
    _, width = critical_band(f)
    return 10 * np.log10(tone / (noise * width / step)) - masking_index(f)


@kernel
def _tone_audibility(power: Array, hz: Array, y: Array) -> None:
    lines = hz.size
    step = (hz[-1] - hz[0]) / max(1, lines - 1)
    # Of each tone: highest line, first, and after last.
    places = np.empty((lines, 3), np.int64)
    # Noise, inverse of its lines, power, and audibility.
    values = np.empty((lines, 4))
    for r in range(power.shape[0]):
        p, out = power[r], y[r]
        out[:] = 0.0
        whole = 0.0
        for i in range(lines):
            whole += p[i]
        if whole != whole:
            out[:] = np.nan
        if not whole > 0.0:
            continue
        count = _single_tones(p, hz, step, places, values)
        out[0], out[1] = 1.0, NONE_DB
        k = 0
        while k < count:
            last = k + 1
            while last < count and _in_one_band(hz, places, values, last):
                last += 1
            _rate(p, hz, step, places[k:last], values[k:last], out)
            k = last


@kernel
def _single_tones(p: Array, hz: Array, step: float, places: Array, values: Array) -> int:
    """Fill in the audible tones of a spectrum, in order; gives their number."""
    lines, count = hz.size, 0
    for i in range(1, lines - 1):
        f, peak = hz[i], np.float64(p[i])
        if not (LOWEST_HZ <= f <= HIGHEST_HZ and p[i] > p[i - 1] and p[i] >= p[i + 1]):
            continue
        low, width = critical_band(f)
        first = max(0, int(np.ceil((low - hz[0]) / step - 1e-9)))
        stop = min(lines, int(np.floor((low + width - hz[0]) / step + 1e-9)) + 1)
        noise, inverse = _noise(p, i, first, stop)
        if not (noise > 0.0 and peak > OVER * noise):
            continue
        least = max(OVER * noise, PART * peak)
        begin, end, highest = i, i + 1, True
        while begin > 0 and p[begin - 1] > least:
            begin -= 1
            highest &= p[begin] <= peak
        while end < lines and p[end] > least:
            highest &= p[end] <= peak
            end += 1
        if not highest or begin == 0 or end == lines:
            continue
        if (end - begin) * step > 26 * (1 + 0.001 * f):
            continue
        if not _falls(f, peak, hz[begin - 1], p[begin - 1]) or not _falls(f, peak, hz[end], p[end]):
            continue
        tone = _level(p, begin, end)
        audible = _audibility(tone, noise, f, step)
        if audible > 0.0:
            places[count, 0], places[count, 1], places[count, 2] = i, begin, end
            values[count, 0], values[count, 1] = noise, inverse
            values[count, 2], values[count, 3] = tone, audible
            count += 1
    return count


@kernel
def _in_one_band(hz: Array, places: Array, values: Array, k: int) -> bool:
    """Whether a tone is in the critical band of the one before, or that one in its own."""
    a, b = hz[places[k - 1, 0]], hz[places[k, 0]]
    center, other = (a, b) if values[k - 1, 3] >= values[k, 3] else (b, a)
    low, width = critical_band(center)
    return low <= other <= low + width


@kernel
def _rate(p: Array, hz: Array, step: float, places: Array, values: Array, out: Array) -> None:
    """Fill `out` with the tones of one critical band, joined, if they are more audible."""
    count, best = places.shape[0], 0
    for k in range(1, count):
        if values[k, 3] > values[best, 3]:
            best = k
    f, noise = hz[places[best, 0]], values[best, 0]
    joined = count
    if count == 2:
        apart = 21 * 10 ** (1.2 * abs(np.log10(f / 212)) ** 1.8)
        a, b = hz[places[0, 0]], hz[places[1, 0]]
        joined = 1 if max(a, b) < 1000 and b - a > apart else 2
    tone, weights, squares = values[best, 2], 0.0, 0.0
    if joined > 1:
        tone, until = 0.0, 0
        for k in range(count):
            # Lines of two tones count once.
            begin = max(places[k, 1], until)
            for i in range(begin, places[k, 2]):
                tone += p[i]
            until = max(until, places[k, 2])
            weights += values[k, 2]
            squares += values[k, 2] ** 2
        tone *= HANN
    else:
        for i in range(places[best, 1], places[best, 2]):
            weights += p[i]
            squares += np.float64(p[i]) ** 2
    audible = _audibility(tone, noise, f, step)
    if audible > out[1]:
        _, width = critical_band(f)
        varies = squares / weights**2 + values[best, 1]
        out[1], out[2], out[6] = audible, f, joined
        out[3], out[4] = 10 * np.log10(tone / 4e-10), 10 * np.log10(noise / 4e-10)
        out[5] = 1.645 * np.sqrt(9 * varies + (4.34 * step / width) ** 2)
