"""What other programs need for the same sounds, beside ours: process CPU seconds per second.

They process a whole sound at once; ours go block by block, 10 ms each. Of each program that is
installed (extra `peers`), the least of two turns, which is what other work disturbs least.
"""

import importlib
import importlib.metadata
import resource
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from amt_stream.native import NativeModel
from amt_stream.offline import benchmark
from tests.bench import test_bs1770
from tests.torch_threads import torch_threads

SECONDS, TURNS, MINUTE = 1, 2, 60
PASCAL = benchmark.RMS * np.random.default_rng(0).standard_normal((2, 48000 * SECONDS))

IN_C = {"zwicker": 1, "gm2002": 1, "bs1770": 2, "moore2016": 2}
IN_C |= {"ecma_loudness": 1, "ecma_roughness": 1}
"""Our models that are also compared in C, with their channels."""


class Peer(NamedTuple):
    """What is measured of another program.

    package: its name where packages are published
    task: what it computes
    ours: our model of the same method, a name of the catalog
    make: gives the function that processes the sound, once its imports and constants are there
    seconds: of that sound
    """

    package: str
    task: str
    ours: str
    make: Callable[[], Callable[[], Any]]
    seconds: int = SECONDS


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


mosqito, phonometry, metasona = (
    partial(of_one_channel, one) for one in ("mosqito.sq_metrics", "phonometry", "metasona")
)


def pyloudnorm() -> Callable[[], Any]:
    import pyloudnorm

    meter = pyloudnorm.Meter(48000)
    return lambda: meter.integrated_loudness(PASCAL.T)


def ffmpeg() -> Callable[[], Any]:
    """A process, which takes a minute of sound, so that its start does not count."""
    from imageio_ffmpeg import get_ffmpeg_exe

    sound = np.tile(PASCAL.T, (MINUTE // SECONDS, 1)).astype(np.float32).tobytes()
    command = [get_ffmpeg_exe(), "-v", "error", *("-f", "f32le", "-ac", "2", "-ar", "48000")]
    command += ["-i", "-", "-af", "ebur128=peak=true", "-f", "null", "-"]
    return lambda: subprocess.run(command, input=sound, check=True)


PEERS = (
    Peer("imageio-ffmpeg", "BS.1770 and true peak, by ebur128", "bs1770", ffmpeg, MINUTE),
    Peer("pyloudnorm", "BS.1770, integrated loudness only", "bs1770", pyloudnorm),
    Peer("phonometry", "ISO 532-1 over time", "zwicker", phonometry("loudness_zwicker")),
    Peer("mosqito", "ISO 532-1 over time", "zwicker", mosqito("loudness_zwtv", field_type="free")),
    Peer("mosqito", "ECMA-418-2, loudness", "ecma_loudness", mosqito("loudness_ecma")),
    Peer("mosqito", "ECMA-418-2, roughness", "ecma_roughness", mosqito("roughness_ecma")),
    Peer("metasona", "ISO 532-1 over time", "zwicker", metasona("time_varying_loudness")),
    Peer("metasona", "ECMA-418-2, loudness", "ecma_loudness", metasona("loudness_ecma")),
    Peer("metasona", "ECMA-418-2, roughness", "ecma_roughness", metasona("roughness_ecma")),
    Peer("metasona", "Daniel & Weber", "daniel_weber", metasona("roughness_daniel_weber")),
    Peer("phonometry", "ISO 532-3", "moore2016", phonometry("loudness_moore_glasberg_time")),
    Peer("torch_amt", "Moore 2016, two ears", "moore2016", torch_amt("Moore2016", 32000)),
    Peer("torch_amt", "Glasberg & Moore 2002", "gm2002", torch_amt("Glasberg2002", 32000)),
    Peer("torch_amt", "Dau 1997", "dau1997", torch_amt("Dau1997", 48000)),
    Peer("torch_amt", "King 2019", "king2019", torch_amt("King2019", 48000)),
)


@contextmanager
def one_core() -> Iterator[None]:
    """One thread of torch; warnings of another project are no failures of ours."""
    with torch_threads(1), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        yield


def cpu_s() -> float:
    """CPU seconds of this process, and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def cost(work: Callable[[], Any], seconds: int = SECONDS) -> float:
    """CPU seconds per second of sound."""
    found = []
    for _ in range(TURNS):
        start = cpu_s()
        work()
        found.append((cpu_s() - start) / seconds)
    return min(found)


def cost_of_other(make: Callable[[], Callable[[], Any]], seconds: int = SECONDS) -> float | None:
    """The cost of what another program does, or None where it is not installed."""
    with one_core():
        try:
            work = make()
        except ImportError:
            return None
        return cost(work, seconds)


def of_ours(name: str) -> float:
    """Thread CPU seconds per second of sound of our model; of `bs1770`, with its meter."""
    if name == "bs1770":
        return float(np.median(test_bs1770.shares()[1]))
    (figure,) = benchmark.figures(name, 10, seconds=SECONDS)
    return figure.median


def in_c(name: str) -> float | None:
    """CPU seconds per second of sound of our model in C, 10 ms at a time; None if it has none."""
    if name not in IN_C:
        return None
    model = NativeModel(name, channels=IN_C[name])
    blocks = np.split(PASCAL.T[:, : IN_C[name]].astype(np.float32), 100 * SECONDS)
    found = []
    for _ in range(10 * TURNS):
        start = time.thread_time()
        for block in blocks:
            model(block)
        found.append((time.thread_time() - start) / SECONDS)
    return min(found)


def measured(peer: Peer) -> list[dict[str, Any]]:
    """A line, or none where the program is not installed."""
    theirs, native = cost_of_other(peer.make, peer.seconds), in_c(peer.ours)
    if theirs is None:
        return []
    version = importlib.metadata.version(peer.package)
    about = {"program": peer.package, "version": version, "task": peer.task, "ours": peer.ours}
    costs = {"their": theirs, "our": of_ours(peer.ours), "c": native}
    return [about | {f"{k}_cost": v and float(f"{v:.3g}") for k, v in costs.items()}]
