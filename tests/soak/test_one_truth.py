"""300 random measurements: limits, maxima and levels are the same everywhere, and reports are true.

No report has a verdict, an average or a projection over time that was not measured without a word
of it, and each has the total of every cause of gaps.
"""

import shutil

import pytest

pytest.importorskip("pyqtgraph")

from tests.sessions.report.random_logs import disagreements

pytestmark = pytest.mark.soak

TRIALS = 300


def test_everything_that_tells_of_a_measurement_tells_the_same(tmp_path, record):
    found = []
    for seed in range(1000, 1000 + TRIALS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found += disagreements(seed, folder)
        shutil.rmtree(folder)
    assert not found, "\n".join(found[:20])
    record("one truth", f"{TRIALS} measurements, {len(found)} disagreements")
