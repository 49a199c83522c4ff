"""Thread tags in docstrings, which tests enforce.

A class whose methods have tags is `thread_checked`, and a thread's function declares its tag by
`runs_as`. With AMT_STREAM_THREAD_CHECK=1 in the environment every call asserts its tag; otherwise
both decorators return their argument unchanged, at no cost.
"""

import functools
import os
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

LEGEND = {
    "audio-thread": "the source, in its own thread or in its device's callback: copies and returns",
    "model-thread": "runs the models: the engine's own, or the source's with run_in='callback'",
    "sink-thread": "one for each sink",
    "writer-thread": "writes the files of events of sound",
    "loop-thread": "the event loop of a station and its transports",
    "main-thread": "the program that built the engine, or its window; may wait",
    "before start": "the same, before the engine starts",
    "any-thread": "any thread, at any time; never waits for the sound",
}
"""Each tag, and which thread it means."""

ACTIVE = os.environ.get("AMT_STREAM_THREAD_CHECK") == "1"
TAG = re.compile(r"\[((?:[a-z]+-thread|before start)(?:, [a-z]+-thread)*)\]")

_here = threading.local()
_in_threads: weakref.WeakSet[Any] = weakref.WeakSet()
"""Objects that were called in a tagged thread: from then on they must be called in one."""


class WrongThread(AssertionError):
    """A function was called in a thread that its docstring does not allow."""


def runs_as(tag: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Tag the thread for as long as the function runs."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def entered(*args: P.args, **kwargs: P.kwargs) -> R:
            before = _tags_here()
            _here.tags = before | {tag}
            try:
                return function(*args, **kwargs)
            finally:
                _here.tags = before

        entered.enters = True  # type: ignore[attr-defined]
        return entered if ACTIVE else function

    return decorated


def thread_checked(what: T) -> T:
    """Enforce the tags of a function, or of the methods of a class."""
    return _checked(what) if ACTIVE else what


def _checked(what: Any) -> Any:
    if not isinstance(what, type):
        return _asserting(what, owned=False)
    for name, one in list(vars(what).items()):
        if isinstance(one, property):
            setattr(what, name, property(_asserting(one.fget), one.fset, one.fdel, one.__doc__))
        elif callable(one):
            setattr(what, name, _asserting(one))
    return what


def _asserting(function: Any, owned: bool = True) -> Any:
    """The function with a check of its tag, if its docstring has one."""
    found = TAG.search(getattr(function, "__doc__", None) or "")
    allowed = set(found[1].split(", ")) if found else {"any-thread"}
    if "any-thread" in allowed or hasattr(function, "enters"):
        return function

    @functools.wraps(function)
    def asserted(*args: Any, **kwargs: Any) -> Any:
        _assert(function, allowed, args[0] if owned else function)
        return function(*args, **kwargs)

    return asserted


def _assert(function: Any, allowed: set[str], owner: Any) -> None:
    here = _tags_here()
    if here:
        _in_threads.add(owner)
        right = bool(here & allowed)
    elif "main-thread" in allowed:
        right = True
    else:  # before the start, in a test without threads, or a forbidden call
        right = owner not in _in_threads
    if not right:
        where = ", ".join(sorted(here)) or threading.current_thread().name
        words = ", ".join(sorted(allowed))
        raise WrongThread(f"{function.__qualname__} [{words}] was called in {where}")


def _tags_here() -> frozenset[str]:
    return getattr(_here, "tags", frozenset())
