"""What other programs need for the same sounds, beside ours: process CPU seconds per second.

They process a whole sound at once; ours go block by block, 10 ms each. Of each program that is
installed (extra `peers`), the least of two turns, which is what other work disturbs least.
"""

import importlib
import importlib.metadata
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from amt_stream.offline import benchmark
from tests.bench import test_bs1770

SECONDS, TURNS = 1, 2
PASCAL = benchmark.RMS * np.random.default_rng(0).standard_normal((2, 48000 * SECONDS))


class Peer(NamedTuple):
    """What is measured of another program.

    package: its name where packages are published
    task: what it computes
    ours: our model of the same method, a name of the catalog
    make: gives the function that processes the sound, once its imports and constants are there
    """

    package: str
    task: str
    ours: str
    make: Callable[[], Callable[[], Any]]


def torch_amt(name: str, fs: int, **options: Any) -> Callable[[], Callable[[], Any]]:
    """A model of torch_amt, with the two ears or the one channel that it takes."""

    def make() -> Callable[[], Any]:
        import torch_amt

        model = getattr(torch_amt, name)(fs=fs, **options)
        sound = torch.from_numpy(PASCAL[:, : fs * SECONDS]).float()
        return lambda: model(sound[None] if name == "Moore2016" else sound[:1])

    return make


def of_one_channel(module: str, name: str, **options: Any) -> Callable[[], Callable[[], Any]]:
    """A function of another program that takes one channel and its rate."""

    def make() -> Callable[[], Any]:
        function = getattr(importlib.import_module(module), name)
        return lambda: function(PASCAL[0], 48000, **options)

    return make


mosqito, phonometry = (partial(of_one_channel, one) for one in ("mosqito.sq_metrics", "phonometry"))


def pyloudnorm() -> Callable[[], Any]:
    import pyloudnorm

    meter = pyloudnorm.Meter(48000)
    return lambda: meter.integrated_loudness(PASCAL.T)


PEERS = (
    Peer("pyloudnorm", "BS.1770, integrated loudness only", "bs1770", pyloudnorm),
    Peer("phonometry", "ISO 532-1 over time", "zwicker", phonometry("loudness_zwicker")),
    Peer("mosqito", "ISO 532-1 over time", "zwicker", mosqito("loudness_zwtv", field_type="free")),
    Peer("mosqito", "ECMA-418-2, loudness", "ecma_loudness", mosqito("loudness_ecma")),
    Peer("mosqito", "ECMA-418-2, roughness", "ecma_roughness", mosqito("roughness_ecma")),
    Peer("phonometry", "ISO 532-3", "moore2016", phonometry("loudness_moore_glasberg_time")),
    Peer("torch_amt", "Moore 2016, two ears", "moore2016", torch_amt("Moore2016", 32000)),
    Peer("torch_amt", "Glasberg & Moore 2002", "gm2002", torch_amt("Glasberg2002", 32000)),
    Peer("torch_amt", "Dau 1997", "dau1997", torch_amt("Dau1997", 48000)),
    Peer("torch_amt", "King 2019", "king2019", torch_amt("King2019", 48000)),
)


@contextmanager
def one_core() -> Iterator[None]:
    """One thread of torch; warnings of another project are no failures of ours."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_num_threads(threads)


def cost(work: Callable[[], Any]) -> float:
    """Process CPU seconds per second of sound."""
    found = []
    for _ in range(TURNS):
        start = time.process_time()
        work()
        found.append((time.process_time() - start) / SECONDS)
    return min(found)


def cost_of_other(make: Callable[[], Callable[[], Any]]) -> float | None:
    """The cost of what another program does, or None where it is not installed."""
    with one_core():
        try:
            work = make()
        except ImportError:
            return None
        return cost(work)


def of_ours(name: str) -> float:
    """Thread CPU seconds per second of sound of our model; of `bs1770`, with its meter."""
    if name == "bs1770":
        return float(np.median(test_bs1770.shares()[1]))
    (figure,) = benchmark.figures(name, 10, seconds=SECONDS)
    return figure.median


def measured(peer: Peer) -> list[dict[str, Any]]:
    """A line, or none where the program is not installed."""
    theirs = cost_of_other(peer.make)
    if theirs is None:
        return []
    version = importlib.metadata.version(peer.package)
    about = {"program": peer.package, "version": version, "task": peer.task, "ours": peer.ours}
    costs = {"their_cost": round(theirs, 4), "our_cost": round(of_ours(peer.ours), 4)}
    return [about | costs]
