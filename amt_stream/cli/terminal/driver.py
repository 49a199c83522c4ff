"""The terminal itself: how it is taken, and how it is given back whatever happens."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from amt_stream.cli.ending import ending

LEAVE = (
    "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l\x1b[?1004l\x1b[<u\x1b[?25h\x1b[?1049l"
)
"""Ends mouse, paste and focus reports, and shows the cursor and the screen from before."""


class SafeOutput:
    """Standard output for Textual's thread: if the terminal is closed, the command ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with _ends_if_closed():
            self._stream.write(text)

    def flush(self) -> None:
        with _ends_if_closed():
            self._stream.flush()


@contextlib.contextmanager
def _ends_if_closed() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError):
        hung_up()


def hung_up() -> None:
    ending.ask(getattr(signal, "SIGHUP", signal.SIGTERM))


def driver_class(stream: TextIO) -> Any:
    """Textual's driver of this system's terminals, which writes to a stream."""
    if sys.platform == "win32":
        return None
    import termios

    from textual.drivers.linux_driver import LinuxDriver

    class TerminalDriver(LinuxDriver):
        def __init__(self, app: Any, **how: Any) -> None:
            super().__init__(app, **how)
            self._file: Any = SafeOutput(stream)

        def start_application_mode(self) -> None:
            before = None
            with contextlib.suppress(termios.error):
                before = termios.tcgetattr(self.fileno)

            def give_back() -> None:
                with contextlib.suppress(termios.error):
                    if before is not None:
                        # TCSANOW, as output may be stopped and never be written.
                        termios.tcsetattr(self.fileno, termios.TCSANOW, before)
                self._file.write(LEAVE)
                self._file.flush()

            self._undo = contextlib.ExitStack()
            self._undo.enter_context(ending.undoing(give_back))
            super().start_application_mode()  # type: ignore[no-untyped-call]

        def stop_application_mode(self) -> None:
            super().stop_application_mode()
            self._undo.close()

        def run_input_thread(self) -> None:
            try:
                super().run_input_thread()
            except OSError:
                hung_up()
            else:
                if not self.exit_event.is_set():
                    hung_up()  # the terminal was closed

    return TerminalDriver
