"""A running `amt-stream serve`, as another program starts it: real pipes, real sockets."""

import atexit
import contextlib
import functools
import json
import os
import queue
import re
import threading
import time
from pathlib import Path

from tests.cli.forks import Forks
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


@functools.cache
def forks():
    """The process in whose forks they run, so that none has to import all over again."""
    one = Forks()
    atexit.register(one.__exit__)
    return one.__enter__()


class Lines(queue.Queue):
    """The lines of a stream as they come; "" after the last."""

    def __init__(self, stream):
        super().__init__()
        self.reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self.reader.start()

    def _read(self, stream):
        for line in stream:
            self.put(line)
        self.put("")


class Served:
    """What it says line by line, as messages; `address` is that of its page."""

    def __init__(self, *arguments):
        reading, writing = os.pipe()
        self._commands = os.fdopen(writing, "w", encoding="utf-8")
        self.process = forks().begin("serve", "--stdio", *arguments, stdin=reading)
        os.close(reading)
        self.messages, self.past = queue.Queue(), []
        self._said = Lines(self.process.stderr)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def said(self, pattern):
        """What it says on standard error, of the first line that fits."""
        while line := self._said.get(timeout=PATIENCE_S):
            if found := re.search(pattern, line):
                return found[1]
        raise AssertionError(f"it has ended without {pattern}")

    def said_yet(self):
        """The next line on standard error, or, once it has ended, ""."""
        return self._said.get(timeout=PATIENCE_S)

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
        self._commands.write(line + "\n")
        self._commands.flush()

    def end(self, close=True):
        """Close its input, or wait for the end of the sound; gives its status, and the rest."""
        if close:
            self._commands.close()
        last = list(iter(lambda: self.messages.get(timeout=PATIENCE_S), None))
        return self.process.wait(timeout=PATIENCE_S), last

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        for reader in (
            self._reader,
            self._said.reader,
        ):  # a pipe that closes under its reader is an error there
            reader.join(PATIENCE_S)
        for pipe in (self._commands, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()


def is_row(message):
    return "time_s" in message
