"""Thread CPU seconds per second of audio of Zwicker loudness over time, beside that of MoSQITo.

MoSQITo computes whole files. It is measured where the extra `peers` is installed.
"""

import time

import pytest
import torch

from amt_stream import Stream, ZwickerTimeVarying
from amt_stream.offline.benchmark import machine
from tests.bench import peers
from tests.bench.summary import summary

pytestmark = pytest.mark.bench

FS, SECONDS = 48000, 4
NOISE = 0.02 * torch.randn(FS * SECONDS, generator=torch.Generator().manual_seed(0))


def shares(block_ms, channels=1, **options):
    """CPU share of each block of white noise at 60 dB SPL."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    live = Stream(ZwickerTimeVarying(FS, **options), (channels,))
    size = FS * block_ms // 1000
    taken = []
    with torch.inference_mode():
        for block in NOISE.expand(channels, -1).split(size, -1):
            start = time.thread_time_ns()
            live(block)
            taken.append((time.thread_time_ns() - start) / 1e9 / (size / FS))
    return taken[len(taken) // 10 :]  # the first blocks load the kernels and fill the caches


def test_zwicker_over_time():
    forms = {
        "10 ms blocks": (10, {}),
        "10 ms blocks, specific loudness": (10, {"specific_loudness": True}),
        "10 ms blocks, two channels": (10, {"channels": 2}),
        "2 ms blocks": (2, {}),
        "1 s blocks": (1000, {}),
    }
    runs = {name: [] for name in forms}
    for _ in range(3):
        for name, (block_ms, options) in forms.items():
            runs[name] += shares(block_ms, **options)
    print(f"\n{machine()}")
    print("ZwickerTimeVarying, white noise, 48 kHz, thread CPU seconds per second of audio")
    for name, taken in runs.items():
        print(f"  {name:34} {summary(taken)}")
        assert len(taken) > 2
    share = peers.cost_of_other(peers.mosqito("loudness_zwtv", field_type="free"))
    whole = "not installed" if share is None else f"whole  {share:.3f}"
    print(f"  {'mosqito':34} {whole}")
