"""What the filterbanks cost: thread CPU seconds per second of audio, and learning their centers."""

import time
from functools import partial

import numpy as np
import pytest
import torch

from amt_stream import DRNLFilterbank, GammatoneFilterbank, Stream
from amt_stream.dsp.scales import erb_spaced
from tests.bench.summary import compare, shares_of

pytestmark = pytest.mark.bench

FS = 48000
BLOCK = FS // 100


def shares(bank, grad=False, seconds=3):
    """CPU share of each 10 ms block of white noise at 70 dB SPL, one row.

    grad: with an input that wants its gradient, so that the plain torch form runs
    """
    noise = torch.randn(FS * seconds, generator=torch.Generator().manual_seed(0))
    blocks = (noise * 10 ** (-30 / 20)).split(BLOCK)
    given = (block.clone().requires_grad_(grad) for block in blocks)
    return shares_of(Stream(bank, ()), given, FS, grad)


def gammatone(bands, **options):
    return GammatoneFilterbank(erb_spaced(80, 8000, 30.4 / (bands - 1)), FS, **options)


def test_filterbanks():
    banks = {
        "gammatone, 32 bands": (gammatone(32), False),
        "gammatone, 150 bands": (gammatone(150), False),
        "gammatone, 32 bands, plain torch": (gammatone(32), True),
        "gammatone, 32 bands, learnable, plain torch": (gammatone(32, learnable=True), True),
        "DRNL, 50 bands, float64": (DRNLFilterbank((250, 8000), FS), False),
        "DRNL, 50 bands, float32": (DRNLFilterbank((250, 8000), FS, dtype=torch.float32), False),
    }
    compare(
        "one row of white noise, 48 kHz, 10 ms blocks through Stream",
        {name: partial(shares, *bank) for name, bank in banks.items()},
    )


def test_learning_against_a_loop_over_samples():
    """Forward and backward of 50 ms: ours beside the same cascade in eager torch."""
    torch.set_num_threads(1)
    x = torch.randn(BLOCK * 5, generator=torch.Generator().manual_seed(0))
    bank = gammatone(32, learnable=True)

    def ours():
        y = bank(x)
        y.square().sum().backward()
        return y

    def eager():
        poles, gain = bank.poles, bank.coefficients[2]
        u = [torch.zeros_like(poles)] * bank.n
        samples = []
        for v in x:
            for k in range(bank.n):
                u[k] = v = poles * u[k] + gain * v
            samples.append(2 * v.real)
        y = torch.stack(samples, -1)
        y.square().sum().backward()
        return y

    def seconds(f, times):
        taken = []
        for _ in range(times):
            start = time.thread_time_ns()
            y = f()
            taken.append((time.thread_time_ns() - start) / 1e9)
        return y, np.median(taken)

    (fast, short), (slow, long) = seconds(ours, 20), seconds(eager, 3)
    assert (fast - slow).abs().amax() <= 1e-4 * slow.abs().amax()
    print("gammatone, 32 bands, learnable, forward and backward of 50 ms")
    print(f"  ours {1e3 * short:.1f} ms   eager {1e3 * long:.0f} ms   {long / short:.0f} times")
