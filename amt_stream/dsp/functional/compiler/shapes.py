"""Shape and dtype checks at the start of every function that has a compiled form.

A compiled kernel does not check bounds and would access memory beyond an array. The plain form
makes the same checks, so that both refuse the same.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

Shape = tuple[int, ...]

_FLOATS = (torch.float32, torch.float64)


def signal_axes(function: str, name: str, x: Tensor, count: int) -> tuple[Any, ...]:
    """Shape of the signal `x` before its last `count` axes, and the length of each of these.

    Raises ValueError if an axis is missing or empty, or for a dtype other than float32 or float64.
    """
    # A plain tuple, because slicing torch's takes as long as all comparisons together.
    shape = tuple(x.shape)
    if len(shape) < count:
        raise ValueError(f"{function}: {name} has shape {shape}: give it {count} axes or more")
    if 0 in shape:
        raise ValueError(f"{function}: {name} has shape {shape}: give it 1 or more on each axis")
    if x.dtype not in _FLOATS:
        raise ValueError(f"{function}: {name} is {x.dtype}: give float32 or float64")
    return shape[:-count], *shape[-count:]


def last_axes(function: str, name: str, x: Tensor, count: int) -> Shape:
    """Lengths of the last `count` axes of a table or state, any of which may be 0.

    Raises ValueError if an axis is missing.
    """
    shape = tuple(x.shape)
    if len(shape) < count:
        raise ValueError(f"{function}: {name} has shape {shape}: give it {count} axes or more")
    return shape[-count:]


def fit(function: str, dtype: torch.dtype, *given: tuple[str, Tensor, Shape]) -> None:
    """Raise ValueError if one of `given` (name, tensor, shape) has another shape or dtype."""
    for name, tensor, shape in given:
        if tensor.shape != shape:
            raise ValueError(
                f"{function}: {name} has shape {tuple(tensor.shape)}: give {tuple(shape)}, to "
                "match the others"
            )
        if tensor.dtype is not dtype:
            raise ValueError(f"{function}: {name} is {tensor.dtype}: give {dtype}")


def whole_blocks(function: str, length: int, unit: int) -> None:
    """Raise ValueError if `length` along time is not a multiple of `unit`."""
    if unit < 1 or length % unit:
        raise ValueError(f"{function}: {length} samples are not a multiple of {unit}")


def fit_state(
    function: str,
    x: Tensor,
    axes: Shape,
    unit: int,
    tables: tuple[Any, Mapping[str, Shape]],
    state: tuple[Any, Mapping[str, Shape]],
) -> None:
    """Raise ValueError for another shape or dtype.

    x: (..., *axes, time), a multiple of `unit` along time
    tables, state: a NamedTuple of tensors and its shapes, those of a state without leading axes
    """
    lead, *_, time = signal_axes(function, "x", x, len(axes) + 1)
    whole_blocks(function, time, unit)
    given = [(key, v, (*lead, *state[1][key])) for key, v in state[0]._asdict().items()]
    given += [(key, v, tables[1][key]) for key, v in tables[0]._asdict().items()]
    fit(function, torch.float64, ("x", x, (*lead, *axes, time)), *given)
