"""A running `amt-stream serve`, as another program starts it: real pipes, real sockets."""

import contextlib
import json
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "amt_stream"]
PATIENCE_S = 60


class Served:
    """What it says line by line, as messages; `address` is that of its page."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [*COMMAND, "serve", "--stdio", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.messages, self.past, self._said = queue.Queue(), [], queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def _listen(self):
        for line in self.process.stderr:
            self._said.put(line)
        self._said.put("")

    def said(self, pattern):
        """What it says on standard error, of the first line that fits."""
        while line := self._said.get(timeout=PATIENCE_S):
            if found := re.search(pattern, line):
                return found[1]
        raise AssertionError(f"it has ended without {pattern}")

    @property
    def address(self):
        return self.said(r"the page is at (http://\S+/)")

    def until(self, wanted):
        """The next message that is wanted."""
        end = time.monotonic() + PATIENCE_S
        while True:
            message = self.messages.get(timeout=max(0.0, end - time.monotonic()))
            assert message is not None, list(self._said.queue)
            self.past.append(message)
            if wanted(message):
                return message

    def ask(self, command, **arguments):
        """Send a command; gives its reply."""
        self.tell(json.dumps({"command": command, "id": "x", **arguments}))
        return self.until(lambda message: "reply" in message)["reply"]

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self, close=True):
        """Close its input, or wait for the end of the sound; gives its status, and the rest."""
        if close:
            self.process.stdin.close()
        last = list(iter(lambda: self.messages.get(timeout=PATIENCE_S), None))
        return self.process.wait(timeout=PATIENCE_S), last

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()


def is_row(message):
    return "time_s" in message
