"""Thread CPU seconds per second of audio of the loudness model, block by block."""

import time

import pytest
import torch

from amt_stream import Moore2016, Stream
from amt_stream.dsp.scales import P0
from amt_stream.offline.benchmark import machine
from tests.bench.summary import summary

pytestmark = pytest.mark.bench

FS = 48000


def shares(block_ms: int, seconds: int = 6, **options) -> list[float]:
    """CPU share of each block of two ears of independent white noise at 70 dB SPL."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    size = FS * block_ms // 1000
    noise = torch.randn(1, 2, FS * seconds, generator=torch.Generator().manual_seed(0))
    blocks = (noise * P0 * 10 ** (70 / 20)).split(size, -1)
    live = Stream(Moore2016(FS, **options), (1, 2))
    taken = []
    with torch.inference_mode():
        for block in blocks:
            start = time.thread_time_ns()
            live(block)
            taken.append((time.thread_time_ns() - start) / 1e6 / block_ms)
    return taken[len(taken) // 10 :]  # the first blocks load the kernels and fill the caches


def test_loudness_model():
    print(f"\n{machine()}")
    print(
        "Moore2016, two ears, white noise 70 dB SPL, 48 kHz in, resampler and ear filter included"
    )
    print("thread CPU seconds per second of audio, one core, three runs in turn")
    cases = [(10, "exact"), (1, "exact"), (10, "coarse"), (1, "coarse")]
    runs = {case: [] for case in cases}
    for _ in range(3):
        for block_ms, accuracy in cases:
            runs[block_ms, accuracy] += shares(block_ms, accuracy=accuracy)
    for (block_ms, accuracy), taken in runs.items():
        print(f"  {accuracy:8} {block_ms:3} ms blocks   {summary(taken)}")
        assert len(taken) > 1000
