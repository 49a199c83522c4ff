"""Thread CPU seconds per second of audio of the chains from sound to modulation filters."""

import time

import pytest
import torch

from amt_stream import Dau1997, King2019, Osses2021, Paulick2024, Stream
from amt_stream.offline.benchmark import machine
from tests.bench.summary import summary

pytestmark = pytest.mark.bench

SECONDS = 3


def shares(model, block_ms=10):
    """CPU share of each block of white noise at 70 dB SPL, one row."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    size = model.fs * block_ms // 1000 // model.block_size * model.block_size
    noise = torch.randn(model.fs * SECONDS, generator=torch.Generator().manual_seed(0))
    live = Stream(model, ())
    taken = []
    with torch.inference_mode():
        for block in (noise * 10 ** (-30 / 20)).split(size)[:-1]:
            start = time.thread_time_ns()
            live(block)
            taken.append((time.thread_time_ns() - start) / 1e9 / (size / model.fs))
    return taken[len(taken) // 10 :]  # the first blocks load the kernels and fill the caches


def test_chains():
    print(f"\n{machine()}")
    print("one row of white noise, 10 ms blocks, thread CPU seconds per second of audio")
    models = [Dau1997(fs=48000), King2019(fs=48000), Osses2021(fs=48000), Paulick2024(fs=44100)]
    runs = {model: [] for model in models}
    for _ in range(3):
        for model in models:
            runs[model] += shares(model)
    for model, taken in runs.items():
        name = f"{type(model).__name__}, {model.num_channels} bands, {model.fs / 1000:g} kHz"
        print(f"  {name:34} {summary(taken)}")
        assert len(taken) > 500
