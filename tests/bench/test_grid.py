"""Every model and stage by block, streams and numbers, with peers beside them: RESULTS.md."""

from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream import __version__
from amt_stream.meters import catalog
from amt_stream.offline import benchmark
from tests.bench import test_bs1770, test_zwicker

pytestmark = pytest.mark.bench

RESULTS = Path(__file__).with_name("RESULTS.md")
BLOCKS_MS = (1, 5, 10, 50)
STREAMS = (1, 8, 64)
SECONDS = 0.2


def table(rows, columns):
    """Lines of a table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), *rows)]
    return [*lines, ""]


def of_model(name, dtype):
    """A row for the model and for each of its stages, a column for each form."""
    forms = list(product(BLOCKS_MS, STREAMS if dtype is torch.float32 else STREAMS[:1]))
    found = {}
    for block_ms, streams in forms:
        for one in benchmark.figures(name, block_ms, streams, dtype, SECONDS, stages=True):
            cell = f"{one.median:.4f} ({one.p99:.4f})"
            found.setdefault(one.stage or "whole", []).append(cell)
    columns = ["", *(f"{block_ms} ms, {streams}" for block_ms, streams in forms)]
    return table([[stage, *cells] for stage, cells in found.items()], columns)


def test_all_that_there_is():
    loops = [benchmark.calibration_loop()]
    lines = []
    for name, dtype in product(catalog.names(), (torch.float32, torch.float64)):
        lines += [f"## {name}, {str(dtype).removeprefix('torch.')}", "", *of_model(name, dtype)]
        loops.append(benchmark.calibration_loop())
    starts = [benchmark.start(name) for name in catalog.names()]
    peers = {
        "BS1770 and its meter, stereo, 10 ms": float(np.median(test_bs1770.shares()[1])),
        "pyloudnorm, integrated loudness alone, a whole file": test_bs1770.peer(),
        "ZwickerTimeVarying, 10 ms": float(np.median(test_zwicker.shares(10))),
        "MoSQITo, loudness_zwtv, a whole file": test_zwicker.peer(),
    }
    assert None not in peers.values()
    speed = benchmark.speed()
    head = [
        "# What `make bench` measured last",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, amt_stream {__version__}, {speed.machine}.",
        "",
        f"One core: a loop of arithmetic takes {np.median(loops):.4f} s ({min(loops):.4f} to "
        f"{max(loops):.4f} while this was measured), products of matrices "
        f"{speed.products_gflops:.0f} GFLOP/s, copies {speed.copies_gb_s:.1f} GB/s.",
        "",
        "Thread CPU seconds per second of sound, of all streams together: median (99th "
        "percentile); white noise at 48 kHz, by length of the blocks and number of streams.",
        "",
    ]
    begun = []
    for one in starts:
        seconds = (f"{s:.2f}" for s in (one.imported_s, one.built_s, one.first_s))
        begun.append([one.model, *seconds, f"{one.resident_mb:.0f}"])
    lines += [
        *("## The start of a process, CPU seconds, kernels compiled before", ""),
        *table(begun, ["", "imports", "model", "first 100 ms", "MiB"]),
        *("## Beside others, on the same sound", ""),
        *table([[name, f"{share:.4f}"] for name, share in peers.items()], ["", "CPU s per s"]),
    ]
    RESULTS.write_text("\n".join([*head, *lines]).rstrip() + "\n", encoding="utf-8")
    print(f"\nwritten: {RESULTS.name}")
