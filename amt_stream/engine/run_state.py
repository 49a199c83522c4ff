"""How far the run of an engine has come, told between its threads."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from amt_stream.core.errors import Refusal


class EngineEnded(Refusal):
    """What was asked for comes after the end of the measurement, and is not done."""


class RunState:
    """From `ready` to `gone`; every thread of an engine looks here [any-thread].

    ready: the models are warm, or never will be
    ended: nothing more comes from the source
    stopping: somebody wants the end
    done: no frames and no events come any more
    gone: the engine's thread has nothing left to do
    warm: the models are, and nothing is compiled any more
    played: the source has ended by itself, and all of it was heard
    owed: samples that the source had announced and not delivered when it was stopped
    models_run: held while the models run in the thread of the source
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.warm = self.played = False
        self.owed = 0
        self.models_run = threading.Lock()
        self.ready, self.ended = threading.Event(), threading.Event()
        self.stopping, self.done = threading.Event(), threading.Event()
        self.gone = threading.Event()
        self._closed = False
        self._commanding = threading.Lock()

    @contextlib.contextmanager
    def commanded(self, what: str) -> Iterator[None]:
        """While somebody commands: the end waits for it. Raises EngineEnded after the end.

        what: it is, in a word
        """
        with self._commanding:
            if self._closed:
                raise EngineEnded(f"the measurement has ended: {what} comes too late")
            yield

    def close(self, if_so: Callable[[], bool] = lambda: True) -> bool:
        """Take no command from here on, if that may be; gives whether it is so."""
        with self._commanding:
            self._closed = self._closed or if_so()
            return self._closed

    def fail(self, error: BaseException) -> None:
        """End, and say why."""
        self.error = error
        self.ended.set()

    @property
    def is_over(self) -> bool:
        return self.stopping.is_set() or self.done.is_set()
