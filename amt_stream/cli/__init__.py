"""The `amt-stream` command. Data goes to standard output, messages to standard error."""

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit status.

    For a program that does nothing else: the signals that end it are heard from here on, and one
    that leaves a thread behind ends here.
    """
    from amt_stream.cli.ending import ending

    ending.begin()
    # Here, so that a signal while all this is imported ends it as quietly as later.
    from amt_stream.cli.command import run_command

    return ending.status(run_command(argv))


def main_window(argv: Sequence[str] | None = None) -> int:
    """The `amt-monitor` command, as `main`."""
    from amt_stream.cli.ending import ending

    ending.begin()
    from amt_stream.cli.monitor import run_monitor

    return ending.status(run_monitor(argv))
