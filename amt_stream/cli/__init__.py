"""The `amt-stream` command. Data goes to standard output, messages to standard error."""

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Only for the main program: it installs signal handlers, and ends the process here if a thread is
    still running.
    """
    from amt_stream.cli.ending import ending

    ending.begin()
    # After `begin`, so that a signal during this long import ends the program without a traceback.
    from amt_stream.cli.command import run_command

    return ending.status(run_command(argv))


def main_window(argv: Sequence[str] | None = None) -> int:
    """The `amt-monitor` command, as `main`."""
    from amt_stream.cli.ending import ending

    ending.begin()
    from amt_stream.cli.monitor import run_monitor

    return ending.status(run_monitor(argv))
