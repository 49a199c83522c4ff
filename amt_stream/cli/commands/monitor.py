"""`amt-monitor`: the meter in its window."""

from collections.abc import Sequence

from amt_stream import __version__
from amt_stream.cli.command import Parser, run_chosen, run_command
from amt_stream.cli.desktop import NAME, install_desktop, remove_desktop, this_program
from amt_stream.cli.messages import Mistake, say
from amt_stream.cli.options.live import MonitorOptions
from amt_stream.core.importing import install


def run_monitor(argv: Sequence[str] | None = None) -> int:
    """Run the window and return the exit status."""
    return run_command(argv, _monitor)


def build_monitor_parser() -> Parser:
    """Build the parser of `amt-monitor`, with the options of `amt-stream meter`."""
    parser = Parser(
        prog=NAME,
        description="The loudness meter in its window. Takes the options of `amt-stream meter`.",
        epilog="exit status: that of `amt-stream meter`",
    )
    parser.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    parser.add_options(MonitorOptions)
    return parser


def _monitor(argv: Sequence[str] | None) -> int:
    args = build_monitor_parser().parse_args(argv)
    if args.remove_desktop:
        for path in remove_desktop():
            say(f"removed {path}")
        return 0
    if args.install_desktop:
        _refuse_without_window()
        for path in install_desktop(this_program()):
            say(f"wrote {path}")
        return 0
    if not (args.list_devices or args.terminal or args.format or args.quiet):
        from amt_stream.cli.window import has_display

        if not has_display():
            raise Mistake("there is no display: `amt-stream meter --terminal` needs none")
        _refuse_without_window()
    return run_chosen(args)


def _refuse_without_window() -> None:
    try:
        import amt_monitor.window.run  # noqa: F401 (is it there?)
    except ImportError as error:
        raise Mistake(f"the window is not installed ({error}): {install('app')}") from error
