"""That kernels are compiled, said where somebody would wonder what takes so long."""

import multiprocessing
import sys
import time
from functools import cache
from typing import Any

from numba.core.event import Listener, register

from amt_stream.cli.messages import say

PATIENCE_S = 1.0
WORDS = (
    "the models are being compiled, once after an installation: that takes up to a minute, and "
    "later starts do not"
)


class Compiling(Listener):
    """Says it once, as soon as more is compiled after so many seconds of it [any-thread]."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._left_s = patience_s
        self._depth, self._began, self._said = 0, 0.0, False

    def on_start(self, event: Any) -> None:
        if not self._depth:
            self._began = time.monotonic()
            if self._left_s <= 0 and not self._said:
                self._said = True
                say(WORDS)
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if not self._depth:
            self._left_s -= time.monotonic() - self._began


@cache
def say_when_compiling() -> None:
    """From here on, where somebody sees it; processes of --jobs would all say the same."""
    first = multiprocessing.parent_process() is None
    if first and sys.stderr is not None and sys.stderr.isatty():
        register("numba:compile", Compiling())
