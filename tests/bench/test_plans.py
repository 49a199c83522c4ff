"""What a block of 10 ms costs in Python beside its compiled plan alone, in the same run."""

import time
from importlib import import_module

import numpy as np
import pytest
import torch

from amt_stream import Stream
from amt_stream.meters.presets import Preset
from amt_stream.offline.benchmark import machine

pytestmark = pytest.mark.bench

FS, BLOCK, BLOCKS, RUNS = 48000, 480, 400, 5
NAMES = ("bs1770", "spl", "octave", "third_octave", "zwicker", "moore2016")


def costs(name: str, channels: int) -> np.ndarray:
    """Thread CPU microseconds of each block: of the stream, and of its plan (2, block)."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    (model,) = Preset((name,)).models(FS, channels).values()
    live = Stream(model, (1, channels))
    sound = torch.randn(1, channels, BLOCK * BLOCKS, generator=torch.Generator().manual_seed(0))
    taken = []
    with torch.inference_mode():
        first, *blocks = map(torch.clone, (0.02 * sound).split(BLOCK, -1))
        for _ in range(2):  # the first block compiles, the second makes the plan
            y = live(first)
        fused = model._fused
        (workspace,) = fused.workspaces[first.shape]
        kernels = [getattr(import_module(fused.home), kernel) for kernel in fused.kernels]
        for block in blocks:
            start = time.thread_time_ns()
            y = live(block)
            between = time.thread_time_ns()
            # Into the outputs that `y` keeps, from the state after the block.
            for kernel in kernels:
                kernel(workspace.plan, fused.like)
            taken.append((between - start, time.thread_time_ns() - between))
        assert y is not None
    return np.array(taken[BLOCKS // 10 :]).T / 1000


def test_a_block_in_python_beside_its_plan():
    print(f"\n{machine()}\nblocks of 10 ms, thread CPU microseconds: median, mean and 99 of 100")
    for name in NAMES:
        for channels in (2,) if name == "moore2016" else (1, 2):
            runs = [costs(name, channels) for _ in range(RUNS)]
            stream, plan = (
                np.min([[np.median(v), v.mean(), np.percentile(v, 99)] for v in part], axis=0)
                for part in zip(*runs, strict=True)
            )
            both = zip(stream, plan, strict=True)
            words = "   ".join(f"{a:7.1f} / {b:7.1f} = {a / b:4.2f}" for a, b in both)
            print(f"  {name:12} {channels} channels   {words}", flush=True)
            assert (plan > 0).all()
