"""Records every cell that the meters give of made sounds, and compares two such records.

    python tools/same_rows.py write before.pickle            # in the tree before a change
    python tools/same_rows.py write after.pickle             # in the tree after it
    python tools/same_rows.py compare before.pickle after.pickle

Recorded are rows of all columns with their windows, of the usual ones with limits, intervals,
headers, summaries, and the help of all commands. Sounds go through an engine, with pauses, resets
and their undoing as commands, each at a chosen sample, so that a tree equals itself. Times of day
and versions are left out. If the package renames what `recorded_rows.py` imports, adapt the imports
of the later tree. If columns are renamed, write their names before and after in a JSON file, and
give it to `compare --renamed`.
"""

import argparse
import gzip
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import amt_stream

sys.path.append(str(Path(__file__).parents[1]))  # last, so that it also runs on another tree
from tools.made_sounds import sounds
from tools.recorded_rows import SETS, record_of

HEARD_BY_ALL = "steps", "gap", "undone", "mono", "microphones"
"""Sounds that the other models hear too."""

QUICK = ((0, ("gap", "undone")), (1, ("undone",)), (2, ("undone",)))
"""Sets and their sounds for `--quick`."""
PASSING = ("utc", "local", "start_utc", "date", "version", "zone", "program", "processor")
"""Columns and fields that differ between runs."""


def write(path: Path, quick: bool, only: str) -> None:
    """Record everything in a file."""
    made, kernels = sounds(), compiled_kernels()
    heard = [(names, [*made] if k < 2 else HEARD_BY_ALL) for k, names in enumerate(SETS)]
    chosen = [(SETS[place], names) for place, names in QUICK] if quick else heard
    record: dict[str, Any] = {} if quick or only else {"help": helps()}
    for names, of_sounds in chosen:
        for sound in of_sounds:
            if only in f"{sound}, {' '.join(names)}":
                record[f"{sound}, {' '.join(names)}"] = record_of(names, made[sound])
    if compiled_kernels() != kernels:
        # A kernel that this process compiled may differ in the last bit from the stored one.
        print("kernels were compiled meanwhile: everything is recorded again", flush=True)
        sys.exit(subprocess.run([sys.executable, *sys.argv], check=False).returncode)
    with gzip.open(path, "wb", compresslevel=1) as file:
        pickle.dump(record, file)
    print(f"{path}: {len(record)} parts, {len([*flat(record)])} columns and fields")


def compiled_kernels() -> set[Path]:
    """The stored kernels of the tree that is recorded."""
    return set(Path(amt_stream.__file__).parent.rglob("*.nbc*"))


def helps() -> dict[str, str]:
    """The help of the command and of each of its commands."""

    def told(*given: str) -> str:
        words = sys.executable, "-m", "amt_stream.cli", *given, "--help"
        around = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
        return subprocess.run(words, capture_output=True, text=True, check=True, env=around).stdout

    first = told()
    return {"": first} | {name: told(name) for name in re.findall(r"^    (\w+)  ", first, re.M)}


def flat(record: object, place: str = "") -> Iterator[tuple[str, object]]:
    """Every array and number of a record with its place."""
    if isinstance(record, Mapping):
        for name, one in record.items():
            if name not in PASSING:
                yield from flat(one, f"{place} / {name}" if place else name)
    elif isinstance(record, list | tuple) and any(isinstance(one, Mapping) for one in record):
        for k, one in enumerate(record):
            yield f"{place} / {one.get('name', k)}", json.dumps(one)
    else:
        yield place, record


def compare(before: Path, after: Path, renamed: Mapping[str, str]) -> int:
    """Print what differs, and return the number of differing cells."""
    was, now = (dict(flat(pickle.loads(gzip.decompress(p.read_bytes())))) for p in (before, after))
    was = {_renamed(place, renamed): value for place, value in was.items()}
    cells = differing = 0
    for place in [*was, *(one for one in now if one not in was)]:
        if place not in was or place not in now:
            differing += 1
            print(f"{place}: only {'before' if place in was else 'after'}")
            continue
        one, other = (np.atleast_1d(np.asarray(r[place], dtype=None)) for r in (was, now))
        cells += max(one.size, other.size)
        if one.shape != other.shape or one.dtype != other.dtype:
            differing += max(one.size, other.size)
            print(f"{place}: {one.dtype} {one.shape} before, {other.dtype} {other.shape} after")
        elif count := int(np.count_nonzero((one != other) & ~((one != one) & (other != other)))):
            differing += count
            print(f"{place}: {count} of {one.size} cells differ{_example(one, other)}")
    print(f"{differing} of {cells} cells differ")
    return differing


def _renamed(place: str, renamed: Mapping[str, str]) -> str:
    return " / ".join(renamed.get(part, part) for part in place.split(" / "))


def _example(one: np.ndarray, other: np.ndarray) -> str:
    if one.dtype.kind == "U":
        return ""
    at = np.argwhere((one != other) & ~((one != one) & (other != other)))[0]
    return f", as at {at.tolist()}: {one[tuple(at)]!r} before, {other[tuple(at)]!r} after"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="what", required=True)
    writer = commands.add_parser("write")
    writer.add_argument("path", type=Path)
    writer.add_argument("--quick", action="store_true", help="fewer sounds and models")
    writer.add_argument("--only", default="", help="only sounds and models with this in their name")
    comparer = commands.add_parser("compare")
    comparer.add_argument("before", type=Path)
    comparer.add_argument("after", type=Path)
    comparer.add_argument("--renamed", type=Path, help="JSON: new names by old ones")
    given = parser.parse_args()
    if given.what == "write":
        write(given.path, given.quick, given.only)
        return 0
    renamed = json.loads(given.renamed.read_text()) if given.renamed else {}
    return min(1, compare(given.before, given.after, renamed))


if __name__ == "__main__":
    sys.exit(main())
