"""The rows that a command writes, as they were asked for."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from amt_stream.cli.limits import refuse_uncalibrated
from amt_stream.cli.messages import Mistake, WrongUsage
from amt_stream.clock import Interval, local_zone
from amt_stream.outputs import WRITERS, CsvWriter, Writer
from amt_stream.presets import Preset
from amt_stream.table import Sound, Table

if TYPE_CHECKING:
    from amt_stream.streaming import Stage


def interval_of(args: argparse.Namespace) -> Interval | None:
    """The intervals that --interval asks for, by the clock of --zone or of this computer."""
    return None if args.interval is None else Interval(args.interval, args.zone or local_zone())


def refuse_not_csv(args: argparse.Namespace, format: str | None) -> None:
    """Raise WrongUsage for options of CSV where rows of `format` are written, or none."""
    for typed, name in ((args.no_header, "--no-header"), (args.local_time, "--local-time")):
        if typed and format != "csv":
            found = "no rows are written" if format is None else f"the format is {format}"
            raise WrongUsage(f"{name} is for rows as CSV, and {found}: leave it out")


def writer_of(
    args: argparse.Namespace, stream: TextIO, header: Mapping[str, Any], beside: TextIO
) -> Writer:
    """What writes rows in the format that was asked for.

    beside: takes the header with --no-header
    """
    if args.format != "csv":
        return WRITERS[args.format](stream, header)
    return CsvWriter(
        stream,
        header,
        beside=beside if args.no_header else None,
        local=args.local_time,
        zone=args.zone or local_zone(),
    )


def table_of(
    args: argparse.Namespace,
    preset: Preset,
    models: "Mapping[str, Stage]",
    sound: Sound,
    step_ms: int,
    interval: Interval | None = None,
) -> Table:
    """Those of a sound; they end where --to or --duration does, whichever comes first."""
    duration_s = getattr(args, "duration", None)
    try:
        table = Table(
            preset,
            models,
            sound,
            step_ms,
            columns=args.columns,
            from_s=args.from_s,
            to_s=min((s for s in (args.to_s, duration_s) if s is not None), default=None),
            interval=interval,
            target_lufs=args.target_lufs,
            dual_mono=args.dual_mono,
        )
    except ValueError as error:
        raise Mistake(error) from error
    refuse_uncalibrated(args, table)
    return table
