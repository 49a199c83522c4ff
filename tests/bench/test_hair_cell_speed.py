"""Thread CPU seconds per second of audio of hair cells, adaptation and filters, block by block."""

import time

import pytest
import torch

from amt_stream import AdaptLoop, ButterworthFilter, IHCEnvelope, IHCPaulick2024, Stream
from amt_stream.dsp.functional.adaptation import plain_loops
from amt_stream.offline.benchmark import machine
from tests.bench.summary import summary

pytestmark = pytest.mark.bench

FS = 48000
BLOCK = FS // 100
BANDS = 31

CASES = {
    "IHCEnvelope dau1996": lambda: IHCEnvelope(FS),
    "IHCEnvelope breebaart2001": lambda: IHCEnvelope(FS, method="breebaart2001"),
    "AdaptLoop dau1997": lambda: AdaptLoop(FS, preset="dau1997"),
    "IHCPaulick2024": lambda: IHCPaulick2024(FS),
    "ButterworthFilter 1, 3 Hz high": lambda: ButterworthFilter(1, 3.0, FS, "high"),
}


def bands(seconds):
    """Filterbank output of about 70 dB SPL: noise that is at times much softer."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(BANDS, FS * seconds, generator=generator)
    return 10**-1.5 * noise * torch.rand(BANDS, FS * seconds, generator=generator) ** 4


def shares(stage, seconds=3):
    """CPU share of each block of `BANDS` bands."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    live = Stream(stage, (BANDS,))
    taken = []
    with torch.inference_mode():
        for block in bands(seconds).abs().split(BLOCK, -1):
            block = block.contiguous()
            start = time.thread_time_ns()
            live(block)
            taken.append((time.thread_time_ns() - start) / 1e9 / (BLOCK / FS))
    return taken[len(taken) // 10 :]  # the first blocks load the kernels and fill the caches


def test_hair_cells_and_adaptation():
    print(f"\n{machine()}")
    print(f"{BANDS} bands at 48 kHz, 10 ms blocks, float32")
    print("thread CPU seconds per second of audio, one core, three runs in turn")
    runs = {name: [] for name in CASES}
    for _ in range(3):
        for name, make in CASES.items():
            runs[name] += shares(make())
    for name, taken in runs.items():
        print(f"  {name:31} {summary(taken)}")
        assert len(taken) > 500


def test_gradient_of_adaptation():
    """How long a learnable AdaptLoop takes for a second, and the same sample by sample in torch."""
    stage = AdaptLoop(FS, learnable=True)
    x = bands(1).abs()

    def learn(f, x):
        start = time.thread_time()
        f(x).square().mean().backward()
        return time.thread_time() - start

    def plain(x):
        return plain_loops(x, stage._loops(), stage.initial_state((BANDS,))["loops"])[0]

    learn(stage, x[:, :100])
    compiled, eager = learn(stage, x), learn(plain, x[:, :2000]) * FS / 2000
    print(f"\n{machine()}")
    print(f"AdaptLoop, {BANDS} bands, forward and backward, thread CPU seconds per second of audio")
    print(
        f"  compiled {compiled:.3f}   sample by sample {eager:.1f}   ratio {eager / compiled:.0f}"
    )
