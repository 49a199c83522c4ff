"""The `amt-stream` command. Data goes to standard output, messages to standard error."""

from collections.abc import Sequence

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit status."""
    try:
        # Here, so that Ctrl+C while all this is imported ends as quietly as later.
        from amt_stream.cli.command import run_command

        return run_command(argv)
    except KeyboardInterrupt:
        return INTERRUPTED
