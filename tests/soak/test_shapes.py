"""2000 random shapes for every exported stage and every function of `functional`."""

import pytest

from tests.dsp.contract.random_shapes import CASES, FUNCTIONS
from tests.dsp.contract.test_random_shapes import tried

pytestmark = pytest.mark.soak

TOGETHER = 8
"""Names that one process tries."""

NAMES = [*CASES, *FUNCTIONS]


def test_2000_shapes_each(forks, tmp_path, record):
    trials = taken = 0
    for start in range(0, len(NAMES), TOGETHER):
        names = NAMES[start : start + TOGETHER]
        faults, last = tried(forks, 2000, tmp_path / "trace", *names, seed=2)
        assert not faults, "\n".join(faults)
        counts = [int(word) for word in last.split() if word.isdigit()]
        trials, taken = trials + counts[0], taken + counts[1]
    what = f"random shapes for {len(CASES)} stages and {len(FUNCTIONS)} functions"
    record(what, f"{trials} tried, {taken} taken by both forms alike, the others refused by both")
