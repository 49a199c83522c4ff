"""The state of an engine's run, shared by its threads, and its resets that can be undone."""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator

from amt_stream.core.errors import Refusal
from amt_stream.core.since_reset import UNDO_S, SinceReset


class EngineEnded(Refusal):
    """A command came after the end of the measurement and was not executed."""


class RunState:
    """Progress of a run, from `ready` to `gone` [any-thread].

    ready: the models are warmed up, or never will be
    ended: the source delivers nothing more
    stopping: a stop was requested
    done: no more frames or events will come
    gone: the engine's thread has nothing left to do
    warm: the models are warmed up, so nothing will be compiled any more
    played: the source ended by itself, and all of it was processed
    owed: samples that the source had announced but not delivered when it was stopped
    models_run: held while the models run in the source's thread
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
        """Context of a command, for which the end waits; raises EngineEnded after the end.

        what: the command, for the message
        """
        with self._commanding:
            if self._closed:
                raise EngineEnded(f"the measurement has ended: {what} comes too late")
            yield

    def close(self, if_so: Callable[[], bool] = lambda: True) -> bool:
        """Refuse commands from now on if `if_so()`; returns whether they are refused."""
        with self._commanding:
            self._closed = self._closed or if_so()
            return self._closed

    def fail(self, error: BaseException) -> None:
        self.error = error
        self.ended.set()

    @property
    def is_over(self) -> bool:
        return self.stopping.is_set() or self.done.is_set()


class Resets:
    """Where the readings of each microphone were last reset, unless undone.

    lock: hold it from a check to the action that depends on it
    """

    def __init__(self, fs: int) -> None:
        self.lock = threading.Lock()
        self._fs = fs
        # Of each microphone the sample of its last reset.
        self._samples: dict[str, SinceReset[int]] = {}

    def note(self, names: Iterable[str], position: int) -> None:
        """Record a reset at `position`."""
        for name in names:
            sample = self._samples.setdefault(name, SinceReset(0))
            sample.reset(position / self._fs, position)

    def can_undo(self, names: Iterable[str], position: int) -> bool:
        """Whether all of these have a reset that can be undone [any-thread]."""
        resets, time_s = [self._samples.get(name) for name in names], position / self._fs
        return all(one is not None and one.can_undo(time_s) for one in resets)

    def undo(self, names: Collection[str], position: int) -> None:
        """Remove the resets of these. Raises ValueError if one cannot be undone."""
        if not self.can_undo(names, position):
            raise ValueError(f"no readings were reset in the last {UNDO_S:g} s: nothing to undo")
        for name in names:
            self._samples[name].undo()
