"""How times are told."""

import numpy as np


def summary(shares: list[float]) -> str:
    """Median and 99th percentile of seconds per second of audio."""
    return f"median {np.median(shares):.4f}   p99 {np.percentile(shares, 99):.4f}"
