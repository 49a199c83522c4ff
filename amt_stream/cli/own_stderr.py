"""Standard error of a command: only for its own sentences."""

import contextlib
import os
import sys

LIBRARY_MESSAGES = "AMT_STREAM_LIBRARY_MESSAGES"
"""Environment variable: if set, the messages of libraries stay on standard error."""


def keep_for_sentences() -> None:
    """Let only this program's Python code write to standard error [main-thread].

    Libraries in C, such as libmpg123, ALSA and Qt, write to descriptor 2 on their own, and so do
    child processes that a Ctrl-C interrupts. That descriptor then leads nowhere, and `sys.stderr`
    has another one.
    """
    if os.environ.get(LIBRARY_MESSAGES) or os.name == "nt":
        return
    before = sys.stderr
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none
        if before.fileno() != 2:
            return
        own, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        # Unbuffered text, as Python has it there; the terminal view draws on `__stderr__`.
        stream = os.fdopen(own, "w", 1, encoding=before.encoding, errors=before.errors)
        vars(sys).update(stderr=stream, __stderr__=stream)
