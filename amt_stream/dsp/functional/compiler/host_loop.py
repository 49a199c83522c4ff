"""Loops of meters and inputs: compiled by numba, or as they were built where it is missing."""

from collections.abc import Callable
from typing import Any

from amt_stream.core.built_ahead import BuiltLoop
from amt_stream.core.importing import has_torch

FAST = {"reassoc", "contract", "nsz", "arcp"}
"""Options of `fastmath`: sums may be reordered, which vectorization needs; NaN and Inf keep their
meaning."""


def host_loop(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator of a loop; options: further ones of `cached_njit`.

    Its types of arguments are those that the function of its module compiles, which `native.loops`
    names.
    """
    if not has_torch():
        return BuiltLoop
    from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit

    return cached_njit(nogil=True, error_model="numpy", **options)
