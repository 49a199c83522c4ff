"""`amt-stream bench`."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import product
from typing import NamedTuple

from amt_stream.cli.options.sounds import BenchOptions
from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import plain
from amt_stream.meters import catalog


class _Column(NamedTuple):
    key: str
    heading: str
    width: int
    form: str = ""


MACHINE = (
    _Column("loop_s", "loop in s", 9, ".4f"),
    _Column("products_gflops", "GFLOP/s", 7, ".0f"),
    _Column("copies_gb_s", "GB/s", 5, ".1f"),
    _Column("machine", "machine", 0),
)
FIGURES = (
    _Column("model", "model", 16),
    _Column("stage", "stage", 30),
    _Column("block_ms", "block in ms", 11, "g"),
    _Column("streams", "streams", 7),
    _Column("dtype", "numbers", 7),
    _Column("median", "median", 7, ".4f"),
    _Column("p99", "p99", 7, ".4f"),
    _Column("of_loop", "median/loop", 11, ".3f"),
    _Column("state_bytes", "bytes of state", 0),
)
STARTS = (
    _Column("model", "model", 16),
    _Column("imported_s", "imported", 8, ".2f"),
    _Column("built_s", "made", 7, ".2f"),
    _Column("first_s", "first 100 ms", 12, ".2f"),
    _Column("resident_mb", "MiB", 0, ".0f"),
)


def run_bench(args: BenchOptions) -> int:
    """Time models on this machine, and print a row for each combination of options."""
    names = args.model or catalog.names()
    for name in names:
        catalog.entry(name).load("model")  # refuse unusable models before anything is timed
    from amt_stream.offline import benchmark

    speed = benchmark.speed()
    _print_table(args.json, "this machine, one core", MACHINE, [asdict(speed)])
    _print_table(
        args.json,
        "thread CPU seconds per second of sound, of all streams: white noise at 48 kHz",
        FIGURES,
        _figures(args, names, speed.loop_s),
    )
    if args.start:
        _print_table(
            args.json,
            "CPU seconds of a new process for imports, making the model, and the first sound",
            STARTS,
            (asdict(benchmark.start(name)) for name in names),
        )
    return 0


def _figures(args: BenchOptions, names: Iterable[str], loop_s: float) -> Iterator[JsonDict]:
    import torch

    from amt_stream.offline import benchmark

    forms = product(names, args.block_ms, args.streams, args.dtype)
    for name, block_ms, streams, kind in forms:
        dtype = getattr(torch, kind)
        for figure in benchmark.figures(name, block_ms, streams, dtype, args.seconds, args.stages):
            yield {**asdict(figure), "of_loop": figure.median / loop_s}


def _print_table(
    as_json: bool, title: str, columns: tuple[_Column, ...], rows: Iterable[JsonDict]
) -> None:
    """Print each row as soon as it is ready: as a JSON object, or in a table with a title."""
    if not as_json:
        print(f"\n{title}")
        print("  ".join(f"{one.heading:<{one.width}}" for one in columns).rstrip())
    for row in rows:
        if as_json:
            print(json.dumps(row), flush=True)
        else:
            cells = (f"{row[one.key]:{one.form}}" for one in columns)
            padded = (f"{c:<{one.width}}" for c, one in zip(cells, columns, strict=True))
            print(plain("  ".join(padded)).rstrip(), flush=True)
