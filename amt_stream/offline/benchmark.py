"""Speed of models and stages on this machine: thread CPU seconds per second of sound.

Seconds depend on the machine and its load as much as on the code. `calibration_loop` times a fixed
loop of arithmetic, so that ratios to it can be compared between machines.
"""

import contextlib
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray

from amt_stream.core.processes import module_command
from amt_stream.dsp.compose import Chain
from amt_stream.dsp.contract import rows_of
from amt_stream.dsp.functional.compiler.threads import flushing_denormals, keep_memory, work_alone
from amt_stream.dsp.stream import Rebuffer, Stream
from amt_stream.dsp.streaming import Shape, Stage
from amt_stream.meters import catalog

FS = 48000
NOISE_S = 0.5
RMS = 0.02
"""60 dB SPL in Pa; for models that take full scale, 31 dB below a full-scale sine."""
WARM_S = 0.1
"""Seconds at the start that are not timed: they load kernels and fill caches."""
FEWEST = 20
"""Least number of timed turns."""


def machine() -> str:
    """Processor, number of cores, and relevant versions."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), model)
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, Python "
        f"{platform.python_version()}, torch {torch.__version__}, numba {numba.__version__}"
    )


_compiled: Any = numba.njit


@_compiled
def _arithmetic(x: NDArray[np.float32], turns: int) -> float:
    """Products that fill the vector registers, and a chain of dependent divisions."""
    last = 3.0
    for _ in range(turns):
        for i in range(x.size):
            x[i] = x[i] * np.float32(0.999) + np.float32(1e-3)
        for _ in range(64):
            last = 0.5 * last + 1 / (1 + last)
    return last + x[0]


def calibration_loop(turns: int = 40_000) -> float:
    """Thread CPU seconds of a fixed loop of arithmetic, for the present speed of this machine."""
    x = np.full(4096, 2, np.float32)
    _arithmetic(x, 1)
    start = time.thread_time()
    _arithmetic(x, turns)
    return time.thread_time() - start


@dataclass(frozen=True)
class Speed:
    """The present speed of one core: `calibration_loop`, `products_gflops`, `copies_gb_s`.

    machine: processor, cores and versions, as text
    """

    machine: str
    loop_s: float
    products_gflops: float
    copies_gb_s: float


def speed() -> Speed:
    """Measure the speed of this machine."""
    with _alone():
        return Speed(machine(), calibration_loop(), products_gflops(), copies_gb_s())


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Within this context, the calling thread works like that of an engine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    keep_memory()
    try:
        with flushing_denormals():
            yield
    finally:
        torch.set_num_threads(threads)


def products_gflops(size: int = 512, turns: int = 8) -> float:
    """10^9 float32 operations per second in matrix products on one core."""
    a = torch.full((size, size), 0.5)
    torch.mm(a, a)
    start = time.thread_time()
    for _ in range(turns):
        torch.mm(a, a)
    return 2 * size**3 * turns / (time.thread_time() - start) / 1e9


def copies_gb_s(megabytes: int = 64, turns: int = 4) -> float:
    """GB per second that one core copies."""
    source = torch.ones(megabytes * 2**18)
    target = torch.empty_like(source)
    target.copy_(source)
    start = time.thread_time()
    for _ in range(turns):
        target.copy_(source)
    return source.nbytes * turns / (time.thread_time() - start) / 1e9


@dataclass(frozen=True)
class Figure:
    """The cost of one stage in one form.

    model, stage: name of the model, and of its stage; "" for the whole model
    block_ms, streams, dtype: block length, number of listeners per call, and type
    median, p99: thread CPU seconds per second of sound, of all streams together
    state_bytes: size of the state of all streams
    """

    model: str
    stage: str
    block_ms: float
    streams: int
    dtype: str
    median: float
    p99: float
    state_bytes: int


def figures(
    name: str,
    block_ms: float,
    streams: int = 1,
    dtype: torch.dtype = torch.float32,
    seconds: float = 2.0,
    stages: bool = False,
) -> Iterator[Figure]:
    """Yield the cost of a model on white noise at 48 kHz, and then of each stage of a chain.

    name: name in the catalog
    block_ms: block length; at least that of the model
    seconds: seconds of sound, but at least a few blocks

    Raises CatalogError for an unknown name, and ValueError for blocks shorter than a sample.
    """
    size = round(block_ms * 1e-3 * FS)
    if size < 1 or streams < 1:
        raise ValueError(f"blocks of {block_ms:g} ms for {streams} streams: give 1 of each or more")
    model = catalog.entry(name).build(FS).to(dtype)
    shape = streams, rows_of(model, 1)
    turn = math.lcm(size, model.block_size)
    kind = str(dtype).removeprefix("torch.")
    lines = [{"": model}]
    if stages and isinstance(model, Chain):
        lines.append(_leaves(model))
    for line in lines:
        runs = list(_in_turn(line, shape))
        with _alone():
            taken = _timed(runs, size, turn, shape, dtype, seconds)
        for run, shares in zip(runs, taken, strict=True):
            middle, slow = float(np.median(shares)), float(np.percentile(shares, 99))
            yield Figure(name, run.name, block_ms, streams, kind, middle, slow, run.state_bytes)


def _leaves(chain: Chain) -> dict[str, Stage]:
    """The stages of a chain, including those of nested chains, in order."""
    found: dict[str, Stage] = {}
    for name, member in chain.stages().items():
        inner = _leaves(member) if isinstance(member, Chain) else {}
        found |= {f"{name}.{own}": leaf for own, leaf in inner.items()} or {name: member}
    return found


class _Run:
    """Runs one stage in blocks of its length."""

    def __init__(self, name: str, stage: Stage, shape: Shape) -> None:
        self.name = name
        self._live = Stream(stage, shape)
        self._door = Rebuffer(self._live)
        self.spent_s = 0.0

    def __call__(self, blocks: Sequence[Any]) -> list[Any]:
        """The outputs for these blocks, timed together because reading the clock takes 1 us."""
        stage = self._live.stage
        # As in the engine: whole blocks need no input gate.
        whole = all(x.shape[stage.time_dim] % stage.block_size == 0 for x in blocks)
        run = self._live if whole else self._door.push
        start = time.thread_time()
        outputs = [run(x) for x in blocks]
        self.spent_s = time.thread_time() - start
        return [y for y in outputs if y is not None]

    @property
    def state_bytes(self) -> int:
        return sum(value.nbytes for value in self._live.state.values())


def _in_turn(stages: Mapping[str, Stage], shape: Shape) -> Iterator[_Run]:
    for name, stage in stages.items():
        yield _Run(name, stage, shape)
        shape = stage.out_shape(shape)


def _timed(
    runs: Sequence[_Run], size: int, turn: int, shape: Shape, dtype: torch.dtype, seconds: float
) -> list[list[float]]:
    """CPU seconds per second of sound of each stage in series, for each turn.

    A turn has whole blocks of the model, so that no turn is without work.
    """
    generator = torch.Generator().manual_seed(0)
    length = turn * math.ceil(NOISE_S * FS / turn)
    noise = RMS * torch.randn(*shape, length, generator=generator, dtype=dtype)
    warm, turns = (math.ceil(s * FS / turn) for s in (WARM_S, seconds))
    shares: list[list[float]] = [[] for _ in runs]
    with torch.inference_mode():
        for number in range(warm + max(FEWEST, turns)):
            at = number * turn % length
            # Contiguous, as the engine gives them.
            blocks = [x.contiguous() for x in noise[..., at : at + turn].split(size, -1)]
            for run in runs:
                blocks = run(blocks)
            if number >= warm:
                for own, run in zip(shares, runs, strict=True):
                    own.append(run.spent_s * FS / turn)
    return shares


@dataclass(frozen=True)
class Start:
    """The cost of a new process up to a model's first frames.

    imported_s, built_s, first_s: CPU seconds to import the model, to make it, and to process 100 ms
    resident_mb: memory of the process then, in MiB
    """

    model: str
    imported_s: float
    built_s: float
    first_s: float
    resident_mb: float


def start(name: str) -> Start:
    """Time the start of a new process with a model. Raises CatalogError for an unknown name."""
    catalog.entry(name)
    command = module_command("amt_stream.offline.benchmark", name)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Start(**json.loads(done.stdout))


def _start(name: str) -> None:
    work_alone()
    entry = catalog.entry(name)
    entry.load("model")
    at = [time.process_time()]
    model = entry.build(FS)
    at.append(time.process_time())
    with torch.inference_mode():
        Rebuffer(Stream(model, (1, rows_of(model, 1)))).push(
            RMS * torch.randn(1, rows_of(model, 1), FS // 10)
        )
    at.append(time.process_time())
    start = Start(name, at[0], at[1] - at[0], at[2] - at[1], _most_resident_mb())
    print(json.dumps(asdict(start)))


def _most_resident_mb() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    _start(sys.argv[1])
