"""The `amt-stream` command. Data goes to standard output, messages to standard error."""

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from amt_stream.calibration import CalibrationError
from amt_stream.calibrator import Refused
from amt_stream.cli.options import Mistake, WrongUsage, build_parser, say
from amt_stream.engine.sources import DeviceLost, SourceError
from amt_stream.presets import PresetError

ERROR = 1
USAGE = 2
DEVICE_LOST = 3
INTERRUPTED = 130
TERMINATED = 143


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit status."""
    parser = build_parser()
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        if args.list_devices:
            from amt_stream.cli.devices import run_devices

            return run_devices()
        if args.command is None:
            parser.error("say what to do: meter, devices, calibrate or analyze (--help tells more)")
        return args.run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read has left; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except DeviceLost as error:
        say(error)
        return DEVICE_LOST
    except WrongUsage as error:
        say(error)
        return USAGE
    except (SourceError, PresetError, CalibrationError, Refused, Mistake) as error:
        say(error)
        return ERROR


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """End in order when told to, so that the terminal is left as it was."""
    sys.exit(TERMINATED)
