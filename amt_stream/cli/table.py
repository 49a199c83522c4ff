"""The rows that a command writes, as they were asked for."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from amt_stream.cli.limits import refuse_uncalibrated
from amt_stream.cli.messages import Mistake
from amt_stream.clock import Interval, local_zone
from amt_stream.presets import Preset
from amt_stream.table import Sound, Table

if TYPE_CHECKING:
    from amt_stream.streaming import Stage


def interval_of(args: argparse.Namespace) -> Interval | None:
    """The intervals that --interval asks for, by the clock of --zone or of this computer."""
    return None if args.interval is None else Interval(args.interval, args.zone or local_zone())


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
