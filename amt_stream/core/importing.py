"""Imports of heavy libraries, sooner done."""

import gc
import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector, which finds nothing in what is imported.

    It takes a fifth of the time of `import torch`.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def import_ahead(*modules: str) -> None:
    """Import modules in a thread, for who waits meanwhile for something else [any-thread]."""

    def load() -> None:
        # Code that needs a module imports it again and gets the error. If the program has ended
        # meanwhile, nothing does: Python then refuses what modules register for its end.
        with uncollected(), suppress(ImportError, RuntimeError):
            for module in modules:
                importlib.import_module(module)

    threading.Thread(target=load, name="imports").start()
