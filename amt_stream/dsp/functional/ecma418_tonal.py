"""Tonal and noise parts of specific loudness by autocorrelation (ECMA-418-2:2025, 6.2)."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.dispatch import array, compiled
from amt_stream.dsp.functional.ecma418 import (
    AROUND,
    BANDS,
    EPSILON,
    FS,
    GATE,
    HOP,
    LAGS,
    LEAST_SHARE,
    LINES,
    LONGEST_WAIT,
    MOST_SNR,
    QUIET,
    SIZES,
    STEP,
    BlocksOfSize,
    specific_basis_loudness,
)
from amt_stream.dsp.functional.ecma418_tones import one_step
from amt_stream.dsp.functional.gammatone import gammatone_sum
from amt_stream.dsp.functional.operators import operator
from amt_stream.dsp.functional.shapes import fit, signal_axes, whole_blocks
from amt_stream.dsp.functional.threads import one_thread


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


def _tone(a: Tensor, bands: tuple[int, int], window: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Estimates (..., band, block) of tonal loudness, total loudness and frequency in Hz.

    a: mean autocorrelation (..., band, block, lag) of these bands
    window: (53, lag), 1 for the lags in use
    """
    total = a[..., 0]
    used = window[bands[0] : bands[1] + 1, None, : a.shape[-1]]
    count = used.sum(-1)
    centered = (a - ((a * used).sum(-1) / count)[..., None]) * used
    lines = torch.fft.rfft(centered, LINES)
    most, at = (lines.real.square() + lines.imag.square()).max(-1)
    tonal = 4 / count * most.clamp(min=QUIET**2).sqrt()
    return torch.minimum(tonal, total), total, at * (FS / LINES) + 0 * total


def _frames(before: Tensor, native: Tensor, per_block: int) -> Tensor:
    """Values (..., block) of blocks as frames, linear from `before` (...) to the last."""
    points = torch.cat([before[..., None], native], -1)
    part = torch.arange(1, per_block + 1, dtype=native.dtype, device=native.device) / per_block
    return (points[..., :-1, None] + points.diff(dim=-1)[..., None] * part).flatten(-2)


class State(NamedTuple):
    """State of `tonal_and_noise`, in float64.

    sound_...: the last four hops of the bands (..., 4, sample, band), rectified; each replaces the
        oldest, so that hop n since the beginning is number n modulo 4
    lines_...: real and imaginary parts of their spectra (..., 4, 2, line, band), over two hops
    rows_...: the last two means over bands, where blocks are averaged (..., 2, lag, target band)
    last: the last estimates of each band (..., 3, 53)
    late: estimates that wait for those of longer blocks (..., 3, 53, 15)
    smooth: of the low-pass (..., 2, 3, 159)
    begun: frames since the beginning; from twice `AROUND` it goes back by that (..., 1)
    """

    sound_8192: Tensor
    sound_4096: Tensor
    sound_2048: Tensor
    sound_1024: Tensor
    lines_8192: Tensor
    lines_4096: Tensor
    lines_2048: Tensor
    lines_1024: Tensor
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
        bands = blocks.last - blocks.first + 1
        shapes[f"sound_{blocks.size}"] = (4, blocks.hop, bands)
        shapes[f"lines_{blocks.size}"] = (4, 2, blocks.hop + 1, bands)
        if blocks.averaged:
            targets = blocks.targets[1] - blocks.targets[0] + 1
            shapes[f"rows_{blocks.size}"] = (2, blocks.lags + 1, targets)
    shapes |= {"last": (3, BANDS), "late": (3, BANDS, LONGEST_WAIT), "smooth": (2, 3, 3 * BANDS)}
    shapes["begun"] = (1,)
    return {name: shapes[name] for name in State._fields}


def _turned(x: Tensor, by: Tensor) -> Tensor:
    """Hops (..., 4, sample, band) from number `by` modulo 4 on (..., 1)."""
    at = (torch.arange(4, dtype=by.dtype, device=x.device) + by) % 4
    return x.gather(-3, at.long()[..., None, None].expand_as(x))


def _estimates(
    x: Tensor,
    blocks: BlocksOfSize,
    tables: TonalTables,
    begun: Tensor,
    sound: Tensor,
    rows: Tensor | None,
) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor, Tensor, Tensor | None]:
    """`_tone` of whole steps of band signals, and what goes into `State`."""
    sources = slice(blocks.first, blocks.last + 1)
    past = _turned(sound, begun).flatten(-3, -2).mT
    joined = torch.cat([past[..., blocks.hop :], x[..., sources, :].clamp(min=0)], -1)
    a = _autocorrelation(joined, blocks, tables.threshold[sources], blocks.lags)
    if blocks.targets != (blocks.first, blocks.last):
        mean = getattr(tables, f"neighbors_{blocks.size}") @ a.flatten(-2)
        a = mean.unflatten(-1, a.shape[-2:])
    if rows is not None:
        low, high = blocks.targets
        seen = tables.window[low : high + 1, None, 1 : a.shape[-1]]
        a = torch.cat([a[..., :1], a[..., 1:] * seen], -1)
        a = torch.cat([rows.movedim(-1, -3), a], -2)
        rows = a[..., -2:, :].movedim(-3, -1)
        a = (a[..., :-2, :] + a[..., 1:-1, :] + a[..., 2:, :]) / 3
    # Hops follow the oldest one, in whose place the next goes.
    hops = joined[..., -4 * blocks.hop :].unflatten(-1, (4, blocks.hop))
    hops = _turned(hops.movedim(-3, -1), -begun - x.shape[-1] // blocks.hop)
    lines = torch.fft.rfft(hops, 2 * blocks.hop, -2)
    lines = torch.stack([lines.real, lines.imag], -3)
    return _tone(a, blocks.targets, tables.window), hops, lines, rows


def _one_step(x: Tensor, tables: TonalTables, state: State) -> tuple[Tensor, State]:
    """The frames (..., 3, 53, frame) of one step."""
    after = state._asdict()
    parts = []
    for blocks in SIZES:
        low, high = blocks.targets[0], blocks.targets[1] + 1
        sound, rows = f"sound_{blocks.size}", f"rows_{blocks.size}"
        estimates, after[sound], after[f"lines_{blocks.size}"], found = _estimates(
            x, blocks, tables, state.begun * HOP // blocks.hop, after[sound], after.get(rows)
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
    begun = state.begun + count
    after["begun"] = torch.where(begun >= 2 * AROUND, begun - AROUND, begun)
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
    _refuse("tonal_and_noise", x, tables, state)
    fit("tonal_and_noise", torch.float64, ("x", x, x.shape))
    if compiled(x, *tables, *state):
        after = State(*(v.clone(memory_format=torch.contiguous_format) for v in state))
        return _advance(x, tables, after), after
    frames = []
    # A step is too short for several threads, however long the sound is.
    with one_thread():
        for part in x.split(STEP, -1):
            y, state = _one_step(part, tables, state)
            frames.append(y)
    return frames[0] if len(frames) == 1 else torch.cat(frames, -1), state


def tonal_and_noise_in_place(x: Tensor, tables: TonalTables, state: State) -> Tensor:
    """The output of `tonal_and_noise` by its compiled form, which updates `state`.

    x: as there, or in float32
    state: contiguous
    """
    _refuse("tonal_and_noise_in_place", x, tables, state)
    return _advance(x, tables, state)


def _refuse(function: str, x: Tensor, tables: TonalTables, state: State) -> None:
    lead, _, time = signal_axes(function, "x", x, 2)
    whole_blocks(function, time, STEP)
    shapes, of_tables = state_shapes(), table_shapes()
    given = [(key, v, (*lead, *shapes[key])) for key, v in state._asdict().items()]
    given += [(key, v, of_tables[key]) for key, v in tables._asdict().items()]
    fit(function, x.dtype, ("x", x, (*lead, BANDS, time)))
    fit(function, torch.float64, *given)


def _advance(x: Tensor, tables: TonalTables, state: State) -> Tensor:
    lead, time = x.shape[:-2], x.shape[-1]
    shapes = state_shapes()
    sound = array(x).reshape(-1, BANDS, time)
    given = {key: v.numpy().reshape(-1, *shapes[key]) for key, v in state._asdict().items()}
    smoothing, weights, gate = map(array, (tables.smoothing, tables.weights, tables.gate))
    y = np.empty((len(sound), 3, BANDS, time // HOP))
    for row in range(len(sound)):
        now = {key: v[row] for key, v in given.items()}
        for start in range(0, time, STEP):
            frame = start // HOP
            part = y[row, :, :, frame : frame + STEP // HOP]
            sounding = sound[row, :, start : start + STEP]
            one_step(sounding, now, smoothing, weights, gate, part)
    return torch.from_numpy(y).view(*lead, 3, BANDS, -1)
