"""Thread CPU seconds per second of audio of the modulation filterbanks, block by block."""

import time

import pytest
import torch

from amt_stream import King2019ModulationFilterbank, ModulationFilterbank, Stream
from amt_stream.offline.benchmark import machine
from tests.bench.summary import summary

pytestmark = pytest.mark.bench

FS, CHANNELS, BLOCK_MS = 48000, 32, 10
FC = torch.logspace(2, 3.9, CHANNELS).tolist()

# 100 Hz leaves the low-pass and six bands, in each channel.
BANKS = {
    "efilt, 32 x 7": lambda: ModulationFilterbank(FS, FC, max_mfc=100.0),
    "butterworth, 32 x 7": lambda: ModulationFilterbank(
        FS, FC, max_mfc=100.0, filter_type="butterworth"
    ),
    "jepsen2008, 32 x up to 8": lambda: ModulationFilterbank(FS, FC, preset="jepsen2008"),
    "King2019, 32 x 5": lambda: King2019ModulationFilterbank(FS),
}


def shares(bank, plain: bool, seconds: int = 2) -> list[float]:
    """CPU share of each block of white noise in each channel."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    noise = torch.randn(CHANNELS, FS * seconds, generator=torch.Generator().manual_seed(0))
    live = Stream(bank(), (CHANNELS,))
    taken = []
    # The plain form is the one that runs where a gradient is wanted.
    with torch.inference_mode(not plain):
        for block in noise.requires_grad_(plain).split(FS * BLOCK_MS // 1000, -1):
            block = block.contiguous()  # as the stage before hands it on
            start = time.thread_time_ns()
            live(block)
            taken.append((time.thread_time_ns() - start) / 1e6 / BLOCK_MS)
    return taken[len(taken) // 10 :]  # the first blocks load the kernels and fill the caches


def test_modulation_banks():
    print(f"\n{machine()}")
    print("modulation filterbanks, 48 kHz, 10 ms blocks through Stream, white noise")
    print("thread CPU seconds per second of audio, one core, three runs in turn")
    runs = {(name, plain): [] for plain in (False, True) for name in BANKS}
    for _ in range(3):
        for name, plain in runs:
            runs[name, plain] += shares(BANKS[name], plain)
    for (name, plain), taken in runs.items():
        print(f"  {name:26} {'plain form' if plain else '':12} {summary(taken)}")
        assert len(taken) > 500
