"""What every benchmark prints first: the machine, and how times are counted."""

import os
import platform
import time
from pathlib import Path

import numba
import numpy as np
import torch


def machine() -> str:
    """Processor, its cores, and the versions that matter."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), model)
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, Python "
        f"{platform.python_version()}, torch {torch.__version__}, numba {numba.__version__}"
    )


def summary(shares: list[float]) -> str:
    """Median and 99th percentile of seconds per second of audio."""
    return f"median {np.median(shares):.4f}   p99 {np.percentile(shares, 99):.4f}"


@numba.njit
def _arithmetic(x: np.ndarray, turns: int) -> float:
    """Products that fill the vector registers, and a chain of divisions, each waiting."""
    last = 3.0
    for _ in range(turns):
        for i in range(x.size):
            x[i] = x[i] * np.float32(0.999) + np.float32(1e-3)
        for _ in range(64):
            last = 0.5 * last + 1 / (1 + last)
    return last + x[0]


def calibration(turns: int = 40_000) -> float:
    """Thread CPU seconds of a fixed loop of arithmetic: how fast this machine is just now."""
    x = np.full(4096, 2, np.float32)
    _arithmetic(x, 1)
    start = time.thread_time()
    _arithmetic(x, turns)
    return time.thread_time() - start
