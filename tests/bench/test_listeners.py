"""Thread CPU time of a listener among many, beside that of a listener among few."""

import numpy as np
import pytest

from amt_stream.meters import catalog
from amt_stream.offline import benchmark

FEW, MANY = 4, 32
SECONDS = 0.2
TURNS = 3


@pytest.mark.bench
@pytest.mark.parametrize("name", catalog.names())
def test_a_listener_among_many_costs_what_one_among_few_does(name):
    taken = {count: [] for count in (FEW, MANY)}
    for _ in range(TURNS):
        for count, figures in taken.items():
            figures.append(next(benchmark.figures(name, 10, count, seconds=SECONDS)))
    costs = {n: np.median([figure.median for figure in one]) / n for n, one in taken.items()}
    late = {n: np.median([figure.p99 for figure in one]) / n for n, one in taken.items()}
    print(f"\n{name}, CPU seconds per second of sound and listener, 10 ms blocks")
    for count in (FEW, MANY):
        print(f"  among {count:2}: {costs[count]:.4f}, 99th percentile {late[count]:.4f}")
    assert costs[MANY] <= 1.2 * costs[FEW]
