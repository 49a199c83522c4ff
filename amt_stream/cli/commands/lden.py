"""`amt-stream lden`: levels of day, evening and night, over days."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from amt_stream.cli.messages import text_table
from amt_stream.cli.options.sessions import LdenOptions
from amt_stream.cli.table import refuse_not_csv, write_with_header
from amt_stream.core.safe_text import plain
from amt_stream.core.tables import DIALECTS, CsvDialect

if TYPE_CHECKING:
    from amt_stream.sessions.report.day_levels import DayLevels, RatingLevels


def run_lden(args: LdenOptions) -> int:
    """Print the levels of each day, and of all days."""
    from amt_stream.sessions.report.day_levels import HOURS, day_levels, measurements

    refuse_not_csv(args, args.format)
    given = [one for path in args.paths for one in measurements(Path(path), args.microphone)]
    levels = day_levels(given, args.hours or HOURS["eu"], args.zone, args.rating)
    if args.format == "json":
        print(json.dumps(levels.to_dict(), indent=1))
    elif args.format == "csv":
        _write_csv(levels, DIALECTS[args.csv_dialect])
    else:
        print("\n".join(_lines(levels)))
    return 0


def _lines(levels: "DayLevels") -> list[str]:
    """The levels as a table of text."""
    names = [*levels.hours.periods]
    heads = ("", levels.hours.symbol.capitalize(), *(f"L{name}" for name in names))
    heads += (f"measured ({', '.join(names)})",)
    days = [(str(one.on), one) for one in levels.days]
    rows = [heads, *(_cells(*day, levels.clipped) for day in [*days, ("all", levels.whole)])]
    unit = "dB" if levels.calibrated else "dB, NOT CALIBRATED"
    unit += ", rating levels" if levels.rated else ""
    unit += "; the sound was clipped, so levels are at least so high" if levels.clipped else ""
    about = f"{unit}; {levels.hours.words}; time zone {levels.clock}; from {levels.how}"
    return [*text_table(rows, lambda k: 0 < k < len(heads) - 1), "", plain(about)]


def _cells(name: str, one: "RatingLevels", clipped: bool) -> tuple[str, ...]:
    from amt_stream.sessions.report.day_levels import level_text

    levels = [one.rating_db, *(period.level_db for period in one.periods.values())]
    texts = [level_text(level, clipped) for level in levels]
    return (name, *texts, ", ".join(period.percent for period in one.periods.values()))


def _write_csv(found: "DayLevels", dialect: CsvDialect) -> None:
    levels = found.to_dict()
    rows = [*levels.pop("days"), {"date": "all", **levels.pop("whole")}]
    write_with_header(levels, [rows[0], *(row.values() for row in rows)], dialect)
