"""Work in a process beside this one, whose progress and result come as values."""

import pickle
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from amt_stream.core.processes import module_command

PATIENCE_S = 3.0
"""That a process may take to end once it was told to."""


class WorkProgress(NamedTuple):
    """The part of the work that is done, 0 to 1, and an estimate of the seconds left."""

    part: float
    left_s: float


class WorkDone(NamedTuple):
    """What the work returned."""

    result: Any


class WorkRefused(NamedTuple):
    """Why there is no result, in a sentence."""

    why: str


Message = WorkProgress | WorkDone | WorkRefused


class Worker:
    """Runs a function in a process of lower priority than this one.

    The process ends with its work, with `end`, and with this process.

    work: a function that can be pickled, as can its result; it is called with the keyword
        `report`, a function of how much is done and of the whole, in any unit
    """

    def __init__(self, work: Callable[..., Any]) -> None:
        """Start the process. Raises OSError and NoInterpreter if that is impossible."""
        pipe = subprocess.PIPE
        self._ended = False
        self._process = subprocess.Popen(
            module_command("amt_stream.core.worker_process"), stdin=pipe, stdout=pipe
        )
        self._work = work

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def messages(self) -> Iterator[Message]:
        """Yield progress, and last the result or the refusal; nothing more after `end`."""
        messages = self._process.stdout
        assert messages is not None
        assert self._process.stdin is not None
        message: Message | None = None
        with suppress(EOFError, OSError, pickle.UnpicklingError):  # the process ended too early
            self._process.stdin.write(pickle.dumps(self._work))
            self._process.stdin.flush()
            while not isinstance(message, WorkDone | WorkRefused):
                message = pickle.load(messages)
                if not self._ended:
                    yield message
        status = self._process.wait()
        self._process.stdin.close()
        messages.close()
        if not self._ended and not isinstance(message, WorkDone | WorkRefused):
            yield WorkRefused(f"its process ended with status {status}")

    def end(self) -> None:
        """End the process and wait for that; more than once does no harm [any-thread]."""
        self._ended = True
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE_S)
