"""Fluctuation strength from slow changes of envelopes (ECMA-418-2:2025, clause 9).

A few lines are fitted to the spectrum of a block of each band's envelope, of which an analysis
window leaves out silence. With the phases of the spectrum counted from the middle of the window,
those of a cosine there are real and those of a sine imaginary: the two are fitted apart.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional import gpu
from amt_stream.dsp.functional.dispatch import Array, array, compiled, copied, kernel
from amt_stream.dsp.functional.ecma418 import (
    BANDS,
    CENTERS,
    basis_loudness_of,
    specific_basis_loudness,
)
from amt_stream.dsp.functional.ecma418_modulation import (
    FRAME,
    NODES,
    Grid,
    interpolate,
    interpolated,
    placed,
    push,
    sharpen,
    sharpened,
    spread,
    spread_of,
)
from amt_stream.dsp.functional.lanes import LANES, lanes_of, put, where
from amt_stream.dsp.functional.operators import operator
from amt_stream.dsp.functional.shapes import fit, signal_axes, whole_blocks
from amt_stream.dsp.functional.threads import one_thread
from amt_stream.dsp.functional.tiles import SPAN, load, store

_lanes = lanes_of(LANES)

GRID = Grid(hop=512, wait=35, period=256)

SIZE = 4 * GRID.hop
"""Values of an envelope in a block."""

PARTS = 4
"""Frames over which the bands of a block are analyzed, so that none takes long."""

PART = -(-BANDS // PARTS)
"""Bands analyzed in a frame."""

AROUND = 35
"""Frames before and after one whose spreads the median takes."""

WAIT = GRID.wait + PARTS - 1 + AROUND
"""Frames until that of a time is due."""

RATE = 1500.0
LINE = RATE / SIZE
"""Spacing of the modulation spectrum in Hz."""

LINES = 49
"""Lines of the modulation spectrum that fits may use."""

FLUCTUATION = 0.003840572
"""Calibration of fluctuation strength, c_F: a tone of 60 dB, modulated by 4 Hz, has 1 vacil."""

LEAST = 5.2519
"""Amplitude of a band below which it does not fluctuate."""

KEEP = float(np.exp(-1 / (50 * 0.75)))
"""Smoothing of specific fluctuation strength from frame to frame."""

MEDIAN = 33
"""Values of an envelope whose median smooths it."""

MARGIN, SHORTEST = 64, 320
"""Values at the ends of a block that are not analyzed, and those that an analysis needs."""

SILENT_PA = 5e-6

SEARCH = 0.25 * 2 ** ((np.arange(1, 17) - 2) / 3)
"""Rates in Hz at which a single line is fitted, in search of slow modulation."""

NEAR = 1.25 * LINE
"""Distance in Hz below which two rates are one."""

DX, CAP, TOLERANCE, STEPS = 1e-5, 2e-4, 1e-7, 40
"""Of fine tuning: difference, largest change, smallest step in values of 1/1500 s, and steps."""

LOWEST = 0.125
"""Slowest rate in Hz."""

SERIES, HARMONICS = 3, 5
"""Orders that the strongest line may have, and those of the others."""

BEST = 4.8659
"""Rate in Hz of the highest sensitivity."""

LOW_SLOPE, LOW_POWER = 0.33048, 0.85902
HIGH_SLOPE, HIGH_POWER = 0.21792, 4.6728
"""Of the weights of rates below and above it."""

SMALL = 1e-12
"""Share of a basis below which rounding alone is left of it."""


def high_rate_gains() -> np.ndarray:
    """Sensitivity to rates above `BEST` by band (53,) (ECMA-418-2:2025, 9.1.6)."""
    return 1 / (1 + 0.092623 * np.abs(np.log2(CENTERS / 1000)) ** 1.24)


class FluctuationTables(NamedTuple):
    """Tables of `fluctuation`, in float64.

    threshold: basis loudness at the threshold in quiet (53,)
    gains: `high_rate_gains`
    search: `SEARCH`
    """

    threshold: Tensor
    gains: Tensor
    search: Tensor


def fluctuation_table_shapes() -> dict[str, tuple[int, ...]]:
    """Shapes of `FluctuationTables`."""
    return dict(zip(FluctuationTables._fields, ((BANDS,), (BANDS,), SEARCH.shape), strict=True))


class FluctuationState(NamedTuple):
    """State of `fluctuation`, in float64.

    past: envelopes of the last block (..., 53, 2048)
    recent: envelopes of the present hop (..., 53, 512)
    found: weighted power and loudness of the bands of that block (..., 53, 2)
    nodes: amplitudes of the last blocks (..., 53, 5)
    spreads: of the last frames over bands (..., 70)
    waiting: amplitudes of the last frames, which wait for their median (..., 53, 35)
    smooth: specific fluctuation strength of the last frame (..., 53)
    begun: frames since the beginning; it goes around (..., 1)
    """

    past: Tensor
    recent: Tensor
    found: Tensor
    nodes: Tensor
    spreads: Tensor
    waiting: Tensor
    smooth: Tensor
    begun: Tensor


def fluctuation_states() -> dict[str, tuple[int, ...]]:
    """Shapes of `FluctuationState`, without leading axes."""
    envelopes = (BANDS, SIZE), (BANDS, GRID.hop)
    frames = (BANDS, 2), (BANDS, NODES), (2 * AROUND,), (BANDS, AROUND), (BANDS,), (1,)
    return dict(zip(FluctuationState._fields, (*envelopes, *frames), strict=True))


def _like(
    x: Tensor, tables: FluctuationTables, state: FluctuationState
) -> tuple[Tensor, FluctuationState]:
    y = x.new_empty(*x.shape[:-2], BANDS, x.shape[-1] // FRAME)
    return y, FluctuationState(*(v.new_empty(v.shape) for v in state))


@operator(_like)
def fluctuation(
    x: Tensor, tables: FluctuationTables, state: FluctuationState
) -> tuple[Tensor, FluctuationState]:
    """Specific fluctuation strength (..., 53, frame) in vacil/Bark_HMS, a frame per 30 values.

    A frame stands for the value `WAIT` frames before its end.

    x: envelopes of the bands in pascal (..., 53, time), float64, 1500 a second, a multiple of 30
    """
    lead, _, time = signal_axes("fluctuation", "x", x, 2)
    whole_blocks("fluctuation", time, FRAME)
    shapes, of_tables = fluctuation_states(), fluctuation_table_shapes()
    given = [(key, v, (*lead, *shapes[key])) for key, v in state._asdict().items()]
    given += [(key, v, of_tables[key]) for key, v in tables._asdict().items()]
    fit("fluctuation", torch.float64, ("x", x, (*lead, BANDS, time)), *given)
    if compiled(x, *tables, *state):
        after = FluctuationState(*map(copied, state))
        return fluctuation_in_place(x, tables, after), after
    frames = []
    with one_thread(x):
        for part in x.split(FRAME, -1):
            y, state = _frame(part, tables, state)
            frames.append(y)
    return torch.stack(frames, -1), state


def _frame(
    x: Tensor, tables: FluctuationTables, state: FluctuationState
) -> tuple[Tensor, FluctuationState]:
    begun = state.begun
    block, ended, recent, _ = placed(state.recent, x, state.past[..., GRID.hop :], begun, GRID)
    past = torch.where(ended, block, state.past)
    # The part of the last block that is analyzed in this frame; later there is none.
    part = torch.floor(((GRID.position(begun) + FRAME) % GRID.hop) / FRAME)
    band = torch.arange(BANDS, dtype=x.dtype, device=x.device)
    at = (part * PART + torch.arange(PART, device=x.device)).clamp(max=BANDS - 1).long()
    sounds = past.gather(-2, at[..., None].expand(*at.shape, SIZE))
    threshold, gains = (table[at] for table in (tables.threshold, tables.gains))
    new = _analyzed(sounds, threshold, gains, tables.search)
    placing = (band % PART).long()[:, None].expand(*new.shape[:-2], BANDS, 2)
    mine = torch.floor(band / PART) == part
    found = torch.where(mine[..., None], new.gather(-2, placing), state.found)
    nodes = torch.cat([state.nodes[..., 1:], _amplitudes(found)[..., None]], -1)
    # Nor is anything new before the first block has ended.
    done = (part == PARTS - 1) & (FRAME * (begun + 1) >= GRID.hop)
    nodes = torch.where(done[..., None], nodes, state.nodes)
    y = interpolated(nodes, begun - (PARTS - 1), GRID)
    spreads = torch.cat([state.spreads, spread(y)], -1)
    waiting = torch.cat([state.waiting, y[..., None]], -1)
    y = sharpened(waiting[..., 0], _median(spreads, begun), FLUCTUATION)
    y = y * (1 - KEEP) + state.smooth * KEEP
    y = torch.where(begun + 1 > WAIT, y, 0.0)
    later = spreads[..., 1:], waiting[..., 1:], y, GRID.after(begun)
    return y, FluctuationState(past, recent, found, nodes, *later)


def _amplitudes(found: Tensor) -> Tensor:
    """Amplitudes (..., 53) of a block, from the weighted powers and loudnesses of its bands."""
    power, n = found.unbind(-1)
    most = n.amax(-1, keepdim=True)
    silent = most <= 0
    y = torch.where(silent, 0.0, SIZE * power / torch.where(silent, 1.0, most))
    return torch.where(y < LEAST, 0.0, y)


def _median(spreads: Tensor, begun: Tensor) -> Tensor:
    """Median (..., 1) of those spreads (..., 71) that are of frames."""
    count = (begun + 1 - (WAIT - AROUND) + 1).clamp(1, spreads.shape[-1])
    order = torch.arange(spreads.shape[-1], dtype=count.dtype, device=count.device)
    there = order >= spreads.shape[-1] - count
    ordered = torch.where(there, spreads, torch.inf).sort(-1).values
    low, high = (ordered.gather(-1, ((count - s) / 2).floor().long()) for s in (1, 0))
    # Of what is no number, there is none.
    return (low + high) / 2 + 0 * spreads.sum(-1, keepdim=True)


class _Spectra(NamedTuple):
    """Spectra of windowed envelopes, with phases counted from the middle of the window.

    real, imaginary: (..., 49)
    length: values in the window (..., 1)
    """

    real: Tensor
    imaginary: Tensor
    length: Tensor

    def at_rates(self) -> "_Spectra":
        """With an axis of rates before the lines."""
        return _Spectra(*(v[..., None, :] for v in self))

    def detached(self) -> "_Spectra":
        return _Spectra(*(v.detach() for v in self))


def _analyzed(x: Tensor, threshold: Tensor, gains: Tensor, search: Tensor) -> Tensor:
    """Weighted powers and loudnesses (..., band, 2) of blocks of envelopes (..., band, 2048)."""
    with torch.no_grad():
        first, last, loud = _window(x)
    n = torch.arange(SIZE, dtype=x.dtype, device=x.device)
    lines = torch.fft.rfft(torch.where((n >= first) & (n <= last), x, 0.0))[..., :LINES]
    power = lines.real.square() + lines.imag.square()
    k = torch.arange(LINES, dtype=x.dtype, device=x.device)
    turn = torch.pi * (((first + last) * k) % (2 * SIZE)) / SIZE
    c, s = turn.cos(), turn.sin()
    real, imaginary = lines.real * c - lines.imag * s, lines.real * s + lines.imag * c
    spectra = _Spectra(real, imaginary, last - first + 1)
    rate, size, valid = _lines(spectra, power, search)
    heard = torch.where(valid, size * _weight(rate, gains[..., None]), -1.0)
    strongest = heard.argmax(-1, keepdim=True)
    start = rate.gather(-1, strongest)
    base = _tuned(spectra, start)
    near = (base - start).abs() <= NEAR
    base = torch.where(near, base, start)
    with torch.no_grad():
        one = _fitted(spectra.at_rates(), base)
        again = one.power * _weight(base, gains[..., None])
        slot = torch.arange(rate.shape[-1], device=x.device) == strongest
        heard = torch.where(slot & near, again, heard)
        order, members = _series(base, torch.where(slot, base, rate), heard, valid)
    number = torch.arange(1, HARMONICS + 1, dtype=x.dtype, device=x.device)
    rate = number * base / order
    fits = _fitted(spectra.at_rates(), rate)
    size = torch.where(members, fits.power, 0.0)
    heard = size * _weight(rate, gains[..., None])
    constant = torch.where(members, fits.constant, 0.0).sum(-1) / members.sum(-1).clamp(min=1)
    total = heard.sum(-1)
    some = loud.squeeze(-1) & valid.any(-1) & (base.squeeze(-1) >= LOWEST) & (total > 0)
    center = (rate * heard).sum(-1) / torch.where(some, total, 1.0)
    distance = (center - base.squeeze(-1)).abs()
    same = ~some | (distance == 0)
    apart = torch.where(same, 0.0, torch.where(same, 1.0, distance) ** 0.43461)
    mean = torch.where(some, constant.square() + 2 * size.sum(-1), 1.0)
    loudness = torch.where(some, specific_basis_loudness(0.5 * mean, threshold), 0.0)
    total = torch.where(some, (1 + 0.79577 * apart) * total, 0.0)
    # A sound that is no number has no lines.
    return torch.stack([total * loudness.square() / mean, loudness], -1) + 0 * x.sum(
        -1, keepdim=True
    )


def _window(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """First and last value to analyze of each block, and whether to do so, all (..., 1)."""
    smooth = _rounded(x.unfold(-1, MEDIAN, 1).sort(-1).values[..., MEDIAN // 2])
    edge = MARGIN - MEDIAN // 2
    smooth = smooth[..., edge : smooth.shape[-1] - edge]
    n = torch.arange(MARGIN, SIZE - MARGIN, dtype=x.dtype, device=x.device)
    most = smooth.amax(-1, keepdim=True)
    loud = most > SILENT_PA
    above = smooth >= _rounded(0.01 * most)
    first = torch.where(above, n, torch.inf).amin(-1, keepdim=True).clamp(max=SIZE - MARGIN - 1)
    last = torch.where(above, n, -torch.inf).amax(-1, keepdim=True).clamp(min=MARGIN)
    before = torch.where(above, n, MARGIN - 1.0).cummax(-1).values
    run = torch.where((n > first) & (n < last), n - before, 0.0)
    longest = run.amax(-1, keepdim=True)
    stop = run.argmax(-1, keepdim=True) + float(MARGIN)
    start = stop - longest + 1
    gap = longest > SHORTEST
    earlier = gap & (start - first > last - stop)
    last = torch.where(earlier, start - MARGIN, last)
    first = torch.where(gap & ~earlier, stop + MARGIN, first)
    loud = loud & (last - first + 1 >= SHORTEST) & (last >= SIZE // 4 - 1)
    inner = (n >= first + 10) & (n <= last - 10)
    count = inner.sum(-1, keepdim=True).clamp(min=1)

    def mean(v: Tensor) -> Tensor:
        return torch.where(inner, v, 0.0).sum(-1, keepdim=True) / count

    level, t = mean(smooth), n - mean(n.expand_as(smooth))
    rest = smooth - level
    slope = mean(rest * t) / mean(t.square()).clamp(min=1)
    loud = loud & ~(mean((rest - slope * t).square()).sqrt() < 1e-3 * level)
    return torch.where(loud, first, 0.0), torch.where(loud, last, SIZE - 1.0), loud


def _rounded(x: Tensor) -> Tensor:
    return torch.round(x * 1e8) / 1e8


def _weight(f: Tensor, gain: Tensor) -> Tensor:
    """Sensitivity to rates `f`, where that to high ones is `gain`."""
    ratio = f.clamp(min=1e-3) / BEST
    square = (ratio - 1 / ratio).square()
    slow = (1 + LOW_SLOPE**2 * square) ** -LOW_POWER
    return torch.where(f <= BEST, slow, gain * (1 + HIGH_SLOPE**2 * square) ** -HIGH_POWER)


def _lines(spectra: _Spectra, power: Tensor, search: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rates and powers of the lines of spectra, and which of these are some, all (..., 48)."""
    p0, p1, p2 = power[..., :-2], power[..., 1:-1], power[..., 2:]
    least = (0.001 * power[..., :1]).clamp(min=0.15)
    peak = (p1 > p0) & (p1 > p2) & (p1 >= least)
    k = torch.arange(1, LINES - 1, dtype=power.dtype, device=power.device)
    f = (k + torch.where(peak, p2 - p0, 0.0) / torch.where(peak, p0 + p1 + p2, 1.0)) * LINE
    with torch.no_grad():
        error = _fitted(spectra.at_rates(), search.expand(*power.shape[:-1], -1)).error
        e = error[..., 1:-1]
        low = (e < error[..., :-2]) & (e < error[..., 2:])
        deepest = torch.where(low, e, torch.inf).argmin(-1, keepdim=True) + 1
        slowest = search[deepest]
        found = low.any(-1, keepdim=True)
        rates = torch.cat([f, slowest], -1)
        all_peaks = torch.cat([peak, torch.zeros_like(found)], -1)
        apart = torch.cat([peak & ((f - slowest).abs() >= NEAR), found], -1)
        first, other = (_together(spectra, rates, v) for v in (apart, all_peaks))
        # All are apart, or there is no peak: the first set is that of both, or of the minimum.
        every = ~(peak & ~apart[..., :-1]).any(-1, keepdim=True)
        chosen = found & (every | (first.error < other.error))
        size = torch.where(chosen, first.power, other.power)
        valid = torch.where(chosen, apart, all_peaks)
        valid = valid & (size > 0.05 * torch.where(valid, size, 0.0).amax(-1, keepdim=True))
    return torch.cat([f, slowest], -1), size, valid


class _Fit(NamedTuple):
    constant: Tensor
    power: Tensor
    error: Tensor


def _used(f: Tensor) -> Tensor:
    """Lines of the spectrum (..., 49) that a fit uses whose highest rate is `f` (..., 1)."""
    k = torch.arange(LINES, dtype=f.dtype, device=f.device)
    return k < (torch.floor(f.detach() / LINE + 0.5) + 8).clamp(17, LINES)


def _of_window(length: Tensor, f: Tensor) -> Tensor:
    """The spectrum (..., 49) of exp(j 2 pi f n) in a window about n = 0."""
    k = torch.arange(LINES, dtype=length.dtype, device=length.device)
    v = torch.pi * (k / SIZE - f / RATE)
    low = v.sin()
    center = low.abs() < 1e-8
    return torch.where(center, length, (length * v).sin() / torch.where(center, 1.0, low))


def _fitted(x: _Spectra, f: Tensor, most: Tensor | None = None) -> _Fit:
    """Fits of a constant and one line at each of the rates `f` (..., rate).

    most: the rate that decides which lines of the spectrum are used
    """
    used = _used((f if most is None else most)[..., None])
    up, down = (_of_window(x.length, s * f[..., None]) for s in (1, -1))
    zero, even, odd = (
        torch.where(used, v, 0.0)
        for v in (_of_window(x.length, torch.zeros_like(x.length)), up + down, up - down)
    )

    def product(a: Tensor, b: Tensor) -> Tensor:
        return (a * b).sum(-1)

    zero_zero, even_even, odd_odd = (product(v, v) for v in (zero, even, odd))
    of_zero, of_even = product(zero, x.real), product(even, x.real)
    share = product(zero, even) / zero_zero
    rest = even_even - share * product(zero, even)
    there = rest > SMALL * even_even
    left = of_even - share * of_zero
    a = torch.where(there, left, 0.0) / torch.where(there, rest, 1.0)
    there = odd_odd > SMALL * zero_zero
    b = torch.where(there, product(odd, x.imaginary), 0.0) / torch.where(there, odd_odd, 1.0)
    total = torch.where(used, x.real.square() + x.imaginary.square(), 0.0).sum(-1)
    error = total - of_zero * of_zero / zero_zero - a * left - b * product(odd, x.imaginary)
    return _Fit(of_zero / zero_zero - share * a, a * a + b * b, error)


def _together(x: _Spectra, f: Tensor, valid: Tensor) -> _Fit:
    """The fit of a constant and the valid ones of the lines `f` (..., line) together."""
    used = _used(torch.where(valid, f, 0.0).amax(-1, keepdim=True))
    up, down = (_of_window(x.length[..., None], s * f[..., None]) for s in (1, -1))
    zero = _of_window(x.length, torch.zeros_like(x.length))
    error = torch.where(used, x.real.square() + x.imaginary.square(), 0.0).sum(-1, keepdim=True)
    found = []
    constant = torch.ones_like(valid[..., :1])
    for basis, mask, y in (
        (torch.cat([zero[..., None, :], up + down], -2), torch.cat([constant, valid], -1), x.real),
        (up - down, valid, x.imaginary),
    ):
        rows = torch.where(mask[..., None] & used[..., None, :], basis, 0.0)
        gram = rows @ rows.mT + torch.diag_embed(torch.where(mask, 0.0, 1.0).to(f.dtype))
        right = (rows @ y[..., None]).squeeze(-1)
        if gpu.serves(gram, right):
            solution = gpu.solved(gram, right)
        else:
            solution = torch.linalg.solve_ex(gram, right[..., None])[0].squeeze(-1)
        error = error - (solution * right).sum(-1, keepdim=True)
        found.append(solution)
    a, b = found[0][..., 1:], found[1]
    return _Fit(found[0][..., :1], a.square() + b.square(), error)


def _tuned(x: _Spectra, start: Tensor) -> Tensor:
    """The rates (..., 1) near `start` at which one line fits best.

    Its gradient is that of the place of the minimum, not of the steps to it.
    """
    with torch.no_grad():
        f = _descended(x, start)
    slope, bend = _slopes(x, start, f)
    bend = bend.detach()
    moved = torch.where(bend > 0, slope - slope.detach(), 0.0) / torch.where(bend > 0, bend, 1.0)
    return f - RATE * moved


def _slopes(x: _Spectra, start: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
    """Slope and bend of the error at `f`, of the lines that a fit at `start` uses."""
    steps = torch.arange(-1, 2, dtype=f.dtype, device=f.device)
    error = _fitted(x.at_rates(), f + RATE * DX * steps, start).error
    low, middle, high = error.split(1, -1)
    return (high - low) / (2 * DX), (high - 2 * middle + low) / DX**2


def _descended(x: _Spectra, start: Tensor) -> Tensor:
    """Where steps from `start` toward less error end."""
    if gpu.serves(*x, start):
        return gpu.descended(*x, start, RATE, SIZE, DX, CAP, TOLERANCE, STEPS, SMALL)
    f, goes_on = start, torch.ones_like(start, dtype=torch.bool)
    for _ in range(STEPS):
        slope, bend = _slopes(x, start, f)
        steep = slope.abs() >= CAP * bend.abs()
        change = torch.where(steep, CAP, slope.abs() / torch.where(steep, 1.0, bend.abs()))
        step = torch.where(goes_on, 0.25 * slope.sign() * change, 0.0)
        f = f - RATE * step
        goes_on = goes_on & (step.abs() > TOLERANCE)
    return f


def _series(base: Tensor, f: Tensor, heard: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """The order (..., 1) of a line `base` in the strongest harmonic series, and its orders (5).

    heard: weighted powers of the lines `f` (..., line)
    """
    energies, members = [], []
    number = torch.arange(1, HARMONICS + 1, dtype=f.dtype, device=f.device)[:, None]
    for order in range(1, SERIES + 1):
        ratio = (f / base * order)[..., None, :]
        nearest = torch.floor(ratio + 0.5) == number
        member = valid[..., None, :] & nearest & ((ratio / number - 1).abs() < 0.04)
        energies.append(torch.where(member, heard[..., None, :], 0.0).sum((-2, -1)))
        members.append(member.any(-1))
    best = torch.stack(energies, -1).argmax(-1, keepdim=True)
    every = torch.stack(members, -2)
    chosen = every.gather(-2, best[..., None].expand(*best.shape, HARMONICS)).squeeze(-2)
    return best + 1.0, chosen


def fluctuation_in_place(x: Tensor, tables: FluctuationTables, state: FluctuationState) -> Tensor:
    """The output of `fluctuation` by its compiled form, which updates `state`; nothing is checked.

    state: contiguous
    """
    lead, time = x.shape[:-2], x.shape[-1]
    sound = array(x).reshape(-1, BANDS, time)
    y = np.empty((len(sound), BANDS, time // FRAME))
    past, recent, found, nodes, spreads, waiting, smooth, begun = (
        v.numpy().reshape(-1, *shape)
        for v, shape in zip(state, fluctuation_states().values(), strict=True)
    )
    threshold, gains, search = map(array, tables)
    windowed = np.empty((PART, SIZE))
    windows = np.empty((PART, 2), np.int64)
    for frame in range(time // FRAME):
        for row in range(len(sound)):
            count = int(begun[row, 0])
            at = FRAME * count % GRID.hop
            start = frame * FRAME
            if at + FRAME >= GRID.hop:
                _end_hop(sound[row], start, at, recent[row], past[row])
            else:
                recent[row, :, at : at + FRAME] = sound[row, :, start : start + FRAME]
            part = (at + FRAME) % GRID.hop // FRAME
            if part < PARTS and FRAME * (count + 1) >= GRID.hop:
                bands = slice(part * PART, min(part * PART + PART, BANDS))
                used = bands.stop - bands.start
                _windows(past[row, bands], windowed, windows)
                lines = np.fft.rfft(windowed[:used])
                numbers = lines.view(np.float64).reshape(used, -1, 2)[:, :LINES]
                power = np.empty((used, 2))
                _all_lines(numbers, windows, gains[bands], search, power)
                n = basis_loudness_of(0.5 * power[:, 1], threshold[bands])
                _weigh(power, n, found[row, bands])
                if part == PARTS - 1:
                    push(nodes[row], _amplitudes_of(found[row]))
            _finish(nodes[row], count, spreads[row], waiting[row], smooth[row], y[row, :, frame])
            begun[row, 0] = count + 1 if count + 1 < 2 * GRID.period else GRID.period
    return torch.from_numpy(y).view(*lead, BANDS, -1)


@kernel
def _end_hop(x: Array, start: int, at: int, recent: Array, past: Array) -> None:
    """Append the hop that ends in a frame of `x` (band, time) to `past`, and begin the next."""
    hop = recent.shape[1]
    fitting = hop - at
    for band in range(x.shape[0]):
        for t in range(past.shape[1] - hop):
            past[band, t] = past[band, t + hop]
        for t in range(at):
            past[band, past.shape[1] - hop + t] = recent[band, t]
        for t in range(fitting):
            past[band, past.shape[1] - fitting + t] = x[band, start + t]
        recent[band] = 0.0
        for t in range(fitting, FRAME):
            recent[band, t - fitting] = x[band, start + t]


@kernel
def _finish(
    nodes: Array, begun: int, spreads: Array, waiting: Array, smooth: Array, y: Array
) -> None:
    now = np.empty(y.size)
    interpolate(nodes, begun - (PARTS - 1), GRID.hop, GRID.wait, now)
    count = min(max(begun + 2 - (WAIT - AROUND), 1), spreads.size + 1)
    there = np.empty(count)
    newest, number = spread_of(now), True
    there[count - 1] = newest
    for i in range(count - 1):
        there[i] = spreads[spreads.size - count + 1 + i]
    for i in range(count):
        number = number and there[i] == there[i]
    median = np.nan
    if number:  # sorting NaN would leave the array
        there.sort()
        median = 0.5 * (there[(count - 1) // 2] + there[count // 2])
    for i in range(spreads.size - 1):
        spreads[i] = spreads[i + 1]
    spreads[spreads.size - 1] = newest
    due = waiting[:, 0].copy()
    for band in range(y.size):
        for i in range(AROUND - 1):
            waiting[band, i] = waiting[band, i + 1]
        waiting[band, AROUND - 1] = now[band]
    sharpen(due, median, FLUCTUATION, now)
    for band in range(y.size):
        value = now[band] * (1 - KEEP) + smooth[band] * KEEP
        y[band] = smooth[band] = value if begun + 1 > WAIT else 0.0


@kernel
def _amplitudes_of(found: Array) -> Array:
    """The compiled form of `_amplitudes`."""
    out, most = np.zeros(BANDS), 0.0
    for band in range(BANDS):
        n = found[band, 1]
        if n != n:
            out[:] = np.nan
            return out
        most = max(most, n)
    for band in range(BANDS):
        if most > 0:
            y = SIZE * found[band, 0] / most
            out[band] = 0.0 if y < LEAST else y
    return out


@kernel
def _weigh(power: Array, n: Array, found: Array) -> None:
    """Fill `found` (band, 2) from weighted and mean powers (band, 2) and loudnesses."""
    for band in range(n.size):
        if power[band, 1] != power[band, 1]:
            found[band] = np.nan
        elif power[band, 1] <= 0:
            found[band] = 0.0
        else:
            found[band, 0] = power[band, 0] * n[band] * n[band] / power[band, 1]
            found[band, 1] = n[band]


@kernel
def _windows(x: Array, y: Array, windows: Array) -> None:
    """Fill `y` with windowed envelopes `x` (band, 2048), and `windows` with firsts and lasts.

    The first is -1 for a band that is quiet, and -2 for one that is no number.
    """
    _smooth(x, y)
    for band in range(x.shape[0]):
        first, last = _window_of(x[band], y[band])
        windows[band, 0], windows[band, 1] = first, last
        for t in range(SIZE):
            y[band, t] = x[band, t] if first >= 0 and first <= t <= last else 0.0


@kernel
def _smooth(x: Array, y: Array) -> None:
    """Fill `y` (band, 2048) with running medians of up to `LANES` bands, but for the margins."""
    bands, half = x.shape[0], MEDIAN // 2
    tile, ordered = np.zeros((SPAN + MEDIAN, LANES)), np.zeros((MEDIAN + 1, LANES))
    ordered[MEDIAN] = np.inf
    for start in range(MARGIN, SIZE - MARGIN, SPAN):
        length = min(SPAN, SIZE - MARGIN - start)
        load(x, 0, bands, start - half - 1, length + MEDIAN, tile)
        if start == MARGIN:
            for band in range(bands):
                ordered[:MEDIAN, band] = np.sort(tile[:MEDIAN, band])
        for t in range(length):
            # The new value joins the ordered ones, which from the old one on move a place back.
            old, new = _lanes(tile, t, 0), _lanes(tile, t + MEDIAN, 0)
            before = _lanes(ordered, 0, 0)
            joined = where(before < new, before, new)
            for i in range(MEDIAN):
                after = _lanes(ordered, i + 1, 0)
                least = where(after < new, after, new)
                following = where(before > least, before, least)
                put(where(joined < old, joined, following), ordered, i, 0)
                before, joined = after, following
            put(_lanes(ordered, half, 0), tile, t, 0)
        store(tile, 0, bands, start, length, y)
    for band in range(bands):
        for t in range(MARGIN, SIZE - MARGIN):
            y[band, t] = np.rint(y[band, t] * 1e8) / 1e8


@kernel
def _window_of(x: Array, smooth: Array) -> tuple[int, int]:
    """The compiled form of `_window`, of an envelope and its running medians."""
    quiet = -1, -1
    total = 0.0
    for t in range(SIZE):
        total += x[t]
    if not abs(total) < np.inf:
        return -2, -2
    most = 0.0
    for t in range(MARGIN, SIZE - MARGIN):
        most = max(most, smooth[t])
    if most <= SILENT_PA:
        return quiet
    least = np.rint(0.01 * most * 1e8) / 1e8
    first, last = MARGIN, SIZE - MARGIN - 1
    while smooth[first] < least:
        first += 1
    while smooth[last] < least:
        last -= 1
    longest = run = stop = 0
    for t in range(first + 1, last):
        run = run + 1 if smooth[t] < least else 0
        if run > longest:
            longest, stop = run, t
    if longest > SHORTEST:
        start = stop - longest + 1
        if start - first > last - stop:
            last = start - MARGIN
        else:
            first = stop + MARGIN
    if last - first + 1 < SHORTEST or last < SIZE // 4 - 1:
        return quiet
    count = last - first - 19
    level, middle = 0.0, 0.5 * (first + last)
    for t in range(first + 10, last - 9):
        level += smooth[t]
    level /= count
    across = square = 0.0
    for t in range(first + 10, last - 9):
        across += (smooth[t] - level) * (t - middle)
        square += (t - middle) ** 2
    slope, rest = across / square, 0.0
    for t in range(first + 10, last - 9):
        rest += (smooth[t] - level - slope * (t - middle)) ** 2
    if np.sqrt(rest / count) < 1e-3 * level:
        return quiet
    return first, last


@kernel
def _all_lines(lines: Array, windows: Array, gains: Array, search: Array, power: Array) -> None:
    """Fill weighted and mean powers (band, 2) from spectra (band, 49, 2): 0 for none."""
    fits = np.empty((5, LINES))
    turn = np.empty((5, LINES))
    for k in range(LINES):
        turn[0, k], turn[1, k] = np.sin(np.pi * k / SIZE), np.cos(np.pi * k / SIZE)
    for band in range(len(lines)):
        first, last = windows[band]
        power[band] = 0.0
        if first == -2:
            power[band] = np.nan
        elif first >= 0:
            _turned(lines[band], first, last, turn, fits)
            _one_band(lines[band], last - first + 1, gains[band], search, turn, fits, power[band])


@kernel
def _turned(lines: Array, first: int, last: int, turn: Array, fits: Array) -> None:
    """Turn phases to the middle of a window: real and imaginary parts, and the window's own.

    turn: sines and cosines of the lines, to which those of the window's length are added
    fits: real part, imaginary part, spectrum of the window, and sums over lines that fits need
    """
    length = last - first + 1
    for k in range(LINES):
        angle = np.pi * ((first + last) * k % (2 * SIZE)) / SIZE
        c, s = np.cos(angle), np.sin(angle)
        fits[0, k] = lines[k, 0] * c - lines[k, 1] * s
        fits[1, k] = lines[k, 0] * s + lines[k, 1] * c
        angle = np.pi * (length * k % (2 * SIZE)) / SIZE
        turn[2, k], turn[3, k] = np.sin(angle), np.cos(angle)
        fits[2, k] = turn[2, k] / turn[0, k] if k else length


@kernel
def _lines_used(f: float) -> int:
    return int(min(max(np.floor(f / LINE + 0.5) + 8, 17), LINES))


@kernel
def _one_fit(
    f: float, count: int, length: int, turn: Array, fits: Array
) -> tuple[float, float, float]:
    """The compiled form of `_fitted` for one rate."""
    theta = np.pi * f / RATE
    s1, c1 = np.sin(theta), np.cos(theta)
    s2, c2 = np.sin(length * theta), np.cos(length * theta)
    zero_zero = zero_even = even_even = odd_odd = 0.0
    of_zero = of_even = of_odd = total = 0.0
    for k in range(count):
        low = turn[0, k] * c1 - turn[1, k] * s1
        up = (turn[2, k] * c2 - turn[3, k] * s2) / low if abs(low) >= 1e-8 else length
        low = turn[0, k] * c1 + turn[1, k] * s1
        down = (turn[2, k] * c2 + turn[3, k] * s2) / low if abs(low) >= 1e-8 else length
        even, odd, zero = up + down, up - down, fits[2, k]
        zero_zero += zero * zero
        zero_even += zero * even
        even_even += even * even
        odd_odd += odd * odd
        of_zero += zero * fits[0, k]
        of_even += even * fits[0, k]
        of_odd += odd * fits[1, k]
        total += fits[0, k] * fits[0, k] + fits[1, k] * fits[1, k]
    share = zero_even / zero_zero
    rest, left = even_even - share * zero_even, of_even - share * of_zero
    a = left / rest if rest > SMALL * even_even else 0.0
    b = of_odd / odd_odd if odd_odd > SMALL * zero_zero else 0.0
    error = total - of_zero * of_zero / zero_zero - a * left - b * of_odd
    return of_zero / zero_zero - share * a, a * a + b * b, error


@kernel
def _together_fit(f: Array, length: int, turn: Array, fits: Array, size: Array) -> float:
    """The compiled form of `_together` for lines `f`: fills their powers, gives the error."""
    number = f.size
    count = _lines_used(f.max())
    even, odd = np.empty((number + 1, count)), np.empty((number, count))
    for k in range(count):
        even[0, k] = fits[2, k]
    error = 0.0
    for k in range(count):
        error += fits[0, k] * fits[0, k] + fits[1, k] * fits[1, k]
    for i in range(number):
        theta = np.pi * f[i] / RATE
        s1, c1 = np.sin(theta), np.cos(theta)
        s2, c2 = np.sin(length * theta), np.cos(length * theta)
        for k in range(count):
            low = turn[0, k] * c1 - turn[1, k] * s1
            up = (turn[2, k] * c2 - turn[3, k] * s2) / low if abs(low) >= 1e-8 else length
            low = turn[0, k] * c1 + turn[1, k] * s1
            down = (turn[2, k] * c2 + turn[3, k] * s2) / low if abs(low) >= 1e-8 else length
            even[i + 1, k], odd[i, k] = up + down, up - down
    a, b = _least_squares(even, fits[0]), _least_squares(odd, fits[1])
    for i in range(number + 1):
        error -= a[0, i] * a[1, i]
    for i in range(number):
        error -= b[0, i] * b[1, i]
        size[i] = a[0, i + 1] ** 2 + b[0, i] ** 2
    return error


@kernel
def _least_squares(basis: Array, y: Array) -> Array:
    """Coefficients of the rows of `basis` that fit `y` best, and the products of both."""
    number, count = basis.shape
    gram, out = np.empty((number, number)), np.empty((2, number))
    for i in range(number):
        for j in range(i + 1):
            total = 0.0
            for k in range(count):
                total += basis[i, k] * basis[j, k]
            gram[i, j] = total
        total = 0.0
        for k in range(count):
            total += basis[i, k] * y[k]
        out[0, i] = out[1, i] = total
    # Cholesky's factors take the place of the products.
    for i in range(number):
        for j in range(i + 1):
            total = gram[i, j]
            for k in range(j):
                total -= gram[i, k] * gram[j, k]
            gram[i, j] = np.sqrt(total) if i == j else total / gram[j, j]
    x = out[0]
    for i in range(number):
        for k in range(i):
            x[i] -= gram[i, k] * x[k]
        x[i] /= gram[i, i]
    for i in range(number - 1, -1, -1):
        for k in range(i + 1, number):
            x[i] -= gram[k, i] * x[k]
        x[i] /= gram[i, i]
    return out


@kernel
def _weight_of(f: float, gain: float) -> float:
    """The compiled form of `_weight`."""
    ratio = max(f, 1e-3) / BEST
    square = (ratio - 1 / ratio) ** 2
    if f <= BEST:
        return (1 + LOW_SLOPE**2 * square) ** -LOW_POWER
    return gain * (1 + HIGH_SLOPE**2 * square) ** -HIGH_POWER


@kernel
def _find_lines(
    lines: Array, length: int, search: Array, turn: Array, fits: Array, f: Array, size: Array
) -> int:
    """The compiled form of `_lines`: fills `f` and `size`, and gives their number."""
    power = np.empty(LINES)
    for k in range(LINES):
        power[k] = lines[k, 0] ** 2 + lines[k, 1] ** 2
    least, peaks = max(0.001 * power[0], 0.15), 0
    for k in range(1, LINES - 1):
        p0, p1, p2 = power[k - 1], power[k], power[k + 1]
        if p1 > p0 and p1 > p2 and p1 >= least:
            f[peaks] = (k + (p2 - p0) / (p0 + p1 + p2)) * LINE
            peaks += 1
    error = np.empty(search.size)
    for i in range(search.size):
        error[i] = _one_fit(search[i], _lines_used(search[i]), length, turn, fits)[2]
    deepest, lowest = 0, np.inf
    for i in range(1, search.size - 1):
        if error[i] < error[i - 1] and error[i] < error[i + 1] and error[i] < lowest:
            deepest, lowest = i, error[i]
    count = peaks
    if deepest:
        apart, sizes, far = np.empty(peaks + 1), np.empty(peaks + 1), 0
        for i in range(peaks):
            if abs(f[i] - search[deepest]) >= NEAR:
                apart[far] = f[i]
                far += 1
        apart[far] = search[deepest]
        first = _together_fit(apart[: far + 1], length, turn, fits, sizes)
        chosen = far == peaks
        if not chosen:
            chosen = first < _together_fit(f[:peaks], length, turn, fits, size)
        if chosen:
            count = far + 1
            f[:count], size[:count] = apart[:count], sizes[:count]
    elif peaks:
        _together_fit(f[:peaks], length, turn, fits, size)
    highest, kept = 0.0, 0
    for i in range(count):
        highest = max(highest, size[i])
    for i in range(count):
        if size[i] > 0.05 * highest:
            f[kept], size[kept] = f[i], size[i]
            kept += 1
    return kept


@kernel
def _tune(start: float, length: int, turn: Array, fits: Array) -> float:
    """The compiled form of `_tuned`."""
    f, count, d = start, _lines_used(start), RATE * DX
    for _ in range(STEPS):
        low = _one_fit(f - d, count, length, turn, fits)[2]
        middle = _one_fit(f, count, length, turn, fits)[2]
        high = _one_fit(f + d, count, length, turn, fits)[2]
        slope, bend = (high - low) / (2 * DX), abs((high - 2 * middle + low) / DX**2)
        change = CAP if abs(slope) >= CAP * bend else abs(slope) / bend
        step = 0.25 * np.sign(slope) * change
        f -= RATE * step
        if abs(step) <= TOLERANCE:
            break
    return f


@kernel
def _one_band(
    lines: Array,
    length: int,
    gain: float,
    search: Array,
    turn: Array,
    fits: Array,
    power: Array,
) -> None:
    """The compiled form of `_analyzed` for a band's spectrum: weighted and mean power."""
    f, size = np.empty(LINES), np.empty(LINES)
    count = _find_lines(lines, length, search, turn, fits, f, size)
    if not count:
        return
    heard, strongest = np.empty(count), 0
    for i in range(count):
        heard[i] = size[i] * _weight_of(f[i], gain)
        if heard[i] > heard[strongest]:
            strongest = i
    base = _tune(f[strongest], length, turn, fits)
    if abs(base - f[strongest]) <= NEAR:
        f[strongest] = base
        again = _one_fit(base, _lines_used(base), length, turn, fits)[1]
        heard[strongest] = again * _weight_of(base, gain)
    base = f[strongest]
    if base < LOWEST:
        return
    most, best, members = -1.0, 1, np.zeros((SERIES, HARMONICS), np.bool_)
    for order in range(1, SERIES + 1):
        energy = 0.0
        for i in range(count):
            ratio = f[i] / base * order
            number = int(np.floor(ratio + 0.5))
            if 1 <= number <= HARMONICS and abs(ratio / number - 1) < 0.04:
                energy += heard[i]
                members[order - 1, number - 1] = True
        if energy > most:
            most, best = energy, order
    constant = total = center = square = 0.0
    number = 0
    for i in range(HARMONICS):
        if members[best - 1, i]:
            rate = (i + 1) * base / best
            p0, own, _ = _one_fit(rate, _lines_used(rate), length, turn, fits)
            weighted = own * _weight_of(rate, gain)
            constant += p0
            square += own
            total += weighted
            center += rate * weighted
            number += 1
    if total > 0:
        power[0] = (1 + 0.79577 * abs(center / total - base) ** 0.43461) * total
        power[1] = (constant / number) ** 2 + 2 * square
