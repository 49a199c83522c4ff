"""A thread that writes files one after the other."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from amt_stream.engine.thread_check import runs_as

Write = Callable[[], Path]

MOST_WAIT = 4
"""Largest number of files that wait for a slow disk, with their sound in memory."""


class WriterThread:
    """`put` queues a function that writes a file; the future has its path or its OSError."""

    def __init__(self, name: str) -> None:
        self._queue: queue.SimpleQueue[tuple[Write, Future[Path]] | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, write: Write) -> Future[Path]:
        """[any-thread]"""
        result: Future[Path] = Future()
        if self._closed:
            result.set_exception(OSError(None, "the measurement has ended"))
        elif self._queue.qsize() >= MOST_WAIT:
            result.set_exception(OSError(None, "its disk does not respond"))
        else:
            self._queue.put((write, result))
        return result

    def close(self, timeout: float | None = None) -> bool:
        """Write what waits and end; returns False if the disk did not write it in that time."""
        self._closed = True
        self._queue.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @runs_as("writer-thread")
    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            write, result = item
            try:
                result.set_result(write())
            except BaseException as error:
                result.set_exception(error)
