"""Starting and stopping engines without holding up the window."""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amt_stream.engine import Engine

Device = str | int | None
ENDED = ("ended", "stopped")
MakeEngine = Callable[[Device], "Engine"]

log = logging.getLogger("amt_monitor")


class Switch:
    """At most one measuring engine, each made new when it is started [main-thread].

    Making and warming a model takes seconds; so it is done, like stopping, in one thread of this
    switch, always the same: some sound systems close a device only from where it was opened.
    """

    def __init__(self, make_engine: MakeEngine) -> None:
        self._make_engine = make_engine
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="engine switch")
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
                log.error("%s", error)
                log.debug("the engine did not start", exc_info=error)
            elif (started := job.result()) is not None:
                self.engine, self.measuring, self.error = started, True, None
            else:
                self.measuring = False

    def close(self) -> None:
        """Stop, and wait for it."""
        if self._job is not None:
            self._job.exception()
            self.poll()
        if self.measuring:
            self._worker.submit(self._end).result()
            self.measuring = False
        self._worker.shutdown()

    def _do(self, verb: str, action: Callable[[], "Engine | None"]) -> None:
        if self._job is None:
            self._verb, self._job = verb, self._worker.submit(action)

    def _replace(self, device: Device) -> "Engine | None":
        self._end()
        return self._make_engine(device).start()

    def _end(self) -> None:
        if self.engine is not None and self.measuring:
            self.engine.stop()


def _has_ended(engine: "Engine") -> bool:
    """Whether by itself; one whose device is lost waits for it."""
    return engine.error is not None or engine.health.device_state in ENDED
