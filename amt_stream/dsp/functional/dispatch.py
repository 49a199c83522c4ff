"""Which form of a function runs, and how the compiled ones are compiled."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from amt_stream.dsp.functional.kernel_cache import cached_njit

Array = np.ndarray

_KINDS = (Tensor, torch.nn.Parameter, torch.nn.Buffer)  # not what export, vmap and fake modes pass
_DTYPES = (torch.float32, torch.float64)

# Asked a dozen times a block, so found once.
_transform = torch._C._functorch.peek_interpreter_stack
_trace = torch._C._get_tracing_state


def compilable(*tensors: Tensor) -> bool:
    """Whether a compiled form can take these: on the CPU, nothing tracing or transforming.

    Raises RuntimeError under `torch.jit.trace`, whose graph would lack what kernels do.
    """
    # Tensors of torch.func look like others but have no memory, those of forward-mode
    # differentiation a tangent that a kernel would drop.
    if torch.compiler.is_compiling() or forward_ad._current_level >= 0 or _transform() is not None:
        return False
    if _trace() is not None:
        raise RuntimeError(
            "torch.jit.trace cannot follow compiled kernels and would keep one answer for all "
            "inputs: use torch.export.export or torch.compile"
        )
    for x in tensors:  # twice as fast as all() of a generator, which counts in blocks of 1 ms
        if type(x) not in _KINDS or not x.is_cpu or x.dtype not in _DTYPES:
            return False
    return True


def transforming() -> bool:
    """Whether a transform of torch.func runs, whose tensors mean nothing outside it."""
    return not torch.compiler.is_compiling() and _transform() is not None


def compiled(*tensors: Tensor) -> bool:
    """Whether the compiled form serves: it can take these, and no gradient is wanted."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return False
    return compilable(*tensors)


def array(x: Tensor) -> Array:
    """The memory of a CPU tensor, C-contiguous, as a kernel takes it."""
    if x.requires_grad:
        x = x.detach()
    return x.contiguous().numpy()


# Sums may be taken in any order, or nothing would vectorize; NaN and Inf keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}

kernel: Any = cached_njit(nogil=True, fastmath=FAST, error_model="numpy")
"""Decorator of a compiled form. No threads of its own: one engine thread does all."""

recurrence: Any = cached_njit(nogil=True, fastmath=FAST - {"reassoc"}, error_model="numpy")
"""The same for recurrences whose small steps, summed in another order, would be lost in float32."""
