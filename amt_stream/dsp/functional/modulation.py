"""Modulation filterbanks: a low-pass, and complex one-poles or real band-passes in parallel."""

from math import pi, sqrt
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.dispatch import (
    Array,
    array,
    compilable,
    compiled,
    recurrence,
)
from amt_stream.dsp.functional.compiler.lanes import LANES, lanes_of, magnitude, put, root
from amt_stream.dsp.functional.compiler.operators import operator
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes
from amt_stream.dsp.functional.compiler.tiles import SPAN, load, store
from amt_stream.dsp.functional.filters.complex_poles import Poles, pole_cascade
from amt_stream.dsp.functional.filters.state_space import BLOCK, Blocks, blocks, run
from amt_stream.dsp.functional.filters.svf import svf

SQRT2 = sqrt(2)

_COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}

ROWS = 2 * LANES
"""Channels processed in parallel: two registers, so that one computes while the other waits."""

_lanes = lanes_of(ROWS)


class OnePoles(NamedTuple):
    """Complex one-poles u += delta u + gain x, one per band.

    delta: (band, 2) pole - 1, real and imaginary part, which float32 resolves near a pole of 1
    gain: (band,) 1 - |pole|
    """

    delta: Tensor
    gain: Tensor


class BandPasses(NamedTuple):
    """Real band-passes of four poles, each two state-variable sections, (band, 2).

    g, k: as in `svf`
    weight: factor on each section's band output
    """

    g: Tensor
    k: Tensor
    weight: Tensor


class Readout(NamedTuple):
    """How the outputs of a bank's filters are read.

    scale: (band,) factor on the output of each band
    envelope: (band,) whether a band gives the magnitude of its filter's output or the real part
    counts: (channel,) number of filters of a channel, including a low-pass; the others give 0
    """

    scale: Tensor
    envelope: Tensor
    counts: Tensor


State = tuple[Tensor, Tensor]
"""States of the low-passes (..., channel, 0 or 1, 2), and of the bands."""


def modulation_poles(center: Tensor, bandwidth: Tensor, fs: float) -> OnePoles:
    """Poles exp(-pi bandwidth / fs) e^(j 2 pi center / fs), for (band,) values in Hz.

    The frequency-shifted low-passes of Dau, Kollmeier & Kohlrausch (1997). Any bandwidth above 0
    is stable.
    """
    decay = torch.expm1(-pi / fs * bandwidth)
    angle = 2 * pi / fs * center
    real = decay * torch.cos(angle) - 2 * torch.sin(angle / 2).square()
    return OnePoles(torch.stack([real, (1 + decay) * torch.sin(angle)], -1), -decay)


def band_passes(center: Tensor, bandwidth: Tensor) -> BandPasses:
    """Butterworth band-passes of order two, gain 1 at the center, for (band,) values.

    center, bandwidth: geometric mean and difference of the edges, all as tan(pi f / fs); any
        values above 0 are stable

    The low-pass poles q = e^(+-j 3 pi / 4) go to the roots of s^2 - q bandwidth s + center^2.
    """
    half = torch.polar(bandwidth / 2, torch.full_like(bandwidth, 3 * pi / 4))
    root = torch.sqrt(half.square() - center.square())
    poles = torch.stack([half + root, half - root], -1)
    g = poles.abs()
    return BandPasses(g, -2 * poles.real / g, bandwidth[:, None] / g)


def group_delay(bands: BandPasses, angle: Tensor) -> Tensor:
    """Group delay (band,) in samples at `angle` (band,) = 2 pi f / fs.

    Each pole p adds Re(v / (1 - v)), v = p e^(-j angle); the zeros at 1 and -1 half a sample each.
    """
    half = torch.complex(bands.k / 2, torch.zeros_like(bands.k))
    s = bands.g * (torch.sqrt(half.square() - 1) - half)
    poles = (1 + s) / (1 - s)
    turned = torch.cat([poles, poles.conj()], -1) * torch.exp(-1j * angle)[:, None]
    return (turned / (1 - turned)).real.sum(-1) + 2


def _like_a_bank(
    x: Tensor, low: Tensor, bands: object, readout: Readout, zi: State
) -> tuple[Tensor, State]:
    y = x.new_empty(*x.shape[:-1], len(low) + len(readout.scale), x.shape[-1])
    return y, (zi[0].new_empty(zi[0].shape), zi[1].new_empty(zi[1].shape))


@operator(_like_a_bank)
def one_pole_bank(
    x: Tensor, low: Tensor, bands: OnePoles, readout: Readout, zi: State
) -> tuple[Tensor, State]:
    """`x` (..., channel, time) through low-pass and complex one-poles: (..., channel, m, time).

    low: (1,) or (0,): tan(pi f / fs) of a second-order Butterworth low-pass, which is filter 0
    zi, zf: of the bands (..., channel, band, 2), real and imaginary part
    """
    _check_bank("one_pole_bank", x, low, readout, zi, (2,))
    count = readout.scale.numel()
    given = ("delta", bands.delta, (count, 2)), ("gain", bands.gain, (count,))
    fit("one_pole_bank", x.dtype, *given)
    if compiled(x, low, *bands, readout.scale, *zi):
        return _compiled(x, low, bands, readout, zi)
    if gpu.serves(x, low, *bands, readout.scale, *zi):
        y, low_zf, last = gpu.bank(x, low, *bands, bands.gain, *readout, *zi, SQRT2)
        return y, (low_zf, last)
    if not count:
        return _read(x, low, _spread(x, 0), zi[1], readout, zi[0])
    if compilable(x, low, *bands, readout.scale, *zi):
        return _learned(x, low, bands, readout, zi)
    pole = 1 + torch.view_as_complex(bands.delta.double())
    gain = bands.gain.to(pole.dtype)
    # In float64, because rounding a pole near 1 to float32 would change its decay.
    made = blocks(pole[:, None, None], gain[:, None], pole[:, None], gain, _length(x))
    system = Blocks(*(t.to(_COMPLEX[x.dtype]) for t in made))
    u, last = run(_spread(x, pole.numel()), system, torch.view_as_complex(zi[1])[..., None])
    return _read(x, low, u, torch.view_as_real(last.squeeze(-1)), readout, zi[0])


@operator(_like_a_bank)
def band_pass_bank(
    x: Tensor, low: Tensor, bands: BandPasses, readout: Readout, zi: State
) -> tuple[Tensor, State]:
    """`x` (..., channel, time) through low-pass and real band-passes: (..., channel, m, time).

    low: as in `one_pole_bank`
    zi, zf: of the bands (..., channel, band, section, 2)
    """
    _check_bank("band_pass_bank", x, low, readout, zi, (2, 2))
    for name, value in zip(BandPasses._fields, bands, strict=True):
        fit("band_pass_bank", x.dtype, (name, value, (readout.scale.numel(), 2)))
    if compiled(x, low, *bands, readout.scale, *zi):
        return _compiled(x, low, bands, readout, zi)
    if gpu.serves(x, low, *bands, readout.scale, *zi):
        y, low_zf, last = gpu.bank(x, low, *bands, *readout, *zi, SQRT2)
        return y, (low_zf, last)
    if not readout.scale.numel():
        return _read(x, low, _spread(x, 0), zi[1], readout, zi[0])
    g, k, weight = bands
    zero = torch.zeros_like(weight)
    weights = torch.stack([zero, weight, zero], -1)
    y, last = svf(_spread(x, g.shape[0]), g, k, weights, zi[1])
    return _read(x, low, y, last, readout, zi[0])


def _check_bank(
    function: str, x: Tensor, low: Tensor, readout: Readout, zi: State, each: tuple[int, ...]
) -> None:
    """Raise ValueError if these do not fit; each: shape of the state of one band."""
    lead, channels, _ = signal_axes(function, "x", x, 2)
    lead, count, first = (*lead, channels), readout.scale.numel(), min(1, low.numel())
    if not count + first:
        raise ValueError(f"{function}: there is no filter: give a low-pass, or one band or more")
    fit(
        function,
        x.dtype,
        ("low", low, (first,)),
        ("scale", readout.scale, (count,)),
        ("zi[0]", zi[0], (*lead, first, 2)),
        ("zi[1]", zi[1], (*lead, count, *each)),
    )
    fit(function, torch.bool, ("envelope", readout.envelope, (count,)))
    shared = readout.counts.shape == (1,)
    fit(function, torch.int64, ("counts", readout.counts, (1 if shared else channels,)))


def _length(x: Tensor) -> int:
    return min(BLOCK, x.shape[-1])


def _spread(x: Tensor, count: int) -> Tensor:
    """`x` (..., time) for each of `count` filters, (..., filter, time)."""
    return x[..., None, :].expand(*x.shape[:-1], count, x.shape[-1])


def _read(
    x: Tensor, low: Tensor, bands: Tensor, last: Tensor, readout: Readout, zi: Tensor
) -> tuple[Tensor, State]:
    """Output and state of a bank, from the outputs and states of its bands."""
    scale, envelope, counts = readout
    real = bands.real if bands.is_complex() else bands
    y = scale[:, None] * torch.where(envelope[:, None], bands.abs(), real)
    zf = zi
    if low.numel():
        first, zf = _first(x, low, zi)
        y = torch.cat([first, y], -2)
    there = torch.arange(y.shape[-2], device=x.device) < counts[:, None]
    kept = there[:, low.numel() :].reshape(*there.shape[:1], -1, *[1] * (last.dim() - x.dim()))
    # Not by a product, which would keep NaN in missing filters.
    return torch.where(there[..., None], y, 0), (zf, torch.where(kept, last, 0))


def _first(x: Tensor, low: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """Output of the low-pass of a bank (..., channel, 1, time), and its state."""
    g = low[:, None]
    weights = torch.stack([torch.zeros_like(g), torch.zeros_like(g), torch.ones_like(g)], -1)
    y, zf = svf(x[..., None, :], g, torch.full_like(g, SQRT2), weights, zi[..., None, :])
    return y, zf.squeeze(-2)


def _learned(
    x: Tensor, low: Tensor, bands: OnePoles, readout: Readout, zi: State
) -> tuple[Tensor, State]:
    """`one_pole_bank` with compiled gradients."""
    scale, envelope, counts = readout
    own = Readout(scale, envelope, (counts - low.numel()).clamp(min=0))
    poles = Poles(torch.cat([bands.delta.mT, bands.gain[None]]).double(), scale.double(), *own[1:])

    def forward(x: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        none = low.new_empty(0), last.new_empty(len(x), 0, 2)
        y, (_, zf) = _compiled(x[:, 0], none[0], bands, own, (none[1], last[:, :, 0].mT))
        return y, zf.mT[:, :, None]

    last = zi[1].flatten(0, -3).mT[:, :, None]
    y, zf = pole_cascade(x.reshape(-1, 1, x.shape[-1]), poles, last, forward)
    y, last = y.view(*x.shape[:-1], *y.shape[1:]), zf[:, :, 0].mT.reshape(zi[1].shape)
    if not low.numel():
        return y, (zi[0], last)
    first, low_zf = _first(x, low, zi[0])
    first = torch.where((counts > 0)[:, None, None], first, 0)
    return torch.cat([first, y], -2), (low_zf, last)


def _compiled(
    x: Tensor, low: Tensor, bands: OnePoles | BandPasses, readout: Readout, zi: State
) -> tuple[Tensor, State]:
    rows = array(x).reshape(-1, x.shape[-1])
    filters = low.numel() + readout.scale.numel()
    y = x.new_empty((*x.shape[:-1], filters, x.shape[-1]))
    zf = [z.clone(memory_format=torch.contiguous_format) for z in zi]
    count = len(rows)
    states = [z.numpy().reshape(count, z.numel() // max(1, count)) for z in zf]
    given = [array(t) for t in bands]
    each = [a if a.ndim == 2 else a[:, None] for a in given]
    each += each[:1] * (3 - len(each))  # one-poles have no third
    out = y.numpy().reshape(count, filters, x.shape[-1])
    _bank(rows, array(low), *each, *(array(t) for t in readout), *states, out)
    return y, (zf[0], zf[1])


@recurrence
def _bank(
    x: Array,
    low: Array,
    a: Array,
    b: Array,
    c: Array,
    scale: Array,
    envelope: Array,
    counts: Array,
    low_z: Array,
    z: Array,
    y: Array,
) -> None:
    """Updates `low_z` and `z` (row, state) in place: two per complex one-pole, four a band-pass."""
    tile, out = np.zeros((SPAN, ROWS), x.dtype), np.zeros((SPAN, ROWS), x.dtype)
    first, each = low.size, z.shape[1] // max(1, scale.size)
    filters = first + scale.size
    flat = y.reshape(y.shape[0] * filters, y.shape[2])
    lows, s = np.zeros((2 * first, ROWS), x.dtype), np.zeros((z.shape[1], ROWS), x.dtype)
    for start in range(0, x.shape[0], ROWS):
        rows = min(ROWS, x.shape[0] - start)
        most = 0
        for i in range(rows):
            most = max(most, min(filters, counts[(start + i) % counts.size]))
        _take(low_z, start, rows, lows)
        _take(z, start, rows, s)
        for begin in range(0, x.shape[1], SPAN):
            length = min(SPAN, x.shape[1] - begin)
            load(x, start, rows, begin, length, tile)
            for m in range(most):
                n = m - first
                own = s[each * n : each * n + each]
                if m < first:
                    _low_pass(tile, length, low[m], lows[2 * m : 2 * m + 2], out)
                elif each == 2:
                    _one_pole(tile, length, a[n], b[n, 0], scale[n], envelope[n], own, out)
                else:
                    _band_pass(tile, length, a[n], b[n], c[n], scale[n], envelope[n], own, out)
                store(out, start * filters + m, rows, begin, length, flat, filters)
        for i in range(rows):
            there = max(0, min(filters, counts[(start + i) % counts.size]))
            y[start + i, there:] = 0
            _give(lows, i, low_z[start + i], 2 * first)
            _give(s, i, z[start + i], each * (there - first))


@recurrence
def _one_pole(
    x: Array,
    length: int,
    delta: Array,
    gain: float,
    scale: float,
    envelope: bool,
    s: Array,
    y: Array,
) -> None:
    dr, di = delta[0], delta[1]
    re, im = _lanes(s, 0, 0), _lanes(s, 1, 0)
    for t in range(length):
        p = re + (dr * re - di * im + gain * _lanes(x, t, 0))
        im = im + (dr * im + di * re)
        re = p
        put(scale * (root(re * re + im * im) if envelope else re), y, t, 0)
    put(re, s, 0, 0)
    put(im, s, 1, 0)


@recurrence
def _low_pass(x: Array, length: int, g: float, s: Array, y: Array) -> None:
    one, two, k = x.dtype.type(1), x.dtype.type(2), x.dtype.type(SQRT2)
    r = one / (one + g * (g + k))
    h, p, q = g * (g + k) * r, g * r, g * g * r
    a, b = _lanes(s, 0, 0), _lanes(s, 1, 0)
    for t in range(length):
        excess = _lanes(x, t, 0) - b
        d1 = p * excess - h * a
        d2 = p * a + q * excess
        put(b + d2, y, t, 0)
        a, b = a + two * d1, b + two * d2
    put(a, s, 0, 0)
    put(b, s, 1, 0)


@recurrence
def _take(z: Array, start: int, rows: int, s: Array) -> None:
    """Fill `s` (state, lane) from `rows` rows of `z` (row, state)."""
    for i in range(rows):
        for j in range(z.shape[1]):
            s[j, i] = z[start + i, j]


@recurrence
def _give(s: Array, lane: int, z: Array, kept: int) -> None:
    """Fill `z` (state,) from a lane of `s`; the states of missing filters stay 0."""
    for j in range(z.size):
        z[j] = s[j, lane] if j < kept else 0


@recurrence
def _band_pass(
    x: Array,
    length: int,
    g: Array,
    k: Array,
    weight: Array,
    scale: float,
    envelope: bool,
    s: Array,
    y: Array,
) -> None:
    one, two = x.dtype.type(1), x.dtype.type(2)
    g0, g1, k0, k1, w0, w1 = g[0], g[1], k[0], k[1], weight[0], weight[1]
    r0, r1 = one / (one + g0 * (g0 + k0)), one / (one + g1 * (g1 + k1))
    h0, p0, q0 = g0 * (g0 + k0) * r0, g0 * r0, g0 * g0 * r0
    h1, p1, q1 = g1 * (g1 + k1) * r1, g1 * r1, g1 * g1 * r1
    a0, b0, a1, b1 = _lanes(s, 0, 0), _lanes(s, 1, 0), _lanes(s, 2, 0), _lanes(s, 3, 0)
    # Both sections in one loop, so that the second need not wait for all of the first.
    for t in range(length):
        excess = _lanes(x, t, 0) - b0
        da = p0 * excess - h0 * a0
        db = p0 * a0 + q0 * excess
        band = w0 * (a0 + da)
        a0, b0 = a0 + two * da, b0 + two * db
        excess = band - b1
        da = p1 * excess - h1 * a1
        db = p1 * a1 + q1 * excess
        band = w1 * (a1 + da)
        a1, b1 = a1 + two * da, b1 + two * db
        put(scale * (magnitude(band) if envelope else band), y, t, 0)
    for n, v in enumerate((a0, b0, a1, b1)):
        put(v, s, n, 0)
