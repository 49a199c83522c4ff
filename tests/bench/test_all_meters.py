"""Thread CPU seconds per second of audio of all meters together, as the engine runs them."""

import math
import time

import numpy as np
import pytest
import torch

from amt_stream.calibration import Calibration
from amt_stream.engine.measurement import Line, Measurement
from amt_stream.outputs import READINGS, JoinedRows
from amt_stream.presets import METERS, Preset
from tests.bench.machine import machine, summary

pytestmark = pytest.mark.bench

FS, SECONDS, BLOCK_MS = 48000, 10, 10
NOISE = 0.02 * np.random.default_rng(0).standard_normal((FS * SECONDS, 2)).astype(np.float32)


def shares(names):
    """CPU share of each block of stereo white noise at 70 dB SPL: models, readings and rows."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    table = JoinedRows({name: READINGS[name](2) for name in names}, 10)
    measurements = [
        Measurement(
            Line(model, FS, BLOCK_MS),
            Calibration(107.0),
            slice(0, 2),
            emit=table,
            epoch=lambda audio_s: math.nan,
            line_changed=lambda line: None,
            name=name,
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
    runs = {name: shares([name]) for name in METERS}
    runs["all of them"] = shares(METERS)
    print(f"\n{machine()}")
    print("stereo white noise, 48 kHz, 10 ms blocks, with readings and a row per 10 ms")
    for name, taken in runs.items():
        print(f"  {name:12} {summary(taken)}   mean {np.mean(taken):.4f}")
        assert len(taken) > 2
