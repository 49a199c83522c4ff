"""Thread CPU seconds per second of audio of all meters together, as the engine runs them."""

import math
import time

import numpy as np
import pytest
import torch

from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters import catalog
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import JoinedRows, readings_of
from amt_stream.offline.benchmark import machine
from tests.bench.summary import summary
from tests.engine.measuring import measuring

pytestmark = pytest.mark.bench

FIVE = ["moore2016", "gm2002", "zwicker", "bs1770", "spl"]
FS, SECONDS, BLOCK_MS = 48000, 4, 10
NOISE = 0.02 * np.random.default_rng(0).standard_normal((FS * SECONDS, 2)).astype(np.float32)


def shares(names, readings):
    """CPU share of each block of stereo white noise at 70 dB SPL, with readings and rows or not."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    table = JoinedRows(readings_of(names, 2), 10, FS)
    emit = table if readings else lambda frames: None
    measurements = [
        measuring(
            ReadyStage(model, FS, BLOCK_MS),
            emit,
            Calibration(107.0),
            name=name,
            epoch=lambda audio_s: math.nan,
        )
        for name, model in Preset(tuple(names)).models(FS, 2).items()
    ]
    taken = []
    with torch.inference_mode():
        for block in np.split(NOISE, SECONDS * 1000 // BLOCK_MS):
            start = time.thread_time_ns()
            for measurement in measurements:
                measurement.take(block)
            taken.append((time.thread_time_ns() - start) / 1e6 / BLOCK_MS)
    return taken[len(taken) // 10 :]  # the first blocks load the kernels and fill the caches


def test_all_meters():
    meters = {name: [name] for name in catalog.models_side_by_side()} | {"five of them": FIVE}
    runs = {(name, readings): [] for name in meters for readings in (False, True)}
    for _ in range(3):
        for (name, readings), taken in runs.items():
            taken += shares(meters[name], readings)
    print(f"\n{machine()}")
    print("stereo white noise, 48 kHz, 10 ms blocks, thread CPU seconds per second of audio")
    print(f"  {'':12} {'models':28}   with readings and a row per 10 ms")
    for name in meters:
        alone, told = (summary(runs[name, readings]) for readings in (False, True))
        print(f"  {name:12} {alone}   {told}")
    assert all(len(taken) > 2 for taken in runs.values())
