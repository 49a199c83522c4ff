"""Tonal and noise parts of specific loudness by autocorrelation (ECMA-418-2:2025, 6.2)."""

from math import pi
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.dispatch import array, compiled, copied, readable
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
    MOST_SNR,
    QUIET,
    SIZES,
    WAIT,
    BlocksOfSize,
    specific_basis_loudness,
)
from amt_stream.dsp.functional.ecma418_tones import advance_frames
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
    with torch.no_grad():
        lines = torch.fft.rfft(centered, LINES)
        at = (lines.real.square() + lines.imag.square()).argmax(-1)
    # The strongest line alone, as gradients would keep all.
    lag = torch.arange(a.shape[-1], device=a.device)
    turn = (at[..., None] * lag % LINES).to(a.dtype) * (2 * pi / LINES)
    most = sum((centered * part).sum(-1).square() for part in (turn.cos(), turn.sin()))
    tonal = 4 / count * most.clamp(min=QUIET**2).sqrt()
    return torch.minimum(tonal, total), total, at * (FS / LINES) + 0 * total


class State(NamedTuple):
    """State of `tonal_and_noise`, in float64.

    sound_...: the last hops of the bands (..., band, 4, sample), rectified; each replaces the
        oldest, so that hop n since the beginning is number n modulo 4
    lines_...: real and imaginary parts of their spectra (..., band, 4, 2, line), over two hops
    rows_...: the last two means over bands, where blocks are averaged (..., 2, target band, lag)
    last: the last estimates of each band (..., 3, 53)
    late: estimates that wait for those of longer blocks (..., 3, 53, 16); that of frame n since the
        beginning is number n modulo 16
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
        shapes[f"sound_{blocks.size}"] = (bands, 4, blocks.hop)
        shapes[f"lines_{blocks.size}"] = (bands, 4, 2, blocks.hop + 1)
        if blocks.averaged:
            targets = blocks.targets[1] - blocks.targets[0] + 1
            shapes[f"rows_{blocks.size}"] = (2, targets, blocks.lags + 1)
    shapes |= {"last": (3, BANDS), "late": (3, BANDS, WAIT + 1), "smooth": (2, 3, 3 * BANDS)}
    shapes["begun"] = (1,)
    return {name: shapes[name] for name in State._fields}


_SHAPES = state_shapes()
"""Made once, not for each block."""


def _turned(x: Tensor, by: Tensor) -> Tensor:
    """Hops (..., band, 4, sample) from number `by` modulo 4 on (..., 1)."""
    at = (torch.arange(4, dtype=by.dtype, device=x.device) + by) % 4
    return x.gather(-2, at.long()[..., None, :, None].expand_as(x))


def _placed(ring: Tensor, at: Tensor, new: Tensor) -> Tensor:
    """A ring (..., band, n, value), `new` (..., band, value) in place `at` modulo n (..., 1)."""
    count = ring.shape[-2]
    here = torch.arange(count, dtype=at.dtype, device=at.device) == at % count
    return torch.where(here[..., None, :, None], new.unsqueeze(-2), ring)


def _after_block(
    blocks: BlocksOfSize, tables: TonalTables, state: dict[str, Tensor]
) -> dict[str, Tensor]:
    """What changes in `State` with the frame that completes a block of bands."""
    begun, low, high = state["begun"], blocks.targets[0], blocks.targets[1] + 1
    hops = torch.floor(begun / blocks.frames)
    sound, rows = state[f"sound_{blocks.size}"], state.get(f"rows_{blocks.size}")
    turned = _turned(sound, hops + 1)
    newest = torch.fft.rfft(turned[..., -1, :], 2 * blocks.hop)
    lines = state[f"lines_{blocks.size}"]
    newest = torch.cat([newest.real, newest.imag], -1)
    after = {f"lines_{blocks.size}": _placed(lines.flatten(-2), hops, newest).view_as(lines)}
    sources = slice(blocks.first, blocks.last + 1)
    a = _autocorrelation(turned.flatten(-2), blocks, tables.threshold[sources], blocks.lags)
    if blocks.targets != (blocks.first, blocks.last):
        mean = getattr(tables, f"neighbors_{blocks.size}") @ a.flatten(-2)
        a = mean.unflatten(-1, a.shape[-2:])
    if rows is not None:
        seen = tables.window[low:high, None, 1 : a.shape[-1]]
        a = torch.cat([a[..., :1], a[..., 1:] * seen], -1)
        now = a.squeeze(-2)
        a = ((rows[..., 0, :, :] + rows[..., 1, :, :] + now) / 3)[..., None, :]
        after[f"rows_{blocks.size}"] = torch.stack([rows[..., 1, :, :], now], -3)
    native = torch.cat(_tone(a, blocks.targets, tables.window), -1).movedim(-1, -2)
    before = state["last"][..., low:high]
    # Frames from those before to these, in their places among those that wait.
    places = torch.arange(WAIT + 1, dtype=begun.dtype, device=begun.device)
    first = begun + 1 - blocks.frames * (1 if rows is None else 2)
    k = ((places - first) % (WAIT + 1))[..., None, None, :]
    frames = before[..., None] + (native - before)[..., None] * ((k + 1) / blocks.frames)
    late = state["late"]
    new = torch.where(k < blocks.frames, frames, late[..., low:high, :])
    after["late"] = torch.cat([late[..., :low, :], new, late[..., high:, :]], -2)
    last = state["last"]
    after["last"] = torch.cat([last[..., :low], native, last[..., high:]], -1)
    return after


def _one_frame(x: Tensor, tables: TonalTables, given: State) -> tuple[Tensor, State]:
    """The frame (..., 3, 53) after `HOP` samples."""
    state, begun = given._asdict(), given.begun
    u = x.clamp(min=0)
    known = readable(begun)
    for blocks in SIZES:
        name, bands = f"sound_{blocks.size}", slice(blocks.first, blocks.last + 1)
        parts = state[name].unflatten(-1, (blocks.frames, HOP)).flatten(-3, -2)
        state[name] = _placed(parts, begun, u[..., bands, :]).reshape(state[name].shape)
        ends = (begun + 1) % blocks.frames == 0
        if known and not bool(ends.any()):
            continue
        # Of other rows no block ends.
        for key, new in _after_block(blocks, tables, state).items():
            rows = ends.view(*ends.shape, *[1] * (new.dim() - ends.dim()))
            state[key] = torch.where(rows, new, state[key])
    at = ((begun + 1) % (WAIT + 1)).long()[..., None, None, :]
    due = state["late"].gather(-1, at.expand(*state["late"].shape[:-1], 1))
    # The low-pass begins at frame 0, although the mean over time looks back and forth from there.
    due = torch.where((begun >= WAIT - 1)[..., None, None, :], due, 0.0)
    tonal, total, frequency = due.unbind(-3)
    ratio = (tonal / ((total - tonal).clamp(min=0) + EPSILON)).clamp(max=MOST_SNR)
    slow, state["smooth"] = gammatone_sum(
        torch.cat([tonal, ratio, total], -2), tables.smoothing, tables.weights, given.smooth
    )
    tonal, ratio, total = slow.squeeze(-1).unflatten(-1, (3, BANDS)).unbind(-2)
    slope, least = GATE
    gate = -torch.expm1(-slope * (ratio / tables.gate - least))
    tonal = gate.clamp(min=0) * tonal
    noise = (total - tonal).clamp(min=0)
    state["begun"] = torch.where(begun + 1 >= 2 * AROUND, begun + 1 - AROUND, begun + 1)
    return torch.stack([tonal, noise, frequency.squeeze(-1)], -2), State(**state)


def _like(x: Tensor, tables: TonalTables, state: State) -> tuple[Tensor, State]:
    frames = x.new_empty(*x.shape[:-2], 3, BANDS, x.shape[-1] // HOP)
    return frames, State(*(v.new_empty(v.shape) for v in state))


@operator(_like)
def tonal_and_noise(x: Tensor, tables: TonalTables, state: State) -> tuple[Tensor, State]:
    """Specific loudness of tones and of noise, and frequency, of band signals (..., 53, time).

    Gives (..., 3, 53, frame): tonal and noise loudness in sone_HMS/Bark_HMS and the frequency of
    the tone in Hz, a frame per `HOP` samples. A frame stands for the sample `WAIT` frames before
    its end.

    x: band signals in pascal, float64, a multiple of `HOP` samples
    """
    _refuse("tonal_and_noise", x, tables, state)
    fit("tonal_and_noise", torch.float64, ("x", x, x.shape))
    if compiled(x, *tables, *state):
        after = State(*map(copied, state))
        return tonal_and_noise_in_place(x, tables, after), after
    frames = []
    # A frame is too short for several threads, however long the sound is.
    with one_thread():
        for part in x.split(HOP, -1):
            y, state = _one_frame(part, tables, state)
            frames.append(y)
    return torch.stack(frames, -1), state


def tonal_and_noise_in_place(x: Tensor, tables: TonalTables, state: State) -> Tensor:
    """The output of `tonal_and_noise` by its compiled form, which updates `state`.

    Nothing is checked, which would take as long as the rest in short blocks.

    x: as there, or in float32
    state: contiguous
    """
    lead, time = x.shape[:-2], x.shape[-1]
    sound = array(x).reshape(-1, BANDS, time)
    given = [
        v.numpy().reshape(-1, *shape) for v, shape in zip(state, _SHAPES.values(), strict=True)
    ]
    names = ("threshold", "gate", "smoothing", "weights")
    of_tables = [array(getattr(tables, name)) for name in names]
    y = np.empty((len(sound), 3, BANDS, time // HOP))
    for row in range(len(sound)):
        advance_frames(sound[row], of_tables, [v[row] for v in given], y[row])
    return torch.from_numpy(y).view(*lead, 3, BANDS, -1)


def _refuse(function: str, x: Tensor, tables: TonalTables, state: State) -> None:
    lead, _, time = signal_axes(function, "x", x, 2)
    whole_blocks(function, time, HOP)
    shapes, of_tables = state_shapes(), table_shapes()
    given = [(key, v, (*lead, *shapes[key])) for key, v in state._asdict().items()]
    given += [(key, v, of_tables[key]) for key, v in tables._asdict().items()]
    fit(function, x.dtype, ("x", x, (*lead, BANDS, time)))
    fit(function, torch.float64, *given)
