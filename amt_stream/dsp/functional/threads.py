"""Small blocks run on the caller's thread alone: torch's pool costs more than it computes.

Torch parts a matrix product or a logarithm of a few thousand numbers among its threads. They wake
for microseconds of work and then spin for milliseconds; on a busy machine the caller waits for one
that does not run. `torch.set_num_threads` would also decide for every thread of the program that
meets torch meanwhile, so the limit is set where it belongs to one thread: in OpenMP and in MKL.
"""

import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterator
from functools import cache

import torch
from torch import Tensor

SMALL = 2**15
"""Numbers in a block up to which one thread does it: below this torch parts no addition either."""

TINY = 5e-324
"""The least number above 0 that arithmetic knows where it knows denormal numbers."""

Setter = Callable[[int], int]


def work_alone() -> None:
    """From now on the calling thread has one core, and no slow arithmetic on tiny numbers."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


@contextlib.contextmanager
def flushing_denormals() -> Iterator[None]:
    """In the calling thread, numbers below 1e-38 are 0, which would be slow; then as before."""
    flushed = TINY * 1.0 == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed)


class one_thread:
    """Context in which torch works without its pool.

    The number of threads is as before when it ends, and that of other threads never changes.

    x: what torch works on; the pool stays on where that is large or not on the CPU
    """

    def __init__(self, x: Tensor | None = None) -> None:
        self.x = x
        self.threads = 1

    def __enter__(self) -> None:
        x = self.x
        large = x is not None and (not x.is_cpu or x.numel() > SMALL)
        if torch.compiler.is_compiling() or large:
            return
        # First: it makes a new thread's number known, which would else be set below and undo 1.
        self.threads = torch.get_num_threads()
        if self.threads > 1:
            openmp, mkl = _setters()
            openmp(1)
            self.mkl = mkl(1)

    def __exit__(self, *error: object) -> None:
        if self.threads > 1:
            openmp, mkl = _setters()
            openmp(self.threads)
            mkl(self.mkl)


def _nothing(threads: int) -> int:
    return threads


@cache
def _setters() -> tuple[Setter, Setter]:
    """How many threads OpenMP and MKL take from the calling thread; the latter gives the last.

    Of the libraries that torch itself is linked with. Where torch was built without them there is
    no such pool to keep asleep, and both do nothing.
    """
    try:
        linked = ctypes.CDLL("libiomp5md" if sys.platform == "win32" else torch._C.__file__)
        openmp = linked.omp_set_num_threads
    except (OSError, AttributeError):
        return _nothing, _nothing
    threads = torch.get_num_threads()
    openmp(threads + 1)
    heard = torch.get_num_threads() == threads + 1
    openmp(threads)
    return (openmp if heard else _nothing), getattr(linked, "MKL_Set_Num_Threads_Local", _nothing)
