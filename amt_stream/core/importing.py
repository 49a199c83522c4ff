"""Imports of heavy libraries, and what is said where a library is not installed."""

import gc
import importlib
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from amt_stream.core.errors import Refusal


class NeedsTorch(Refusal, ValueError):
    """What only the whole package can do."""


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


HEAVY = ("torch", "numba", "llvmlite")
"""What `amt-stream-station` does without."""


@cache
def has_torch() -> bool:
    """Whether PyTorch and numba are installed; `amt-stream-station` does without them."""
    return all(importlib.util.find_spec(name) is not None for name in HEAVY)


def install(extra: str) -> str:
    """The command that installs an extra of this package, or of `amt-stream-station`."""
    # The other one would replace the files of this one.
    return f'pip install "{"amt_stream" if has_torch() else "amt-stream-station"}[{extra}]"'


def refuse_without_torch(what: str) -> None:
    """Raise NeedsTorch unless PyTorch and numba are installed; what: a noun, with "needs"."""
    if not has_torch():
        raise NeedsTorch(f"{what} needs the package amt_stream, with PyTorch and numba: install it")


@contextmanager
def refusing_without_torch(what: str) -> Iterator[None]:
    """Raise NeedsTorch if what runs here imports PyTorch or numba, and they are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in HEAVY:
            refuse_without_torch(what)
        raise
