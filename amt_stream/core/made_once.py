"""What is made at its first use, also if several threads use it first at once."""

from collections.abc import Callable
from functools import cache, wraps
from threading import RLock
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def made_once(make: Callable[P, T]) -> Callable[P, T]:
    """`functools.cache` that calls `make` once for the same arguments, whichever threads ask.

    The others wait. For what must not be made twice: kernels whose compilation then ends, classes
    that are registered by name. [any-thread]
    """
    lock = RLock()
    made: Any = cache(make)

    @wraps(made)
    def once(*given: P.args, **named: P.kwargs) -> T:
        with lock:
            thing: T = made(*given, **named)
            return thing

    return once
