"""How times are taken and told."""

import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from amt_stream.offline.benchmark import machine


def shares_of(
    take: Callable[[Tensor], object], blocks: Iterable[Tensor], fs: int, grad: bool = False
) -> list[float]:
    """Thread CPU seconds per second of audio that `take` needs for each block (..., time).

    grad: out of inference mode, so that the plain form runs where a block wants its gradient
    """
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    taken = []
    with torch.inference_mode(not grad):
        for block in blocks:
            start = time.thread_time_ns()
            take(block)
            taken.append((time.thread_time_ns() - start) / 1e9 / (block.shape[-1] / fs))
    return taken[len(taken) // 10 :]  # the first blocks load the kernels and fill the caches


def summary(shares: list[float]) -> str:
    """Median and 99th percentile of seconds per second of audio."""
    return f"median {np.median(shares):.4f}   p99 {np.percentile(shares, 99):.4f}"


def compare(title: str, cases: Mapping[str, Callable[[], list[float]]]) -> None:
    """Print the shares that each case gives, of three runs in turn."""
    runs: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(3):
        for name, shares in cases.items():
            runs[name] += shares()
    print(f"\n{machine()}\n{title}")
    print("thread CPU seconds per second of audio, one core, three runs in turn")
    for name, taken in runs.items():
        print(f"  {name:44} {summary(taken)}")
        assert len(taken) > 2
