"""Watches what a program prints about changes."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from amt_stream.core.processes import plain_environment


class ChangeWatch:
    """Sets `changed` for each line of a program that has one of `marks`; Linux only.

    The program ends when its watcher is closed, and also when this program is killed.

    heard: whether it has printed anything, so that it watches by now
    """

    def __init__(self, command: Sequence[str], marks: Sequence[bytes]) -> None:
        self.changed, self.heard = threading.Event(), False
        self._marks = marks
        self._process: Any = None
        if not sys.platform.startswith("linux"):
            return
        # The shell's read returns when its input is closed.
        script = f"{shlex.join(command)} & read nothing; kill $!"
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                ["sh", "-c", script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=plain_environment(),
                start_new_session=True,
            )
            self._thread = threading.Thread(target=self._read, name="changes", daemon=True)
            self._thread.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            self.heard = True
            if any(mark in line for mark in self._marks):
                self.changed.set()

    def close(self) -> None:
        if self._process is None:
            return
        self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._thread.join()
        self._process.stdout.close()
        self._process = None
