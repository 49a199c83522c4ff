"""Stops engines that still run when their program ends."""

import atexit
import threading
import weakref
from collections.abc import Iterable
from typing import Protocol


class Ends(Protocol):
    """The shutdown of an engine."""

    @property
    def is_under_way(self) -> bool: ...

    @property
    def is_over(self) -> bool: ...

    def with_program(self) -> None:
        """Begin, and log why."""

    def wait(self) -> None:
        """Wait for it, up to a limit."""


_STARTED: weakref.WeakSet[Ends] = weakref.WeakSet()
_BEGINNING = threading.RLock()
_SOURCE_THREADS: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def stop_at_end(end: Ends) -> None:
    """Stop an engine at the latest when the interpreter exits [main-thread]."""
    _STARTED.add(end)
    # Handlers run in reverse order: this must run before PortAudio's, which closes all streams.
    atexit.unregister(_stop_all)
    atexit.register(_stop_all)


def keep_nothing_running(threads: Iterable[threading.Thread]) -> None:
    """Threads of sources, which do not count as reasons for the program to go on [any-thread]."""
    _SOURCE_THREADS.update(threads)


def stop_if_nobody_is_left() -> None:
    """Stop the engines once only threads of sources keep the program running [any-thread]."""
    if threading.main_thread().is_alive():
        return
    others = (thread for thread in threading.enumerate() if thread.is_alive() and not thread.daemon)
    if _SOURCE_THREADS.issuperset(others):
        _begin_all()


def _begin_all() -> list[Ends]:
    """Begin the shutdown of all running engines; returns those that have not ended."""
    with _BEGINNING:  # several engines may come here at once
        running = [end for end in _STARTED if not end.is_over]
        for end in running:
            if not end.is_under_way:
                end.with_program()
    return running


def _stop_all() -> None:
    """Stop all engines still running when the interpreter exits [main-thread]."""
    for end in _begin_all():
        end.wait()
