"""Shows a meter in the terminal, as a screen or as lines."""

from typing import TextIO

from amt_stream.cli.messages import say
from amt_stream.cli.output import draws
from amt_stream.cli.terminal.lines import LinePrinter
from amt_stream.cli.terminal.meter import TerminalMeter


def show(meter: TerminalMeter, stream: TextIO, duration: float | None) -> LinePrinter:
    """Show readings until the end of the sound, or until the user quits.

    Returns the printer of the last line, which stays after the screen is closed.
    """
    lines = LinePrinter(meter, stream)
    if draws(stream) and not (stream.encoding or "").lower().startswith("utf"):
        say(f"the terminal writes {stream.encoding}, not UTF-8, so the meter prints lines")
    elif draws(stream):
        try:
            from amt_stream.cli.terminal.app import run_app
        except ImportError as error:
            say(
                f"the screen of the terminal cannot be shown ({error}), so the meter prints lines: "
                "pip install textual"
            )
        else:
            run_app(meter, stream, lines.watch, duration)
            return lines
    lines.run(duration)
    return lines
