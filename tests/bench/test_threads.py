"""A stream at torch's own number of threads beside one at a single thread, alone and on a busy
machine: the CPU time of the whole process for 3 s of Moore2016 in blocks of 10 ms."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from amt_stream.offline.benchmark import machine
from tests.bench.summary import summary

pytestmark = pytest.mark.bench

SECONDS, RUNS, BUSY = 3, 5, 2

PROGRAM = f"""
import json, sys, time
import torch
from amt_stream import Moore2016, Rebuffer, Stream

if sys.argv[1] == "1":
    torch.set_num_threads(1)
torch.set_flush_denormal(True)
door = Rebuffer(Stream(Moore2016(48000), (1, 2)), blocks=10)
noise = 0.02 * torch.randn(1, 2, 48000 * {SECONDS}, generator=torch.Generator().manual_seed(0))
taken, wall = [], []
with torch.inference_mode():
    door.push(noise[..., :9600])
    for block in noise.split(480, -1):
        cpu, start = time.process_time(), time.perf_counter()
        door.push(block)
        taken.append((time.process_time() - cpu) / 0.01)
        wall.append((time.perf_counter() - start) / 0.01)
print(json.dumps([torch.get_num_threads(), taken, wall]))
"""


def spent(threads):
    """Number of threads, and CPU and wall seconds per second of sound of each block."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP", "MKL"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, threads],
        check=True,
        stdout=subprocess.PIPE,
        env=environment,
    )
    return json.loads(done.stdout)


@pytest.fixture(params=[0, BUSY], ids=["idle", "busy"])
def neighbors(request):
    """So many other processes that never rest."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(request.param)
    ]
    yield request.param
    for process in busy:
        process.kill()
        process.wait()


def test_threads(neighbors):
    runs = {"1": [], "default": []}
    for _ in range(RUNS):
        for threads, done in runs.items():
            done.append(spent(threads))
    print(f"\n{machine()}")
    print(f"Moore2016, 10 ms blocks, {neighbors} busy processes beside it, process CPU and wall")
    for done in runs.values():
        counts, cpu, wall = zip(*done, strict=True)
        print(f"  {counts[0]} threads   CPU {summary(np.ravel(cpu))}")
        print(f"  {'':9}   wall {summary(np.ravel(wall))}")
    # The least of several: neighbors, and those of this computer, only ever add to it.
    one, default = (min(sum(cpu) for _, cpu, _ in done) for done in runs.values())
    print(f"  ratio of the CPU time {default / one:.3f}")
    assert default < 1.1 * one
