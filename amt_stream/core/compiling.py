"""Compilations of kernels: a waiting user knows why, and processes take turns."""

import os
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from amt_stream.core.made_once import made_once

if sys.platform != "win32":
    import fcntl

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

TURN_S, PAUSE_S = 60.0, 0.02
"""Longest wait for another process, which may be stopped, and how often to try."""


class Turn:
    """The turn to compile a kernel: of processes that share a cache one has it, until it ends.

    On Windows, and where files cannot be locked, all have it.

    folder, name: of the cache, and of the kernel in it
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._byte = folder, zlib.crc32(name.encode())

    def begin(self) -> None:
        """Wait for the turn, at most TURN_S."""
        end = time.monotonic() + TURN_S
        while not self._taken() and time.monotonic() < end:
            time.sleep(PAUSE_S)

    def end(self) -> None:
        """Give the turn to another process."""
        if (file := _lockable(self._folder)) is not None:
            with suppress(OSError):
                fcntl.lockf(file, fcntl.LOCK_UN, 1, self._byte)

    def _taken(self) -> bool:
        if (file := _lockable(self._folder)) is not None:
            try:  # a lock of a byte, which a fork does not inherit
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._byte)
            except (BlockingIOError, PermissionError):
                return False
            except OSError:  # a file system without locks
                return True
        return True


@made_once
def _lockable(folder: Path) -> int | None:
    """A file of the folder, open for good: closing it would end all locks of this process."""
    if sys.platform == "win32":
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / "kernels.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
