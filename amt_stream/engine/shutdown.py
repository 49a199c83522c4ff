"""The end of an engine: everything that runs in it is stopped, or left behind."""

import logging
import math
import threading
import time
from collections.abc import Callable

from amt_stream.engine.program_end import stop_at_end
from amt_stream.engine.run_state import RunState
from amt_stream.engine.sinks import Sinks
from amt_stream.engine.source_runner import SourceRunner
from amt_stream.engine.thread_check import thread_checked

STOP_S = 1.0
SINKS_S = 0.2

log = logging.getLogger("amt_stream")


@thread_checked
class Shutdown:
    """Ends source, models and sinks, in this order, and keeps what did not return.

    run: what the engine's thread does, which sets `state.gone` at its end
    """

    def __init__(
        self, runner: SourceRunner, sinks: Sinks, state: RunState, run: Callable[[], None]
    ) -> None:
        self.left: dict[str, Callable[[], bool]] = {}
        self._source, self._runner, self._sinks, self._state = runner.source, runner, sinks, state
        # A daemon: the interpreter, at its end, stops and joins it instead of waiting for ever.
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._engine = run
        self._until = math.inf
        self._begun = False
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Start the sinks and the engine's thread, which are to end here [main-thread]."""
        with self._lock:
            if self._begun or self._state.stopping.is_set():
                raise RuntimeError("an Engine runs once: make a new one to start again")
            self._begun = True
            stop_at_end(self)
            self._sinks.start(then=self._thread.start)

    def _run(self) -> None:
        """The engine's thread; it refers to this, so that the end of the program finds it."""
        self._engine()

    def stop(self) -> None:
        """All of it, within 1.2 s [any-thread]."""
        self.announce()
        name = self._source.name
        self._wait_for_thread()
        self._leave_behind(f"the source {name}", lambda: not self._runner.join(0.0))
        self._leave_behind(f"the model that hears {name}", self._model_is_left)
        for sink_thread in self._sinks:
            sink_thread.close()  # once more, for a model that has not returned to do it
        for sink_thread in self._sinks:
            sink_thread.join(max(0.0, self._until + SINKS_S - time.monotonic()))
            self._leave_behind(f"the sink {sink_thread.name}", sink_thread.is_left)

    def announce(self) -> None:
        """All that is to end is told so; nothing is waited for [any-thread]."""
        with self._lock:
            if not self._state.stopping.is_set():
                self._until = time.monotonic() + STOP_S
                self._state.owed = self._source.missing
                self._state.stopping.set()
        for sink_thread in self._sinks:
            sink_thread.hurry()
        self._runner.end()

    @property
    def is_under_way(self) -> bool:
        return self._state.stopping.is_set()

    @property
    def is_over(self) -> bool:
        return self._state.gone.is_set()

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
        if self._state.models_run.acquire(timeout=max(0.0, self._until - time.monotonic())):
            self._state.models_run.release()
        for sink_thread in self._sinks:
            sink_thread.join(max(0.0, self._until - time.monotonic()))

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
        if self._state.gone.wait(max(0.0, self._until - time.monotonic())):
            self._thread.join()

    def _model_is_left(self) -> bool:
        if self._thread.ident is None or self._thread is threading.current_thread():
            return False
        return not self._state.gone.is_set()

    def _leave_behind(self, what: str, is_left: Callable[[], bool]) -> None:
        if is_left() and what not in self.left:
            self.left[what] = is_left
            log.error("%s has not returned: left behind", what)
