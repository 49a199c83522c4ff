"""The rows that a command writes."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from amt_stream.cli.limits import refuse_uncalibrated
from amt_stream.cli.messages import Mistake, WrongUsage
from amt_stream.cli.options.live import LiveOptions, MeterOptions
from amt_stream.cli.options.parser import Options
from amt_stream.cli.options.sounds import AnalyzeOptions
from amt_stream.cli.output import OutputStream
from amt_stream.core.clock import local_zone
from amt_stream.core.safe_text import json_comment
from amt_stream.core.tables import CsvDialect
from amt_stream.meters.frames import LEFT_OUT_S
from amt_stream.meters.output_settings import CsvSettings
from amt_stream.meters.presets import Preset
from amt_stream.meters.setting import declared, settings_in
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table, refuse_untaken
from amt_stream.sessions.outputs import WRITERS, CsvWriter, LiveWriter

if TYPE_CHECKING:
    from amt_stream.dsp.streaming import Stage


def refuse_not_csv(args: Options, format: str | None, in_table: bool = False) -> None:
    """Raise WrongUsage for options of CSV if the format is another one, or None.

    in_table: whether a table of summaries is written, which has a dialect but no header
    """
    for name, one, default in settings_in(CsvSettings):
        if in_table and name == "csv_dialect":
            continue
        if getattr(args, name, default) != default and format != "csv":
            found = "no rows are written" if format is None else f"the format is {format}"
            raise WrongUsage(f"{one.long_flag} is for CSV, and {found}: leave it out")


def writer_of(
    args: MeterOptions | AnalyzeOptions,
    stream: TextIO,
    header: Mapping[str, object],
    beside: TextIO,
) -> LiveWriter:
    """Make the writer of rows in the chosen format.

    beside: stream for the header with --no-header
    """
    if args.format not in (None, "csv"):
        return WRITERS[args.format](stream, header)
    return CsvWriter(
        marked(stream, args.dialect),
        header,
        beside=beside if args.no_header else None,
        local=args.local_time,
        zone=args.zone or local_zone(),
        dialect=args.dialect,
    )


def marked(stream: TextIO, dialect: CsvDialect) -> TextIO:
    """The stream, in UTF-8 if the dialect's mark says so: standard output may have another."""
    if dialect.mark and stream is sys.stdout and isinstance(stream, OutputStream):
        stream.reconfigure(encoding="utf-8")
    return stream


def write_with_header(
    header: Mapping[str, object], lines: Iterable[Iterable[object]], dialect: CsvDialect
) -> None:
    """Print a table as CSV, with its header in comments."""
    marked(sys.stdout, dialect).write(dialect.begin)
    for key, value in header.items():
        print(f"# {key}: {json_comment(value)}")
    sys.stdout.writelines(map(dialect.line, lines))


def table_of(
    args: LiveOptions | AnalyzeOptions,
    preset: Preset,
    models: "Mapping[str, Stage]",
    sound: Sound,
    step_ms: int | None = None,
    intervals: bool = False,
) -> Table:
    """Make the table of rows of a sound, which ends at --to or --duration, whichever is first.

    intervals: whether it includes the intervals of --interval
    """
    ends = (args.to_s, args.duration if isinstance(args, LiveOptions) else None)
    asked = replace(
        args,
        step_ms=args.step_ms if step_ms is None else step_ms,
        to_s=min((s for s in ends if s is not None), default=None),
        interval=args.interval if intervals else None,
    )
    try:
        refuse_untaken(asked, preset, lambda name: declared(RowSettings, name)[0].long_flag)
        if isinstance(args, LiveOptions):
            more = args.identity.fields
        else:
            left_out = args.without_impulses
            more = {LEFT_OUT_S: list(left_out)} if left_out else {}
        table = Table(preset, models, sound, asked, more)
    except ValueError as error:
        raise Mistake(error) from error
    refuse_uncalibrated(args, table)
    return table
