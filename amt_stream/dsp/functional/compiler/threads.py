"""Runs small blocks on the caller's thread alone: torch's pool costs more than it computes.

Torch splits a matrix product or a logarithm of a few thousand numbers among its threads. They wake
for microseconds of work and then spin for milliseconds; on a busy machine the caller waits for a
thread that does not get scheduled. `torch.set_num_threads` would also affect threads that first use
torch meanwhile, so the limit is set per thread, in OpenMP and MKL.
"""

import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterator
from functools import cache

import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.private_torch import TORCH_LIBRARY

SMALL = 2**15
"""Size of a block up to which one thread computes it; torch does not split smaller additions."""

TINY = 5e-324
"""The least positive number, if denormal numbers are not flushed to 0."""

LARGEST, KEPT = 64 * 2**20, 256 * 2**20
"""Bytes of a piece of memory that the process keeps when it is freed, and of all of them."""

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""Numbers of the options in the C library of GNU (malloc.h)."""

Setter = Callable[[int], int]


def work_alone() -> None:
    """Limit the calling thread to one core, and flush denormal numbers to 0, for good.

    Memory stays with the process as `keep_memory` says.
    """
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    keep_memory()


def keep_memory() -> None:
    """Have the C library keep up to `KEPT` freed bytes for the next block, for good.

    By default it gives large pieces back to the system, which clears each page when it hands them
    out again: with 32 listeners that takes twice as long as `Dau1997`. A thread other than the main
    one takes memory from heaps of `LARGEST` bytes, and an empty one goes back unless that much is
    to stay free. This applies to the process, and does nothing without the C library of GNU.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, LARGEST)
        mallopt(M_TRIM_THRESHOLD, KEPT)
        mallopt(M_TOP_PAD, LARGEST)


@contextlib.contextmanager
def flushing_denormals() -> Iterator[None]:
    """Flush denormal numbers to 0 in the calling thread, because they are slow; then restore."""
    flushed = TINY * 1.0 == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed)


class one_thread:
    """Context in which torch does not use its thread pool.

    The previous number of threads is restored at the end; other threads are unaffected.

    x: the operand; the pool stays on if it is large or not on the CPU
    """

    def __init__(self, x: Tensor | None = None) -> None:
        self.x = x
        self.threads = 1

    def __enter__(self) -> None:
        x = self.x
        large = x is not None and (not x.is_cpu or x.numel() > SMALL)
        if torch.compiler.is_compiling() or large:
            return
        # First, because this call initializes a new thread's number and would undo the 1.
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
    """Functions that set the calling thread's limits in OpenMP and MKL; MKL's returns the old one.

    From the libraries that torch links with. If torch was built without them, they do nothing.
    """
    try:
        linked = ctypes.CDLL("libiomp5md" if sys.platform == "win32" else TORCH_LIBRARY)
        openmp = linked.omp_set_num_threads
    except (OSError, AttributeError):
        return _nothing, _nothing
    threads = torch.get_num_threads()
    openmp(threads + 1)
    works = torch.get_num_threads() == threads + 1
    openmp(threads)
    return (openmp if works else _nothing), getattr(linked, "MKL_Set_Num_Threads_Local", _nothing)
