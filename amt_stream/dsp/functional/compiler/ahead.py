"""Kernels compiled in a second process, while this one compiles others.

Numba compiles one kernel at a time per process. The processes share results through the disk cache.
"""

import gc
import importlib
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numba import types

from amt_stream.core.processes import NoInterpreter, module_command
from amt_stream.dsp.functional.compiler import private_numba
from amt_stream.dsp.functional.compiler.lowering import Kernel, Kind


def kernel_and_types(home: str, name: str, dtype: np.dtype) -> tuple[Kernel, tuple[Kind, ...]]:
    """A kernel of a module, one of its CALLS or ".name" that takes a plan, and its types."""
    module = importlib.import_module(home)
    sound = types.float32 if dtype == np.float32 else types.float64
    if name.startswith("."):
        taken = types.Array(types.int64, 2, "C"), types.Array(sound, 1, "C")
        return getattr(module, name[1:]), taken
    called = module.CALLS[name]
    return called.kernel, called.types(sound)


def compile_kernel(home: str, name: str, dtype: np.dtype) -> None:
    """Compile a kernel of `kernel_and_types`."""
    kernel, kinds = kernel_and_types(home, name, dtype)
    kernel.compile(kinds)


def is_kept(home: str, name: str) -> bool:
    """Whether the kernel is in the disk cache, or cannot be cached."""
    return private_numba.is_stored(kernel_and_types(home, name, np.dtype(np.float32))[0])


_under_way: set[str] = set()
_deciding = threading.Lock()


class Ahead:
    """A second process that compiles kernels of a module, in reverse order.

    It starts only if none of them is in the disk cache and no other compiles that module, and not
    in a `multiprocessing` process.

    also: functions, "module:name", that it calls first, such as those that compile other kernels
    """

    def __init__(
        self, home: str, names: Sequence[str], dtype: np.dtype, also: Sequence[str] = ()
    ) -> None:
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None
        if multiprocessing.parent_process() is not None or any(is_kept(home, n) for n in names):
            return
        with _deciding:
            if home in _under_way:
                return
            with suppress(OSError, NoInterpreter):  # this process then compiles all
                self._process = subprocess.Popen(
                    module_command(__name__, home, dtype.name, *names, *reversed(also)),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                _under_way.add(home)

    def end(self) -> None:
        """Kill the process, finished or not."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
            _under_way.discard(self._home)


def _end_with_parent() -> None:
    os.read(0, 1)  # not sys.stdin, which the interpreter may be closing
    os._exit(0)


def main() -> None:
    """Compile the kernels named by the arguments, in reverse order."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.disable()  # it looks through all that a compiler makes: a tenth of the time
    home, dtype, *names = sys.argv[1:]
    for name in reversed(names):
        module, colon, function = name.partition(":")
        if colon:
            getattr(importlib.import_module(module), function)()
        else:
            compile_kernel(home, name, np.dtype(dtype))


if __name__ == "__main__":
    main()
