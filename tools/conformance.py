"""Run the self-test, and write what it read to docs/conformance.json, .md and a picture.

The numbers are kept in the tree, so that the page needs no run, and a test compares them with what
this version reads.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from amt_stream.core.formats import WAYS  # noqa: E402 - found by the line above
from amt_stream.offline.selftest.report import DIRECTLY  # noqa: E402
from tools import comparisons  # noqa: E402

NUMBERS = ROOT / "docs" / "conformance.json"
PAGE = ROOT / "docs" / "conformance.md"
PICTURE = ROOT / "docs" / "pictures" / "conformance.svg"
TOLD_WAYS = "\n".join(f"- {way}: {words}" for way, words in WAYS.items())
HEAD = f"""# Conformance

For people who ask how close each model comes to its standard, value by value.
`make conformance` runs the self-test and writes this page, its picture and
[the same numbers as JSON](conformance.json).
[Accuracy](accuracy.md) has the comparisons that need recordings or hours, and
[departures](departures.md) where a model differs on purpose.

Each sound goes the way of a user's sound, in five ways:

{TOLD_WAYS}

Levels in bands, spectral lines, and what a function computes of a whole sound reach the model
directly. A reading has the same tolerance in each way. A few sounds are not played in some ways:
the reason is below the table of the model.

The text of the standards was not available: the models implement published descriptions of their
methods, and are not certified.
A tolerance is that of the standard if it has one; otherwise it allows for the printed digits.
The share is the part of the tolerance that the deviation uses, in the way where it is largest;
100 % is the limit.

![Share of the tolerance that each reading uses, by model](pictures/conformance.svg)

"""

BETWEEN_WAYS = """
## Between the ways

How far a way is at most from the file of floating-point numbers, by the unit of the tolerance.
16 bits round, 44.1 kHz has other filters and another noise, and a device adds the noise of its
converter.

"""


def readings() -> list[dict[str, Any]]:
    """Every reading of the self-test, in every way."""
    import torch

    from amt_stream.offline import selftest
    from amt_stream.offline.selftest.report import by_value

    torch.set_num_threads(1)
    results = selftest.run_checks(ways=list(selftest.WAYS.values()))
    return [as_numbers(list(of.values())) for of in by_value(results).values()]


def as_numbers(results: Sequence[Any]) -> dict[str, Any]:
    """The results of a reading in all ways, as one of the lines of the file."""
    first, of = results[0], results[0].reading
    played = [result for result in results if not result.left_out]
    return {
        "model": first.model,
        "sound": first.sound,
        "reading": of.what,
        "source": of.source,
        "published": of.published,
        "unit": of.unit,
        "expected": of.expected,
        "got": {one.way or DIRECTLY: float(f"{one.got:.7g}") for one in played},
        "not_played": {one.way: one.left_out for one in results if one.left_out},
        "tolerance": of.tolerance,
        "tolerance_unit": of.deviates_in,
        "share": round(max(share(one.deviation, of.tolerance) for one in played), 3),
    }


def share(deviation: float, tolerance: float) -> float:
    """The part of the tolerance that a deviation uses."""
    return abs(deviation) / tolerance if tolerance else float(deviation != 0)


def share_of(line: dict[str, Any], way: str) -> float:
    """The part of the tolerance that a reading uses in a way."""
    off = in_its_unit(line, line["got"][way] - line["expected"])
    return round(share(off, line["tolerance"]), 3)


def in_its_unit(line: dict[str, Any], difference: float) -> float:
    """A difference of readings in the unit of the tolerance."""
    return difference * (100 / line["expected"] if line["tolerance_unit"] == "%" else 1)


def markdown(lines: Sequence[dict[str, Any]]) -> str:
    """The page: a line for each model, then a table for each."""
    models = {one["model"]: [two for two in lines if two["model"] == one["model"]] for one in lines}
    heading = ["model", "values", "printed in a standard or paper", "median share", "largest share"]
    heading += [f"as {way}" for way in WAYS]
    parts = [
        comparisons.table(heading, (overview_row(model, of) for model, of in models.items())),
        BETWEEN_WAYS + comparisons.table(["way", "largest differences"], way_rows(lines)),
        comparisons.markdown(lines).rstrip(),
    ]
    for model, of in models.items():
        ways = [way for way in (DIRECTLY, *WAYS) if any(way in one["got"] for one in of)]
        columns = ["sound", "reading", "source", "value", *ways, "share"]
        rows = ([cell.replace("|", "\\|") for cell in value_row(one, ways)] for one in of)
        parts += [f"\n## {model}\n", comparisons.table(columns, rows), *not_played(of)]
    return HEAD + "\n".join(parts) + "\n"


def overview_row(model: str, lines: Sequence[dict[str, Any]]) -> list[str]:
    shares = sorted(one["share"] for one in lines)
    row = [f"[{model}](#{model})", f"{len(lines)}", f"{sum(one['published'] for one in lines)}"]
    row += [f"{shares[len(shares) // 2]:.0%}", f"{shares[-1]:.0%}"]
    for way in WAYS:
        row.append(f"{max(share_of(one, way) for one in lines if way in one['got']):.0%}")
    return row


def way_rows(lines: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """For each way the largest differences from the file of floating-point numbers, by unit."""
    for way in WAYS:
        if way == "float":
            continue
        largest: dict[str, float] = {}
        for one in lines:
            if {way, "float"} <= one["got"].keys():
                unit = one["tolerance_unit"]
                off = in_its_unit(one, one["got"][way] - one["got"]["float"])
                largest[unit] = max(abs(off), largest.get(unit, 0.0))
        yield [way, ", ".join(f"{off:.2g} {unit}" for unit, off in largest.items() if off)]


def value_row(line: dict[str, Any], ways: Sequence[str]) -> list[str]:
    each = (f"{line['got'][way]:.6g}" if way in line["got"] else "-" for way in ways)
    value = f"{line['expected']:g} {line['unit']}"
    share = f"{line['share']:.0%}"
    return [line["sound"], line["reading"], line["source"], value, *each, share]


def not_played(lines: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each sound that is not played in a way."""
    told = {
        f"- not played as {way}: {one['sound']}: {why}": None
        for one in lines
        for way, why in one["not_played"].items()
    }
    return ["", *told] if told else []


def draw(lines: Sequence[dict[str, Any]]) -> None:
    """The picture: a dot for each reading."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "amt_stream"  # the same picture from the same numbers
    from matplotlib import pyplot

    models = list(dict.fromkeys(one["model"] for one in lines))
    figure, axes = pyplot.subplots(figsize=(8, 0.5 * len(models) + 1), layout="constrained")
    for published, color, label in (
        (True, "#3b0f7a", "printed in a standard or paper"),
        (False, "#f59e55", "calculated independently"),
    ):
        of = [one for one in lines if one["published"] is published]
        places = [models.index(one["model"]) for one in of]
        shares = [max(100 * one["share"], 0.1) for one in of]
        axes.plot(shares, places, "o", color=color, alpha=0.5, label=label)
    axes.axvline(100, color="#c81e2b")
    axes.set_xscale("log")
    axes.set_xlabel("share of the tolerance (%); 0.1 is 0.1 or less")
    axes.set_yticks(range(len(models)), models)
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=2)
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> int:
    lines = readings()
    NUMBERS.write_text(
        "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in lines) + "\n]\n",
        encoding="utf-8",
    )
    PAGE.write_text(markdown(lines), encoding="utf-8")
    draw(lines)
    comparisons.draw(lines)
    worst = max(lines, key=lambda one: one["share"])
    print(f"{len(lines)} readings; the largest share is {worst['share']:.0%}, of {worst['model']}")
    return int(worst["share"] > 1)


if __name__ == "__main__":
    sys.exit(main())
