"""Thread CPU seconds per second of audio of the modulation filterbanks, block by block."""

from functools import partial

import pytest
import torch

from amt_stream import King2019ModulationFilterbank, ModulationFilterbank, Stream
from tests.bench.summary import compare, shares_of

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
    """CPU share of each block of white noise in each channel.

    plain: of the form that runs where a gradient is wanted
    """
    noise = torch.randn(CHANNELS, FS * seconds, generator=torch.Generator().manual_seed(0))
    blocks = noise.requires_grad_(plain).split(FS * BLOCK_MS // 1000, -1)
    # Contiguous, as the stage before hands them on.
    rows = (block.contiguous() for block in blocks)
    return shares_of(Stream(bank(), (CHANNELS,)), rows, FS, grad=plain)


def test_modulation_banks():
    cases = {
        f"{name}{', plain form' if plain else ''}": partial(shares, bank, plain)
        for plain in (False, True)
        for name, bank in BANKS.items()
    }
    compare("modulation filterbanks, 48 kHz, 10 ms blocks through Stream, white noise", cases)
