"""Thread CPU seconds per second of audio of sound level, its meter and what lies between them."""

import time

import pytest
import torch

from amt_stream import SoundLevel, Stream
from amt_stream.meters.accumulators import SoundLevelMeter
from amt_stream.offline.benchmark import machine
from tests.bench.summary import summary

pytestmark = pytest.mark.bench

FS, SECONDS = 48000, 10
NOISE = 0.02 * torch.randn(FS * SECONDS, generator=torch.Generator().manual_seed(0))


def shares(block_ms, channels=1, metered=False):
    """CPU share of each block of white noise at 60 dB SPL."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    live = Stream(SoundLevel(FS), (channels,))
    meters = [SoundLevelMeter() for _ in range(channels)] if metered else []
    size = FS * block_ms // 1000
    taken = []
    with torch.inference_mode():
        for block in NOISE.expand(channels, -1).split(size, -1):
            start = time.thread_time_ns()
            y = live(block)
            for channel, meter in enumerate(meters):
                meter.update(*(v[channel].numpy() for v in y))
            taken.append((time.thread_time_ns() - start) / 1e9 / (size / FS))
    return taken[len(taken) // 10 :]  # the first blocks load the kernels and fill the caches


def test_sound_level():
    forms = {
        "10 ms blocks": (10, {}),
        "10 ms blocks, two channels": (10, {"channels": 2}),
        "10 ms blocks, with its meter": (10, {"metered": True}),
        "20 ms blocks, with its meter": (20, {"metered": True}),
        "1 s blocks": (1000, {}),
    }
    runs = {name: [] for name in forms}
    for _ in range(3):
        for name, (block_ms, options) in forms.items():
            runs[name] += shares(block_ms, **options)
    print(f"\n{machine()}")
    print("SoundLevel, white noise, 48 kHz, thread CPU seconds per second of audio")
    for name, taken in runs.items():
        print(f"  {name:34} {summary(taken)}")
        assert len(taken) > 2
