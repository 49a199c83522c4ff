"""Run the self-test, and write what it read to docs/conformance.json, .md and a picture.

The numbers are kept in the tree, so that the page needs no run, and a test compares them with what
this version reads.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import comparisons  # noqa: E402 - found by the line above

NUMBERS = ROOT / "docs" / "conformance.json"
PAGE = ROOT / "docs" / "conformance.md"
PICTURE = ROOT / "docs" / "pictures" / "conformance.svg"
HEAD = """# Conformance

For people who ask how close each model comes to its standard, value by value.
`make conformance` runs the self-test and writes this page, its picture and
[the same numbers as JSON](conformance.json).
[Accuracy](accuracy.md) has the comparisons that need recordings or hours, and
[departures](departures.md) where a model differs on purpose.

The text of the standards was not available: the models implement published descriptions of their
methods, and are not certified.
A tolerance is that of the standard if it has one; otherwise it allows for the printed digits.
The share is the part of the tolerance that the deviation uses; 100 % is the limit.

![Share of the tolerance that each reading uses, by model](pictures/conformance.svg)

"""


def readings() -> list[dict[str, Any]]:
    """Every reading of the self-test."""
    import torch

    from amt_stream.offline import selftest

    torch.set_num_threads(1)
    return [as_numbers(one) for one in selftest.run_checks()]


def as_numbers(result: Any) -> dict[str, Any]:
    """A result of the self-test as one of the lines of the file."""
    of = result.reading
    return {
        "model": result.model,
        "sound": result.sound,
        "reading": of.what,
        "source": of.source,
        "published": of.published,
        "unit": of.unit,
        "expected": of.expected,
        "got": float(f"{result.got:.7g}"),
        "tolerance": of.tolerance,
        "tolerance_unit": of.deviates_in,
        "share": round(share(result.deviation, of.tolerance), 3),
    }


def share(deviation: float, tolerance: float) -> float:
    """The part of the tolerance that a deviation uses."""
    return abs(deviation) / tolerance if tolerance else float(deviation != 0)


def markdown(lines: Sequence[dict[str, Any]]) -> str:
    """The page: a line for each model, then a table for each."""
    models = list(dict.fromkeys(one["model"] for one in lines))
    made = ["| model | values | printed in a standard or paper | median share | largest share |"]
    made.append("|---|---|---|---|---|")
    tables = []
    for model in models:
        of = [one for one in lines if one["model"] == model]
        shares = sorted(one["share"] for one in of)
        printed = sum(one["published"] for one in of)
        middle = shares[len(shares) // 2]
        made.append(
            f"| [{model}](#{model}) | {len(of)} | {printed} | {middle:.0%} | {shares[-1]:.0%} |"
        )
        tables += [f"\n## {model}\n", "| sound | reading | source | value | ours | share |"]
        tables.append("|---|---|---|---|---|---|")
        for one in of:
            cells = [one["sound"], one["reading"], one["source"]]
            numbers = [f"{one['expected']:g} {one['unit']}", f"{one['got']:.6g}"]
            row = [*cells, *numbers, f"{one['share']:.0%}"]
            tables.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return HEAD + "\n".join([*made, comparisons.markdown(lines).rstrip(), *tables]) + "\n"


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
