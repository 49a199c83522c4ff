"""Tables and state of the functions over blocks, which run in float64 on the CPU."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array
from amt_stream.dsp.functional.compiler.shapes import Shape, fit, signal_axes, whole_blocks

Shapes = Mapping[str, Shape]


def refuse_unfit(
    function: str,
    x: Tensor,
    axes: Shape,
    unit: int,
    tables: tuple[Any, Shapes],
    state: tuple[Any, Shapes],
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


def rows_of(state: Any, shapes: Shapes) -> list[Array]:
    """Arrays (row, ...) of the fields of a contiguous `state`; they share its memory."""
    each = zip(state, shapes.values(), strict=True)
    return [v.numpy().reshape(-1, *shape) for v, shape in each]
