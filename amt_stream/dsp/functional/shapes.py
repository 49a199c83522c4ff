"""Which tensors fit together: asked at the head of every function that has a compiled form.

A compiled kernel believes what it is told; beyond the end of an array it reads, and writes, what
belongs to others. The plain form is asked the same, so that both refuse the same.
"""

from typing import Any

import torch
from torch import Tensor

Shape = tuple[int, ...]

_FLOATS = (torch.float32, torch.float64)


def signal_axes(function: str, name: str, x: Tensor, count: int) -> tuple[Any, ...]:
    """Shape of the signal `x` before its last `count` axes, and the length of each of these.

    Raises ValueError where it lacks one of them, holds nothing, or is no float32 or float64.
    """
    # Once, as a plain tuple: to cut torch's own takes as long as all comparisons together.
    shape = tuple(x.shape)
    if len(shape) < count:
        raise ValueError(f"{function}: {name} has shape {shape}: give it {count} axes or more")
    if 0 in shape:
        raise ValueError(f"{function}: {name} has shape {shape}: give it 1 or more on each axis")
    if x.dtype not in _FLOATS:
        raise ValueError(f"{function}: {name} is {x.dtype}: give float32 or float64")
    return shape[:-count], *shape[-count:]


def last_axes(function: str, name: str, x: Tensor, count: int) -> Shape:
    """Lengths of the last `count` axes of what goes with a signal, any of which may be 0.

    Raises ValueError where it lacks one of them.
    """
    shape = tuple(x.shape)
    if len(shape) < count:
        raise ValueError(f"{function}: {name} has shape {shape}: give it {count} axes or more")
    return shape[-count:]


def fit(function: str, dtype: torch.dtype, *given: tuple[str, Tensor, Shape]) -> None:
    """Raise ValueError where one of `given`, name, tensor and shape, has another shape or dtype."""
    for name, tensor, shape in given:
        if tensor.shape != shape:
            raise ValueError(
                f"{function}: {name} has shape {tuple(tensor.shape)}: give {tuple(shape)}, which "
                "goes with the others"
            )
        if tensor.dtype is not dtype:
            raise ValueError(f"{function}: {name} is {tensor.dtype}: give {dtype}")


def whole_blocks(function: str, length: int, unit: int) -> None:
    """Raise ValueError where `length` along time is no multiple of `unit`."""
    if unit < 1 or length % unit:
        raise ValueError(
            f"{function}: {length} samples are no whole number of {unit}: give a multiple of it"
        )
