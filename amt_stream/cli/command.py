"""From a command line to an exit status: what went wrong is said in one sentence."""

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from amt_stream.calibration import CalibrationError
from amt_stream.calibrator import Refused
from amt_stream.catalog import CatalogError
from amt_stream.cli.options import Mistake, WrongUsage, build_parser, say
from amt_stream.cli.output import Output, OutputFailed
from amt_stream.engine.sources import DeviceLost, SourceError
from amt_stream.presets import PresetError

ERROR = 1
USAGE = 2
DEVICE_LOST = 3
TERMINATED = 143


def run_command(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit status."""
    # A program without a console has neither; whatever is open to write takes their place.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 (until the end)
    signal.signal(signal.SIGTERM, _terminated)
    with contextlib.redirect_stdout(Output(sys.stdout)):
        try:
            try:
                return _chosen_command(argv)
            finally:
                sys.stdout.flush()
        except OutputFailed as error:
            # Python would complain once more when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno == errno.EPIPE:  # whoever read has left
                return 0
            say(f"standard output cannot be written: {error.strerror}")
            return ERROR
        except DeviceLost as error:
            say(error)
            return DEVICE_LOST
        except WrongUsage as error:
            say(error)
            return USAGE
        except (
            SourceError,
            PresetError,
            CatalogError,
            CalibrationError,
            Refused,
            Mistake,
        ) as error:
            say(error)
            return ERROR


def _chosen_command(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.list_devices:
        from amt_stream.cli.devices import run_devices

        return run_devices()
    if args.command is None:
        commands = "meter, devices, calibrate, analyze or selftest"
        parser.error(f"say what to do: {commands} (--help tells more)")
    return args.run(args)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """End in order when told to, so that the terminal is left as it was."""
    sys.exit(TERMINATED)
