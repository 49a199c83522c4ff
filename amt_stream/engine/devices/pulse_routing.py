"""Which source a sound server records from, and whether it has moved the stream."""

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from amt_stream.engine.devices.identity import pactl, pactl_settings

WATCH = "pactl subscribe & read nothing; kill $!"
"""Prints changes until its input is closed, which also happens when this program is killed."""

LOOK_S = 1.0
TURN_S = 0.05

_OWN = re.compile(r'^\tSource: (\d+)$.*^\t\tapplication\.process\.id = "(\d+)"$', re.M | re.S)


def source_of(process: int) -> str | None:
    """The name of the source that a process records from; None if unknown."""
    if not sys.platform.startswith("linux"):
        return None
    for block in "\n".join(pactl("list", "source-outputs")).split("\n\n"):
        found = _OWN.search(block)
        if found is not None and int(found[2]) == process:
            sources = (line.split("\t") for line in pactl("list", "short", "sources"))
            return next((words[1] for words in sources if words[0] == found[1]), None)
    return None


class PulseRouting:
    """Watches which source a process records from.

    Sound servers silently move a stream to another microphone when one is unplugged.
    """

    def __init__(self, process: int, place: str | None) -> None:
        """For a process meant to record from `place`; None takes the first source that is known."""
        self.place = place
        self._process = process
        self._seen = False
        self._changed = threading.Event()
        self._look_at = -math.inf
        self._watcher: Any = None
        if not sys.platform.startswith("linux"):
            return
        with contextlib.suppress(OSError):
            self._watcher = subprocess.Popen(
                ["sh", "-c", WATCH],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=pactl_settings(),
                start_new_session=True,
            )
            self._thread = threading.Thread(target=self._read, name="placement", daemon=True)
            self._thread.start()

    def _read(self) -> None:
        for line in self._watcher.stdout:
            if b"'change' on source-output" in line:
                self._changed.set()

    def moved_to(self) -> str | None:
        """The source that the process was moved to, or None; asks the server after a change."""
        if not self._changed.is_set() and time.monotonic() < self._look_at:
            return None
        first = self._look_at == -math.inf  # it may have moved before watching: ask again
        self._changed.clear()
        now = source_of(self._process)
        self._seen = self._seen or now is not None
        self._look_at = time.monotonic() + LOOK_S
        if not first and (now is not None or not self._seen):
            self._look_at = math.inf
        self.place = self.place or now
        return None if now == self.place else now

    def is_known(self, within_s: float) -> bool:
        """Wait until the server knows the source of the process; False after `within_s`."""
        until = time.monotonic() + within_s
        while source_of(self._process) is None:
            if time.monotonic() > until:
                return False
            time.sleep(TURN_S)
        return True

    def close(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            self._watcher.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._watcher.pid, signal.SIGKILL)
            self._watcher.wait()
            self._thread.join()
            self._watcher.stdout.close()
            self._watcher = None
