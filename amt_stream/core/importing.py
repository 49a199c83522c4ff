"""Faster imports of heavy libraries."""

import gc
import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the garbage collector, which takes a fifth of `import torch` and frees nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def import_ahead(*modules: str) -> None:
    """Import modules in a background thread while the caller waits for something else.

    [any-thread]
    """

    def load() -> None:
        # Code that needs a module imports it again and gets the error. RuntimeError: the program
        # has ended meanwhile, and Python refuses functions that modules register for its end.
        with uncollected(), suppress(ImportError, RuntimeError):
            for module in modules:
                importlib.import_module(module)

    threading.Thread(target=load, name="imports").start()
