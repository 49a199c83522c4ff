"""The figures of docs/performance.md: each test measures a part of them, and writes the page anew.

A part takes less than a minute, so that each can have a moment in which the machine is quiet.
"""

import os
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream.meters import catalog
from amt_stream.offline import benchmark
from tests.bench import peers, test_all_meters, test_history_cost
from tools import performance

pytestmark = pytest.mark.bench

ROOT = Path(__file__).parents[2]
BLOCKS_MS = (1, 2, 5, 10, 20, 50)
STREAMS = (2, 4, 8, 16, 32)
SECONDS = 0.4
SPANS_H = (1 / 60, 1, 4, 8)
"""Hours of history that a window shows."""
TOGETHER = ("moore2016", "spl", "bs1770", "zwicker", "third_octave", "gm2002", "spectrum", "octave")
"""Models in the order in which one more of them runs."""


@pytest.fixture(scope="module")
def page():
    """The program that keeps the figures and writes the page."""
    yield performance
    about = {"date": time.strftime("%Y-%m-%d"), "load": round(os.getloadavg()[0], 1)}
    performance.keep("machine", [asdict(benchmark.speed()) | about])


@pytest.mark.parametrize("name", catalog.names())
def test_cost_of_a_model(page, name):
    forms = [(block_ms, 1) for block_ms in BLOCKS_MS] + [(10, streams) for streams in STREAMS]
    lines = []
    for block_ms, streams in forms:
        stages = (block_ms, streams) == (10, 1)
        figures = benchmark.figures(name, block_ms, streams, seconds=SECONDS, stages=stages)
        lines += [rounded(asdict(figure)) for figure in figures]
    double = benchmark.figures(name, 10, dtype=torch.float64, seconds=SECONDS)
    lines += [rounded(asdict(figure)) for figure in double]
    assert all(line["median"] > 0 for line in lines)
    page.keep("models", lines, model=name)


def rounded(line):
    return {k: float(f"{v:.3g}") if isinstance(v, float) else v for k, v in line.items()}


def test_cost_of_models_together(page):
    lines = []
    for count in range(1, len(TOGETHER) + 1):
        names = list(TOGETHER[:count])
        costs = {rows: np.median(test_all_meters.shares(names, rows)) for rows in (False, True)}
        lines.append({"models": names, "median": costs[False], "with_rows": costs[True]})
    page.keep("together", [rounded(line) for line in lines])


def test_cost_of_history(page, qtbot):
    spans = {f"{hours:g} h": 3600 * hours for hours in SPANS_H}
    costs = test_history_cost.costs(qtbot, spans)
    lines = [{"shown_h": s / 3600, "ms": 1e3 * costs[name]} for name, s in spans.items()]
    page.keep("history", [rounded(line) for line in lines])


@pytest.mark.parametrize("peer", peers.PEERS, ids=lambda peer: f"{peer.package}-{peer.ours}")
def test_cost_of_others(page, peer):
    """Of what is installed; the figures of the others stay as they were."""
    if lines := peers.measured(peer):
        page.keep("peers", lines, program=peer.package, ours=peer.ours)
