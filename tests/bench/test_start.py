"""How long a person waits: from a command to its first row, and for the first call of `measure`."""

import os
import subprocess
import sys
import time
from statistics import median

import pytest

RUNS = 7
METER = [sys.executable, "-m", "amt_stream", "meter", "--source", "demo", "--format", "csv"]
TORCH = [sys.executable, "-c", "import torch; print(flush=True); input()"]
MEASURE = """
import numpy as np
import amt_stream
amt_stream.measure(np.sin(np.arange(4800) * 0.13), 48000, calibration=100.0)
print(flush=True)
input()
"""


def seconds(command, lines, **variables):
    """Until a command has written so many lines that are no comment."""
    environment = {**os.environ, **variables}
    # A user's Python keeps what it has compiled of modules.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begun = time.monotonic()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        while lines:
            line = process.stdout.readline()
            assert line, f"{command} has ended"
            lines -= not line.startswith("#")
        taken = time.monotonic() - begun
        process.kill()
    return taken


def figures(name, command, lines, runs=RUNS, fresh=None):
    """Print the medians, each run beside one of torch's import."""
    found = []
    for k in range(runs):
        variables = {} if fresh is None else {"NUMBA_CACHE_DIR": str(fresh / str(k))}
        found.append((seconds(command, lines, **variables), seconds(TORCH, 1)))
    whole, torch = (median(column) for column in zip(*found, strict=True))
    print(f"{name}: {whole:.2f} s, of which import torch {torch:.2f} s ({whole / torch:.2f} times)")


@pytest.mark.bench
def test_time_to_the_first_row_and_to_a_first_measurement(tmp_path):
    print()
    seconds(METER, 2)  # brings files and kernels into memory
    figures("first row of a meter, kernels compiled before", METER, 2)
    measure = [sys.executable, "-c", MEASURE]
    seconds(measure, 1)
    figures("import amt_stream and measure of 0.1 s, kernels compiled before", measure, 1)
    figures("first row of a meter, kernels not yet compiled", METER, 2, fresh=tmp_path)
