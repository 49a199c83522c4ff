"""A source, started and stopped where nobody has to wait for it."""

import logging
import threading
import time
from collections.abc import Callable

from amt_stream.engine.sources import Deliver, Source

WAIT_S = 0.2

log = logging.getLogger("amt_stream")


class Intake:
    """Starts a source and stops it, both in one thread that belongs to it.

    So a device, a read or a sound server that hangs holds up nobody for longer than he wants to
    wait, and what must be closed from where it was opened is. A source that is started is stopped,
    whenever that is asked for.
    """

    def __init__(self, source: Source, deliver: Deliver) -> None:
        self.began_at: float | None = None
        self.began_utc = 0.0
        self.threads: set[threading.Thread] = set()
        self.error: BaseException | None = None
        self._source, self._deliver = source, deliver
        self._started, self._wanted_no_more = threading.Event(), threading.Event()
        self._over = threading.Event()
        self._lock = threading.Lock()
        # A daemon: a source that hangs must not keep the program when it ends.
        self._thread = threading.Thread(
            target=self._run, name=f"start and stop of {source.name}", daemon=True
        )

    def start(self, given_up: Callable[[], bool]) -> None:
        """Start the source, and raise what it raises; wait no longer once `given_up`."""
        with self._lock:
            if self._wanted_no_more.is_set():
                return
            self._thread.start()
        # In short turns: on Windows a wait without end cannot be interrupted from the keyboard.
        while not (self._started.wait(WAIT_S) or given_up()):
            pass
        if self.error is not None:
            raise self.error

    def end(self) -> None:
        """Have the source stopped, or never started; waits for neither [any-thread]."""
        with self._lock:
            self._wanted_no_more.set()

    def join(self, timeout: float) -> bool:
        """Whether the source has stopped by then, as far as it was started [any-thread]."""
        if self._thread.ident is None:
            return True
        if threading.current_thread() in (self._thread, *self.threads):
            return True  # it waits for this one
        if self._over.wait(max(0.0, timeout)):
            self._thread.join()
        return self._over.is_set()

    def _run(self) -> None:
        others = set(threading.enumerate())
        try:
            self.began_utc, self.began_at = time.time(), time.monotonic()
            self._source.start(self._deliver)
        except BaseException as error:
            self.error = error
        self.threads = set(threading.enumerate()) - others
        self._started.set()
        self._wanted_no_more.wait()
        try:
            self._source.stop()
        except BaseException:
            log.exception("the source %s failed when it was stopped", self._source.name)
        finally:
            self._over.set()
