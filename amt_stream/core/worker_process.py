"""The process of a `Worker`: does its work, and writes messages as pickles."""

import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import BinaryIO

from amt_stream.core.errors import Refusal
from amt_stream.core.processes import stand_back
from amt_stream.core.safe_text import sentence
from amt_stream.core.worker import Message, WorkDone, WorkProgress, WorkRefused

BEAT_S = 0.2
"""Least time between two reports of progress."""


class _Reports:
    """Writes how much of the work is done, at most once in BEAT_S."""

    def __init__(self, write: Callable[[Message], None]) -> None:
        self._write = write
        self._began = self._reported = time.monotonic()

    def __call__(self, done: float, whole: float) -> None:
        now, part = time.monotonic(), done / whole
        if part > 0 and now - self._reported >= BEAT_S:
            self._reported = now
            self._write(WorkProgress(part, (now - self._began) * (1 / part - 1)))


def _write(stream: BinaryIO, message: Message) -> None:
    pickle.dump(message, stream)
    stream.flush()


def _end_with_parent() -> None:
    os.read(0, 1)  # not sys.stdin, which the interpreter may be closing
    os._exit(0)


def main() -> None:
    """Do the work that comes over standard input, and write messages to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what ends
    stand_back()
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # a print would be read as a message
    warnings.simplefilter("ignore")
    write = partial(_write, stream)
    try:
        work = pickle.load(sys.stdin.buffer)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        write(WorkDone(work(report=_Reports(write))))
    except (Refusal, OSError, ValueError) as error:
        write(WorkRefused(sentence(error) or type(error).__name__))
    except Exception as error:
        traceback.print_exc()
        write(WorkRefused(sentence(f"{type(error).__name__}: {error}")))


if __name__ == "__main__":
    main()
