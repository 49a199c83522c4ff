"""Recurrences on a GPU: one launch each, instead of thousands in the plain form.

Each is a torch operator, so that it works with fake tensors, graphs and exports; the kernels are in
`gpu_kernels` and `gpu_loudness_kernels`. Gradients but those of `decayed`, and devices without
Triton, use the plain form.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from math import prod
from typing import Any, TypeVar

import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.private_torch import forward_mode, transform

F = TypeVar("F", bound=Callable[..., Any])

DEVICES = {"cuda"}
"""Device types with kernels; tests add their own."""

LANES = 32
"""Lanes per program: one warp, so that even a few streams spread over the whole device."""

_FLOATS = (torch.float32, torch.float64)


@cache
def _there() -> bool:
    return find_spec("triton") is not None


def serves(*tensors: Tensor) -> bool:
    """Whether to use the kernels: on a GPU, with no gradient needed and no transform active."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return False
    return possible(*tensors)


def possible(*tensors: Tensor) -> bool:
    """Whether the kernels can be used: on a GPU, and no transform is active."""
    if tensors[0].device.type not in DEVICES or torch.compiler.is_compiling():
        return False
    if forward_mode() or transform() is not None:
        return False
    return all(x.dtype in _FLOATS for x in tensors) and _there()


def refuse_short_products() -> None:
    """Raise ValueError if float32 matrix products on CUDA use reduced precision."""
    matmul = torch.backends.cuda.matmul
    # torch 2.9 added it; since then, once it is set, the older flag raises.
    precision = getattr(matmul, "fp32_precision", None)
    if precision not in ("none", "ieee") if precision else matmul.allow_tf32:
        raise ValueError(
            "products of float32 on CUDA are set to round their factors (TF32), which puts a model "
            "off by 0.1 % and more: call torch.set_float32_matmul_precision('highest') first"
        )


def _operator(like: Callable[..., object]) -> Callable[[F], F]:
    """Decorator that makes a launch an operator; like: gives new tensors of the outputs' shapes."""

    def decorate(f: F) -> F:
        op = torch.library.custom_op(f"amt_stream::gpu_{f.__name__}", f, mutates_args=())
        op.register_fake(like)
        return op  # type: ignore[return-value]

    return decorate


def kernel_named(name: str) -> Any:
    from amt_stream.dsp.functional.compiler import gpu_kernels, gpu_loudness_kernels

    return (vars(gpu_kernels) | vars(gpu_loudness_kernels))[name]


def _launch(kernel: str, grid: tuple[int, ...], *given: object, **constants: object) -> None:
    """Run a kernel on the device of the first tensor, with LANES lanes per warp of a program."""
    given = tuple(v.contiguous() if isinstance(v, Tensor) else v for v in given)
    with torch.cuda.device_of(given[0]):
        kernel_named(kernel)[grid](*given, **{"LANES": LANES, "num_warps": 1} | constants)


def _programs(size: int) -> int:
    return -(-size // LANES)


def _new(x: Tensor, *shape: int) -> Tensor:
    return x.new_empty(shape or x.shape)


@_operator(lambda x, coefficients, zi: (_new(x), _new(zi)))
def agc(x: Tensor, coefficients: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`loudness.agc`."""
    y, zf, (time, count) = _new(x), _new(zi), x.shape[-2:]
    size = zi.numel()
    _launch("agc", (_programs(size),), x, coefficients, zi, y, zf, size, time, count)
    return y, zf


@_operator(lambda target, rate, zi: _new(target))
def relax(target: Tensor, rate: Tensor, zi: Tensor) -> Tensor:
    """`relaxation.relax` without the last state, which is the end of the output."""
    y, size = _new(target), zi.numel()
    _launch("relax", (_programs(size),), target, rate, zi, y, size, target.shape[-1])
    return y


@_operator(lambda x, g, zi, high, rectify: (_new(x), _new(zi)))
def first_order(
    x: Tensor, g: Tensor, zi: Tensor, high: bool, rectify: bool
) -> tuple[Tensor, Tensor]:
    """`first_order` in one launch."""
    y, zf, time, passes = _new(x), _new(zi), x.shape[-1], zi.shape[-1]
    size = x.numel() // time
    given = x, g, zi, y, zf, size, time, g.numel(), passes
    _launch("first_order", (_programs(size),), *given, HIGH=high, RECTIFY=rectify)
    return y, zf


@_operator(lambda x, floor, rates, overshoot, corr, mult, zi, *numbers: (_new(x), _new(zi)))
def adapt(
    x: Tensor,
    floor: Tensor,
    rates: Tensor,
    overshoot: Tensor | None,
    corr: Tensor,
    mult: Tensor,
    zi: Tensor,
    still: float,
    per_octave: float,
    least: float,
) -> tuple[Tensor, Tensor]:
    """`adaptation.adaptation_loops`; the last three arguments are its constants."""
    y, zf, time, loops = _new(x), _new(zi), x.shape[-1], rates.numel()
    size = x.numel() // time
    most = rates if overshoot is None else overshoot
    tables = floor, rates, most, corr, mult
    sizes = floor.numel(), most.numel() // loops, corr.numel(), mult.numel(), loops
    _launch(
        "adapt",
        (_programs(size),),
        x,
        *tables,
        zi,
        y,
        zf,
        size,
        time,
        *sizes,
        STILL=still,
        PER_OCTAVE=per_octave,
        LEAST=least,
        LIMITED=overshoot is not None,
    )
    return y, zf


@_operator(
    lambda x, low, a, b, c, scale, envelope, counts, low_zi, zi, k: (
        _new(x, *x.shape[:-1], low.shape[0] + scale.shape[0], x.shape[-1]),
        _new(low_zi),
        _new(zi),
    )
)
def bank(
    x: Tensor,
    low: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    scale: Tensor,
    envelope: Tensor,
    counts: Tensor,
    low_zi: Tensor,
    zi: Tensor,
    k: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The banks of `modulation`; k: 1 / Q of their low-pass."""
    first, bands, time = low.numel(), scale.numel(), x.shape[-1]
    y = _new(x, *x.shape[:-1], first + bands, time)
    low_zf, zf, size = _new(low_zi), _new(zi), x.numel() // time
    each = zi.numel() // max(1, size * bands)
    tables = low, a, b, c, scale, envelope, counts
    _launch(
        "bank",
        (_programs(size), first + bands),
        x,
        *tables,
        low_zi,
        zi,
        y,
        low_zf,
        zf,
        size,
        time,
        counts.numel(),
        bands,
        K=k,
        FIRST=first,
        EACH=each,
    )
    return y, low_zf, zf


@_operator(
    lambda x, poles, gain, smoothing, zi, step: (
        _new(zi, *x.shape[:-1], x.shape[-1] // step, gain.shape[0]),
        _new(zi),
    )
)
def third_octaves(
    x: Tensor, poles: Tensor, gain: Tensor, smoothing: Tensor | None, zi: Tensor, step: int
) -> tuple[Tensor, Tensor]:
    """`zwicker.third_octave_powers`; step: samples per frame."""
    lead, bands, frames = x.shape[:-1], gain.numel(), x.shape[-1] // step
    y, zf, size = _new(zi, *lead, frames, bands), _new(zi), prod(lead) * bands
    weight = gain if smoothing is None else smoothing
    given = x, poles, gain, weight, zi, y, zf, size, frames, bands
    smoothed = smoothing is not None
    _launch("third_octaves", (_programs(size),), *given, STEP=step, SMOOTHED=smoothed)
    return y, zf


@_operator(lambda core, coefficients, zi, begun, step: (_new(core), _new(zi)))
def decayed(
    core: Tensor, coefficients: Tensor, zi: Tensor, begun: Tensor, step: int
) -> tuple[Tensor, Tensor]:
    """`zwicker_decay.decayed`; step: network steps per frame."""
    y, zf, (frames, bands) = _new(core), _new(zi), core.shape[-2:]
    size = core.numel() // frames
    given = core, coefficients, zi, begun, y, zf, size, frames, bands
    _launch("decayed", (_programs(size),), *given, STEP=step)
    return y, zf


@_operator(lambda core, zi, coefficients, begun, y, zf, step: (_new(core), _new(zi)))
def decayed_backward(
    core: Tensor, zi: Tensor, coefficients: Tensor, begun: Tensor, y: Tensor, zf: Tensor, step: int
) -> tuple[Tensor, Tensor]:
    """Gradients of `core` and `zi` in `decayed`, from those of its results."""
    into_core, into_zi, (frames, bands) = _new(core), _new(zi), core.shape[-2:]
    size = core.numel() // frames
    given = core, zi, coefficients, begun, y, zf, _new(zi, frames, step, 2, size)
    into = into_core, into_zi, size, frames, bands
    _launch("decayed_backward", (_programs(size),), *given, *into, STEP=step)
    return into_core, into_zi


@_operator(
    lambda core, upper, floors, slopes, points: (
        _new(core, *core.shape[:-1]) if core.dim() > 1 else core.new_empty(()),
        _new(core, *core.shape[:-1], points),
    )
)
def pattern(
    core: Tensor, upper: Tensor, floors: Tensor, slopes: Tensor, points: int
) -> tuple[Tensor, Tensor]:
    """`zwicker.loudness_pattern`; points: samples of specific loudness, or 0."""
    *lead, bands = core.shape
    total, samples = core.new_empty(lead), core.new_empty(*lead, points)
    size, (ranges, columns) = prod(lead), slopes.shape
    given = core, upper, floors, slopes, total, samples, size, bands, ranges, columns, points
    _launch("pattern", (_programs(size),), *given)
    return total, samples


@_operator(
    lambda intensity, level, frequency, fc, *others: _new(intensity, len(intensity), len(fc))
)
def skirts(
    intensity: Tensor,
    level: Tensor,
    frequency: Tensor,
    fc: Tensor,
    slope: Tensor,
    below: Tensor,
    k: float,
) -> Tensor:
    """`excitation.lower_skirts` for rows; k: decrease of the steepness per dB of level."""
    rows, components = intensity.shape
    y = _new(intensity, rows, len(fc))
    given = intensity, level, frequency, fc, slope, below, y, components, len(fc)
    _launch("skirts", (rows, _programs(len(fc))), *given, K=k)
    return y


@_operator(
    lambda intensity, density, apart, ends, middle, slope, bend, above, center, *numbers: _new(
        intensity, len(intensity), len(center)
    )
)
def group_skirts(
    intensity: Tensor,
    density: Tensor,
    apart: Tensor,
    ends: Tensor,
    middle: Tensor,
    slope: Tensor,
    bend: Tensor,
    above: Tensor,
    center: Tensor,
    shift_db: float,
    level_slope: float,
    steepness: float,
) -> Tensor:
    """`group_skirts` for rows, in two launches: per group, then per channel."""
    rows, components = intensity.shape
    groups, channels = len(middle), len(center)
    made, y = _new(intensity, 10, rows, groups), _new(intensity, rows, channels)
    given = intensity, density, apart, ends, middle, slope, bend, above, center, made
    sizes = rows * groups, components, groups, channels
    each = {"SHIFT": shift_db, "SLOPE": level_slope, "K": steepness}
    _launch("groups", (_programs(rows * groups),), *given, *sizes, **each)
    tables = intensity, apart, ends, middle, above, center, made, y
    fit = {"K": steepness, "GROUPS": 1 << (groups - 1).bit_length()}
    _launch("group_skirts", (rows, _programs(channels)), *tables, *sizes, **fit)
    return y


@_operator(
    lambda x, bank, step: _new(x, len(x), (x.shape[1] - bank.shape[1]) // step + 1, len(bank))
)
def windows(x: Tensor, bank: Tensor, step: int) -> Tensor:
    """`fir.windows` for rows."""
    (rows, time), (phases, taps) = x.shape, bank.shape
    frames = (time - taps) // step + 1
    y, size = _new(x, rows, frames, phases), rows * frames * phases
    _launch("windows", (_programs(size),), x, bank, y, size, time, frames, phases, taps, step)
    return y


@_operator(lambda x, b, a, zi: (_new(x), _new(zi)))
def direct_form(x: Tensor, b: Tensor, a: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`direct_form` with sections of first or second order."""
    y, zf, time, (sections, order) = _new(x), _new(zi), x.shape[-1], zi.shape[-2:]
    size = x.numel() // time
    given = x, b, a, zi, y, zf, size, time, sections
    _launch("direct_form", (_programs(size),), *given, ORDER=order)
    return y, zf


@_operator(lambda x, g, k, weights, zi: (_new(x), _new(zi)))
def svf(x: Tensor, g: Tensor, k: Tensor, weights: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`svf` in one launch."""
    y, zf, time, (channels, sections) = _new(x), _new(zi), x.shape[-1], g.shape
    size = x.numel() // time
    given = x, g, k, weights, zi, y, zf, size, time, channels, sections
    _launch("svf", (_programs(size),), *given)
    return y, zf


@_operator(lambda x, a, b, c, d, zi: (_new(x), _new(zi)))
def first_state(
    x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor, zi: Tensor
) -> tuple[Tensor, Tensor]:
    """`state_space` for systems with one real state."""
    y, zf, time = _new(x), _new(zi), x.shape[-1]
    size = x.numel() // time
    given = x, a, b, c, d, zi, y, zf, size, time, d.numel()
    _launch("first_state", (_programs(size),), *given)
    return y, zf
