"""A thread that runs functions one after the other."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Result = TypeVar("Result")


class JobThread(Generic[Result]):
    """`put` queues a function; the future has its result or its exception.

    The thread is a daemon: a function that hangs does not keep the program alive.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Result], Future[Result]] | None]
        self._jobs = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of functions that have not begun."""
        return self._jobs.qsize()

    def put(self, function: Callable[[], Result]) -> Future[Result]:
        """[any-thread]"""
        future: Future[Result] = Future()
        self._jobs.put((function, future))
        return future

    def close(self, timeout: float | None = None) -> bool:
        """Run what waits and end; returns False if that takes longer than `timeout`."""
        self._jobs.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future = job
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
