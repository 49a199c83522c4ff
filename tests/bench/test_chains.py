"""Thread CPU seconds per second of audio of the chains from sound to modulation filters."""

from functools import partial

import pytest
import torch

from amt_stream import Dau1997, King2019, Osses2021, Paulick2024, Stream
from tests.bench.summary import compare, shares_of

pytestmark = pytest.mark.bench

SECONDS = 3


def shares(model, block_ms=10):
    """CPU share of each block of white noise at 70 dB SPL, one row."""
    size = model.fs * block_ms // 1000 // model.block_size * model.block_size
    noise = torch.randn(model.fs * SECONDS, generator=torch.Generator().manual_seed(0))
    blocks = (noise * 10 ** (-30 / 20)).split(size)[:-1]
    return shares_of(Stream(model, ()), blocks, model.fs)


def test_chains():
    models = [Dau1997(fs=48000), King2019(fs=48000), Osses2021(fs=48000), Paulick2024(fs=44100)]
    cases = {
        f"{type(model).__name__}, {model.num_channels} bands, {model.fs / 1000:g} kHz": partial(
            shares, model
        )
        for model in models
    }
    compare("one row of white noise, 10 ms blocks", cases)
