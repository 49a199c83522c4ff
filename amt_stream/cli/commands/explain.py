"""`amt-stream explain`: which bands make a sound loud, rough and tonal."""

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from amt_stream.cli.messages import Mistake, say, text_table, warnings_said
from amt_stream.cli.options.sounds import ExplainOptions
from amt_stream.cli.sounds.progress import Progress
from amt_stream.cli.table import refuse_not_csv, write_with_header
from amt_stream.core.safe_text import plain
from amt_stream.core.tables import DIALECTS, CsvDialect
from amt_stream.engine.sources import SourceError
from amt_stream.meters.calibration import UNCALIBRATED
from amt_stream.meters.names import SIDES
from amt_stream.meters.rows import NO_READING

if TYPE_CHECKING:
    from amt_stream.offline.explain import Explanation


def run_explain(args: ExplainOptions) -> int:
    """Print the shares of bands, and the changes with less in each."""
    from amt_stream.cli.compiling import say_when_compiling
    from amt_stream.offline.explain import explain

    refuse_not_csv(args, args.format)
    say_when_compiling()
    try:
        with Progress([args.file], [1], args.progress_s) as progress, warnings_said():
            explanation = explain(
                args.file,
                calibration=args.full_scale_db,
                bands=args.bands,
                field=args.field,
                lowest_hz=args.lowest_hz,
                highest_hz=args.highest_hz,
                jobs=args.jobs,
                report=lambda done, runs: progress.update(0, done / runs),
                channels=args.channels,
                layout=args.layout,
            )
    except (SourceError, ValueError) as error:
        raise Mistake(error) from error
    if not explanation.calibrated:
        say(f"{UNCALIBRATED}: --full-scale-db DB gives the true level")
    if args.format == "json":
        print(json.dumps({"file": args.file, **explanation.to_dict()}, indent=1))
    elif args.format == "csv":
        write_csv(explanation, DIALECTS[args.csv_dialect])
    else:
        print(
            plain(f"{args.file}: {len(explanation.bands) + 1} runs in {explanation.took_s:.1f} s")
        )
        print("\n".join(text_lines(explanation)))
    return 1 if explanation.cut_off else 0


def text_lines(explanation: "Explanation") -> list[str]:
    """The single values, a table of shares, and one of changes for each place with less."""
    from amt_stream.offline.explain import BOTH, LESS_DB, QUALITIES

    values = [
        f"{name} {NO_READING if value is None else f'{value:.2f}'} {QUALITIES[name].unit}"
        for name, value in explanation.values.items()
    ]
    shares = [["band in Hz", *_share_names(explanation)]]
    for band, hz in enumerate(explanation.band_names):
        parts = [explanation.shares[name][:, band] for name in explanation.shares]
        shares.append([hz, *(_text(100 * one, ".0f") for part in parts for one in part)])
    lines = [", ".join(values), "", "share in %", *text_table(shares, lambda k: True)]
    for place, where in enumerate(explanation.places):
        changes = [["band in Hz", *explanation.changes]]
        for band, hz in enumerate(explanation.band_names):
            changed = []
            for name, change in explanation.changes.items():
                value, unit = explanation.values[name], QUALITIES[name].unit
                if unit == "dB" or not value:
                    changed.append(_text(change[place, band], "+.2f"))
                else:
                    changed.append(_text(100 * change[place, band] / value, "+.1f"))
            changes.append([hz, *changed])
        ear = (
            ""
            if len(explanation.places) == 1
            else ", both ears"
            if where == BOTH
            else f", {where} ear"
        )
        lines += ["", f"change in % (LAeq: in dB) with {LESS_DB:g} dB less in the band{ear}"]
        lines += text_table(changes, lambda k: True)
    return lines


def write_csv(explanation: "Explanation", dialect: CsvDialect) -> None:
    """A row for each band; shares are parts of 1, changes in the unit of each value."""
    from amt_stream.offline.explain import BOTH, QUALITIES

    about = {
        name: {"value": value, "unit": QUALITIES[name].unit}
        for name, value in explanation.values.items()
    }
    heads = [f"{name.replace(' ', '_')}_share" for name in _share_names(explanation)]
    places = ["" if one == BOTH else f"{one}_" for one in explanation.places]
    changes = [f"{name}_{place}change" for name in explanation.changes for place in places]
    lines: list[list[object]] = [["band_hz", "low_hz", "high_hz", *heads, *changes]]
    for band, (low, _, high) in enumerate(explanation.bands):
        parts = [one for name in explanation.shares for one in explanation.shares[name][:, band]]
        numbers = [
            *parts,
            *(one for name in explanation.changes for one in explanation.changes[name][:, band]),
        ]
        shown = [
            None if math.isnan(one) else Decimal(f"{one:.6g}") for one in (low, high, *numbers)
        ]
        lines.append([explanation.band_names[band], *shown])
    write_with_header(about, lines, dialect)


def _share_names(explanation: "Explanation") -> Sequence[str]:
    """Names of the shares of each ear, such as "loudness left"."""
    names = []
    for name, share in explanation.shares.items():
        names += [f"{name} {ear}" for ear in SIDES] if len(share) == 2 else [name]
    return names


def _text(value: float, form: str) -> str:
    if math.isnan(value):
        return NO_READING
    text = f"{value:{form}}"
    return text.lstrip("+-") if float(text) == 0 else text
