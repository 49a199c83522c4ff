"""What an engine needs to know of a model that it runs without torch."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amt_stream.core.errors import Refusal
from amt_stream.dsp.checkpoints import fingerprint
from amt_stream.dsp.fused import Fused

ATTRIBUTES = (
    *("fs", "settle_s", "memory_s", "tail_s", "frames_stand_for_end", "per_channel"),
    *("channels", "input_unit", "out_time_dim"),
)
"""Those of the contract of `Stage` that an engine reads."""

UNUSUAL, SAMPLES = 3.0, 12345
"""A number of a state that nothing sets, and one of samples."""


class NotNative(Refusal, ValueError):
    """A model that cannot run without Python."""


def stage_about(
    model: Any,
    fused: Fused,
    lead: tuple[int, ...],
    block: int,
    places: Sequence[int],
    of_state: Mapping[str, int],
) -> str:
    """The attributes of a model, its outputs and what of its state is set, as JSON.

    lead, block: shape of the input without time, and samples of a block
    places, of_state: of each output and each array of the state, in bytes of their memory

    Raises NotNative for a model whose outputs are made by more than its plan.
    """
    return json.dumps(
        {name: getattr(model, name) for name in ATTRIBUTES}
        | {
            "nominal": [*getattr(model, "nominal", ())],
            "fingerprint": fingerprint(model),
            "ratio": [model.ratio.numerator, model.ratio.denominator],
            "latency": [model.latency.numerator, model.latency.denominator],
            "listeners": len(lead) > 1,
            "arguments": {k: v for k, v in model.arguments().items() if isinstance(v, str)},
            "outputs": _outputs(model, fused, lead, block, places),
            "begins": _set_by(model.beginning, model, lead, of_state),
            "ends": _ends(model, lead, of_state),
        }
    )


def _outputs(
    model: Any, fused: Fused, lead: tuple[int, ...], block: int, places: Sequence[int]
) -> list[tuple[str, dict[str, Any] | None]]:
    """Each field of the output, with its type, place, shape and strides in bytes."""
    # Not in a second process: what comes from its cache has no code to export.
    fused.begin_to_compile = lambda *also: None  # type: ignore[method-assign]
    fused.compile()
    state = {key: value.clone().contiguous() for key, value in model.initial_state(lead).items()}
    silence = torch.zeros(*lead, block, dtype=fused.dtype)
    workspace = fused.planned(silence, state)
    assert workspace is not None
    given: list[Tensor] = []
    allocate = fused.outputs

    def noted(workspace: Any) -> tuple[Tensor, ...]:
        given[:] = found = allocate(workspace)
        return found

    fused.outputs = noted  # type: ignore[method-assign]
    try:
        y = fused.processed(silence, workspace)
    finally:
        del fused.outputs
    names = getattr(y, "_fields", ("value",))
    values = y if isinstance(y, tuple) else (y,)
    return [
        (name, None if v is None else _view(type(model).__name__, v, given, places))
        for name, v in zip(names, values, strict=True)
    ]


def _view(model: str, v: Tensor, given: Sequence[Tensor], places: Sequence[int]) -> dict[str, Any]:
    for x, place in zip(given, places, strict=True):
        begin = v.data_ptr() - x.data_ptr()
        if 0 <= begin < x.nbytes:
            strides = [n * v.element_size() for n in v.stride()]
            dtype = str(v.dtype).removeprefix("torch.")
            return {
                "dtype": dtype,
                "place": place + begin,
                "shape": [*v.shape],
                "strides": strides,
            }
    raise NotNative(f"{model} cannot run without torch: an output is made by more than its plan")


def _ends(model: Any, lead: tuple[int, ...], of_state: Mapping[str, int]) -> list[Any]:
    """Place and type of each number of the state that says how many samples are left."""
    found = _set_by(lambda state: model.ending(state, SAMPLES), model, lead, of_state)
    if any(value != SAMPLES for *_, value in found):
        raise NotNative(f"{type(model).__name__} cannot run without torch: its end is not a number")
    return [[place, dtype] for place, dtype, _ in found]


def _set_by(
    change: Any, model: Any, lead: tuple[int, ...], of_state: Mapping[str, int]
) -> list[tuple[int, str, float]]:
    """What a change sets in the state: place and type of each number, and its value."""
    before = {k: torch.full_like(v, UNUSUAL) for k, v in model.initial_state(lead).items()}
    after, found = change(dict(before)), []
    for key, value in before.items():
        old, new = value.numpy().ravel(), after[key].numpy().ravel()
        for at in np.flatnonzero(old != new):
            place = of_state[key] + int(at) * old.itemsize
            found.append((place, old.dtype.name, float(new[at])))
    return found
