"""Tonal and noise parts of specific loudness by autocorrelation (ECMA-418-2:2025, 5 and 6.2)."""

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.dispatch import Array, array, compiled, kernel
from amt_stream.dsp.functional.gammatone import gammatone_sum
from amt_stream.dsp.functional.operators import operator
from amt_stream.dsp.functional.shapes import fit, signal_axes, whole_blocks
from amt_stream.dsp.functional.threads import one_thread
from amt_stream.dsp.scales import P0

FS = 48000

HOP = 256
"""Samples between frames."""

STEP = 2048
"""Samples after which the phases of all blocks repeat."""

BANDS = 53

CENTERS = 81.9289 / 0.1618 * np.sinh(0.1618 * 0.5 * np.arange(1, BANDS + 1))
"""Center frequencies in Hz, half a Bark_HMS apart."""

BANDWIDTHS = np.sqrt(81.9289**2 + (0.1618 * CENTERS) ** 2)
"""In Hz."""

_SHORTEST = np.maximum(0.5 / BANDWIDTHS, 0.002)
LAGS = np.stack(
    [
        np.ceil(FS * _SHORTEST) - 1,
        np.floor(FS * np.maximum(4 / BANDWIDTHS, _SHORTEST + 0.001)) - 1,
    ],
    1,
).astype(int)
"""First and last lag in samples that shows a tone, per band (53, 2)."""

EPSILON = 1e-12
"""Added to denominators."""

QUIET = 1e-20
"""Lower bound of a power in Pa^2, for gradients: far below every threshold."""

LOUDNESS = 0.0211964
"""Calibration of specific loudness, c_N, in sone_HMS/Bark_HMS."""

KNEES_DB = (15, 25, 35, 45, 55, 65, 75, 85)
"""Levels in dB at which the exponent of loudness changes."""

EXPONENTS = (1.0, 0.6602, 0.0864, 0.6384, 0.0328, 0.4068, 0.2082, 0.3994, 0.6434)
"""Exponents of loudness re pressure, below the first knee and after each."""

LINES = 16384
"""Length of the transform over lags, which is the grid of a tone's frequencies."""

MOST_SNR = 1e6
"""Bound of the ratio of tone to noise; beyond it, nothing changes by more than 1e-6."""

GATE = (20.0, 0.07)
"""Slope and threshold of the noise reduction."""

LEAST_SHARE = 1e-6
"""Energy of the overlapping parts of a block, re the block's, below which only rounding is left.

It is less in the first samples after digital silence alone."""


class BlocksOfSize(NamedTuple):
    """Blocks of `size` samples, each size / 4 after the last, and the bands that use them.

    first, last: bands whose blocks are analyzed, both included
    targets: first and last band that take the mean of their neighbors among these
    transform: length that holds the autocorrelation at the largest lag without aliasing
    averaged: whether three blocks are averaged over time
    wait: frames for which these bands wait, so that all give the same ones, and none before it is
        due: the first of a step is there only when its last is
    """

    size: int
    first: int
    last: int
    targets: tuple[int, int]
    transform: int
    averaged: bool
    wait: int

    @property
    def hop(self) -> int:
        """Samples between blocks."""
        return self.size // 4

    @property
    def lags(self) -> int:
        """The largest lag of the target bands."""
        return int(LAGS[self.targets[0] : self.targets[1] + 1, 1].max())


SIZES = (
    BlocksOfSize(8192, 0, 4, (0, 2), 10800, True, 7),
    BlocksOfSize(4096, 1, 17, (3, 15), 6400, True, 11),
    BlocksOfSize(2048, 15, 25, (16, 24), 3200, False, 15),
    BlocksOfSize(1024, 25, 52, (25, 52), 1600, False, 15),
)

LONGEST_WAIT = max(blocks.wait for blocks in SIZES)
"""In frames; the latency."""


def specific_basis_loudness(power: Tensor, threshold: Tensor) -> Tensor:
    """Specific basis loudness in sone_HMS/Bark_HMS (ECMA-418-2:2025, formulas 23 to 25).

    power: mean square in Pa^2 of a band, where a sine has that of its RMS
    threshold: in quiet, of the band
    """
    ratio = power.clamp(min=QUIET) / P0**2
    # The product of powers as a sum of logarithms, which cost less.
    rise = ratio**0.75
    total = torch.zeros_like(rise)
    for knee_db, below, above in zip(KNEES_DB, EXPONENTS, EXPONENTS[1:], strict=False):
        total = total + (above - below) / 1.5 * torch.log1p(10 ** (-0.075 * knee_db) * rise)
    return (LOUDNESS * ratio.sqrt() * total.exp() - threshold).clamp(min=0)


def neighbors(blocks: BlocksOfSize) -> np.ndarray:
    """Weights (target, source) of the mean over neighboring bands."""
    bands = np.arange(blocks.first, blocks.last + 1)
    target = np.arange(blocks.targets[0], blocks.targets[1] + 1)[:, None]
    reach = {8192: 2, 4096: 2, 2048: 1, 1024: 0}[blocks.size]
    above = np.where(target < reach, 1, reach)  # the two lowest bands have one neighbor above
    weights = (bands >= target - reach) & (bands <= target + above)
    return weights / weights.sum(1, keepdims=True)


class TonalTables(NamedTuple):
    """Tables of `tonal_and_noise`, in float64.

    threshold: basis loudness at the threshold in quiet (53,)
    window: 1 for the `LAGS` of a band, else 0 (53, most lags + 1)
    neighbors_...: weights of the mean over bands (target, source), by block size
    gate: divisor of the smoothed ratio of tone to noise (53,)
    smoothing, weights: of the low-pass over frames, (3, 159) and (3, 159) of `gammatone_sum`
    """

    threshold: Tensor
    window: Tensor
    neighbors_8192: Tensor
    neighbors_4096: Tensor
    neighbors_2048: Tensor
    neighbors_1024: Tensor
    gate: Tensor
    smoothing: Tensor
    weights: Tensor


def _autocorrelation(x: Tensor, blocks: BlocksOfSize, threshold: Tensor, lags: int) -> Tensor:
    """Autocorrelation of each block of rectified bands (..., band, time), scaled to loudness.

    Gives the lags 0 to `lags` (..., band, block, lag).
    """
    if compiled(x, threshold):
        return _compiled_autocorrelation(x, blocks, threshold, lags)
    x = x.unfold(-1, blocks.size, blocks.hop)
    square = x.square()
    power = square.sum(-1) * (2 / blocks.size)
    lines = torch.fft.rfft(x, blocks.transform)
    r = torch.fft.irfft(lines.real.square() + lines.imag.square(), blocks.transform)
    # Energies of the earlier and the later part, each summed from its own end: a difference of two
    # sums would cancel at an onset.
    start = blocks.size - 1 - lags
    left, right = (v.cumsum(-1)[..., start:].flip(-1) for v in (square, square.flip(-1)))
    energy = (left * right).clamp(min=QUIET**2).sqrt()
    energy = torch.maximum(energy, LEAST_SHARE * square.sum(-1, keepdim=True))
    loudness = specific_basis_loudness(power, threshold[:, None])
    return loudness[..., None] * r[..., : lags + 1] / (energy + EPSILON)


def _compiled_autocorrelation(
    x: Tensor, blocks: BlocksOfSize, threshold: Tensor, lags: int
) -> Tensor:
    """The same by one transform for each hop of 1/4 block, which four blocks share.

    Correlations of a hop with itself and with those after it add up to that of the block.
    """
    hop, bands = blocks.hop, x.shape[-2]
    sound = array(x).reshape(-1, bands, x.shape[-1] // hop, hop)
    rows, count = len(sound), sound.shape[2] - 3
    most = _most_lags(blocks)
    segments = most // hop + 1
    first = np.cumsum(segments) - segments
    cut, head, tail = np.empty((*sound.shape[:3], 2 * hop)), np.empty_like(sound), sound.copy()
    _energies(sound, cut, head, tail)
    lines = torch.view_as_real(torch.fft.rfft(torch.from_numpy(cut))).numpy()
    products = np.empty((rows, count, int(segments.sum()), hop + 1, 2))
    _add_products(lines, segments, first, products)
    r = torch.fft.irfft(torch.view_as_complex(torch.from_numpy(products)), 2 * hop).numpy()
    total = np.lib.stride_tricks.sliding_window_view(tail[..., 0], 4, 2).sum(-1)
    loudness = specific_basis_loudness(
        torch.from_numpy(total) * (2 / blocks.size), threshold[:, None]
    )
    y = np.zeros((rows, bands, count, lags + 1))
    least = int(LAGS[blocks.targets[0] : blocks.targets[1] + 1, 0].min())
    _normalize(r, first, head, tail, loudness.numpy(), total, least, most, y)
    return torch.from_numpy(y).view(*x.shape[:-1], count, lags + 1)


@cache
def _most_lags(blocks: BlocksOfSize) -> Array:
    """The largest lag at which a target band takes each band of these blocks."""
    first, last = blocks.targets
    used = neighbors(blocks) > 0
    return (used * LAGS[first : last + 1, 1:]).max(0)


@kernel
def _energies(x: Array, cut: Array, head: Array, tail: Array) -> None:
    """Hops `x` (row, band, hop, time) followed by zeros, and energies of their parts.

    head: of all but the last t samples; tail: of all but the first t. Each is summed from its own
    end: a difference of two sums would cancel at an onset.
    """
    hop = x.shape[3]
    for row in range(x.shape[0]):
        for band in range(x.shape[1]):
            for k in range(x.shape[2]):
                u, out = x[row, band, k], cut[row, band, k]
                before, after = head[row, band, k], tail[row, band, k]
                total = 0.0
                for t in range(hop):
                    total += u[t] * u[t]
                    before[hop - 1 - t] = total
                    out[t] = u[t]
                    out[hop + t] = 0.0
                total = 0.0
                for t in range(hop - 1, -1, -1):
                    total += u[t] * u[t]
                    after[t] = total


@kernel
def _add_products(lines: Array, segments: Array, first: Array, y: Array) -> None:
    """Spectra of correlations, at lags of one hop each, from `lines` (row, band, hop, line, 2)."""
    count, hops, size = y.shape[1], lines.shape[2], lines.shape[3]
    pair, sums = np.empty((4, hops, size, 2)), np.empty((4, size, 2))
    # Half a transform later, every other line turns.
    turn = np.ones((size, 2))
    turn[1::2] = -1.0
    turned = turn.reshape(2 * size)
    for row in range(lines.shape[0]):
        for band in range(lines.shape[1]):
            reach = min(3, segments[band])
            for apart in range(reach + 1):
                for k in range(hops - apart):
                    a, b, out = lines[row, band, k], lines[row, band, k + apart], pair[apart, k]
                    for f in range(size):
                        out[f, 0] = a[f, 0] * b[f, 0] + a[f, 1] * b[f, 1]
                        out[f, 1] = a[f, 0] * b[f, 1] - a[f, 1] * b[f, 0]
            for block in range(count):
                for apart in range(reach + 1):
                    total = sums[apart].reshape(2 * size)
                    one = pair[apart, block].reshape(2 * size)
                    for i in range(2 * size):
                        total[i] = one[i]
                    for k in range(1, 4 - apart):
                        one = pair[apart, block + k].reshape(2 * size)
                        for i in range(2 * size):
                            total[i] += one[i]
                for segment in range(segments[band]):
                    out = y[row, block, first[band] + segment].reshape(2 * size)
                    near = sums[segment].reshape(2 * size)
                    if segment == 3:  # of the last hop alone
                        for i in range(2 * size):
                            out[i] = near[i]
                        continue
                    far = sums[segment + 1].reshape(2 * size)
                    for i in range(2 * size):
                        out[i] = near[i] + turned[i] * far[i]


@kernel
def _normalize(
    r: Array,
    first: Array,
    head: Array,
    tail: Array,
    loudness: Array,
    total: Array,
    least: int,
    most: Array,
    y: Array,
) -> None:
    """Correlations `r` over the energies of both parts of a block, times its loudness.

    At lag 0 and from `least` to `most` of the band.
    """
    hop = head.shape[3]
    for row in range(y.shape[0]):
        for band in range(y.shape[1]):
            for block in range(y.shape[2]):
                scale, out = loudness[row, band, block], y[row, band, block]
                floor = LEAST_SHARE * total[row, band, block]
                energy = total[row, band, block]
                out[0] = scale * r[row, block, first[band], 0] / (energy + EPSILON)
                for segment in range(most[band] // hop + 1):
                    before = after = 0.0
                    for k in range(3 - segment):
                        before += tail[row, band, block + k, 0]
                        after += tail[row, band, block + 3 - k, 0]
                    early, late = (
                        head[row, band, block + 3 - segment],
                        tail[row, band, block + segment],
                    )
                    given = r[row, block, first[band] + segment]
                    begin = max(0, least - segment * hop)
                    end = min(hop, most[band] + 1 - segment * hop)
                    part = out[segment * hop : segment * hop + end]
                    for t in range(begin, end):
                        energy = np.sqrt((before + early[t]) * (after + late[t]))
                        part[t] = scale * given[t] / (max(energy, floor) + EPSILON)


def _tone(a: Tensor, bands: tuple[int, int], window: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Estimates (..., band, block) of tonal loudness, total loudness and frequency in Hz.

    a: mean autocorrelation (..., band, block, lag) of these bands
    window: (53, lag), 1 for the lags in use
    """
    total = a[..., 0]
    if compiled(a, window):
        rows = array(a).reshape(-1, *a.shape[-3:])
        most, hz = _strongest_line(rows, LAGS[bands[0] : bands[1] + 1])
        tonal, frequency = (torch.from_numpy(v.reshape(total.shape)) for v in (most, hz))
        # A sound that is no number has no frequency.
        return torch.minimum(tonal, total), total, frequency + 0 * total
    used = window[bands[0] : bands[1] + 1, None, : a.shape[-1]]
    count = used.sum(-1)
    centered = (a - ((a * used).sum(-1) / count)[..., None]) * used
    lines = torch.fft.rfft(centered, LINES)
    most, at = (lines.real.square() + lines.imag.square()).max(-1)
    tonal = 4 / count * most.clamp(min=QUIET**2).sqrt()
    return torch.minimum(tonal, total), total, at * (FS / LINES) + 0 * total


def _strongest_line(a: Array, lags: Array) -> tuple[Array, Array]:
    """Twice the amplitude and frequency of the strongest of `LINES`, per row, band and block.

    From shorter transforms, whose maxima are then followed on the full grid.
    """
    found = []
    for size, bands in _transforms(lags):
        part, used = np.ascontiguousarray(a[:, bands]), lags[bands]
        centered, y = np.zeros((*part.shape[:-1], size)), np.empty((2, *part.shape[:-1]))
        _center(part, used, centered)
        lines = torch.view_as_real(torch.fft.rfft(torch.from_numpy(centered))).numpy()
        _follow(lines, centered, used, LINES // size, y[0], y[1])
        found.append(y)
    most, hz = np.concatenate(found, 2)
    return most, hz


def _transforms(lags: Array) -> list[tuple[int, slice]]:
    """Lengths of transforms, 3 times the number of lags at least, and the bands of each."""
    sizes = [1 << int(3 * (last - first + 1) - 1).bit_length() for first, last in lags]
    edges = [k for k in range(len(sizes)) if not k or sizes[k] != sizes[k - 1]]
    return [
        (sizes[k], slice(k, after))
        for k, after in zip(edges, [*edges[1:], len(sizes)], strict=True)
    ]


@kernel
def _center(a: Array, lags: Array, y: Array) -> None:
    for row in range(a.shape[0]):
        for band in range(a.shape[1]):
            first, count = lags[band, 0], lags[band, 1] - lags[band, 0] + 1
            for block in range(a.shape[2]):
                used, out = a[row, band, block, first : first + count], y[row, band, block]
                total = 0.0
                for m in range(count):
                    total += used[m]
                for m in range(count):
                    out[m] = used[m] - total / count


@kernel
def _powers_of_lines(x: Array, count: int, line: int) -> tuple[float, float, float]:
    """Squared magnitudes of one of `LINES` of the first `count` samples, and of its neighbors."""
    c0 = 2 * np.cos(2 * np.pi * (line - 1) / LINES)
    c1 = 2 * np.cos(2 * np.pi * line / LINES)
    c2 = 2 * np.cos(2 * np.pi * (line + 1) / LINES)
    # Goertzel's recurrence, of the three side by side.
    a0 = b0 = a1 = b1 = a2 = b2 = 0.0
    for m in range(count):
        a0, b0 = x[m] - b0 + c0 * a0, a0
        a1, b1 = x[m] - b1 + c1 * a1, a1
        a2, b2 = x[m] - b2 + c2 * a2, a2
    return (
        a0 * a0 + b0 * b0 - c0 * a0 * b0,
        a1 * a1 + b1 * b1 - c1 * a1 * b1,
        a2 * a2 + b2 * b2 - c2 * a2 * b2,
    )


@kernel
def _follow(lines: Array, x: Array, lags: Array, step: int, most: Array, hz: Array) -> None:
    last = lines.shape[3] - 1
    power = np.empty(last + 1)
    for row in range(x.shape[0]):
        for band in range(x.shape[1]):
            count = lags[band, 1] - lags[band, 0] + 1
            for block in range(x.shape[2]):
                line, sound = lines[row, band, block], x[row, band, block]
                highest = 0.0
                for k in range(last + 1):
                    power[k] = line[k, 0] * line[k, 0] + line[k, 1] * line[k, 1]
                    highest = max(highest, power[k])
                best, at = 0.0, 0
                for k in range(last + 1):
                    # Between two lines of a transform 3 times as long as the sound, a maximum is at
                    # most 1 / cos(pi / 6) as high as the nearer one (Bernstein's inequality).
                    if power[k] < 0.74 * highest or power[k] == 0.0:
                        continue
                    left, right = power[abs(k - 1)], power[last - abs(last - k - 1)]
                    if left > power[k] or right > power[k]:
                        continue
                    curve = left - 2 * power[k] + right
                    offset = 0.5 * (left - right) / curve if curve < 0 else 0.0
                    fine = min(max(round((k + offset) * step), 0), LINES // 2)
                    while True:
                        below, here, above = _powers_of_lines(sound, count, fine)
                        if above > here and above >= below and fine < LINES // 2:
                            fine += 1
                        elif below > here and fine > 0:
                            fine -= 1
                        else:
                            break
                    if here > best:
                        best, at = here, fine
                most[row, band, block] = 4 / count * np.sqrt(best)
                hz[row, band, block] = at * FS / LINES


def _frames(before: Tensor, native: Tensor, per_block: int) -> Tensor:
    """Values (..., block) of blocks as frames, linear from `before` (...) to the last."""
    points = torch.cat([before[..., None], native], -1)
    part = torch.arange(1, per_block + 1, dtype=native.dtype, device=native.device) / per_block
    return (points[..., :-1, None] + points.diff(dim=-1)[..., None] * part).flatten(-2)


class State(NamedTuple):
    """State of `tonal_and_noise`, in float64.

    sound_...: the last samples of the bands (..., band, 3 size / 4), rectified
    rows_...: the last two means over bands, where blocks are averaged (..., target band, 2, lag)
    last: the last estimates of each band (..., 3, 53)
    late: estimates that wait for those of longer blocks (..., 3, 53, 15)
    smooth: of the low-pass (..., 2, 3, 159)
    begun: frames since the beginning, until the first that stands for sound (..., 1)
    """

    sound_8192: Tensor
    sound_4096: Tensor
    sound_2048: Tensor
    sound_1024: Tensor
    rows_8192: Tensor
    rows_4096: Tensor
    last: Tensor
    late: Tensor
    smooth: Tensor
    begun: Tensor


def table_shapes() -> dict[str, tuple[int, ...]]:
    """Shapes of `TonalTables`."""
    shapes: dict[str, tuple[int, ...]] = {
        "threshold": (BANDS,),
        "window": (BANDS, int(LAGS.max()) + 1),
        "gate": (BANDS,),
        "smoothing": (3, 3 * BANDS),
        "weights": (3, 3 * BANDS),
    }
    for blocks in SIZES:
        targets = blocks.targets[1] - blocks.targets[0] + 1
        shapes[f"neighbors_{blocks.size}"] = (targets, blocks.last - blocks.first + 1)
    return shapes


def state_shapes() -> dict[str, tuple[int, ...]]:
    """Shapes of `State`, without leading axes."""
    shapes: dict[str, tuple[int, ...]] = {}
    for blocks in SIZES:
        shapes[f"sound_{blocks.size}"] = (blocks.last - blocks.first + 1, 3 * blocks.hop)
        if blocks.averaged:
            targets = blocks.targets[1] - blocks.targets[0] + 1
            shapes[f"rows_{blocks.size}"] = (targets, 2, blocks.lags + 1)
    shapes |= {"last": (3, BANDS), "late": (3, BANDS, LONGEST_WAIT), "smooth": (2, 3, 3 * BANDS)}
    shapes["begun"] = (1,)
    return {name: shapes[name] for name in State._fields}


def _estimates(
    x: Tensor, blocks: BlocksOfSize, tables: TonalTables, sound: Tensor, rows: Tensor | None
) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor, Tensor | None]:
    """`_tone` of whole steps of band signals, and what goes into `State`."""
    sources = slice(blocks.first, blocks.last + 1)
    joined = torch.cat([sound, x[..., sources, :].clamp(min=0)], -1)
    a = _autocorrelation(joined, blocks, tables.threshold[sources], blocks.lags)
    if blocks.targets != (blocks.first, blocks.last):
        mean = getattr(tables, f"neighbors_{blocks.size}") @ a.flatten(-2)
        a = mean.unflatten(-1, a.shape[-2:])
    if rows is not None:
        low, high = blocks.targets
        seen = tables.window[low : high + 1, None, 1 : a.shape[-1]]
        a = torch.cat([a[..., :1], a[..., 1:] * seen], -1)
        a = torch.cat([rows, a], -2)
        rows = a[..., -2:, :]
        a = (a[..., :-2, :] + a[..., 1:-1, :] + a[..., 2:, :]) / 3
    return _tone(a, blocks.targets, tables.window), joined[..., -3 * blocks.hop :], rows


def _one_step(x: Tensor, tables: TonalTables, state: State) -> tuple[Tensor, State]:
    """The frames (..., 3, 53, frame) of one step."""
    after = state._asdict()
    parts = []
    for blocks in SIZES:
        low, high = blocks.targets[0], blocks.targets[1] + 1
        sound, rows = f"sound_{blocks.size}", f"rows_{blocks.size}"
        estimates, after[sound], found = _estimates(
            x, blocks, tables, after[sound], after.get(rows)
        )
        if found is not None:
            after[rows] = found
        native = torch.stack(estimates, -3)
        frames = _frames(state.last[..., low:high], native, blocks.hop // HOP)
        waiting = state.late[..., low:high, LONGEST_WAIT - blocks.wait :]
        parts.append((native[..., -1], torch.cat([waiting, frames], -1)))
    count = x.shape[-1] // HOP
    after["last"] = torch.cat([last for last, _ in parts], -1)
    after["late"] = torch.cat(
        [
            torch.nn.functional.pad(v[..., count:], (LONGEST_WAIT - v.shape[-1] + count, 0))
            for _, v in parts
        ],
        -2,
    )
    # The low-pass begins at frame 0, although the mean over time looks back and forth from there.
    at = state.begun + torch.arange(count, dtype=x.dtype, device=x.device)
    there = (at >= LONGEST_WAIT - 1)[..., None, None, :]
    after["begun"] = (state.begun + count).clamp(max=LONGEST_WAIT)
    frames = torch.cat([v[..., :count] for _, v in parts], -2)
    tonal, total, frequency = torch.where(there, frames, 0.0).unbind(-3)
    ratio = (tonal / ((total - tonal).clamp(min=0) + EPSILON)).clamp(max=MOST_SNR)
    slow, after["smooth"] = gammatone_sum(
        torch.cat([tonal, ratio, total], -2), tables.smoothing, tables.weights, state.smooth
    )
    tonal, ratio, total = slow.unflatten(-2, (3, BANDS)).unbind(-3)
    slope, least = GATE
    gate = -torch.expm1(-slope * (ratio / tables.gate[:, None] - least))
    tonal = gate.clamp(min=0) * tonal
    noise = (total - tonal).clamp(min=0)
    return torch.stack([tonal, noise, frequency], -3), State(**after)


def _like(x: Tensor, tables: TonalTables, state: State) -> tuple[Tensor, State]:
    frames = x.new_empty(*x.shape[:-2], 3, BANDS, x.shape[-1] // HOP)
    return frames, State(*(v.new_empty(v.shape) for v in state))


@operator(_like)
def tonal_and_noise(x: Tensor, tables: TonalTables, state: State) -> tuple[Tensor, State]:
    """Specific loudness of tones and of noise, and frequency, of band signals (..., 53, time).

    Gives (..., 3, 53, frame): tonal and noise loudness in sone_HMS/Bark_HMS and the frequency of
    the tone in Hz, a frame per `HOP` samples. A frame stands for the sample `LONGEST_WAIT` frames
    before its end.

    x: band signals in pascal, float64, a multiple of `STEP` samples
    """
    lead, _, time = signal_axes("tonal_and_noise", "x", x, 2)
    whole_blocks("tonal_and_noise", time, STEP)
    shapes, of_tables = state_shapes(), table_shapes()
    given = [(key, v, (*lead, *shapes[key])) for key, v in state._asdict().items()]
    given += [(key, v, of_tables[key]) for key, v in tables._asdict().items()]
    fit("tonal_and_noise", torch.float64, ("x", x, (*lead, BANDS, time)), *given)
    frames = []
    # A step is too short for several threads, however long the sound is.
    with one_thread(None if compiled(x) else x):
        for part in x.split(STEP, -1):
            y, state = _one_step(part, tables, state)
            frames.append(y)
    return frames[0] if len(frames) == 1 else torch.cat(frames, -1), state
