"""A small model and scripted sources for the engine."""

import threading
import time
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
import torch

from amt_stream.dsp.compose import Chain, Delay
from amt_stream.dsp.streaming import Stage
from amt_stream.engine import Engine, MicrophoneSource
from amt_stream.engine.sources import Source
from amt_stream.meters.calibration import Calibration
from tests.engine.given_time import GivenTime, give_time

FULL_SCALE = Calibration(100.0, source="test")


class Powers(NamedTuple):
    stl: object
    ltl: object
    ears: object
    spectrum: object = None


class PowerMeter(Stage):
    """Mean square of each block in both ears, and the same smoothed: a model with a memory."""

    out_time_dim = Powers(-1, -1, -1, None)
    settle_s = 0.05

    def __init__(self, block_size: int) -> None:
        super().__init__()
        self.block_size = block_size
        self.ratio = Fraction(1, block_size)

    def initial_state(self, shape):
        return {"ltl": self.state_like("ltl", (*shape[:-1], 1))}

    def step(self, x, state):
        ears = x.unflatten(-1, (-1, self.block_size)).square().mean(-1)
        stl = ears.sum(-2)
        ltl, rows = state["ltl"], []
        for n in range(stl.shape[-1]):
            ltl = ltl + 0.05 * (stl[..., n : n + 1] - ltl)
            rows.append(ltl)
        return Powers(stl, torch.cat(rows, -1), ears), {"ltl": ltl}


class ScriptedSource(Source):
    """Calls `script(deliver)` in its own thread, then says that it has ended."""

    def __init__(
        self, script: Callable, fs: int = 48000, channels: int = 2, live: bool = True
    ) -> None:
        self.name, self.fs, self.channels, self.live = "script", fs, channels, live
        self._script = script

    def start(self, deliver) -> None:
        def run() -> None:
            self._script(deliver)
            deliver(None)

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def stop(self) -> None:
        self._thread.join()


@pytest.fixture
def scripted():
    return ScriptedSource


@pytest.fixture
def power_meter():
    """Makes the model: 1 ms frames (10 ms where the rate has no whole ones), `delay` samples."""

    def make(fs: int = 48000, delay: int = 0) -> Stage:
        meter = PowerMeter(fs // 1000 if fs % 1000 == 0 else fs // 100)
        if not delay:
            return meter
        chain = Chain(wait=Delay(delay), meter=meter)
        chain.settle_s = meter.settle_s
        return chain

    return make


class Collector:
    """A sink that keeps everything; `column` joins it."""

    def __init__(self) -> None:
        self.all = []

    def __call__(self, frames) -> None:
        self.all.append(frames)

    def column(self, name: str) -> np.ndarray:
        parts = [
            getattr(f, name) if hasattr(f, name) else getattr(f.values, name) for f in self.all
        ]
        return np.concatenate(parts, axis=-1)


@pytest.fixture
def until():
    """Waits for a condition; fails after a minute, so that a broken test ends."""

    def wait(condition: Callable[[], bool], seconds: float = 60) -> None:
        give_up = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < give_up, "the condition never came true"
            time.sleep(0.001)

    return wait


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> GivenTime:
    """Time that the test gives, of an engine on `clock.source`."""
    return give_time(monkeypatch)


@pytest.fixture
def collector():
    return Collector()


@pytest.fixture
def noise():
    """Makes samples `(time, channel)`, the same for the same arguments."""

    def make(samples: int, channels: int = 2, rms: float = 0.05) -> np.ndarray:
        rng = np.random.default_rng(samples)
        return (rms * rng.standard_normal((samples, channels))).astype(np.float32)

    return make


@pytest.fixture
def record(virtual_mic, collector, until):
    """Runs the engine on the virtual microphone while `path` is played; gives the engine."""

    def run(path, model, run_in="engine", **microphone) -> Engine:
        source = MicrophoneSource("virtual_mic", **microphone)
        with Engine(source, model, [collector], calibration=FULL_SCALE, run_in=run_in) as engine:
            until(lambda: engine.health.samples > 0.3 * source.fs)
            virtual_mic.play(path)
            heard = engine.health.samples
            until(lambda: engine.health.samples > heard + 0.5 * source.fs)
            engine.final_health = engine.health
        return engine

    return run
