"""`amt-stream bs4142`: a form with typed penalties, against the background."""

import json
from pathlib import Path

from amt_stream.cli.messages import text_table
from amt_stream.cli.options.sessions import Bs4142Options
from amt_stream.core.safe_text import plain


def run_bs4142(args: Bs4142Options) -> int:
    """Print the rating level of a sound above the background."""
    from amt_stream.sessions.results import read_results
    from amt_stream.sessions.results.bs4142 import LABEL, Penalties, assessment
    from amt_stream.sessions.results.parts import part_of

    results = read_results(Path(args.session), microphone=args.microphone)
    without = results
    if args.background is not None:
        without = read_results(Path(args.background), microphone=args.microphone)
    parts = (
        part_of(results, args.begin, args.end, args.zone),
        part_of(without, args.background_begin, args.background_end, args.zone),
    )
    penalties = Penalties(args.tonal, args.impulsive, args.intermittent, args.other)
    found = assessment(results, parts[0], without, parts[1], penalties)
    if args.format == "json":
        print(json.dumps(found.to_dict(), indent=1))
        return 0
    lines = [
        ("LAeq with the sound", found.ambient_db),
        ("LAeq without it", found.residual_db),
        ("specific level", found.specific_db),
        *((f"penalty, {name}", db) for name, db in vars(penalties).items()),
        ("rating level", found.rating_db),
        ("background, LA90", found.background_db),
        ("rating level above background", found.difference_db),
    ]
    rows = [(name, f"{level:.1f} dB") for name, level in lines]
    unit = "" if results.calibrated and without.calibrated else "NOT CALIBRATED. "
    print("\n".join([*text_table(rows, lambda k: k == 1), "", plain(found.words), ""]))
    print(f"{unit}{LABEL}.")
    return 0
