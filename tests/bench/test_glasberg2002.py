"""Thread CPU seconds per second of audio of the loudness model of 2002, beside that of 2016."""

import time

import pytest
import torch

from amt_stream import Glasberg2002, Moore2016, Stream
from amt_stream.dsp.scales import P0
from amt_stream.offline.benchmark import machine
from tests.bench.summary import summary

pytestmark = pytest.mark.bench

FS, SECONDS = 48000, 4
NOISE = torch.randn(1, 2, FS * SECONDS, generator=torch.Generator().manual_seed(0))


def shares(make, ears, block_ms):
    """CPU share of each block of white noise at 70 dB SPL."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    pascal = NOISE[:, :ears] * P0 * 10 ** (70 / 20)
    live = Stream(make(FS), (1, ears))
    size = FS * block_ms // 1000
    taken = []
    with torch.inference_mode():
        for block in pascal.split(size, -1):
            start = time.thread_time_ns()
            live(block)
            taken.append((time.thread_time_ns() - start) / 1e9 / (size / FS))
    return taken[len(taken) // 10 :]  # the first blocks load the kernels and fill the caches


def coarse(fs):
    return Glasberg2002(fs, accuracy="coarse")


def test_loudness_of_2002():
    forms = {
        "Glasberg2002, mono, 10 ms blocks": (Glasberg2002, 1, 10),
        "Glasberg2002, mono, coarse, 10 ms": (coarse, 1, 10),
        "Glasberg2002, mono, 1 ms blocks": (Glasberg2002, 1, 1),
        "Glasberg2002, two ears, 10 ms": (Glasberg2002, 2, 10),
        "Moore2016, two ears, 10 ms": (Moore2016, 2, 10),
    }
    runs = {name: [] for name in forms}
    for _ in range(3):
        for name, (make, ears, block_ms) in forms.items():
            runs[name] += shares(make, ears, block_ms)
    print(f"\n{machine()}")
    print("white noise 70 dB SPL, 48 kHz in, thread CPU seconds per second of audio")
    for name, taken in runs.items():
        print(f"  {name:36} {summary(taken)}")
        assert len(taken) > 1000
