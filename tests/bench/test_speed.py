"""Thread CPU seconds per second of audio of the loudness model, block by block."""

from functools import partial

import pytest
import torch

from amt_stream import Moore2016, Stream
from amt_stream.dsp.scales import P0
from tests.bench.summary import compare, shares_of

pytestmark = pytest.mark.bench

FS = 48000


def shares(block_ms: int, seconds: int = 6, **options) -> list[float]:
    """CPU share of each block of two ears of independent white noise at 70 dB SPL."""
    noise = torch.randn(1, 2, FS * seconds, generator=torch.Generator().manual_seed(0))
    blocks = (noise * P0 * 10 ** (70 / 20)).split(FS * block_ms // 1000, -1)
    return shares_of(Stream(Moore2016(FS, **options), (1, 2)), blocks, FS)


def test_loudness_model():
    cases = {
        f"{accuracy:8} {block_ms:3} ms blocks": partial(shares, block_ms, accuracy=accuracy)
        for accuracy in ("exact", "coarse")
        for block_ms in (10, 1)
    }
    compare(
        "Moore2016, two ears, white noise 70 dB SPL, 48 kHz in, resampler and ear filter included",
        cases,
    )
