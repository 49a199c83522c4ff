"""Thread CPU seconds per second of audio of the loudness model of 2002, beside that of 2016."""

from functools import partial

import pytest
import torch

from amt_stream import Glasberg2002, Moore2016, Stream
from amt_stream.dsp.scales import P0
from tests.bench.summary import compare, shares_of

pytestmark = pytest.mark.bench

FS, SECONDS = 48000, 4
NOISE = torch.randn(1, 2, FS * SECONDS, generator=torch.Generator().manual_seed(0))


def shares(make, ears, block_ms):
    """CPU share of each block of white noise at 70 dB SPL."""
    pascal = NOISE[:, :ears] * P0 * 10 ** (70 / 20)
    return shares_of(Stream(make(FS), (1, ears)), pascal.split(FS * block_ms // 1000, -1), FS)


def coarse(fs):
    return Glasberg2002(fs, accuracy="coarse")


def test_loudness_of_2002():
    cases = {
        "Glasberg2002, mono, 10 ms blocks": partial(shares, Glasberg2002, 1, 10),
        "Glasberg2002, mono, coarse, 10 ms": partial(shares, coarse, 1, 10),
        "Glasberg2002, mono, 1 ms blocks": partial(shares, Glasberg2002, 1, 1),
        "Glasberg2002, two ears, 10 ms": partial(shares, Glasberg2002, 2, 10),
        "Moore2016, two ears, 10 ms": partial(shares, Moore2016, 2, 10),
    }
    compare("white noise 70 dB SPL, 48 kHz in", cases)
