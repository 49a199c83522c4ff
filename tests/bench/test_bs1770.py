"""Thread CPU seconds per second of audio of programme loudness, beside that of pyloudnorm.

Ours is everything, block by block: momentary and short-term loudness every 10 ms, integrated
loudness, loudness range, true and sample peaks, read once a second. pyloudnorm computes the
integrated loudness of a whole sound; it is measured where the extra `peers` is installed.
"""

import time
import warnings

import numpy as np
import pytest
import torch

from amt_stream import BS1770, Stream
from amt_stream.meters.accumulators import ProgrammeLoudness
from amt_stream.offline.benchmark import machine
from tests.bench.summary import summary

pytestmark = pytest.mark.bench

SECONDS = 10


def noise(channels, fs):
    generator = torch.Generator().manual_seed(0)
    return 0.05 * torch.randn(channels, fs * SECONDS, generator=generator)


def shares(fs=48000, block_ms=10, channels=2):
    """CPU share of each block: of the stage, and with the meter."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    live, meter = Stream(BS1770(fs, channels), (channels,)), ProgrammeLoudness()
    size, read_every = fs * block_ms // 1000, max(1, 1000 // block_ms)
    stage, whole = [], []
    with torch.inference_mode():
        for n, block in enumerate(noise(channels, fs).split(size, -1)):
            start = time.thread_time_ns()
            y = live(block)
            given = time.thread_time_ns()
            meter.update(*(v.numpy() for v in y))
            if n % read_every == 0:
                meter.reading()
            end = time.thread_time_ns()
            stage.append((given - start) / 1e6 / block_ms)
            whole.append((end - start) / 1e6 / block_ms)
    warm = len(stage) // 10  # the first blocks load the kernels and fill the caches
    return stage[warm:], whole[warm:]


def peer(fs=48000, channels=2):
    """CPU share of pyloudnorm over the whole sound, or None where it is not installed."""
    x = noise(channels, fs).double().numpy().T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of another project are no failures of ours
        try:
            import pyloudnorm
        except ImportError:
            return None
        meter = pyloudnorm.Meter(fs)
        start = time.thread_time_ns()
        meter.integrated_loudness(x)
        return (time.thread_time_ns() - start) / 1e9 / SECONDS


def test_programme_loudness():
    forms = {
        "stereo, 10 ms blocks": {},
        "mono, 10 ms blocks": {"channels": 1},
        "5.1, 10 ms blocks": {"channels": 6},
        "stereo, 1 s blocks": {"block_ms": 1000},
        "stereo, 96 kHz, 10 ms blocks": {"fs": 96000},
    }
    print(f"\n{machine()}")
    print("BS1770 and ProgrammeLoudness, white noise, thread CPU seconds per second of audio")
    print(f"  {'at 48 kHz unless said':30} {'stage':32} stage and meter")
    for name, options in forms.items():
        runs = [shares(**options) for _ in range(3)]
        stage, whole = np.concatenate(runs, axis=1)
        print(f"  {name:30} {summary(stage):32} {summary(whole)}")
        assert len(whole) > 2
    share = peer()
    told = "not installed" if share is None else f"whole  {share:.4f}  (integrated alone)"
    print(f"  {'pyloudnorm, stereo':30} {told}")
