"""Cost against the length of blocks: thread CPU seconds per second of sound, of every model."""

import math
import time

import pytest
import torch

from amt_stream.dsp.contract import rows_of
from amt_stream.dsp.functional.compiler.threads import flushing_denormals
from amt_stream.dsp.stream import Rebuffer, Stream
from amt_stream.meters import catalog
from amt_stream.offline.benchmark import FS, RMS

pytestmark = pytest.mark.bench

BLOCKS_MS = (1, 2, 5, 10)
SECONDS, TURNS = 0.08, 50


def least_costs(model):
    """The least of many short turns, which is what other work on the machine disturbs least."""
    shape, sizes = (1, rows_of(model, 1)), [ms * FS // 1000 for ms in BLOCKS_MS]
    whole = math.lcm(*sizes, model.block_size)
    length = whole * math.ceil(SECONDS * FS / whole)
    noise = RMS * torch.randn(*shape, length, generator=torch.Generator().manual_seed(0))
    costs, runs = {}, {}
    for size in sizes:
        live = Stream(model, shape)
        # As the engine does: blocks that are whole need no Rebuffer.
        runs[size] = live if size % model.block_size == 0 else Rebuffer(live).push
    with torch.inference_mode(), flushing_denormals():
        for turn in range(TURNS + 1):
            for size, run in runs.items():
                blocks = noise.split(size, -1)
                start = time.thread_time()
                for block in blocks:
                    run(block)
                if turn:
                    spent = (time.thread_time() - start) * FS / length
                    costs[size] = min(costs.get(size, math.inf), spent)
    return list(costs.values())


def test_cost_against_block_length():
    torch.set_num_threads(1)
    print("\nthread CPU seconds per second of white noise, one channel or two ears, 48 kHz")
    wide = max(map(len, catalog.names()))
    lengths = " ".join(f"{ms:>5} ms" for ms in BLOCKS_MS)
    print(f"  {'':{wide}} {lengths}   1 ms / 10 ms   2 ms / 10 ms")
    for name in catalog.names():
        one, two, five, ten = least_costs(catalog.entry(name).build(FS))
        shares = " ".join(f"{share:8.4f}" for share in (one, two, five, ten))
        print(f"  {name:{wide}} {shares}   {one / ten:12.2f}   {two / ten:12.2f}")
        # Whole blocks of some models are longer, and cost the same.
        assert five <= 1.05 * two, name
