"""Choice between plain and compiled forms, and the options of compilation."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.compiler import is_compiling

from amt_stream.dsp.functional.compiler.host_loop import FAST, host_loop
from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit
from amt_stream.dsp.functional.compiler.private_numba import UNCOUNTED
from amt_stream.dsp.functional.compiler.private_torch import forward_mode, trace, transform

Array = np.ndarray

_KINDS = (Tensor, torch.nn.Parameter, torch.nn.Buffer)  # excludes export, vmap and fake tensors
_DTYPES = (torch.float32, torch.float64)


def compilable(*tensors: Tensor) -> bool:
    """Whether a compiled form can take these: on the CPU, with no tracing or transform active.

    Raises RuntimeError under `torch.jit.trace`, whose graph would omit the kernels.
    """
    # Tensors of torch.func look ordinary but have no memory; those of forward-mode differentiation
    # have a tangent that a kernel would drop.
    if followed():
        return False
    if trace() is not None:
        raise RuntimeError(
            "torch.jit.trace cannot follow compiled kernels and would keep one answer for all "
            "inputs: use torch.export.export or torch.compile"
        )
    for x in tensors:  # twice as fast as all() with a generator, which matters in 1 ms blocks
        if type(x) not in _KINDS or not x.is_cpu or x.dtype not in _DTYPES:
            return False
    return True


def followed() -> bool:
    """Whether torch traces or transforms what runs, for which it must see each operation."""
    return is_compiling() or forward_mode() or transform() is not None


def transforming() -> bool:
    """Whether a torch.func transform runs; its tensors must not outlive it."""
    return not is_compiling() and transform() is not None


def compiled(*tensors: Tensor) -> bool:
    """Whether to use the compiled form: it is possible, and no gradient is needed."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return False
    return compilable(*tensors)


def array(x: Tensor) -> Array:
    """The memory of a CPU tensor, C-contiguous, for a kernel."""
    if x.requires_grad:
        x = x.detach()
    return x.contiguous().numpy()


def arrays_of(state: Any, shapes: Mapping[str, tuple[int, ...]]) -> list[Array]:
    """Arrays (row, ...) of the fields of a contiguous `state`; they share its memory."""
    each = zip(state, shapes.values(), strict=True)
    return [v.numpy().reshape(-1, *shape) for v, shape in each]


def copied(x: Tensor) -> Tensor:
    """A contiguous copy."""
    return x.clone(memory_format=torch.contiguous_format)


kernel: Any = host_loop(fastmath=FAST)
"""Decorator of a compiled form. It starts no threads, because one thread runs the models."""

bare_kernel: Any = cached_njit(nogil=True, fastmath=FAST, error_model="numpy", **UNCOUNTED)
"""The same for what allocates nothing: references to arrays are not counted, which takes as long as
small pieces of work."""

recurrence: Any = cached_njit(nogil=True, fastmath=FAST - {"reassoc"}, error_model="numpy")
"""The same without reordering, for recurrences whose small steps float32 would then lose."""
