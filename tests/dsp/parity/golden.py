"""Golden numbers: stage, inputs and expected outputs out of a file of `tests/data/golden`."""

import json
from pathlib import Path

import numpy as np
import torch

import amt_stream

GOLDEN = Path(__file__).parents[2] / "data" / "golden"


def golden(name, **more):
    """Stage (with `more` arguments), inputs, outputs and design constants of a file."""
    with np.load(GOLDEN / f"{name}.npz") as file:
        meta = json.loads(str(file["meta"]))
        arrays = {key: torch.from_numpy(file[key]) for key in file.files if key != "meta"}
    stage = getattr(amt_stream, meta["cls"].partition("(")[0])(
        **{key: _argument(value) for key, value in meta["ctor"].items()}, **more
    )
    parts = [
        {k.removeprefix(kind): v for k, v in arrays.items() if k.startswith(kind)}
        for kind in ("in_", "out_", "par_")
    ]
    return stage, *parts


def _argument(value):
    """JSON has no tuples and no tensors: a list stands for the one, a dict for the other."""
    if isinstance(value, dict):
        return torch.tensor(value["__tensor__"])
    return tuple(value) if isinstance(value, list) else value


def close(got, expected, tolerance=1e-5):
    """Whether `got` is `expected` within `tolerance` of its peak; by default, float32 of both."""
    assert got.shape == expected.shape
    assert (got - expected).abs().amax() <= tolerance * expected.abs().amax()
