"""From a command line to an exit status: what went wrong is said in one sentence."""

import argparse
import contextlib
import errno
import importlib
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from amt_stream import __version__
from amt_stream.cli import options
from amt_stream.cli.messages import WrongUsage, say
from amt_stream.cli.options import Options, OptionsParser
from amt_stream.cli.output import OutputFailed, OutputStream
from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import sentence
from amt_stream.meters import catalog

ERROR = 1
HUNG_UP = 129
READER_LEFT = 141
"""As a shell tells of any program whose reader has left: it wrote less than there was."""


def run_command(
    argv: Sequence[str] | None = None,
    chosen: Callable[[Sequence[str] | None], int] | None = None,
) -> int:
    """Run one command; gives its exit status.

    chosen: runs what the arguments say, by default a command of `amt-stream`
    """
    _fill_closed_streams()
    # Else numba ends with an escape sequence on every terminal, also on one that knows none.
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    with contextlib.redirect_stdout(OutputStream(sys.stdout)):
        try:
            try:
                status = (chosen or _chosen_command)(argv)
            except OutputFailed:
                raise  # a flush would hang where its reader has stopped to read
            except BaseException:
                sys.stdout.flush()
                raise
            sys.stdout.flush()
            return status
        except OutputFailed as error:
            # Python would complain once more when it flushes at exit.
            with contextlib.suppress(OSError):  # one that is closed has no number
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno == errno.EPIPE:
                return READER_LEFT
            if error.errno == errno.EIO:  # the terminal was closed
                return HUNG_UP
            say(f"standard output cannot be written: {error.strerror}")
            return ERROR
        except Refusal as error:
            say(error)
            return error.status


def _fill_closed_streams() -> None:
    """Keep the numbers of closed streams from files that would be written to in their place."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (until the end)


class Subcommand(NamedTuple):
    """A command: what it is for, in a line and in full; its function, "module:name"; its options.

    The function takes an object of the class of options and gives the exit status.
    """

    help: str
    description: str
    run: str
    options: type[Options]
    lists_models: bool = False


COMMANDS = {
    "meter": Subcommand(
        "show loudness, or modulation, while it is heard",
        "Show loudness, or modulation, while it is heard: in a window, in the terminal, or as rows "
        "of numbers.",
        "amt_stream.cli.meter:run_meter",
        options.MeterOptions,
        lists_models=True,
    ),
    "serve": Subcommand(
        "measure, and send what is measured to other programs",
        "Measure without a screen: rows, events and state go out over any number of transports at "
        "once, and commands come in (docs/wire.md).",
        "amt_stream.cli.serve:run_serve",
        options.ServeOptions,
        lists_models=True,
    ),
    "run": Subcommand(
        "run a station that nobody watches, by a preset",
        "Measure and serve by a preset and the options in its table [run], until the sound ends or "
        "a signal does: SIGTERM ends it in order, SIGHUP has it read the preset again "
        "(docs/unattended.md).",
        "amt_stream.cli.run:run_station",
        options.RunOptions,
    ),
    "devices": Subcommand(
        "list the input devices",
        "List the input devices, with the calibrations known of them.",
        "amt_stream.cli.devices:run_devices",
        options.ListsDevices,
    ),
    "calibrate": Subcommand(
        "measure the tone of an acoustic calibrator and keep the result",
        "Put the calibrator on the microphone and switch it on. Its tone has to be there for 3 s, "
        "stable within 0.1 dB; the level of a full-scale sine is then kept for this channel of "
        "this device: of channel 1 unless -c says another, so two are calibrated one by one: -c 1, "
        "then -c 2.",
        "amt_stream.cli.calibrate:run_calibrate",
        options.CalibrateOptions,
    ),
    "analyze": Subcommand(
        "loudness of sound files, frame by frame or in summary",
        "Loudness of sound files, and other readings beside it, in any format that libsndfile "
        "reads: rows from 0 to the very end, or a summary.",
        "amt_stream.cli.analyze:run_analyze",
        options.AnalyzeOptions,
        lists_models=True,
    ),
    "replay": Subcommand(
        "measure a session again from its sound, and compare",
        "Measure again what a session has recorded, with its settings and its gaps, and compare "
        "all rows with those of its log: on the same computer they are the same to the last bit.",
        "amt_stream.cli.replay:run_replay",
        options.ReplayOptions,
    ),
    "report": Subcommand(
        "one page of a measurement, to be handed on",
        "Write one page of what a log holds, or a file of rows: what was measured, where and when, "
        "calibration, limits, gaps and faults, readings, history and settings, as HTML that needs "
        "nothing else, or as PDF.",
        "amt_stream.cli.report:run_report",
        options.ReportOptions,
    ),
    "compare": Subcommand(
        "how much louder one measurement is than another",
        "Compare two logs, files of rows or files of sound: of each reading that both have the "
        "difference, and how sure that is. What both have in common, as the error of one "
        "calibration, cancels.",
        "amt_stream.cli.compare:run_compare",
        options.CompareOptions,
    ),
    "lden": Subcommand(
        "print levels of day, evening and night over days",
        "Print Lday, Levening, Lnight and Lden (or Ldn) of logs, for each day and of all of them, "
        "with how much of each period was measured. A log of --interval 15min is read at once.",
        "amt_stream.cli.lden:run_lden",
        options.LdenOptions,
    ),
    "mark": Subcommand(
        "put a mark into a log that is being written",
        "Put a mark with a text of yours into the log of a meter that runs, such as one that shows "
        "nothing (--quiet). The mark stands at the moment when it is typed, within a second.",
        "amt_stream.cli.mark:run_mark",
        options.MarkOptions,
    ),
    "verify": Subcommand(
        "say whether a session is as it was written",
        "Compare what a session's folder holds with the hashes that were written beside it: says "
        "intact, edited or gapped, which parts, and what sound was lost while it was measured.",
        "amt_stream.cli.verify:run_verify",
        options.VerifyOptions,
    ),
    "selftest": Subcommand(
        "check the models against published values",
        "Play built-in reference signals through the models as a meter does, and compare what they "
        "read with published values: a row each, in some 20 seconds.",
        "amt_stream.cli.selftest:run_selftest",
        options.SelftestOptions,
    ),
    "export": Subcommand(
        "write a model or a stage, with its state, as a program of torch (experimental)",
        "Write a stream as torch.export has it: a program that takes blocks of one length and "
        "carries its state from one to the next, for whatever runs such programs. Experimental: "
        "the format is torch's, and a program is loaded by the same version of both.",
        "amt_stream.cli.export:run_export",
        options.ExportOptions,
    ),
    "bench": Subcommand(
        "time the models on this machine",
        "Time models and their stages on this machine, in blocks of one length or another, for one "
        "listener or many: CPU seconds per second of sound, and the same in units of a loop of "
        "arithmetic, by which machines can be compared.",
        "amt_stream.cli.bench:run_bench",
        options.BenchOptions,
    ),
}


class Parser(OptionsParser):
    """One that says in a line what is wrong, and does nothing to the terminal with what was typed.

    All that could be typed is what --help shows: of thirty options it would hide that line.
    """

    def error(self, message: str) -> NoReturn:
        self.exit(WrongUsage.status, f"{self.prog}: {sentence(message)} (--help tells more)\n")


def build_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(
        prog="amt-stream",
        description="Loudness in sone and phon (Moore et al. 2016, ISO 532-3), sound levels, "
        "LUFS, and modulation by auditory band, live or of sound files.",
        epilog="exit status: 0 done, 1 error, 2 wrong usage, 3 device lost, 4 a limit "
        "exceeded (--fail-above), 129 terminal closed, 130 interrupted, 141 the reader of standard "
        "output left, 143 terminated",
    )
    parser.add_argument("--version", action="version", version=f"amt-stream {__version__}")
    parser.add_options(options.ListsDevices)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, help=command.help, description=command.description)
        own.add_options(command.options)
        if command.lists_models:
            own.formatter_class = argparse.RawDescriptionHelpFormatter
            own.description = textwrap.fill(command.description, 79)
            wide = max(map(len, catalog.names()))
            own.epilog = "models:\n" + "\n".join(
                f"  {entry.name:<{wide}}  {entry.method}" for entry in catalog.entries().values()
            )
    return parser


def _chosen_command(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.command is None and not args.list_devices:
        *others, last = COMMANDS
        words = f"{', '.join(others)} or {last}"
        parser.error(f"say what to do: {words}")
    return run_chosen(args)


def run_chosen(args: Options) -> int:
    """Run the command that was parsed; gives its exit status."""
    chosen = "devices" if args.list_devices else str(args.command)
    home, _, function = COMMANDS[chosen].run.partition(":")
    status: int = getattr(importlib.import_module(home), function)(args)
    return status
