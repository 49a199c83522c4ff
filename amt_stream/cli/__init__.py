"""The `amt-stream` command. Data goes to standard output, messages to standard error."""

import os
import signal
from collections.abc import Sequence

TYPE_CHECKING = False  # `typing` takes as long to import as all that is here
if TYPE_CHECKING:
    from amt_stream.cli.ending import Ending


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Only for the main program: it installs signal handlers, and ends the process here if a thread is
    still running.
    """
    ending = _begun()
    # After `begin`, so that a signal during this long import ends the program without a traceback.
    from amt_stream.cli.command import run_command

    return ending.status(run_command(argv))


def main_window(argv: Sequence[str] | None = None) -> int:
    """The `amt-monitor` command, as `main`."""
    ending = _begun()
    from amt_stream.cli.commands.monitor import run_monitor

    return ending.status(run_monitor(argv))


def _begun() -> "Ending":
    """Begin a command: from now on it hears signals, and has standard error for itself."""
    # At Ctrl-C there is nothing to undo yet. This file imports next to nothing before.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(128 + number))
    from amt_stream.cli.ending import ending
    from amt_stream.cli.own_stderr import keep_for_sentences

    ending.begin()
    keep_for_sentences()
    return ending
