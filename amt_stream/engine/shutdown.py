"""Stops the parts of an engine, or abandons those that do not return."""

import logging
import math
import threading
import time
from collections.abc import Callable

from amt_stream.engine.inputs.source_runner import SourceRunner
from amt_stream.engine.program_end import stop_at_end
from amt_stream.engine.run_state import RunState
from amt_stream.engine.sinks.sinks import Sinks
from amt_stream.engine.thread_check import thread_checked

STOP_S = 1.0
SINKS_S = 0.2

log = logging.getLogger("amt_stream")


@thread_checked
class Shutdown:
    """Stops source, models and sinks, in this order, and remembers those that did not return.

    run: the body of the engine's thread, which sets `state.gone` at its end
    """

    def __init__(
        self, runner: SourceRunner, sinks: Sinks, state: RunState, run: Callable[[], None]
    ) -> None:
        self.left: dict[str, Callable[[], bool]] = {}
        self._source, self._runner, self._sinks, self._state = runner.source, runner, sinks, state
        # A daemon, so that the interpreter's exit does not wait for it before `_stop_all`.
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._engine = run
        self._until = math.inf
        self._begun = False
        self._lock = threading.Lock()

    def refuse_another(self) -> None:
        """Raise RuntimeError if the engine was started or stopped before."""
        if self._begun or self._state.stopping.is_set():
            raise RuntimeError("an Engine runs once: make a new one to start again")

    def begin(self) -> None:
        """Start the sinks and the engine's thread [main-thread]."""
        with self._lock:
            self.refuse_another()
            self._begun = True
            stop_at_end(self)
            self._sinks.start(then=self._thread.start)

    def _run(self) -> None:
        """The engine's thread; its reference to self lets `program_end` find this object."""
        self._engine()

    def stop(self) -> None:
        """Stop everything, within 1.2 s [any-thread]."""
        self.announce()
        name = self._source.name
        self._wait_for_thread()
        self._leave_behind(f"the source {name}", lambda: not self._runner.join(0.0))
        self._leave_behind(f"the model of {name}", self._model_is_left)
        for sink_thread in self._sinks:
            sink_thread.close()  # again, in case a hung model has not done so
        for sink_thread in self._sinks:
            sink_thread.join(max(0.0, self._until + SINKS_S - time.monotonic()))
            self._leave_behind(f"the sink {sink_thread.name}", sink_thread.is_left)

    def announce(self) -> None:
        """Tell all parts to stop, without waiting [any-thread]."""
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
        """Begin at the program's exit, with a warning [any-thread]."""
        log.warning(
            "the engine on %s still ran when the program ended and was stopped for it: call its "
            "stop(), or use it in a with statement",
            self._source.name,
        )
        self.announce()

    def wait(self) -> None:
        """Wait, up to a limit, for models, source and sinks [main-thread].

        A thread that is inside torch when the interpreter exits may crash the process.
        """
        self._wait_for_thread()
        if self._state.models_run.acquire(timeout=max(0.0, self._until - time.monotonic())):
            self._state.models_run.release()
        for sink_thread in self._sinks:
            sink_thread.join(max(0.0, self._until - time.monotonic()))

    @property
    def note(self) -> str:
        """What has not returned at present, as a sentence or "" [any-thread]."""
        left = [what for what, is_left in tuple(self.left.items()) if is_left()]
        return f"stopped without {' and '.join(left)}, which did not return" if left else ""

    def _wait_for_thread(self) -> None:
        """Join the engine's thread, which waits for the source up to a limit."""
        if self._thread.ident is None or self._thread is threading.current_thread():
            return
        # In Python 3.11 an interrupted Thread.join marks the thread as ended.
        if self._state.gone.wait(max(0.0, self._until - time.monotonic())):
            self._thread.join()

    def _model_is_left(self) -> bool:
        if self._thread.ident is None or self._thread is threading.current_thread():
            return False
        return not self._state.gone.is_set()

    def _leave_behind(self, what: str, is_left: Callable[[], bool]) -> None:
        if is_left() and what not in self.left:
            self.left[what] = is_left
            log.error("%s has not returned: abandoned", what)
