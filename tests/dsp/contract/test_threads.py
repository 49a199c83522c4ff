"""Small blocks leave torch's threads asleep, whoever calls, and change nothing for others."""

import os
import subprocess
import sys
import threading

import pytest
import torch

from amt_stream import Chain, Delay, Gain, Rebuffer, Stage, Stream
from amt_stream.dsp.functional.compiler.threads import SMALL
from tests.torch_threads import torch_threads

ASLEEP = """
import sys
import time
import torch
from amt_stream import (
    Dau1997, ModulationSpectrum, Moore2016, Paulick2024, Rebuffer, Stream, ZwickerTimeVarying
)

assert torch.get_num_threads() == 2
models = [
    (Moore2016(48000), (1, 2), 480),
    (Moore2016(48000, accuracy="coarse"), (4, 2), 480),
    (ZwickerTimeVarying(48000), (1,), 480),
    (Dau1997(48000), (1,), 480),
    (Paulick2024(48000), (1,), 480),
    (ModulationSpectrum(48000), (1,), 4800),
][: int(sys.argv[1])]


def spent():
    return time.thread_time(), time.process_time() - time.thread_time()


def run(door, x):
    door.push(x)
    door.live.stage.whole(x)


def asleep():
    # What woke to warm up spins for some turns, not for some time, before it sleeps again.
    before = -1.0
    while (now := spent()[1]) > before + 1e-4:
        before = now
        time.sleep(0.1)


def test():
    for model, shape, size in models:
        door = Rebuffer(Stream(model, shape))
        x = 0.02 * torch.randn(*shape, size)
        run(door, x)
        asleep()
        here, others = spent()
        for _ in range(10):
            run(door, x)
        now, after = spent()
        name = type(model).__name__
        assert after - others < 0.1 * (now - here) + 1e-3, (name, now - here, after - others)
    assert torch.get_num_threads() == 2


with torch.inference_mode():
    test()  # at torch's default
    torch.set_num_threads(2)
    test()  # as chosen, which binds more of its libraries
    here, others = spent()
    for _ in range(10):
        torch.randn(1000, 1000) @ torch.randn(1000, 1000)
    assert spent()[1] > others + 1e-4, "torch has no pool here: nothing was tested"
"""


@pytest.mark.parametrize("some", [2, pytest.param(6, marks=pytest.mark.soak)])
def test_the_pool_sleeps(some):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MKL")}
    environment["OMP_NUM_THREADS"] = "2"
    subprocess.run([sys.executable, "-c", ASLEEP, str(some)], check=True, env=environment)


class Asked(Stage):
    """Gives its input on, and notes how many threads torch would use."""

    def __init__(self):
        super().__init__()
        self.threads = []

    def initial_state(self, shape):
        return {}

    def step(self, x, state):
        self.threads.append(torch.get_num_threads())
        if not x.isfinite().all():
            raise ArithmeticError("not finite")
        return x, state


@pytest.fixture
def two_threads():
    with torch_threads(2):
        yield


@pytest.mark.quick
@pytest.mark.usefixtures("two_threads")
def test_only_small_blocks_go_alone():
    asked = Asked()
    live = Stream(asked, (2,))
    live(torch.zeros(2, SMALL // 2))
    live(torch.zeros(2, SMALL))
    asked(torch.zeros(2, 16))
    asked(torch.zeros(2, SMALL))
    assert asked.threads == [1, 2, 1, 2]
    with pytest.raises(ArithmeticError):
        live(torch.full((2, 16), torch.nan))
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_other_threads_keep_theirs():
    """A thread that meets torch while a block runs here is not bound by that."""
    asked, started = Asked(), []

    class Starts(Asked):
        def step(self, x, state):
            other = threading.Thread(target=lambda: started.append(torch.get_num_threads()))
            other.start()
            other.join()
            return super().step(x, state)

    starts = Starts()
    Rebuffer(Stream(Chain(starts=starts, asked=asked), (1,))).push(torch.zeros(1, 16))
    assert starts.threads == asked.threads == [1] * 16
    assert started == [2] * 16


@pytest.mark.usefixtures("two_threads")
def test_the_answer_is_the_same():
    stage = Chain(wait=Delay(3), gain=Gain(0.5))
    x = torch.randn(2, 64)
    assert stage(x).equal(Rebuffer(Stream(stage, (2,))).push(x))
