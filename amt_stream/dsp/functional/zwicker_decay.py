"""How core loudness decays over time (ISO 532-1:2017)."""

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.functional.compiler.dispatch import Array, array, compilable, compiled, kernel
from amt_stream.dsp.functional.compiler.gradient import Tensors, differentiable
from amt_stream.dsp.functional.compiler.operators import alike, operator
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes
from amt_stream.dsp.functional.compiler.tiles import copy_values
from amt_stream.dsp.functional.zwicker import STEP


@operator(lambda core, coefficients, zi, begun: alike(core, zi))
def decayed(core: Tensor, coefficients: Tensor, zi: Tensor, begun: Tensor) -> tuple[Tensor, Tensor]:
    """Core loudness (..., frame, band) with its decay after a sound ends.

    coefficients: (6,) B0 to B5 of the two-capacitor network at 48 kHz
    zi, zf: (..., 3, band) voltages of the two capacitors, and the last core loudness
    begun: (...) whether `zi` holds a last core loudness; otherwise the first one is not
        interpolated

    The network runs 24 times per frame, on linear interpolation from the last core loudness.
    """
    lead, time, bands = signal_axes("decayed", "core", core, 2)
    given = ("coefficients", coefficients, (6,)), ("zi", zi, (*lead, 3, bands))
    fit("decayed", torch.float64, *given)
    fit("decayed", torch.bool, ("begun", begun, lead))
    on_gpu = gpu.serves(coefficients) and gpu.possible(core, zi)
    if not (on_gpu or (compiled(coefficients) and compilable(core, zi))):
        return _plain_decayed(core, coefficients, zi, begun)

    def fast(core: Tensor, zi: Tensor) -> Tensors:
        if on_gpu:
            y, zf = gpu.decayed(core, coefficients, zi, started, STEP)
            return y, zf
        y, zf = core.new_empty(core.shape), zi.clone(memory_format=torch.contiguous_format)
        _decayed(array(core), array(coefficients), zf.numpy(), array(started), y.numpy())
        return y, zf

    def plain(core: Tensor, zi: Tensor) -> Tensors:
        return _plain_decayed(core, coefficients, zi, started)

    def backward(given: Tensors, outputs: Tensors, slopes: Tensors, needed: object) -> Tensors:
        if on_gpu:
            (core, zi), (y, zf) = given, slopes
            return tuple(gpu.decayed_backward(core, zi, coefficients, started, y, zf, STEP))
        into = tuple(v.new_empty(v.shape) for v in given)
        tables = *map(array, given), array(coefficients), array(started), *map(array, slopes)
        _decayed_backward(*tables, *(v.numpy() for v in into))
        return into

    started = begun.reshape(-1)
    rows = core.reshape(-1, time, bands), zi.reshape(-1, 3, bands)
    alone = gpu.serves(*rows) if on_gpu else compiled(*rows)
    y, zf = fast(*rows) if alone else differentiable(fast, backward, plain, *rows)
    return y.view(core.shape), zf.view(zi.shape)


def _plain_decayed(
    core: Tensor, coefficients: Tensor, zi: Tensor, begun: Tensor
) -> tuple[Tensor, Tensor]:
    fast, slow, last = zi.unbind(-2)
    outputs = []
    for n, new in enumerate(core.to(zi.dtype).unbind(-2)):
        rise = (new - last) / STEP
        for k in range(1, STEP + 1):
            was = fast, slow
            fast, slow = _network(new if k == STEP else last + k * rise, fast, slow, coefficients)
            if n == 0 and k < STEP:
                fast = torch.where(begun[..., None], fast, was[0])
                slow = torch.where(begun[..., None], slow, was[1])
        last = new
        outputs.append(fast)
    return torch.stack(outputs, -2).to(core.dtype), torch.stack([fast, slow, last], -2)


def _network(u: Tensor, fast: Tensor, slow: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both voltages after one step with the input `u`."""
    linked = fast > slow
    falling = torch.maximum(torch.where(linked, fast * b[2] - slow * b[3], fast * b[4]), u)
    charge = torch.where(linked, torch.minimum(fast * b[0] - slow * b[1], falling), falling)
    rising = torch.where((u - fast < 1e-5) & (u <= slow), u, (slow - u) * b[5] + u)
    falls = u < fast
    # NaN stays, because no comparison with it holds.
    return torch.where(falls, falling, u + 0 * fast.detach()), torch.where(falls, charge, rising)


@kernel
def _decayed(core: Array, coefficients: Array, states: Array, begun: Array, y: Array) -> None:
    """Updates `states` (row, 3, band) in place."""
    b0, b1, b2, b3, b4, b5 = coefficients
    for r in range(core.shape[0]):
        fast, slow, last = states[r, 0], states[r, 1], states[r, 2]
        for n in range(core.shape[1]):
            new, out = core[r, n], y[r, n]
            first = 1 if n or begun[r] else STEP
            for k in range(first, STEP + 1):
                part = k / STEP
                for i in range(last.size):
                    u = last[i] + part * (new[i] - last[i])
                    linked = fast[i] > slow[i]
                    falling = fast[i] * b2 - slow[i] * b3 if linked else fast[i] * b4
                    falling = u if falling < u else falling
                    charge = fast[i] * b0 - slow[i] * b1
                    charge = charge if linked and charge < falling else falling
                    rising = (slow[i] - u) * b5 + u
                    rising = u if (u - fast[i] < 1e-5) and u <= slow[i] else rising
                    falls = u < fast[i]
                    slow[i] = charge if falls else rising
                    # NaN stays, because no comparison with it holds.
                    fast[i] = falling if falls else u + 0 * fast[i]
            for i in range(last.size):
                last[i] = new[i]
                out[i] = fast[i]


@kernel
def _decayed_backward(
    core: Array,
    zi: Array,
    coefficients: Array,
    begun: Array,
    y: Array,
    zf: Array,
    into_core: Array,
    into_zi: Array,
) -> None:
    """Write the gradients of `core` and `zi`, from those of `y` and `zf`."""
    frames, bands = core.shape[1:]
    voltages, cores = np.empty((frames * STEP + 1, 2, bands)), np.empty((frames + 1, bands))
    for r in range(core.shape[0]):
        copy_values(zi[r, :2], voltages[0])
        copy_values(zi[r, 2], cores[0])
        copy_values(core[r], cores[1:])
        left_out = 0 if begun[r] else STEP - 1
        for t in range(frames * STEP):
            last, new = cores[t // STEP], cores[t // STEP + 1]
            part = (t % STEP + 1) / STEP
            for i in range(bands):
                fast, slow = voltages[t, 0, i], voltages[t, 1, i]
                if t >= left_out:
                    u = last[i] + part * (new[i] - last[i])
                    fast, slow = _step(u, fast, slow, coefficients)
                voltages[t + 1, 0, i], voltages[t + 1, 1, i] = fast, slow
        by_fast, by_slow, by_last = into_zi[r]
        copy_values(zf[r], into_zi[r])
        for n in range(frames - 1, -1, -1):
            last, new = cores[n], cores[n + 1]
            first = left_out if n == 0 else 0
            for i in range(bands):
                by_fast[i] += y[r, n, i]
                by_new, by_last[i] = by_last[i], 0
                for k in range(STEP - 1, first - 1, -1):
                    part = (k + 1) / STEP
                    u = last[i] + part * (new[i] - last[i])
                    before = voltages[n * STEP + k]
                    by_u, by_fast[i], by_slow[i] = _step_backward(
                        u, before[0, i], before[1, i], coefficients, by_fast[i], by_slow[i]
                    )
                    by_new += part * by_u
                    by_last[i] += (1 - part) * by_u
                into_core[r, n, i] = by_new


@kernel
def _step(u: float, fast: float, slow: float, coefficients: Array) -> tuple[float, float]:
    """The step of `_decayed`, which as a function of its own would cost it a third more."""
    b0, b1, b2, b3, b4, b5 = coefficients
    linked = fast > slow
    falling = max(fast * b2 - slow * b3 if linked else fast * b4, u)
    if u < fast:
        return falling, min(fast * b0 - slow * b1, falling) if linked else falling
    return u, u if u - fast < 1e-5 and u <= slow else (slow - u) * b5 + u


@kernel
def _step_backward(
    u: float, fast: float, slow: float, coefficients: Array, by_fast: float, by_slow: float
) -> tuple[float, float, float]:
    """Gradients of the arguments `u`, `fast` and `slow` of `_step`, from those of its results."""
    b0, b1, b2, b3, b4, b5 = coefficients
    if not u < fast:
        charged = u - fast < 1e-5 and u <= slow
        return by_fast + by_slow * (1 if charged else 1 - b5), 0.0, 0.0 if charged else b5 * by_slow
    linked = fast > slow
    falling = fast * b2 - slow * b3 if linked else fast * b4
    into_u, into_fast, into_slow = 0.0, 0.0, 0.0
    if linked and fast * b0 - slow * b1 < max(falling, u):
        into_fast, into_slow = b0 * by_slow, -b1 * by_slow
    else:
        by_fast += by_slow
    if falling < u:
        into_u = by_fast
    elif linked:
        into_fast += b2 * by_fast
        into_slow -= b3 * by_fast
    else:
        into_fast += b4 * by_fast
    return into_u, into_fast, into_slow
