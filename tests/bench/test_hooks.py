"""What it costs that hooks of inner stages could be set, where none are."""

import time
from statistics import median

import pytest
import torch

from amt_stream import Moore2016, Stream
from amt_stream.dsp.streaming import Stage
from amt_stream.offline.benchmark import machine

pytestmark = pytest.mark.bench

BLOCKS = 100


def test_hooks_cost_nothing_where_there_are_none(monkeypatch):
    """Blocks of 1 ms with the test for hooks and without it, by turns."""
    torch.set_num_threads(1)
    live = Stream(Moore2016(48000), (1, 2))
    block = 0.01 * torch.randn(1, 2, 48, generator=torch.Generator().manual_seed(0))
    ways = {"tested": Stage.hooked_step, "never": lambda stage, x, state: stage.step(x, state)}
    taken = {way: [] for way in ways}
    with torch.inference_mode():
        for turn in range(21):
            for way, step in ways.items():
                monkeypatch.setattr(Stage, "hooked_step", step)
                start = time.thread_time_ns()
                for _ in range(BLOCKS):
                    live(block)
                if turn:  # the first loads the kernels and fills the caches
                    taken[way].append((time.thread_time_ns() - start) / BLOCKS / 1e3)
    print(f"\n{machine()}")
    for way, us in taken.items():
        print(
            f"  hooks {way:7} {min(us):7.1f} us a block at least, {median(us):7.1f} in the middle"
        )
    ratios = [a / b for a, b in zip(taken["tested"], taken["never"], strict=True)]
    print(f"  ratio {median(ratios):.4f}")
    assert median(ratios) < 1.03
