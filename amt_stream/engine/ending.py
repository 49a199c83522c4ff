"""The end of an engine: everything that runs in it is stopped, or left behind."""

import logging
import math
import threading
import time
from collections.abc import Callable

from amt_stream.engine.course import Course
from amt_stream.engine.intake import Intake
from amt_stream.engine.outlets import Outlets
from amt_stream.engine.program_end import stop_at_end
from amt_stream.engine.sources import Source

STOP_S = 1.0
SINKS_S = 0.2

log = logging.getLogger("amt_stream")


class Ending:
    """Ends source, models and sinks, in this order, and keeps what did not return.

    thread: that of the engine, which sets `course.gone`
    model_lock: held while the models run in the thread of the source
    """

    def __init__(
        self,
        source: Source,
        intake: Intake,
        outlets: Outlets,
        thread: threading.Thread,
        model_lock: threading.Lock,
        course: Course,
    ) -> None:
        self.owed = 0
        """Samples that the source had announced and not delivered when it was stopped."""
        self.left: dict[str, Callable[[], bool]] = {}
        self._source, self._intake, self._outlets = source, intake, outlets
        self._thread, self._model_lock, self._course = thread, model_lock, course
        self._until = math.inf
        self._begun = False
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Start the sinks and the engine's thread, which are to end here [main-thread]."""
        with self._lock:
            if self._begun or self._course.stopping.is_set():
                raise RuntimeError("an Engine runs once: make a new one to start again")
            self._begun = True
            stop_at_end(self)
            self._outlets.start(then=self._thread.start)

    def stop(self) -> None:
        """All of it, within 1.2 s [any-thread]."""
        self.announce()
        name = self._source.name
        self._wait_for_thread()
        self._leave_behind(f"the source {name}", lambda: not self._intake.join(0.0))
        self._leave_behind(f"the model that hears {name}", self._model_is_left)
        for outlet in self._outlets:
            outlet.close()  # once more, for a model that has not returned to do it
        for outlet in self._outlets:
            outlet.join(max(0.0, self._until + SINKS_S - time.monotonic()))
            self._leave_behind(f"the sink {outlet.name}", outlet.is_left)

    def announce(self) -> None:
        """All that is to end is told so; nothing is waited for [any-thread]."""
        with self._lock:
            if not self._course.stopping.is_set():
                self._until = time.monotonic() + STOP_S
                self.owed = self._source.missing
                self._course.stopping.set()
        for outlet in self._outlets:
            outlet.hurry()
        self._intake.end()

    @property
    def is_under_way(self) -> bool:
        return self._course.stopping.is_set()

    @property
    def is_over(self) -> bool:
        return self._course.gone.is_set()

    def with_program(self) -> None:
        """Begin, because the program ends and nobody is left who would [any-thread]."""
        log.warning(
            "the engine on %s still ran when the program ended and was stopped for it: call its "
            "stop(), or use it in a with statement",
            self._source.name,
        )
        self.announce()

    def wait(self) -> None:
        """Wait a while for models, source and sinks [main-thread].

        A thread that is still in torch when the interpreter goes may take the process down with it.
        """
        self._wait_for_thread()
        if self._model_lock.acquire(timeout=max(0.0, self._until - time.monotonic())):
            self._model_lock.release()
        for outlet in self._outlets:
            outlet.join(max(0.0, self._until - time.monotonic()))

    @property
    def note(self) -> str:
        """What has not returned, for as long as it has not [any-thread]."""
        left = [what for what, is_left in tuple(self.left.items()) if is_left()]
        return f"stopped without {' and '.join(left)}, which did not return" if left else ""

    def _wait_for_thread(self) -> None:
        """The engine's thread, which waits for the source a while."""
        if self._thread.ident is None or self._thread is threading.current_thread():
            return
        # An interrupt in the middle of Thread.join makes Python 3.11 take a thread for ended.
        if self._course.gone.wait(max(0.0, self._until - time.monotonic())):
            self._thread.join()

    def _model_is_left(self) -> bool:
        if self._thread.ident is None or self._thread is threading.current_thread():
            return False
        return not self._course.gone.is_set()

    def _leave_behind(self, what: str, is_left: Callable[[], bool]) -> None:
        if is_left() and what not in self.left:
            self.left[what] = is_left
            log.error("%s has not returned: left behind", what)
