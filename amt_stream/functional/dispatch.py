"""Which form of a function runs, and how the compiled ones are compiled."""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

Array = np.ndarray

_KINDS = (Tensor, torch.nn.Parameter, torch.nn.Buffer)  # not what export, vmap and fake modes pass
_DTYPES = (torch.float32, torch.float64)


def compiled(*tensors: Tensor) -> bool:
    """Whether the compiled form serves: on the CPU, no gradient wanted, nothing tracing."""
    if torch.compiler.is_compiling():
        return False
    grad = torch.is_grad_enabled()
    for x in tensors:
        if type(x) not in _KINDS or not x.is_cpu or x.dtype not in _DTYPES:
            return False
        if grad and x.requires_grad:
            return False
    return True


def array(x: Tensor) -> Array:
    """The memory of a CPU tensor, C-contiguous, as a kernel takes it."""
    if x.requires_grad:
        x = x.detach()
    return x.contiguous().numpy()


# Sums may be taken in any order, or nothing would vectorize; NaN and Inf keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}

kernel: Any = numba.njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
"""Decorator of a compiled form. No threads of its own: one engine thread does all."""
