"""`amt-stream compare`: the differences between two measurements."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from amt_stream.cli.commands.report import page_target, write_page
from amt_stream.cli.inputs import with_uncertainty
from amt_stream.cli.messages import Mistake, say, text_table, warnings_said
from amt_stream.cli.options.sessions import CompareOptions
from amt_stream.cli.sounds.progress import Progress
from amt_stream.core.safe_text import plain
from amt_stream.engine.sources import SourceError
from amt_stream.meters.calibration import UNCALIBRATED, Calibration

if TYPE_CHECKING:
    from amt_stream.sessions.compare import Comparison, Difference
    from amt_stream.sessions.compare.difference import IntervalPair

SHOWN = (
    *("laeq_db", "lafmax_db", "l10_db", "l90_db", "integrated_lufs"),
    *("ltl_n5_phon", "gm2002_ltl_n5_phon", "zwicker_n5_sone"),
)
"""Readings of intervals that fit on a terminal; JSON has all."""


def run_compare(args: CompareOptions) -> int:
    """Print the difference of each common reading, or write it as a page."""
    from amt_stream.cli.compiling import say_when_compiling
    from amt_stream.sessions.compare import compare

    say_when_compiling()
    out = None if args.out is None else page_target(args.out, args.force)
    calibration = None
    if args.full_scale_db is not None:
        calibration = with_uncertainty(Calibration(args.full_scale_db), args)
    elif args.calibration_uncertainty is not None or args.microphone_uncertainty is not None:
        with_uncertainty(UNCALIBRATED, args)  # raises that there is no calibration
    try:
        sizes = [of.stat().st_size if of.is_file() else 0 for of in map(Path, (args.a, args.b))]
        with Progress([f"{args.a}, {args.b}"], sizes) as progress, warnings_said():
            comparison = compare(
                args.a,
                args.b,
                same_place=args.same_place,
                independent=args.independent,
                models=args.model or ("moore2016", "spl"),
                calibration=calibration,
                layout=args.layout,
                begin=args.begin,
                end=args.end,
                interval=args.interval,
                zone=args.zone,
                report=progress.update,
            )
    except (SourceError, ValueError) as error:
        raise Mistake(error) from error
    if out is not None:
        from amt_stream.sessions.compare import comparison_page

        write_page(out, comparison_page(comparison))
        say(f"{out}: {args.b} compared with {args.a}")
    elif args.json:
        print(json.dumps(comparison.to_dict(), indent=1))
    else:
        print("\n".join(_lines(comparison)))
    return 1 if comparison.cut_off else 0


def _lines(comparison: "Comparison") -> list[str]:
    """A table of each reading of A and B, B - A, and its uncertainty."""
    rows = [_cells(one) for one in comparison.differences]
    heads = ("reading", "A", "B", "B - A", "unit", "+-", "")
    place = (
        "; the microphone was at the same place: its error cancels" if comparison.same_place else ""
    )
    return [
        plain(f"A: {comparison.a.name}"),
        plain(f"B: {comparison.b.name}"),
        "",
        *text_table([heads, *rows], lambda k: 0 < k < 4 or k == 5),
        "",
        f"{comparison.why}{place} (k = 2)",
        comparison.repeats,
        *map(plain, comparison.notes),
        *_interval_lines(comparison),
    ]


def _interval_lines(comparison: "Comparison") -> list[str]:
    """A line for each common interval: A, B and B - A of each reading."""
    pairs = comparison.intervals
    if comparison.of_each is None:
        return []
    if not pairs:
        return ["", "A and B have no interval at the same time"]
    names = [name for name in pairs[0].names if name in SHOWN] or pairs[0].names[:5]
    heads = ("from", *(f"{comparison.a.known[name].short} A  B  B - A" for name in names), "")
    rows = [
        (
            (one.a["local"] or f"{one.a['time_s']:g} s").replace("T", " "),
            *(_interval_cell(one, name) for name in names),
            "partial" if one.a["partial"] or one.b["partial"] else "",
        )
        for one in pairs
    ]
    lines = text_table([heads, *rows], lambda k: True)
    sides = zip("AB", comparison.of_each, strict=True)
    return ["", *map(plain, lines), "", *(plain(f"{side}: {one.how}") for side, one in sides)]


def _interval_cell(pair: "IntervalPair", name: str) -> str:
    values = pair.a[name], pair.b[name], pair.difference(name)
    texts = ["---" if v is None else f"{v:.1f}" for v in values[:2]]
    return "  ".join([*texts, "---" if values[2] is None else f"{values[2]:+.1f}"])


def _cells(one: "Difference") -> tuple[str, ...]:
    uncertainty = "?" if one.uncertainty is None else f"{one.uncertainty:.2f}"
    return (one.symbol, *one.numbers(), one.unit, uncertainty, one.verdict)
