"""Thread CPU seconds per second of audio of Zwicker loudness over time, beside that of MoSQITo.

MoSQITo computes whole files. It is measured where the extra `peers` is installed.
"""

from functools import partial

import pytest
import torch

from amt_stream import Stream, ZwickerTimeVarying
from tests.bench import peers
from tests.bench.summary import compare, shares_of

pytestmark = pytest.mark.bench

FS, SECONDS = 48000, 4
NOISE = 0.02 * torch.randn(FS * SECONDS, generator=torch.Generator().manual_seed(0))


def shares(block_ms, channels=1, **options):
    """CPU share of each block of white noise at 60 dB SPL."""
    live = Stream(ZwickerTimeVarying(FS, **options), (channels,))
    return shares_of(live, NOISE.expand(channels, -1).split(FS * block_ms // 1000, -1), FS)


def test_zwicker_over_time():
    cases = {
        "10 ms blocks": partial(shares, 10),
        "10 ms blocks, specific loudness": partial(shares, 10, specific_loudness=True),
        "10 ms blocks, two channels": partial(shares, 10, channels=2),
        "2 ms blocks": partial(shares, 2),
        "1 s blocks": partial(shares, 1000),
    }
    compare("ZwickerTimeVarying, white noise, 48 kHz", cases)
    share = peers.cost_of_other(peers.mosqito("loudness_zwtv", field_type="free"))
    whole = "not installed" if share is None else f"whole  {share:.3f}"
    print(f"  {'mosqito':44} {whole}")
