"""A thread that writes files one after the other."""

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from amt_stream.core.job_thread import JobThread
from amt_stream.engine.thread_check import runs_as

MOST_WAIT = 4
"""Largest number of files that wait for a slow disk, with their sound in memory."""


class WriterThread(JobThread[Path]):
    """`put` queues a function that writes a file; the future has its path or its OSError."""

    _closed = False

    def put(self, function: Callable[[], Path]) -> Future[Path]:
        """[any-thread]"""
        if not self._closed and self.waiting < MOST_WAIT:
            return super().put(function)
        why = "the measurement has ended" if self._closed else "its disk does not respond"
        refused: Future[Path] = Future()
        refused.set_exception(OSError(None, why))
        return refused

    def close(self, timeout: float | None = None) -> bool:
        """Write what waits and end; returns False if the disk did not write it in that time."""
        self._closed = True
        return super().close(timeout)

    _run = runs_as("writer-thread")(JobThread._run)
