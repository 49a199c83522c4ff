"""Kernels of a plan as LLVM IR that knows no processor, to be compiled for any.

In a process of its own, because numba reads when it is imported for which processor it compiles,
and because a kernel from its disk cache has no IR.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

NO_PROCESSOR = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_LOOP_VECTORIZE": "0",
    "NUMBA_SLP_VECTORIZE": "0",
    "NUMBA_OPT": "1",
    "PYTHONHASHSEED": "0",
}
"""Settings of numba: what a processor offers is used when an object is made for it. The last one is
Python's: symbols name the options of a kernel in the order of a set."""


class KernelCode(NamedTuple):
    """A kernel: its symbol, and its IR."""

    symbol: str
    text: str


@contextmanager
def environment() -> Iterator[dict[str, str]]:
    """The environment of the process that calls `kernel_code`; its cache is empty at first."""
    with tempfile.TemporaryDirectory(prefix="amt-stream-kernels-") as folder:
        yield os.environ | NO_PROCESSOR | {"NUMBA_CACHE_DIR": folder}


def kernel_code(home: str, name: str, dtype: str) -> KernelCode:
    """Compile a kernel of a module: one of its CALLS, or ".name", one that takes a plan."""
    import numpy as np

    from amt_stream.dsp.functional.compiler.ahead import kernel_and_types
    from amt_stream.dsp.functional.compiler.private_numba import code_of

    return KernelCode(*code_of(*kernel_and_types(home, name, np.dtype(dtype))))
