"""What an engine and its rows cost beside its models: ratios of CPU seconds of threads in one run.

Counted are the thread of the engine and those of its sinks. What makes the sound is another thread.
"""

import threading
import time

import numpy as np
import pytest
import torch

from amt_stream.engine import Engine, PushSource, RowSink
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.offline.benchmark import machine

pytestmark = pytest.mark.bench

FIVE = ("moore2016", "gm2002", "zwicker", "bs1770", "spl")
FS, SECONDS, BLOCK_MS, RUNS = 48000, 3, 10, 3
BLOCKS = SECONDS * 1000 // BLOCK_MS
FIRST = BLOCKS // 10
"""The first blocks load kernels and fill caches."""

NOISE = 0.02 * np.random.default_rng(0).standard_normal((FS * SECONDS, 2)).astype(np.float32)
CALIBRATION = Calibration(107.0)


def alone(names: tuple[str, ...]) -> float:
    """CPU seconds a second of sound of the models alone, in a thread like that of the engine."""
    taken: list[float] = []

    def run() -> None:
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        ready = [ReadyStage(model, FS, BLOCK_MS) for model in Preset(names).models(FS, 2).values()]
        for one in ready:
            one.warm()
        sound = np.float32(CALIBRATION.pascal_per_unit) * NOISE
        blocks = [torch.from_numpy(b.T[None].copy()) for b in np.split(sound, BLOCKS)]
        with torch.inference_mode():
            for k, block in enumerate(blocks):
                if k == FIRST:
                    start = time.thread_time()
                for one in ready:
                    one.stream(block)
        taken.append(time.thread_time() - start)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return taken[0] / ((BLOCKS - FIRST) * BLOCK_MS / 1000)


def cpu_s() -> float:
    """CPU seconds so far of an engine's own thread and of those of its sinks."""
    ours = [t for t in threading.enumerate() if t.name.startswith(("engine", "sink "))]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(t.ident or 0)) for t in ours)


def reach(engine: Engine, blocks: int) -> None:
    """Wait until the engine has processed so many blocks."""
    while engine.health.samples < blocks * len(NOISE) // BLOCKS:
        time.sleep(0.001)


def in_engine(
    names: tuple[str, ...], step_ms: int | None, live: bool, wait_ms: float | None = None
) -> float:
    """The same of an engine; live sound comes in real time. With rows it gets all of them."""
    rows: list[float] = []
    sinks = []
    if step_ms is not None:
        sinks.append(RowSink(lambda row: rows.append(row["time_s"]), step_ms, wait_ms=wait_ms))
    models = Preset(names).models(FS, 2)
    model = models if len(models) > 1 else next(iter(models.values()))
    source = PushSource(FS, 2, live=live)
    with Engine(
        source, model, sinks, calibration=CALIBRATION, ring_s=2 * SECONDS, ladder=()
    ) as engine:
        begin = time.perf_counter()
        for k, block in enumerate(np.split(NOISE, BLOCKS)):
            if live:
                time.sleep(max(0.0, begin + k * BLOCK_MS / 1000 - time.perf_counter()))
            if k == FIRST:
                reach(engine, k)
                start = cpu_s()
            source.push(block)
        reach(engine, BLOCKS)
        time.sleep(0.05)
        taken = cpu_s() - start
        source.close()
        engine.wait(60)
    if step_ms is not None:
        assert len(rows) >= 0.99 * SECONDS * 1000 / step_ms
    return taken / ((BLOCKS - FIRST) * BLOCK_MS / 1000)


@pytest.mark.parametrize("names", [("moore2016",), FIVE], ids=["moore2016", "five meters"])
def test_what_an_engine_and_its_rows_cost_beside_the_models(names):
    forms = {
        "no sink": (None, False),
        "a row per 10 ms": (10, False),
        "a row per 100 ms": (100, False),
        "live, no sink": (None, True),
        "live, a row per 10 ms": (10, True),
        "live, 10 rows together": (10, True, 90.0),
    }
    models, engines = [], {form: [] for form in forms}
    for _ in range(RUNS):
        models.append(alone(names))
        for form, given in forms.items():
            engines[form].append(in_engine(names, *given))
    print(
        f"\n{machine()}\n{', '.join(names)}, blocks of {BLOCK_MS} ms, rows as dicts to a function"
    )
    print(f"  models alone           least {min(models):.4f}   median {np.median(models):.4f}")
    for form, taken in engines.items():
        least, ratio = min(taken), min(taken) / min(models)
        middle = np.median(taken) / np.median(models)
        print(f"  {form:22} least {least:.4f}   ratio {ratio:.2f}, of medians {middle:.2f}")
