"""Engines that still run when their program ends: they are stopped for it."""

import atexit
import threading
import weakref
from collections.abc import Iterable
from typing import Protocol


class Ends(Protocol):
    """The end of an engine."""

    @property
    def is_under_way(self) -> bool: ...

    @property
    def is_over(self) -> bool: ...

    def with_program(self) -> None:
        """Begin, and say why."""

    def wait(self) -> None:
        """Wait for it a while."""


_STARTED: weakref.WeakSet[Ends] = weakref.WeakSet()
_BEGINNING = threading.RLock()
_SOURCE_THREADS: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def stop_at_end(end: Ends) -> None:
    """Have an engine stopped by the time that the interpreter ends [main-thread]."""
    _STARTED.add(end)
    # The last one registered runs first: before PortAudio's own, which closes all streams.
    atexit.unregister(_stop_all)
    atexit.register(_stop_all)


def keep_nothing_running(threads: Iterable[threading.Thread]) -> None:
    """These belong to sources: where none but them is left, the program is over [any-thread]."""
    _SOURCE_THREADS.update(threads)


def stop_if_nobody_is_left() -> None:
    """Stop the engines once only threads of their sources keep the program running [any-thread]."""
    if threading.main_thread().is_alive():
        return
    others = (thread for thread in threading.enumerate() if thread.is_alive() and not thread.daemon)
    if _SOURCE_THREADS.issuperset(others):
        _begin_all()


def _begin_all() -> list[Ends]:
    """Begin the end of all that runs; gives those that have not ended."""
    with _BEGINNING:  # several engines may find at once that nobody is left
        running = [end for end in _STARTED if not end.is_over]
        for end in running:
            if not end.is_under_way:
                end.with_program()
    return running


def _stop_all() -> None:
    """Stop the engines that nobody stopped; the interpreter is about to end [main-thread]."""
    for end in _begin_all():
        end.wait()
