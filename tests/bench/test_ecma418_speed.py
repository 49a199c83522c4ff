"""Thread CPU time of the hearing model of ECMA-418-2, beside that of MoSQITo.

In loops, the unit of `amt-stream bench`: thread CPU seconds per second of one ear, over those of
its loop of arithmetic before and after. The longest block tells how evenly the work is spread.
MoSQITo computes whole files. It is measured where the extra `peers` is installed.
"""

import time

import pytest
import torch

from amt_stream import (
    ECMA418,
    ECMAFluctuation,
    ECMALoudness,
    ECMARoughness,
    ECMATonality,
    Rebuffer,
    Stream,
)
from amt_stream.dsp.functional.compiler.threads import work_alone
from amt_stream.offline.benchmark import calibration_loop, machine
from tests.bench import peers
from tests.bench.summary import summary

pytestmark = pytest.mark.bench

FS, SECONDS, BLOCK = 48000, 3, 480
NOISE = 0.02 * torch.randn(FS * SECONDS, generator=torch.Generator().manual_seed(0))


def seconds_of_blocks(model, ears):
    """Thread CPU seconds of each block of 10 ms of white noise at 60 dB SPL."""
    live = Rebuffer(Stream(model(), (ears,)))
    taken = []
    with torch.inference_mode():
        for block in NOISE.expand(ears, -1).split(BLOCK, -1):
            start = time.thread_time_ns()
            live.push(block)
            taken.append((time.thread_time_ns() - start) / 1e9)
    return taken[len(taken) // 5 :]  # the first blocks load the kernels and fill the caches


@pytest.mark.parametrize(
    ("model", "peer"),
    [
        (ECMALoudness, "loudness_ecma"),
        (ECMATonality, None),
        (ECMARoughness, "roughness_ecma"),
        (ECMAFluctuation, None),
        (ECMA418, None),
    ],
)
def test_hearing_model(model, peer):
    work_alone()
    print(f"\n{machine()}\n{model.__name__}, white noise, 48 kHz, blocks of 10 ms, in loops")
    for ears in (1, 2):
        shares, longest = [], []
        for _ in range(3):
            before = calibration_loop()
            taken = seconds_of_blocks(model, ears)
            loop = (before + calibration_loop()) / 2
            shares.append(sum(taken) / len(taken) / (BLOCK / FS) / loop)
            longest.append(1e3 * max(taken))
        print(f"  {ears} ears {summary(shares)}, longest block {min(longest):.2f} ms")
        assert all(share > 0 for share in shares)
    if peer is not None:
        share = peers.cost_of_other(peers.mosqito(peer))
        whole = "not installed" if share is None else f"{share / calibration_loop():.1f}"
        print(f"  mosqito, one ear: {whole}")
