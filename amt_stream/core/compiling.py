"""That kernels are being compiled, for whoever waits for them."""

import threading
import time
from collections.abc import Callable

PATIENCE_S = 1.0
LATELY_S = 1.0
WORDS = (
    "compiling, once after an installation: about 20 s, on a slow computer more; what a microphone "
    "hears meanwhile is measured too"
)


class Compiling:
    """Kernels that this process compiles [any-thread].

    patience_s: of compiling, after which it is said
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._lock = threading.Lock()
        self._left_s = patience_s
        self._under_way, self._at = 0, 0.0
        self._say: list[Callable[[str], object]] = []

    def begins(self) -> None:
        """A kernel is not there, and is compiled from here on; within that, others may be."""
        now = time.monotonic()
        with self._lock:
            if not self._under_way:
                self._at = now
            self._under_way += 1
            told, self._say = ([], self._say) if self._left_s > 0 else (self._say, [])
        for say in told:
            say(WORDS)

    def ends(self) -> None:
        """It is compiled."""
        now = time.monotonic()
        with self._lock:
            self._under_way = max(0, self._under_way - 1)
            if not self._under_way:
                self._left_s -= now - self._at
                self._at = now

    @property
    def note(self) -> str:
        """A sentence, for as long as it takes so long that somebody would wonder, or ""."""
        with self._lock:
            now = self._under_way or time.monotonic() < self._at + LATELY_S
            spent = time.monotonic() - self._at if self._under_way else 0.0
            return WORDS if now and self._left_s - spent <= 0 else ""

    def have_said(self, say: Callable[[str], object]) -> None:
        """Have it said, once, when a kernel is begun after the patience is used up."""
        with self._lock:
            self._say.append(say)


compiling = Compiling()
"""Of this process."""
