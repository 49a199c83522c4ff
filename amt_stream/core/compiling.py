"""Reports that kernels are being compiled, so that a waiting user knows why."""

import threading
import time
from collections.abc import Callable

PATIENCE_S = 1.0
LATELY_S = 1.0
WORDS = "compiling, once after an installation: about 20 s, longer on a slow computer"
LIVE_WORDS = f"{WORDS}; sound meanwhile is measured too"


class Compiling:
    """The kernel compilations of this process [any-thread].

    patience_s: seconds of compilation before users are notified
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._lock = threading.Lock()
        self._left_s = patience_s
        self._under_way, self._at = 0, 0.0
        self._say: list[tuple[Callable[[str], object], str]] = []

    def begins(self) -> None:
        """Record that a compilation starts; compilations may nest."""
        now = time.monotonic()
        with self._lock:
            if not self._under_way:
                self._at = now
            self._under_way += 1
            due, self._say = ([], self._say) if self._left_s > 0 else (self._say, [])
        for say, words in due:
            say(words)

    def ends(self) -> None:
        """Record that a compilation ended."""
        now = time.monotonic()
        with self._lock:
            self._under_way = max(0, self._under_way - 1)
            if not self._under_way:
                self._left_s -= now - self._at
                self._at = now

    @property
    def note(self) -> str:
        """LIVE_WORDS while compilation takes noticeably long, otherwise ""."""
        with self._lock:
            now = self._under_way or time.monotonic() < self._at + LATELY_S
            spent = time.monotonic() - self._at if self._under_way else 0.0
            return LIVE_WORDS if now and self._left_s - spent <= 0 else ""

    def have_said(self, say: Callable[[str], object], words: str = WORDS) -> None:
        """Call `say(words)` once, at the first compilation after the patience is used up."""
        with self._lock:
            self._say.append((say, words))


compiling = Compiling()
"""The compilations of this process."""
