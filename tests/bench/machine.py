"""What every benchmark prints first: the machine, and how times are counted."""

import os
import platform
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
