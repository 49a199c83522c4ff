"""How a command ends when it is told to: in order the first time, at once the second time."""

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
"""A thread that Python did not make, as those of a window."""


class Ending:
    """Hears the signals that end a program, in a thread of its own, whatever the others do.

    Nothing is raised in the main thread: an exception there may come while a library is imported
    or an object dies, and is then lost, or ends the process with a core. Until `hold`, there is
    nothing to bring to an end, and a signal ends the process at once. After it the first one sets
    `asked`, which the command looks at between two turns, and it has IN_ORDER_S to end; a second
    one, or the end of that time, ends the process at once. Two that come together are one, told in
    haste: timeout(1) sends two.

    At once: what `undoing` was given is called, processes of this one are ended, and that is all.
    A signal that was ignored from the start, as by nohup, stays so.
    """

    def __init__(self) -> None:
        self.asked = 0
        """The number of the signal that has come, or 0."""
        self.hung_up: Callable[[], object] | None = None
        """Called at SIGHUP, where that is not to end anything [any-thread]."""
        self._held = self._begun = False
        self._asked_at = self._until = float("inf")
        self._undo: list[Callable[[], object]] = []
        self._overdue: Callable[[], str] = str
        self._leaving = threading.Lock()
        self._others: set[threading.Thread] = set()

    def begin(self) -> None:
        """Listen from here on until the process ends [main-thread]."""
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
        """From here on there is something to bring to an end: the command looks at `asked`."""
        self._held = True

    def ask(self, number: int) -> None:
        """As if that signal had come [any-thread]."""
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
        """Have it called if the process is to end at once meanwhile."""
        self._undo.append(function)
        if self._leaving.locked():  # it may have come too late
            function()
        try:
            yield
        finally:
            self._undo.remove(function)

    @contextlib.contextmanager
    def unless(self, overdue: Callable[[], str]) -> Iterator[None]:
        """End the process with status 1 as soon as that gives a sentence: why it hangs."""
        self._overdue = overdue
        try:
            yield
        finally:
            self._overdue = str

    def status(self, status: int) -> int:
        """The exit status of a command that gave this one.

        The process ends here where a signal has asked for it, as the interpreter would take its
        time; and where a thread was left behind, which may hold what the interpreter wants then.
        """
        left = set(threading.enumerate()) - self._others
        if self.asked:
            self.leave(128 + self.asked)
        if self._begun and any(t.daemon and not isinstance(t, _UNKNOWN) for t in left):
            self.leave(status)
        return status

    def leave(self, status: int, sentence: str = "") -> None:
        """End the process now; does not return [any-thread]."""
        self._leaving.acquire()  # for good: whoever comes second waits for the end
        if sentence:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                os.write(2, f"amt-stream: {sentence}\n".encode(errors="replace"))
        # In a thread: a disk or a terminal may hang.
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
                self.leave(128 + self.asked, "it could not end in order, and ended at once")
            if sentence := self._overdue():
                self.leave(1, sentence)


def _end_processes() -> None:
    """Those of a pool, which would wait for work for ever."""
    from multiprocessing import active_children, util

    # What is otherwise complained of as leaked, once this process has gone.
    with contextlib.suppress(Exception):
        util._run_finalizers(0)  # type: ignore[attr-defined]
    for process in active_children():
        process.terminate()


ending = Ending()
