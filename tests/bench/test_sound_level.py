"""Thread CPU seconds per second of audio of sound level, its meter and what lies between them."""

from functools import partial

import pytest
import torch

from amt_stream import SoundLevel, Stream
from amt_stream.meters.accumulators import SoundLevelMeter
from tests.bench.summary import compare, shares_of

pytestmark = pytest.mark.bench

FS, SECONDS = 48000, 10
NOISE = 0.02 * torch.randn(FS * SECONDS, generator=torch.Generator().manual_seed(0))


def shares(block_ms, channels=1, metered=False):
    """CPU share of each block of white noise at 60 dB SPL."""
    live = Stream(SoundLevel(FS), (channels,))
    meters = [SoundLevelMeter() for _ in range(channels)] if metered else []

    def take(block):
        y = live(block)
        for channel, meter in enumerate(meters):
            meter.update(*(v[channel].numpy() for v in y))

    return shares_of(take, NOISE.expand(channels, -1).split(FS * block_ms // 1000, -1), FS)


def test_sound_level():
    cases = {
        "10 ms blocks": partial(shares, 10),
        "10 ms blocks, two channels": partial(shares, 10, channels=2),
        "10 ms blocks, with its meter": partial(shares, 10, metered=True),
        "20 ms blocks, with its meter": partial(shares, 20, metered=True),
        "1 s blocks": partial(shares, 1000),
    }
    compare("SoundLevel, white noise, 48 kHz", cases)
