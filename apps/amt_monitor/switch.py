"""Starting and stopping engines without holding up the window."""

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from amt_stream.plain import plain

if TYPE_CHECKING:
    from amt_stream.engine import Engine

Device = str | int | None
ENDED = ("ended", "stopped")
MakeEngine = Callable[[Device], "Engine"]
Work = tuple[Callable[[], "Engine | None"], "Future[Engine | None]"]
CLOSE_S = 1.0

log = logging.getLogger("amt_monitor")


class Switch:
    """At most one measuring engine, each made new when it is started [main-thread].

    Making and warming a model takes seconds; so it is done, like stopping, in one thread of this
    switch, always the same, and whoever closes the window does not wait for the rest of it.
    """

    def __init__(self, make_engine: MakeEngine) -> None:
        self._make_engine = make_engine
        self._made: Engine | None = None
        self._closing = False
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        # A daemon: what hangs in there must not keep the program.
        self._worker = threading.Thread(target=self._run, name="engine switch", daemon=True)
        self._worker.start()
        self._job: Future[Engine | None] | None = None
        self._verb = ""
        self.engine: Engine | None = None
        self.error: BaseException | None = None
        self.measuring = False

    @property
    def busy(self) -> bool:
        return self._job is not None

    @property
    def state(self) -> str:
        """One of "starting", "stopping", "stopped"; while it measures, the engine's own word."""
        if self.busy:
            return self._verb
        return self.engine.health.device_state if self.engine and self.measuring else "stopped"

    def start(self, device: Device = None) -> None:
        """Measure with `device`; an engine that is measuring stops first."""
        self._do("starting", lambda: self._replace(device))

    def stop(self) -> None:
        self._do("stopping", self._end)

    def poll(self) -> None:
        """Take note of what has finished; to be called now and then."""
        if self._job is None:
            if self.measuring and self.engine and _has_ended(self.engine):
                self.error = self.engine.error
                self._do("stopping", self._end)
        elif self._job.done():
            job, self._job = self._job, None
            if (error := job.exception()) is not None:
                self.error, self.measuring = error, False
                log.error("%s", plain(error))
                log.debug("the engine did not start", exc_info=error)
            elif (started := job.result()) is not None:
                self.engine, self.measuring, self.error = started, True, None
            else:
                self.measuring = False

    def close(self) -> None:
        """Stop, and wait for it; but not for a model that is still being made."""
        if not self._worker.is_alive():
            return
        self._closing = True
        if self._made is not None:
            self._made.stop()
        self._work.put(None)
        self._worker.join(CLOSE_S)
        if self._worker.is_alive():
            log.info("an engine was still being made when the window closed: left behind")
        self.poll()
        self.measuring = False

    def _do(self, verb: str, action: Callable[[], "Engine | None"]) -> None:
        if self._job is None and not self._closing:
            self._verb, self._job = verb, Future()
            self._work.put((action, self._job))

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            action, job = work
            try:
                job.set_result(action())
            except BaseException as error:
                job.set_exception(error)

    def _replace(self, device: Device) -> "Engine | None":
        self._end()
        self._made = self._make_engine(device)
        if self._closing:
            return None
        return self._made.start()

    def _end(self) -> None:
        if self._made is not None:
            self._made.stop()


def _has_ended(engine: "Engine") -> bool:
    """Whether by itself; one whose device is lost waits for it."""
    return engine.error is not None or engine.health.device_state in ENDED
