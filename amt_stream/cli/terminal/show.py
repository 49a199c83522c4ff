"""Shows a meter in the terminal, as a screen or as lines."""

from amt_stream.cli.messages import say
from amt_stream.cli.output import draws
from amt_stream.cli.terminal.lines import LinePrinter


def show(lines: LinePrinter, duration: float | None) -> None:
    """Show readings until the end of the sound, or until the user quits.

    The printer of lines then prints the last one, which stays after the screen is closed.
    """
    stream = lines.stream
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
            with lines.written():
                run_app(lines.meter, stream, lines.watch, duration)
            return
    lines.run(duration)
