"""The commands, and how a command line becomes an exit status or one sentence of error."""

import argparse
import contextlib
import errno
import importlib
import logging
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from amt_stream import __version__
from amt_stream.cli.messages import WrongUsage, say
from amt_stream.cli.options import live, sessions, sounds, stipa
from amt_stream.cli.options.parser import ListsDevices, Options, OptionsParser
from amt_stream.cli.output import OutputFailed, OutputStream, write_all
from amt_stream.core.errors import Refusal
from amt_stream.core.importing import refusing_without_torch
from amt_stream.core.safe_text import sentence
from amt_stream.meters import catalog

ERROR = 1
HUNG_UP = 129
READER_LEFT = 141
"""What a shell reports for a program killed by SIGPIPE: not all output was written."""


def run_command(
    argv: Sequence[str] | None = None, chosen: Callable[[Sequence[str] | None], int] | None = None
) -> int:
    """Run one command and return its exit status.

    chosen: function that runs the arguments, by default as a command of `amt-stream`
    """
    _fill_closed_streams()
    # Else numba writes an escape sequence at exit, even to terminals that do not support it.
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    write_all(sys.stderr)
    if logging.lastResort is not None:  # what the library logs is said by this program
        logging.lastResort.setFormatter(logging.Formatter("amt-stream: %(message)s"))
    with contextlib.redirect_stdout(OutputStream(sys.stdout)):
        try:
            try:
                with refusing_without_torch("this"):
                    status = (chosen or _chosen_command)(argv)
            except OutputFailed:
                raise  # a flush would hang if the reader has stopped reading
            except BaseException:
                sys.stdout.flush()
                raise
            sys.stdout.flush()
            return status
        except OutputFailed as error:
            # Python would report the error again when it flushes at exit.
            with contextlib.suppress(OSError):  # a closed stream has no descriptor
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
    """Open closed standard streams on devnull, so that no later file gets their descriptors."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (open until exit)


class Subcommand(NamedTuple):
    """A command: its help in one line and in full, its function "module:name", and its options.

    The function takes an object of the options' class and returns the exit status.
    """

    help: str
    description: str
    run: str
    options: type[Options]
    lists_models: bool = False


COMMANDS = {
    "meter": Subcommand(
        "show loudness or modulation live",
        "Show loudness or modulation live: in a window, in the terminal, or as rows of numbers.",
        "amt_stream.cli.commands.meter:run_meter",
        live.MeterOptions,
        lists_models=True,
    ),
    "serve": Subcommand(
        "measure and send the readings to other programs",
        "Measure without a screen: send rows, events and state over any number of transports, and "
        "accept commands (docs/wire.md).",
        "amt_stream.cli.commands.serve:run_serve",
        live.ServeOptions,
        lists_models=True,
    ),
    "run": Subcommand(
        "run an unattended station from a preset",
        "Measure and serve with a preset and the options in its table [run], until the sound or a "
        "signal ends it. SIGTERM shuts it down in order; SIGHUP makes it reload the preset "
        "(docs/unattended.md).",
        "amt_stream.cli.commands.run:run_station",
        live.RunOptions,
    ),
    "devices": Subcommand(
        "list the input devices",
        "List the input devices and their stored calibrations.",
        "amt_stream.cli.commands.devices:run_devices",
        ListsDevices,
    ),
    "calibrate": Subcommand(
        "measure the tone of an acoustic calibrator and store the result",
        "Put the calibrator on the microphone and switch it on. Once its tone is stable within 0.1 "
        "dB for 3 s, the level of a full-scale sine is stored for this channel of this device: "
        "channel 1, or the one that -c names. Calibrate two channels one by one: -c 1, then -c 2.",
        "amt_stream.cli.commands.calibrate:run_calibrate",
        live.CalibrateOptions,
    ),
    "analyze": Subcommand(
        "measure sound files, frame by frame or in summary",
        "Measure loudness and other readings of sound files, in any format that libsndfile reads: "
        "rows for the whole file, or a summary.",
        "amt_stream.cli.commands.analyze:run_analyze",
        sounds.AnalyzeOptions,
        lists_models=True,
    ),
    "replay": Subcommand(
        "measure the sound of a session again, and compare",
        "Measure the recorded sound of a session again, with the same settings and gaps, and "
        "compare all rows with its log. On the same computer they are bit-identical.",
        "amt_stream.cli.commands.replay:run_replay",
        sessions.ReplayOptions,
    ),
    "report": Subcommand(
        "write a measurement report",
        "Write a report of a log or a file of rows: what was measured, where and when, "
        "calibration, limits, gaps and faults, readings, history and settings, as self-contained "
        "HTML or as PDF.",
        "amt_stream.cli.commands.report:run_report",
        sessions.ReportOptions,
    ),
    "compare": Subcommand(
        "compare two measurements",
        "Compare two logs, files of rows or sound files: print the difference of each reading that "
        "both have, and its uncertainty. Errors common to both, such as that of one calibration, "
        "cancel.",
        "amt_stream.cli.commands.compare:run_compare",
        sessions.CompareOptions,
    ),
    "match": Subcommand(
        "find the gains that make sounds equally loud",
        "Find the gain that makes each sound as loud as the first one, by a model of loudness, "
        "LUFS or LAeq, and write the sounds with their gains. How loud a sound is depends on its "
        "level: give --full-scale-db, unless the files have a calibration in their comments.",
        "amt_stream.cli.commands.match:run_match",
        sounds.MatchOptions,
    ),
    "explain": Subcommand(
        "find which bands make a sound loud, rough and tonal",
        "Print the share of each band and ear in the loudness, roughness and tonality of a sound "
        "(ECMA-418-2), and how these and LAeq change with 3 dB less in the band. Each band takes a "
        "run of all models over the whole sound.",
        "amt_stream.cli.commands.explain:run_explain",
        sounds.ExplainOptions,
    ),
    "lden": Subcommand(
        "print day, evening and night levels",
        "Print Lday, Levening, Lnight and Lden (or Ldn) of logs, for each day and overall, and how "
        "much of each period was measured. Logs with --interval 15min are read fastest.",
        "amt_stream.cli.commands.lden:run_lden",
        sessions.LdenOptions,
    ),
    "bs4142": Subcommand(
        "print a rating level above the background",
        "Print a form in the manner of BS 4142: the level of a sound, penalties that you type, and "
        "how far that is above the background, LA90 of a part without the sound. The text of the "
        "standard was not at hand.",
        "amt_stream.cli.commands.bs4142:run_bs4142",
        sessions.Bs4142Options,
    ),
    "stipa": Subcommand(
        "measure how well speech is understood, by the STIPA test signal",
        "Play or write the STIPA test signal, and measure the speech transmission index STI with a "
        "microphone, or of a recording of the signal. It takes 15 to 25 s (docs/stipa.md).",
        "amt_stream.cli.commands.stipa:run_stipa",
        stipa.StipaOptions,
    ),
    "mark": Subcommand(
        "add a mark to a running log",
        "Add a mark with a text to the log of a running meter, such as one with --quiet. The mark "
        "has the time of this command, within a second.",
        "amt_stream.cli.commands.mark:run_mark",
        sessions.MarkOptions,
    ),
    "verify": Subcommand(
        "check that a session is unchanged",
        "Compare the files of a session with the hashes in its folder. Says whether it is intact, "
        "edited or gapped, which parts are, and which sound was lost during the measurement.",
        "amt_stream.cli.commands.verify:run_verify",
        sessions.VerifyOptions,
    ),
    "selftest": Subcommand(
        "check the models against published values",
        "Play built-in reference signals to the models as files, through a pipe and as a device, "
        "and compare what a meter reads with published values, one row each; takes about 2 "
        "minutes, or 30 seconds with --way pcm16.",
        "amt_stream.cli.commands.selftest:run_selftest",
        sounds.SelftestOptions,
    ),
    "export": Subcommand(
        "export a model as C or WebAssembly, or a model or a stage as a torch program",
        "Export a streaming model or stage with torch.export: a program that takes blocks of one "
        "length and carries its state from block to block. Experimental: load it with the same "
        "versions of torch and amt_stream. With --c, write a model as a C library instead: "
        "sources, and objects for the processors of --target, which need no Python. With --wasm, "
        "write it as WebAssembly: a package for programs in JavaScript, and a page with a meter.",
        "amt_stream.cli.commands.export:run_export",
        sounds.ExportOptions,
    ),
    "bench": Subcommand(
        "time the models on this machine",
        "Time models and their stages on this machine, with various block lengths and numbers of "
        "listeners: CPU seconds per second of sound, and the same in units of a reference loop, to "
        "compare machines.",
        "amt_stream.cli.commands.bench:run_bench",
        sounds.BenchOptions,
    ),
}


class Parser(OptionsParser):
    """An argument parser whose errors are one line, with control characters made visible.

    argparse would print the usage too, and with thirty options it would hide that line.
    """

    def error(self, message: str) -> NoReturn:
        self.exit(WrongUsage.status, f"{self.prog}: {sentence(message)} (see --help)\n")


def build_parser() -> Parser:
    """Build the parser of all commands."""
    parser = Parser(
        prog="amt-stream",
        description="Loudness in sone and phon (Moore et al. 2016, ISO 532-3), sound levels, "
        "LUFS, and modulation by auditory band, live or from sound files.",
        epilog="exit status: 0 done, 1 error, 2 wrong usage, 3 device lost, 4 a limit "
        "exceeded (--fail-above), 129 terminal closed, 130 interrupted, 141 standard output closed "
        "by its reader, 143 terminated",
    )
    parser.add_argument("--version", action="version", version=f"amt-stream {__version__}")
    parser.add_options(ListsDevices)
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
        parser.error(f"give a command: {', '.join(others)} or {last}")
    return run_chosen(args)


def run_chosen(args: Options) -> int:
    """Run a parsed command and return its exit status."""
    chosen = "devices" if args.list_devices else str(args.command)
    home, _, function = COMMANDS[chosen].run.partition(":")
    status: int = getattr(importlib.import_module(home), function)(args)
    return status
