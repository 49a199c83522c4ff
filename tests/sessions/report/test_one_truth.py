"""What is told of limits, maxima and equivalent levels is the same wherever it is told, and so."""

import pytest

pytest.importorskip("pyqtgraph")

from tests.sessions.report.random_logs import disagreements


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "seed", [0, 1008, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 8))]
)
def test_everything_that_tells_of_a_measurement_tells_the_same(tmp_path, seed):
    assert not disagreements(seed, tmp_path)
