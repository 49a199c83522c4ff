"""Which form of a function runs, and how the compiled ones are compiled."""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

Array = np.ndarray

_KINDS = (Tensor, torch.nn.Parameter, torch.nn.Buffer)


def compiled(*tensors: Tensor) -> bool:
    """Whether the compiled form serves: on the CPU, no gradient wanted, nothing tracing."""
    grad = torch.is_grad_enabled()
    return not torch.compiler.is_compiling() and all(
        type(x) in _KINDS  # not the stand-ins of export, vmap or fake tensors
        and x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.float64)
        and not (grad and x.requires_grad)
        for x in tensors
    )


def array(x: Tensor) -> Array:
    """The memory of a CPU tensor, C-contiguous, as a kernel takes it."""
    return x.detach().contiguous().numpy()


# Sums may be taken in any order, or nothing would vectorize; NaN and Inf keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}

kernel: Any = numba.njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
"""Decorator of a compiled form. No threads of its own: one engine thread does all."""
