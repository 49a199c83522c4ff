"""Shutdown of a command: orderly at the first signal, immediate at the second."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator

IN_ORDER_S = 1.8
HASTE_S = 0.5
ONE_S = 0.1
UNDO_S = 0.5
LOOK_S = 0.1

SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    if hasattr(signal, name)
]

_UNKNOWN = threading._DummyThread
"""A thread that Python did not start, such as those of a window."""


class Ending:
    """Receives the signals that end a program, in a separate thread.

    No exception is raised in the main thread: during an import or while an object is deleted it
    could be lost, or crash the process. Before `hold`, a signal ends the process immediately. After
    it, the first signal sets `asked`, which the command polls, and the command has IN_ORDER_S to
    end; a second signal, or the end of that time, ends the process immediately. Two signals at the
    same moment, as timeout(1) sends them, count as one, with less time.

    An immediate end only calls the functions given to `undoing` and ends child processes. A signal
    that was ignored at the start, as by nohup, stays ignored.
    """

    def __init__(self) -> None:
        self.asked = 0
        """The number of the received signal, or 0."""
        self.hung_up: Callable[[], object] | None = None
        """If set, called at SIGHUP, which then does not end the program [any-thread]."""
        self._held = self._begun = False
        self._asked_at = self._until = float("inf")
        self._undo: list[Callable[[], object]] = []
        self._overdue: Callable[[], str] = str
        self._leaving = threading.Lock()
        self._others: set[threading.Thread] = set()

    def begin(self) -> None:
        """Receive signals from now on [main-thread]."""
        if self._begun or threading.current_thread() is not threading.main_thread():
            return
        self._begun = True
        self._others = set(threading.enumerate())
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda number, frame: None)
        listener = threading.Thread(
            target=self._listen, args=(ours, theirs), name="signals", daemon=True
        )
        listener.start()
        self._others.add(listener)

    def hold(self) -> None:
        """From now on, the command polls `asked` and ends in order."""
        self._held = True

    def ask(self, number: int) -> None:
        """Act as if this signal had been received [any-thread]."""
        if not self._held or (self.asked and time.monotonic() - self._asked_at > ONE_S):
            self.leave(128 + number)
        if self.asked:
            self._until = min(self._until, self._asked_at + HASTE_S)
            return
        self._asked_at = time.monotonic()
        self._until = self._asked_at + IN_ORDER_S
        self.asked = number

    @contextlib.contextmanager
    def undoing(self, function: Callable[[], object]) -> Iterator[None]:
        """Call a function if the process ends immediately within this context."""
        self._undo.append(function)
        if self._leaving.locked():  # the other thread may not see it any more
            function()
        try:
            yield
        finally:
            self._undo.remove(function)

    @contextlib.contextmanager
    def unless(self, overdue: Callable[[], str]) -> Iterator[None]:
        """Within this context, end with status 1 as soon as `overdue` returns why it hangs."""
        self._overdue = overdue
        try:
            yield
        finally:
            self._overdue = str

    def status(self, status: int) -> int:
        """Return the exit status of the command, or end the process here.

        It ends here after a signal, as the interpreter would take longer, and if a daemon thread is
        still running, which could block the interpreter's exit.
        """
        left = set(threading.enumerate()) - self._others
        if self.asked:
            self.leave(128 + self.asked)
        if self._begun and any(t.daemon and not isinstance(t, _UNKNOWN) for t in left):
            self.leave(status)
        return status

    def leave(self, status: int, sentence: str = "") -> None:
        """End the process now; does not return [any-thread]."""
        self._leaving.acquire()  # never released: a second caller waits for the end
        if sentence:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                line = f"amt-stream: {sentence}\n".encode(errors="replace")
                os.write(sys.stderr.fileno(), line)
        # In a thread, as a disk or a terminal may hang.
        undo = threading.Thread(target=self._undo_all, daemon=True)
        undo.start()
        undo.join(UNDO_S)
        if "multiprocessing" in sys.modules:
            _end_processes()
        os._exit(status)

    def _undo_all(self) -> None:
        for function in reversed(tuple(self._undo)):
            with contextlib.suppress(Exception):
                function()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()

    def _listen(self, ours: socket.socket, theirs: socket.socket) -> None:
        ours.settimeout(LOOK_S)
        while True:
            with contextlib.suppress(TimeoutError):
                for number in ours.recv(64):
                    if self.hung_up is not None and number == getattr(signal, "SIGHUP", None):
                        self.hung_up()
                    elif number in SIGNALS:
                        self.ask(number)
            if time.monotonic() > self._until:
                self.leave(128 + self.asked, "it did not end in time and was ended")
            if sentence := self._overdue():
                self.leave(1, sentence)


def _end_processes() -> None:
    """End child processes: those of a pool would wait for work forever."""
    from multiprocessing import active_children, util

    # Else they are reported as leaked after this process has ended.
    with contextlib.suppress(Exception):
        util._run_finalizers(0)  # type: ignore[attr-defined]
    for process in active_children():
        process.terminate()


ending = Ending()
