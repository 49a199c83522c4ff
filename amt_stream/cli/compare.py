"""`amt-stream compare`: how much louder one measurement is than another."""

import argparse
import json
from typing import TYPE_CHECKING

from amt_stream.calibration import UNCALIBRATED, Calibration
from amt_stream.cli.inputs import with_uncertainty
from amt_stream.cli.messages import Mistake, say
from amt_stream.cli.report import page_target, write_page
from amt_stream.engine.sources import SourceError
from amt_stream.plain import plain

if TYPE_CHECKING:
    from amt_stream.comparing import Comparison, Difference


def run_compare(args: argparse.Namespace) -> int:
    """Print the difference of each reading that both have, or write it as a page."""
    from amt_stream.cli.compiling import say_when_compiling
    from amt_stream.comparing import compare

    say_when_compiling()
    out = None if args.out is None else page_target(args.out, args.force)
    calibration = None
    if args.full_scale_db is not None:
        calibration = with_uncertainty(Calibration(args.full_scale_db), args)
    elif args.calibration_uncertainty is not None or args.microphone_uncertainty is not None:
        with_uncertainty(UNCALIBRATED, args)  # which says that there is none
    try:
        found = compare(
            args.a,
            args.b,
            same_place=args.same_place,
            independent=args.independent,
            models=args.model or ("moore2016", "spl"),
            calibration=calibration,
        )
    except (SourceError, ValueError) as error:
        raise Mistake(error) from error
    if out is not None:
        from amt_stream.comparing import comparison_page

        write_page(out, comparison_page(found))
        say(f"{out}: {args.b} against {args.a}")
    elif args.json:
        print(json.dumps(found.to_dict(), indent=1))
    else:
        print("\n".join(lines(found)))
    return 0


def lines(found: "Comparison") -> list[str]:
    """A table for people: each reading of A and B, B - A, and how sure that is."""
    rows = [_cells(one) for one in found.differences]
    heads = ("reading", "A", "B", "B - A", "unit", "+-", "")
    widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads))]
    aligned = [
        "  ".join(
            cell.rjust(wide) if 0 < k < 4 or k == 5 else cell.ljust(wide)
            for k, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]
    place = "; the microphone stood at one place: its error cancels" if found.same_place else ""
    return [
        plain(f"A: {found.a.name}"),
        plain(f"B: {found.b.name}"),
        "",
        *aligned,
        "",
        f"{found.why}{place} (k = 2)",
        *map(plain, found.notes),
    ]


def _cells(one: "Difference") -> tuple[str, ...]:
    doubt = "?" if one.uncertainty is None else f"{one.uncertainty:.2f}"
    numbers = f"{one.a:.1f}", f"{one.b:.1f}", f"{one.difference:+.2f}"
    return (one.symbol, *numbers, one.unit, doubt, one.verdict)
